// Vectors of the instruction set that simd/simd.cpp is compiled for.  Only that file includes this one: the names are
// its own, since every instruction set has another meaning for them.
#pragma once
#include <cstdint>
#include <utility>

#include "simd/simd.hpp"

#if defined(__AVX512F__)
#define SKMARGIN_BYTES 64
#elif defined(__AVX__)
#define SKMARGIN_BYTES 32
#else
#define SKMARGIN_BYTES 16
#endif

#if defined(__GNUC__) || defined(__clang__)
#define SKMARGIN_PREFETCH(p) __builtin_prefetch(p)
#define SKMARGIN_INLINE inline __attribute__((always_inline))  // arrays of vectors stay in registers
#else
#define SKMARGIN_PREFETCH(p) ((void)(p))
#define SKMARGIN_INLINE __forceinline
#endif

namespace skm {
namespace {

constexpr int bytes = SKMARGIN_BYTES;
// Vectors for few classes, which would leave half of a wide one empty.
constexpr int narrow = bytes > 16 ? bytes / 2 : bytes;
template <class T, int Bytes = bytes> constexpr int lanes = Bytes / static_cast<int>(sizeof(T));

// Numbers of the vectors a and b of n each, at places that may depend on a pack J.
#if defined(__clang__) || __GNUC__ >= 12
#define SKMARGIN_PICK(type, n, a, b, place) __builtin_shufflevector(a, b, place...)
#else
#define SKMARGIN_PICK(type, n, a, b, place) (type{((place) < (n) ? (a)[(place) % (n)] : (b)[(place) % (n)])...})
#endif

// One vector register.  GCC and Clang have it as a type; elsewhere a small array that the compiler unrolls.
#if defined(__GNUC__) || defined(__clang__)
template <class T, int Bytes = bytes>
struct Vec {
    typedef T reg __attribute__((vector_size(Bytes)));
    typedef T mem __attribute__((vector_size(Bytes), aligned(sizeof(T)), may_alias));
    reg v;
    static Vec load(const T* p) { return {*reinterpret_cast<const mem*>(p)}; }
    static Vec all(T s) { return {s - reg{}}; }
    void store(T* p) const { *reinterpret_cast<mem*>(p) = v; }
    void fma(Vec a, Vec b) { v += a.v * b.v; }
    void fms(Vec a, Vec b) { v -= a.v * b.v; }
    T operator[](int j) const { return v[j]; }

    // Numbers of this one at places with the bit S change with those of b without it: a step of a transposition.
    template <int S>
    void exchange(Vec& b) {
        exchange<S>(b, std::make_integer_sequence<int, lanes<T, Bytes>>());
    }
    template <int S, int... J>
    void exchange(Vec& b, std::integer_sequence<int, J...>) {
        constexpr int L = lanes<T, Bytes>;
        const reg a = v;
        v = SKMARGIN_PICK(reg, L, a, b.v, (J & S ? L + J - S : J));
        b.v = SKMARGIN_PICK(reg, L, a, b.v, (J & S ? L + J : J + S));
    }
    // Two shorter vectors, one after the other.
    using Half = Vec<T, Bytes / 2>;
    static Vec join(Half a, Half b) { return join(a, b, std::make_integer_sequence<int, lanes<T, Bytes>>()); }
    template <int... J>
    static Vec join(Half a, Half b, std::integer_sequence<int, J...>) {
        return {SKMARGIN_PICK(reg, static_cast<int>(sizeof...(J)) / 2, a.v, b.v, J)};
    }
    // Where a is larger it comes here, and its integers to `at`.
    using Places = Vec<Place<T>, Bytes>;
    void keep_larger(Vec a, Places its, Places& at) {
        const auto larger = a.v > v;
        at.v = larger ? its.v : at.v;
        v = larger ? a.v : v;
    }
};
#else
template <class T, int Bytes = bytes>
struct Vec {
    T v[lanes<T, Bytes>];
    static Vec load(const T* p) {
        Vec r;
        for (int j = 0; j < lanes<T, Bytes>; ++j) r.v[j] = p[j];
        return r;
    }
    static Vec all(T s) {
        Vec r;
        for (int j = 0; j < lanes<T, Bytes>; ++j) r.v[j] = s;
        return r;
    }
    void store(T* p) const {
        for (int j = 0; j < lanes<T, Bytes>; ++j) p[j] = v[j];
    }
    void fma(Vec a, Vec b) {
        for (int j = 0; j < lanes<T, Bytes>; ++j) v[j] += a.v[j] * b.v[j];
    }
    void fms(Vec a, Vec b) {
        for (int j = 0; j < lanes<T, Bytes>; ++j) v[j] -= a.v[j] * b.v[j];
    }
    T operator[](int j) const { return v[j]; }
    template <int S>
    void exchange(Vec& b) {
        for (int j = 0; j < lanes<T, Bytes>; ++j) {
            if ((j & S) == 0) continue;
            const T mine = v[j];
            v[j] = b.v[j - S];
            b.v[j - S] = mine;
        }
    }
    using Half = Vec<T, Bytes / 2>;
    static Vec join(Half a, Half b) {
        Vec r;
        for (int j = 0; j < lanes<T, Bytes / 2>; ++j) {
            r.v[j] = a.v[j];
            r.v[lanes<T, Bytes / 2> + j] = b.v[j];
        }
        return r;
    }
    using Places = Vec<Place<T>, Bytes>;
    void keep_larger(Vec a, Places its, Places& at) {
        for (int j = 0; j < lanes<T, Bytes>; ++j) {
            at.v[j] = a.v[j] > v[j] ? its.v[j] : at.v[j];
            v[j] = a.v[j] > v[j] ? a.v[j] : v[j];
        }
    }
};
#endif

}  // namespace
}  // namespace skm

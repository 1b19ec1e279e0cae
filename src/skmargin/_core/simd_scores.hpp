// Scores of many rows at once, and which class has the largest (Simd::products, Simd::labels); a part of simd.cpp.
#pragma once
#include <cstring>
#include <limits>

#include "simd_vec.hpp"

namespace skm {
namespace {

// Rows in a tile, each with an accumulator of its own, so that the latency is hidden; enough for `transpose`.
template <class T> constexpr int tile = lanes<T> > 8 ? lanes<T> : 8;

// One vector of classes for each of R rows.
template <int R, class T, int Bytes>
SKMARGIN_INLINE void scores_of(const T* X, int64_t d, const T* W, int64_t ld, const T* b, Vec<T, Bytes>* f) {
    for (int r = 0; r < R; ++r) f[r] = Vec<T, Bytes>::load(b);
    for (int64_t j = 0; j < d; ++j) {
        const Vec<T, Bytes> w = Vec<T, Bytes>::load(W + j * ld);
        for (int r = 0; r < R; ++r) f[r].fma(Vec<T, Bytes>::all(X[r * d + j]), w);
    }
}

template <int Bytes, class T>
void products_of(const T* X, int64_t rows, int64_t d, const T* W, int64_t ld, const T* b, T* out) {
    int64_t i = 0;
    for (; i + tile<T> <= rows; i += tile<T>) {
        Vec<T, Bytes> f[tile<T>];
        scores_of<tile<T>>(X + i * d, d, W, ld, b, f);
        for (int r = 0; r < tile<T>; ++r) f[r].store(out + (i + r) * ld);
    }
    for (; i < rows; ++i) {
        Vec<T, Bytes> f;
        scores_of<1>(X + i * d, d, W, ld, b, &f);
        f.store(out + i * ld);
    }
}

template <class T>
void products(const T* X, int64_t rows, int64_t d, const T* W, int64_t ld, const T* b, T* out) {
    int64_t l = 0;
    for (; l + lanes<T> <= ld; l += lanes<T>) products_of<bytes>(X, rows, d, W + l, ld, b + l, out + l);
    if (l < ld) products_of<narrow>(X, rows, d, W + l, ld, b + l, out + l);
}

// N vectors of N numbers each become their columns; of longer vectors each group of N numbers for itself.
template <int N, int S = 1, class Vector>
SKMARGIN_INLINE void transpose(Vector* a) {
    if constexpr (S < N) {
        transpose<N, 2 * S>(a);
        for (int j = 0; j < N; ++j)
            if ((j & S) == 0) a[j].template exchange<S>(a[j + S]);
    }
}

// A single vector of class: its features lie along the vectors, and the rows of a tile are summed up together.
template <class T>
void single(const T* X, int64_t rows, int64_t d, const T* w, T b, T* out) {
    constexpr int L = lanes<T>;
    for (int64_t i = 0; i < rows; i += tile<T>) {
        Vec<T> f[tile<T>];
        for (int r = 0; r < tile<T>; ++r) f[r] = Vec<T>::all(0);
        for (int64_t j = 0; j < d; j += L) {
            const Vec<T> part = Vec<T>::load(w + j);
            for (int r = 0; r < tile<T>; ++r) f[r].fma(Vec<T>::load(X + (i + r) * d + j), part);
        }
        for (int g = 0; g < tile<T>; g += L) {
            transpose<L>(f + g);
            Vec<T> sum = Vec<T>::all(b);
            for (int r = 0; r < L; ++r) sum.fma(f[g + r], Vec<T>::all(1));
            sum.store(out + i + g);
        }
    }
}

// Whether all numbers that it saw are finite: others leave NaN in a sum of zeros.  The factor is read from memory,
// since the compiler would take the sum for zero.
template <class T>
class Finite {
  public:
    void see(Vec<T> f) { sum_.fma(f, nothing_); }
    bool all() const {
        bool zero = true;
        for (int j = 0; j < lanes<T>; ++j) zero = zero && sum_[j] == 0;
        return zero;
    }

  private:
    const volatile T read_ = 0;
    Vec<T> nothing_ = Vec<T>::all(read_), sum_ = nothing_;
};

// The largest score so far of each of as many rows as a vector has numbers, and its class: no row is searched alone.
template <class T>
struct Largest {
    using Places = typename Vec<T>::Places;
    Vec<T> score = Vec<T>::all(-std::numeric_limits<T>::infinity());
    Places at{};

    // N more classes: f are the scores of the rows, and become those of the classes.  Pairs first: they need not wait
    // for each other.
    template <int N>
    SKMARGIN_INLINE void meet(Vec<T>* f, const Place<T>* names) {
        transpose<N>(f);
        Places winner[N];
        for (int j = 0; j < N; ++j) winner[j] = Vec<T>::places(names[j]);
        for (int j = 0; j < N; j += 2) f[j].keep_larger(f[j + 1], winner[j + 1], winner[j]);
        for (int j = 0; j < N; j += 2) score.keep_larger(f[j], winner[j], at);
    }
};

template <class T>
bool labels(const T* X, int64_t rows, int64_t d, const T* W, int64_t ld, const T* b, const Place<T>* names,
            Place<T>* out) {
    constexpr int L = lanes<T>, H = lanes<T, narrow>, groups = tile<T> / L;
    Finite<T> finite;
    for (int64_t i = 0; i < rows; i += tile<T>) {
        Largest<T> largest[groups];
        int64_t l = 0;
        for (; l + L <= ld; l += L) {
            Vec<T> f[tile<T>];
            scores_of<tile<T>>(X + i * d, d, W + l, ld, b + l, f);
            for (int g = 0; g < groups; ++g) largest[g].template meet<L>(f + g * L, names + l);
        }
        if constexpr (H < L)
            if (l < ld) {
                Vec<T, narrow> f[tile<T>];
                scores_of<tile<T>>(X + i * d, d, W + l, ld, b + l, f);
                for (int g = 0; g < groups; ++g) {
                    Vec<T> joined[H];
                    for (int j = 0; j < H; ++j) joined[j] = Vec<T>::join(f[g * L + j], f[g * L + H + j]);
                    largest[g].template meet<H>(joined, names + l);
                }
            }
        for (int g = 0; g < groups; ++g) {
            finite.see(largest[g].score);
            std::memcpy(out + i + g * L, &largest[g].at, sizeof(largest[g].at));
        }
    }
    return finite.all();
}

}  // namespace
}  // namespace skm

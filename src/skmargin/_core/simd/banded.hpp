// Band systems for several complex shifts at once (Simd::banded_shifts); a part of simd/simd.cpp.
#pragma once
#include "simd/vectors.hpp"

namespace skm {
namespace {

template <class T>
struct Complex {
    Vec<T> re, im;
    static Complex load(const T* p) { return {Vec<T>::load(p), Vec<T>::load(p + lanes<T>)}; }
    static Complex all(T s) { return {Vec<T>::all(s), Vec<T>::all(0)}; }
    void store(T* p) const {
        re.store(p);
        im.store(p + lanes<T>);
    }
    void add(Complex a, Complex b) {
        re.fma(a.re, b.re);
        re.fms(a.im, b.im);
        im.fma(a.re, b.im);
        im.fma(a.im, b.re);
    }
    void subtract(Complex a, Complex b) {
        re.fms(a.re, b.re);
        re.fma(a.im, b.im);
        im.fms(a.re, b.im);
        im.fms(a.im, b.re);
    }
    void add(Vec<T> a, Complex b) {
        re.fma(a, b.re);
        im.fma(a, b.im);
    }
};

// B + shift = L D L' by columns from the left; a column of L is kept with zeros behind its end, so that tiles of rows
// may run over it.  L is [j][i]: L[j + i, j] for i = 1 .. b; D is its reciprocal, at i = 0.
template <class T>
void banded_shifts(const T* B, int64_t n, int64_t b, const T* real, const T* imaginary, const T* x, int64_t vectors,
                   T* work, T* z, T* residual, T* pivot) {
    constexpr int lane = lanes<T>, number = 2 * lane, tile = 4;
    const int64_t ld = (b + 2 * tile) * number;
    T *L = work, *column = L + n * ld, *scaled = column + (b + 2 * tile) * number, *D = scaled + (b + 1) * number;
    const Complex<T> shift{Vec<T>::load(real), Vec<T>::load(imaginary)};
    for (int64_t j = 0; j < n; ++j) {
        const int64_t before = j < b ? j : b;
        T* Lj = L + j * ld;
        for (int64_t p = 1; p <= before; ++p) {  // D[j - p] L[j, j - p]
            Complex<T> s = Complex<T>::all(0);
            s.add(Complex<T>::load(D + ((j - p) % (b + 1)) * number), Complex<T>::load(L + (j - p) * ld + p * number));
            s.store(scaled + p * number);
        }
        for (int64_t i0 = 0; i0 <= b; i0 += tile) {
            Complex<T> c[tile];
            for (int t = 0; t < tile; ++t)
                c[t] = Complex<T>::all(i0 + t <= b && j + i0 + t < n ? B[j * (b + 1) + i0 + t] : 0);
            if (i0 == 0) c[0].add(Vec<T>::all(1), shift);
            const int64_t reach = before < b - i0 ? before : b - i0;
            for (int64_t p = 1; p <= reach; ++p) {
                const Complex<T> s = Complex<T>::load(scaled + p * number);
                const T* l = L + (j - p) * ld + (p + i0) * number;
                for (int t = 0; t < tile; ++t) c[t].subtract(Complex<T>::load(l + t * number), s);
            }
            for (int t = 0; t < tile; ++t) c[t].store(column + (i0 + t) * number);
        }
        const Complex<T> d = Complex<T>::load(column);
        d.store(D + (j % (b + 1)) * number);
        T inverse[number];
        for (int v = 0; v < lane; ++v) {
            const T size = d.re[v] * d.re[v] + d.im[v] * d.im[v];
            inverse[v] = d.re[v] / size;
            inverse[lane + v] = -d.im[v] / size;
            if (j == 0 || !(d.re[v] > pivot[v])) pivot[v] = d.re[v];
        }
        const Complex<T> r = Complex<T>::load(inverse);
        r.store(Lj);
        for (int64_t i = 1; i < b + 2 * tile; ++i) {
            Complex<T> l = Complex<T>::all(0);
            if (i <= b && j + i < n) l.add(Complex<T>::load(column + i * number), r);
            l.store(Lj + i * number);
        }
    }
    for (int v = 0; v < lane; ++v) residual[v] = 0;
    for (int64_t vector = 0; vector < vectors; ++vector) {
        T* u = z + vector * n * number;
        const T* given = x + vector * n;
        for (int64_t j = 0; j < n; ++j) {
            Complex<T> s = Complex<T>::all(given[j]);
            for (int64_t p = 1; p <= (j < b ? j : b); ++p)
                s.subtract(Complex<T>::load(L + (j - p) * ld + p * number), Complex<T>::load(u + (j - p) * number));
            s.store(u + j * number);
        }
        for (int64_t j = n; j-- > 0;) {
            Complex<T> s = Complex<T>::all(0);
            s.add(Complex<T>::load(L + j * ld), Complex<T>::load(u + j * number));
            for (int64_t i = 1; i <= b && j + i < n; ++i)
                s.subtract(Complex<T>::load(L + j * ld + i * number), Complex<T>::load(u + (j + i) * number));
            s.store(u + j * number);
        }
        for (int64_t j = 0; j < n; ++j) {
            Complex<T> s = Complex<T>::all(-given[j]);
            const Complex<T> own = Complex<T>::load(u + j * number);
            s.add(shift, own);
            for (int64_t i = 0; i <= b && j + i < n; ++i)
                s.add(Vec<T>::all(B[j * (b + 1) + i]), Complex<T>::load(u + (j + i) * number));
            for (int64_t i = 1; i <= b && i <= j; ++i)
                s.add(Vec<T>::all(B[(j - i) * (b + 1) + i]), Complex<T>::load(u + (j - i) * number));
            for (int v = 0; v < lane; ++v) {
                const T real_part = s.re[v] < 0 ? -s.re[v] : s.re[v], other = s.im[v] < 0 ? -s.im[v] : s.im[v];
                const T size = real_part > other ? real_part : other;
                if (!(size <= residual[v])) residual[v] = size;
            }
        }
    }
}

}  // namespace
}  // namespace skm

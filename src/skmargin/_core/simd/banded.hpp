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

// B + shift = L D L' by columns from the left, and solutions with it.  A column of L is kept with zeros behind its end,
// so that tiles of rows may run over it.  L is [j][i]: L[j + i, j] for i = 1 .. b; D is its reciprocal, at i = 0.
template <class T>
class BandFactor {
  public:
    BandFactor(const T* B, int64_t n, int64_t b, const T* real, const T* imaginary, T* work)
        : B_(B), n_(n), b_(b), ld_((b + 2 * tile) * number), shift_{Vec<T>::load(real), Vec<T>::load(imaginary)},
          L_(work), column_(L_ + n * ld_), scaled_(column_ + (b + 2 * tile) * number), D_(scaled_ + (b + 1) * number) {}

    // `pivot` becomes the smallest real part of D of each shift.
    void factor(T* pivot) {
        for (int64_t j = 0; j < n_; ++j) {
            scale_row(j);
            subtract_columns(j);
            const Complex<T> d = Complex<T>::load(column_);
            d.store(D_ + (j % (b_ + 1)) * number);
            T inverse[number];
            for (int v = 0; v < lane; ++v) {
                const T size = d.re[v] * d.re[v] + d.im[v] * d.im[v];
                inverse[v] = d.re[v] / size;
                inverse[lane + v] = -d.im[v] / size;
                if (j == 0 || !(d.re[v] > pivot[v])) pivot[v] = d.re[v];
            }
            const Complex<T> r = Complex<T>::load(inverse);
            T* Lj = L_ + j * ld_;
            r.store(Lj);
            for (int64_t i = 1; i < b_ + 2 * tile; ++i) {
                Complex<T> l = Complex<T>::all(0);
                if (i <= b_ && j + i < n_) l.add(Complex<T>::load(column_ + i * number), r);
                l.store(Lj + i * number);
            }
        }
    }

    // u, one number for each shift, with (B + shift) u = given.
    void solve(const T* given, T* u) const {
        for (int64_t j = 0; j < n_; ++j) {
            Complex<T> s = Complex<T>::all(given[j]);
            for (int64_t p = 1; p <= (j < b_ ? j : b_); ++p)
                s.subtract(Complex<T>::load(L_ + (j - p) * ld_ + p * number), Complex<T>::load(u + (j - p) * number));
            s.store(u + j * number);
        }
        for (int64_t j = n_; j-- > 0;) {
            Complex<T> s = Complex<T>::all(0);
            s.add(Complex<T>::load(L_ + j * ld_), Complex<T>::load(u + j * number));
            for (int64_t i = 1; i <= b_ && j + i < n_; ++i)
                s.subtract(Complex<T>::load(L_ + j * ld_ + i * number), Complex<T>::load(u + (j + i) * number));
            s.store(u + j * number);
        }
    }

    // Raises `residual` of each shift to the largest number of (B + shift) u - given.
    void add_residual(const T* given, const T* u, T* residual) const {
        for (int64_t j = 0; j < n_; ++j) {
            Complex<T> s = Complex<T>::all(-given[j]);
            const Complex<T> own = Complex<T>::load(u + j * number);
            s.add(shift_, own);
            for (int64_t i = 0; i <= b_ && j + i < n_; ++i)
                s.add(Vec<T>::all(B_[j * (b_ + 1) + i]), Complex<T>::load(u + (j + i) * number));
            for (int64_t i = 1; i <= b_ && i <= j; ++i)
                s.add(Vec<T>::all(B_[(j - i) * (b_ + 1) + i]), Complex<T>::load(u + (j - i) * number));
            for (int v = 0; v < lane; ++v) {
                const T real = s.re[v] < 0 ? -s.re[v] : s.re[v], imaginary = s.im[v] < 0 ? -s.im[v] : s.im[v];
                const T size = real > imaginary ? real : imaginary;
                if (!(size <= residual[v])) residual[v] = size;
            }
        }
    }

    static constexpr int lane = lanes<T>, number = 2 * lane, tile = 4;

  private:
    int64_t columns_before(int64_t j) const { return j < b_ ? j : b_; }

    // D[j - p] L[j, j - p] for the columns j - p that reach row j.
    void scale_row(int64_t j) {
        for (int64_t p = 1; p <= columns_before(j); ++p) {
            Complex<T> s = Complex<T>::all(0);
            s.add(Complex<T>::load(D_ + ((j - p) % (b_ + 1)) * number),
                  Complex<T>::load(L_ + (j - p) * ld_ + p * number));
            s.store(scaled_ + p * number);
        }
    }
    // Column j of B + shift less what the columns before take from it.
    void subtract_columns(int64_t j) {
        const int64_t before = columns_before(j);
        for (int64_t i0 = 0; i0 <= b_; i0 += tile) {
            Complex<T> c[tile];
            for (int t = 0; t < tile; ++t)
                c[t] = Complex<T>::all(i0 + t <= b_ && j + i0 + t < n_ ? B_[j * (b_ + 1) + i0 + t] : 0);
            if (i0 == 0) c[0].add(Vec<T>::all(1), shift_);
            const int64_t reach = before < b_ - i0 ? before : b_ - i0;
            for (int64_t p = 1; p <= reach; ++p) {
                const Complex<T> s = Complex<T>::load(scaled_ + p * number);
                const T* l = L_ + (j - p) * ld_ + (p + i0) * number;
                for (int t = 0; t < tile; ++t) c[t].subtract(Complex<T>::load(l + t * number), s);
            }
            for (int t = 0; t < tile; ++t) c[t].store(column_ + (i0 + t) * number);
        }
    }

    const T* B_;
    const int64_t n_, b_, ld_;
    const Complex<T> shift_;
    T *L_, *column_, *scaled_, *D_;
};

template <class T>
void banded_shifts(const T* B, int64_t n, int64_t b, const T* real, const T* imaginary, const T* x, int64_t vectors,
                   T* work, T* z, T* residual, T* pivot) {
    using Factor = BandFactor<T>;
    Factor matrix(B, n, b, real, imaginary, work);
    matrix.factor(pivot);
    for (int v = 0; v < Factor::lane; ++v) residual[v] = 0;
    for (int64_t vector = 0; vector < vectors; ++vector) {
        T* u = z + vector * n * Factor::number;
        matrix.solve(x + vector * n, u);
        matrix.add_residual(x + vector * n, u, residual);
    }
}

}  // namespace
}  // namespace skm

// A symmetric matrix as a banded matrix between orthogonal factors: M = H T H', in products of matrices only.
//
// Householder's reduction to a tridiagonal matrix needs, column by column, the product of all that is left of M with a
// vector, which is as slow as the memory.  A band of b columns is reached panel by panel (Bischof, Lang & Sun 2000):
//
//   P = M[k+b:, k:k+b] = (I - V S V') R          its b reflectors, V unit lower trapezoidal, S upper triangular
//   M <- (I - V S'V') M (I - V S V') = M - V W' - W V',   W = M V S - V (S'V'M V S) / 2
//
// and systems with a shifted banded matrix are as cheap as with a tridiagonal one (simd/simd.hpp: `banded_shifts`).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/blas.hpp"
#include "simd/simd.hpp"
#include "tuning.hpp"

namespace skm {

class BandedForm {
  public:
    // M is (n, n), column-major, read from its diagonal downwards; it is overwritten with the reflectors and kept.
    BandedForm(double* M, int n, const RidgeTuning& tuning = {})
        : n_(n), b_(std::max(1, std::min(n - 1, tuning.band))), M_(M), band_(static_cast<size_t>(n) * (b_ + 1)) {
        S_.reserve(static_cast<size_t>(n) * b_);
        std::vector<double> work(static_cast<size_t>(3) * n * b_), small(static_cast<size_t>(4) * b_ * b_);
        int k = 0;
        for (; k + b_ < n_; k += b_) {
            const int rows = n_ - k - b_;
            const int count = std::min(rows - 1, b_);
            counts_.push_back(count);
            S_.resize(S_.size() + static_cast<size_t>(count) * count);
            reflect(k, rows, count, small);
            if (count > 0) update(k, rows, count, work.data(), small.data());
        }
        for (int column = k; column < n_; ++column)
            for (int row = column; row < n_; ++row) band(row, column) = at(row, column);
    }

    int width() const { return b_; }
    std::vector<double>& values() { return band_; }  // (n, b + 1): T[j + i, j] at [j][i]

    // H'X ("T") or H X ("N") for the columns of X, which are contiguous.
    void apply(const char* transposed, double* X, int columns) const {
        std::vector<double> product(static_cast<size_t>(2) * b_ * std::max(1, columns));
        const int panels = static_cast<int>(counts_.size());
        size_t end = S_.size(), begin = 0;
        for (int step = 0; step < panels; ++step) {
            const bool forward = *transposed == 'T';
            const int panel = forward ? step : panels - 1 - step, k = panel * b_, rows = n_ - k - b_;
            const int count = counts_[panel];
            const size_t size = static_cast<size_t>(count) * count;
            const double* S = S_.data() + (forward ? begin : end - size);
            begin += size, end -= size;
            if (count == 0) continue;
            double *first = product.data(), *second = first + static_cast<size_t>(b_) * columns, *to = X + k + b_;
            multiply("T", "N", count, columns, rows, 1, V(k), n_, to, n_, 0, first, count);
            multiply(transposed, "N", count, columns, count, 1, S, count, first, count, 0, second, count);
            multiply("N", "N", rows, columns, count, -1, V(k), n_, second, count, 1, to, n_);
        }
    }

  private:
    double& at(int row, int column) { return M_[static_cast<size_t>(column) * n_ + row]; }
    double& band(int row, int column) { return band_[static_cast<size_t>(column) * (b_ + 1) + row - column]; }
    const double* V(int k) const { return M_ + static_cast<size_t>(k) * n_ + k + b_; }
    double* V(int k) { return M_ + static_cast<size_t>(k) * n_ + k + b_; }

    static void multiply(const char* ta, const char* tb, int m, int n, int k, double alpha, const double* A, int lda,
                         const double* B, int ldb, double beta, double* C, int ldc) {
        blas.gemm(ta, tb, &m, &n, &k, &alpha, A, &lda, B, &ldb, &beta, C, &ldc);
    }

    // The reflectors of the panel at k, in its place, with their S; what is inside of the band is moved there.
    void reflect(int k, int rows, int count, std::vector<double>& small) {
        const auto& simd = skm::simd<double>();
        double *P = V(k), *S = S_.data() + S_.size() - static_cast<size_t>(count) * count;
        double* dots = small.data();
        std::vector<int32_t> number(b_);
        std::iota(number.begin(), number.end(), 0);
        for (int j = 0; j < count; ++j) {
            double* v = P + static_cast<size_t>(j) * n_ + j;
            const int length = rows - j;
            double square = 0;
            simd.dots_all(v + 1, length - 1, v + 1, n_, 1, &square);
            const double alpha = *v, norm = std::copysign(std::sqrt(alpha * alpha + square), alpha);
            const double tau = square == 0 ? 0 : (norm + alpha) / norm;
            if (square != 0) {
                const double inverse = 1 / (alpha + norm);
                for (int i = 1; i < length; ++i) v[i] *= inverse;
            }
            *v = 1;
            if (const int rest = b_ - j - 1; rest > 0 && tau != 0) {
                simd.dots_all(v, length, v + n_, n_, rest, dots);
                for (int c = 0; c < rest; ++c) dots[c] *= -tau;
                simd.axpys(v, length, v + n_, n_, number.data(), rest, dots);
            }
            // S[:j, j] = -tau S[:j, :j] V[:, :j]'v
            simd.dots_all(v, length, P + j, n_, j, dots);
            for (int i = 0; i < j; ++i) {
                double sum = 0;
                for (int c = i; c < j; ++c) sum += S[static_cast<size_t>(c) * count + i] * dots[c];
                S[static_cast<size_t>(j) * count + i] = -tau * sum;
            }
            S[static_cast<size_t>(j) * count + j] = tau;
            *v = square == 0 ? alpha : -norm;  // R's, until it is moved
        }
        for (int j = 0; j < b_; ++j) {
            for (int row = k + j; row < k + b_; ++row) band(row, k + j) = at(row, k + j);
            for (int i = 0; i <= std::min(j, rows - 1); ++i) {
                double& number_of_r = P[static_cast<size_t>(j) * n_ + i];
                band(k + b_ + i, k + j) = number_of_r;
                number_of_r = i == j ? 1 : 0;
            }
        }
    }

    // What is left of M from both sides; `work` holds [M V, V, W].
    void update(int k, int rows, int count, double* work, double* small) {
        const size_t size = static_cast<size_t>(rows) * count, square = static_cast<size_t>(count) * count;
        double *MV = work, *copy = work + size, *W = copy + size;
        const double* S = S_.data() + S_.size() - square;
        double *factor = small, *product = small + 2 * square, *half = product + square;
        for (int j = 0; j < count; ++j)
            std::copy_n(V(k) + static_cast<size_t>(j) * n_, rows, copy + static_cast<size_t>(j) * rows);
        double* rest = &at(k + b_, k + b_);
        const double one = 1, zero = 0, minus = -1;
        blas.symm("L", "L", &rows, &count, &one, rest, &n_, copy, &rows, &zero, MV, &rows);
        multiply("T", "N", count, count, rows, 1, copy, rows, MV, rows, 0, product, count);
        multiply("N", "N", count, count, count, 1, product, count, S, count, 0, half, count);
        multiply("T", "N", count, count, count, -0.5, S, count, half, count, 0, product, count);
        for (int j = 0; j < count; ++j)  // W = [M V, V] [S; -S'V'M V S / 2]
            for (int i = 0; i < count; ++i) {
                factor[static_cast<size_t>(j) * 2 * count + i] = i <= j ? S[static_cast<size_t>(j) * count + i] : 0;
                factor[static_cast<size_t>(j) * 2 * count + count + i] = product[static_cast<size_t>(j) * count + i];
            }
        multiply("N", "N", rows, count, 2 * count, 1, MV, rows, factor, 2 * count, 0, W, rows);
        blas.syr2k("L", "N", &rows, &count, &minus, copy, &rows, W, &rows, &one, rest, &n_);
    }

    int n_, b_;
    double* M_;
    std::vector<double> band_, S_;  // S_: the triangles of the panels one after the other
    std::vector<int> counts_;       // reflectors of each panel
};

}  // namespace skm

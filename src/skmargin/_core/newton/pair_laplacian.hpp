// The Newton system of every margin loss: a Laplacian of weighted class pairs.
//
//     H = M (x) R + sum over pairs (i; l, m; w) of  w (e_l - e_m)(e_l - e_m)' (x) x_i x_i',     M = I - 11'/k
//
// R is diagonal: 1 for a feature, the small proximal weight for the intercept.  The true Hessian has I in place of M;
// on directions whose class vectors sum to zero, which are the only ones that occur, both are the same.  H does not see
// a vector common to all classes, so the last class is fixed at zero and the solution centred afterwards: the system
// has (k - 1) D unknowns and is positive definite.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/blas.hpp"
#include "base/interrupt.hpp"

namespace skm {

class PairLaplacian {
  public:
    PairLaplacian(int32_t k, int32_t D, InterruptPoll& poll)
        : k_(k), D_(D), N_((k - 1) * D), poll_(poll), H_(static_cast<size_t>(N_) * N_),
          gram_(static_cast<size_t>(D) * D), rows_(static_cast<size_t>(chunk) * D) {}

    void clear() { pairs_.clear(); }

    // Row number `row` of the matrix given to `factor` couples the classes l and m with weight w.
    void add(int32_t row, int32_t l, int32_t m, double w) {
        if (l > m) std::swap(l, m);
        pairs_.push_back({m * (m - 1) / 2 + l, row, w});
    }

    // X: rows of D numbers; R: D numbers.
    void factor(const double* X, const double* R) {
        sort_by_classes();
        // Weights or features that differ by 1e8 can spoil definiteness: a little more on the diagonal repairs it.
        for (double lift = 0;; lift = std::max(100 * lift, 1e-14)) {
            assemble(X, R);
            for (int32_t p = 0; p < N_; ++p) H_[static_cast<size_t>(p) * (N_ + 1)] *= 1 + lift;
            if (cholesky() || !(lift < 1e6)) return;
        }
    }

    // g: k x D, whose rows sum to zero.  On return H^-1 g, whose rows sum to zero.
    void solve(double* g) const {
        const int one = 1;
        int info = 0;
        blas.potrs("L", &N_, &one, H_.data(), &N_, g, &N_, &info);
        double* last = g + static_cast<size_t>(N_);
        for (int32_t p = 0; p < D_; ++p) {
            double sum = 0;
            for (int32_t l = 0; l < k_ - 1; ++l) sum += g[l * D_ + p];
            last[p] = 0;
            for (int32_t l = 0; l < k_; ++l) g[l * D_ + p] -= sum / k_;
        }
    }

  private:
    struct Pair {
        int32_t bucket, row;
        double w;
    };
    static constexpr int chunk = 256;  // rows gathered at once: they stay in the cache

    // Element (p, q) of the block of classes (m, l); only m >= l is stored.
    double& at(int32_t m, int32_t p, int32_t l, int32_t q) {
        return H_[static_cast<size_t>(l * D_ + q) * N_ + m * D_ + p];
    }

    void sort_by_classes() {
        first_.assign(static_cast<size_t>(k_) * (k_ - 1) / 2 + 1, 0);
        for (const Pair& p : pairs_) ++first_[p.bucket + 1];
        for (size_t b = 1; b < first_.size(); ++b) first_[b] += first_[b - 1];
        std::vector<int64_t> next(first_.begin(), first_.end() - 1);
        sorted_.resize(pairs_.size());
        for (const Pair& p : pairs_) sorted_[next[p.bucket]++] = p;
    }

    void assemble(const double* X, const double* R) {
        std::fill(H_.begin(), H_.end(), 0.0);
        for (int32_t l = 0; l < k_ - 1; ++l)
            for (int32_t m = l; m < k_ - 1; ++m)
                for (int32_t p = 0; p < D_; ++p) at(m, p, l, p) = (l == m ? R[p] : 0.0) - R[p] / k_;
        size_t bucket = 0;
        for (int32_t m = 1; m < k_; ++m)
            for (int32_t l = 0; l < m; ++l, ++bucket)
                if (first_[bucket] < first_[bucket + 1]) add_bucket(X, l, m, first_[bucket], first_[bucket + 1]);
    }

    // One Gram matrix of sqrt(w) x over the pairs of the classes l < m goes to four blocks.
    void add_bucket(const double* X, int32_t l, int32_t m, int64_t begin, int64_t end) {
        const double one = 1;
        double beta = 0;
        for (int64_t from = begin; from < end; from += chunk, beta = 1) {
            const int size = static_cast<int>(std::min<int64_t>(chunk, end - from));
            for (int s = 0; s < size; ++s) {
                const double root = std::sqrt(sorted_[from + s].w);
                const double* x = X + static_cast<int64_t>(sorted_[from + s].row) * D_;
                for (int32_t p = 0; p < D_; ++p) rows_[static_cast<size_t>(s) * D_ + p] = root * x[p];
            }
            blas.syrk("L", "N", &D_, &size, &one, rows_.data(), &D_, &beta, gram_.data(), &D_);
            poll_.count_work(1.0 * size * D_ * D_);
        }
        for (int32_t q = 0; q < D_; ++q)
            for (int32_t p = q; p < D_; ++p) {
                const double g = gram_[static_cast<size_t>(q) * D_ + p];
                at(l, p, l, q) += g;
                if (m == k_ - 1) continue;
                at(m, p, m, q) += g;
                at(m, p, l, q) -= g;
                if (p != q) at(m, q, l, p) -= g;
            }
    }

    // In panels, and strips of what is left of them, so that an interrupt never waits for a whole factorisation.
    bool cholesky() {
        const double one = 1, minus = -1;
        for (int from = 0; from < N_;) {
            const int size = N_ <= 2 * panel ? N_ : std::min(panel, N_ - from), rest = N_ - from - size;
            double* A = &H_[static_cast<size_t>(from) * (N_ + 1)];
            int info = 0;
            blas.potrf("L", &size, A, &N_, &info);
            if (info != 0) return false;
            double* B = A + size;
            if (rest > 0) blas.trsm("R", "L", "T", "N", &rest, &size, &one, A, &N_, B, &N_);
            poll_.count_work(1.0 * size * size * (rest + size));
            const int strip = std::max(panel, static_cast<int>(1e9 / (1.0 * size * std::max(rest, 1))));
            for (int at = 0; at < rest; at += strip) {
                const int columns = std::min(strip, rest - at), below = rest - at - columns;
                double* C = B + at + static_cast<size_t>(size + at) * N_;
                blas.syrk("L", "N", &columns, &size, &minus, B + at, &N_, &one, C, &N_);
                if (below > 0)
                    blas.gemm("N", "T", &below, &columns, &size, &minus, B + at + columns, &N_, B + at, &N_, &one,
                              C + columns, &N_);
                poll_.count_work(1.0 * size * columns * (columns + 2 * below));
            }
            from += size;
        }
        return true;
    }
    static constexpr int panel = 384;

    int32_t k_;
    int D_, N_;
    InterruptPoll& poll_;
    std::vector<double> H_, gram_, rows_;
    std::vector<Pair> pairs_, sorted_;
    std::vector<int64_t> first_;
};

}  // namespace skm

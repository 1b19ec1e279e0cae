// The optimal margin distribution machine as published: the scores M_i of the rivals are frozen, not the rivals.
//
//     Q = 1/2 ||W||^2 + sum_i cap_i [ (1 - theta - min_l d_il)_+^2 + mu (f_{i,y} - M_i - 1 - theta)_+^2 ]
//     D = sum_i (1 - theta) S_i - kappa_i/2 S_i^2 - (1 + theta + M_i) beta_i - kappa_i/(2 mu) beta_i^2 - 1/2 ||W||^2
//     W = X'c,  c_il = -zeta_il,  c_{i,y} = S_i - beta_i,  S_i = sum_l zeta_il,  kappa = 1/(2 cap)
//
// Dual block ascent, one sample at a time in random order, with the exact block: Algorithm 2 of the paper leaves out a
// division after each of its loops.  For comparison only, so without shrinking.  Zhang & Zhou (2017), section 4.
//
// Rows are those of X, or of a kernel matrix K; then the scores F = K c take the place of W.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/interrupt.hpp"
#include "base/random.hpp"
#include "base/sums.hpp"
#include "losses/odm.hpp"
#include "rows/rows.hpp"

namespace skm {

// Some rows of a kernel matrix, and all scores (class-major, k x n) that steps along them change.
class KernelMatrixRows {
  public:
    // Row i stands at place slot[i] of `matrix`.
    KernelMatrixRows(const double* matrix, const int64_t* slot, const double* diagonal, int64_t n, int32_t k)
        : n(n), k(k), matrix_(matrix), slot_(slot), diagonal_(diagonal), simd_(simd<double>()) {}

    double cost(int64_t) const { return static_cast<double>(n); }
    double squared_norm(int64_t i) const { return diagonal_[i]; }
    void scores_all(const double* F, int64_t i, double* f) const {
        for (int32_t l = 0; l < k; ++l) f[l] = F[l * n + i];
    }
    void add(double* F, int64_t i, const int32_t* cls, int32_t m, const double* coef) const {
        simd_.axpys(matrix_ + slot_[i] * n, n, F, n, cls, m, coef);
    }

    const int64_t n;
    const int32_t k;

  private:
    const double* matrix_;
    const int64_t* slot_;
    const double* diagonal_;
    const Simd<double>& simd_;
};

template <class Rows>
class PublishedOdmAscent {
  public:
    // zeta (n x k, zero at the own class), beta (n) and what they make of W are the start and the end.
    PublishedOdmAscent(const Rows& rows, const int32_t* y, const double* cap, double mu, double theta,
                       const double* frozen_scores, double* zeta, double* beta, double* W, InterruptPoll& poll)
        : rows_(rows), k_(rows.k), y_(y), cap_(cap), mu_(mu), theta_(theta), frozen_scores_(frozen_scores), zeta_(zeta),
          beta_(beta), W_(W), poll_(poll), norm_(rows.n), f_(k_), c_(k_), v_(k_), out_(k_), cls_(k_) {
        for (int64_t i = 0; i < rows_.n; ++i) norm_[i] = rows_.squared_norm(i);
    }

    // W, all zero, becomes that of the duals.
    void start() {
        for (int64_t i = 0; i < rows_.n; ++i) {
            std::fill(c_.begin(), c_.end(), 0.0);
            coefficients(i, 1);
            step(i);
        }
    }

    double primal = 0, gap = infinity;
    int64_t passes = 0;

    void run(double tol, int64_t max_passes, uint64_t seed) {
        Random random(seed);
        std::vector<int64_t> order(rows_.n);
        std::iota(order.begin(), order.end(), int64_t{0});
        for (certify(); gap > tol * primal && passes < max_passes;) {
            random.shuffle(order.begin(), static_cast<uint32_t>(rows_.n));
            sweep(order);
            if (++passes % 5 == 0 || passes == max_passes) certify();
        }
    }
    // Sets primal and gap.
    void certify() {
        double half_norm = 0, dual = 0;  // ||W||^2 = sum_i c_i'f_i
        primal = 0;
        for (int64_t i = 0; i < rows_.n; ++i) {
            const double kappa = 1 / (2 * cap_[i]), beta = beta_[i];
            const double S = std::accumulate(zeta_ + i * k_, zeta_ + (i + 1) * k_, 0.0);
            rows_.scores_all(W_, i, f_.data());
            std::fill(c_.begin(), c_.end(), 0.0);
            coefficients(i, 1);
            half_norm += 0.5 * std::inner_product(c_.begin(), c_.end(), f_.begin(), 0.0);
            const double own = f_[y_[i]];
            f_[y_[i]] = -infinity;
            const double low = std::max(0.0, 1 - theta_ - own + *std::max_element(f_.begin(), f_.end()));
            const double high = mu_ > 0 ? std::max(0.0, own - frozen_scores_[i] - 1 - theta_) : 0.0;
            primal += cap_[i] * (low * low + mu_ * high * high);
            dual += (1 - theta_) * S - 0.5 * kappa * S * S;
            if (beta > 0) dual -= (1 + theta_ + frozen_scores_[i]) * beta + 0.5 * kappa / mu_ * beta * beta;
            poll_.count_work(2.0 * k_ * rows_.cost(i));
        }
        primal += half_norm;
        gap = std::max(0.0, primal - dual + half_norm);
    }
    void sweep(const std::vector<int64_t>& order) {
        for (const int64_t i : order) visit(i);
    }

  private:
    // c_ += s c of the sample
    void coefficients(int64_t i, double s) {
        const double* z = zeta_ + i * k_;
        for (int32_t l = 0; l < k_; ++l) {
            c_[l] -= s * z[l];
            c_[y_[i]] += s * z[l];
        }
        c_[y_[i]] -= s * beta_[i];
    }

    // With r the scores without the sample's own part, v_l = r_l + 1 - theta, D = A + kappa, E = A + kappa/mu and
    // F = 1 + theta + M - r_y:  zeta_l = (v_l - nu)_+/A  and either
    //     beta = 0,            A S = A/D (nu - r_y),                          if A S <= F
    //     beta = (A S - F)/E,  A S = A E/(D E - A^2) (nu - r_y - A F/E)
    void visit(int64_t i) {
        const double A = norm_[i], kappa = 1 / (2 * cap_[i]);
        const int32_t y = y_[i];
        double* zeta = zeta_ + i * k_;
        std::fill(c_.begin(), c_.end(), 0.0);
        coefficients(i, -1);
        rows_.scores_all(W_, i, f_.data());
        poll_.count_work(2.0 * k_ * rows_.cost(i));
        if (A == 0) {  // no say in W
            zeta[y == 0] = (1 - theta_) / kappa;
            return;
        }
        for (int32_t l = 0; l < k_; ++l) v_[l] = f_[l] + A * c_[l] + 1 - theta_;
        const double own = v_[y] - (1 - theta_), D = A + kappa;
        v_[y] = -infinity;
        beta_[i] = 0;
        double AS = shifted_soft_threshold(v_.data(), k_, own, A / D, out_.data());
        if (mu_ > 0) {
            const double E = A + kappa / mu_, F = 1 + theta_ + frozen_scores_[i] - own;
            if (AS > F) {
                AS = shifted_soft_threshold(v_.data(), k_, own + A * F / E, A * E / (D * E - A * A), out_.data());
                beta_[i] = std::max(0.0, (AS - F) / E);
            }
        }
        for (int32_t l = 0; l < k_; ++l) zeta[l] = out_[l] / A;
        coefficients(i, 1);
        step(i);
    }

    // W += x_i c_'
    void step(int64_t i) {
        int32_t m = 0;
        for (int32_t l = 0; l < k_; ++l)
            if (c_[l] != 0) cls_[m] = l, c_[m++] = c_[l];
        rows_.add(W_, i, cls_.data(), m, c_.data());
        poll_.count_work(2.0 * m * rows_.cost(i));
    }

    const Rows& rows_;
    const int32_t k_;
    const int32_t* y_;
    const double* cap_;
    const double mu_, theta_;
    const double* frozen_scores_;
    double *zeta_, *beta_, *W_;
    InterruptPoll& poll_;
    std::vector<double> norm_, f_, c_, v_, out_;
    std::vector<int32_t> cls_;
};

}  // namespace skm

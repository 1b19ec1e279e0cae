// The optimal margin distribution machine as published: the scores M_i of the rivals are frozen, not the rivals.
//
//     Q = 1/2 ||W||^2 + sum_i cap_i [ (1 - theta - min_l d_il)_+^2 + mu (f_{i,y} - M_i - 1 - theta)_+^2 ]
//     D = sum_i (1 - theta) S_i - kappa_i/2 S_i^2 - (1 + theta + M_i) beta_i - kappa_i/(2 mu) beta_i^2 - 1/2 ||W||^2
//     W = X'c,  c_il = -zeta_il,  c_{i,y} = S_i - beta_i,  S_i = sum_l zeta_il,  kappa = 1/(2 cap)
//
// Dual block ascent, one sample at a time in random order, with the exact block: Algorithm 2 of the paper leaves out a
// division after each of its loops.  For comparison only, so without shrinking.  Zhang & Zhou (2017), section 4.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "band_loss.hpp"
#include "poll.hpp"
#include "random.hpp"
#include "rows.hpp"

namespace skm {

template <class Rows>
class PaperBlocks {
  public:
    // zeta (n x k, zero at the own class) and beta (n) are the start and the end.
    PaperBlocks(const Rows& rows, const int32_t* y, const double* cap, double mu, double theta, const double* frozen,
                double* zeta, double* beta, Poll& poll)
        : rows_(rows), k_(rows.k), y_(y), cap_(cap), mu_(mu), theta_(theta), frozen_(frozen), zeta_(zeta), beta_(beta),
          poll_(poll), W_(rows.weights_size()), norm_(rows.n), f_(k_), c_(k_), v_(k_), out_(k_), all_(k_) {
        std::iota(all_.begin(), all_.end(), 0);
        for (int64_t i = 0; i < rows_.n; ++i) {
            norm_[i] = rows_.squared_norm(i);
            std::fill(c_.begin(), c_.end(), 0.0);
            coefficients(i, 1);
            rows_.add(W_.data(), i, all_.data(), k_, c_.data());
            poll_.work(2.0 * k_ * rows_.cost(i));
        }
    }

    double primal = 0, gap = infinity;
    int64_t passes = 0;

    bool run(double tol, int64_t max_passes, uint64_t seed) {
        Random random(seed);
        std::vector<int64_t> order(rows_.n);
        std::iota(order.begin(), order.end(), int64_t{0});
        for (certify(); gap > tol * primal && passes < max_passes;) {
            random.shuffle(order.begin(), static_cast<uint32_t>(rows_.n));
            for (const int64_t i : order) visit(i);
            if (++passes % 5 == 0 || passes == max_passes) certify();
        }
        return gap <= tol * primal;
    }

    void publish(double* W) {
        for (int32_t l = 0; l < k_; ++l)
            for (int64_t j = 0; j < rows_.d; ++j) W[l * rows_.d + j] = rows_.weight(W_.data(), l, j);
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
        rows_.scores_all(W_.data(), i, f_.data());
        poll_.work(4.0 * k_ * rows_.cost(i));
        if (A == 0) {  // no say in W
            zeta[y == 0] = (1 - theta_) / kappa;
            return;
        }
        for (int32_t l = 0; l < k_; ++l) v_[l] = f_[l] + A * c_[l] + 1 - theta_;
        const double own = v_[y] - (1 - theta_), D = A + kappa;
        v_[y] = -infinity;
        beta_[i] = 0;
        double AS = soft_threshold(v_.data(), k_, own, A / D, out_.data());
        if (mu_ > 0) {
            const double E = A + kappa / mu_, F = 1 + theta_ + frozen_[i] - own;
            if (AS > F) {
                AS = soft_threshold(v_.data(), k_, own + A * F / E, A * E / (D * E - A * A), out_.data());
                beta_[i] = std::max(0.0, (AS - F) / E);
            }
        }
        for (int32_t l = 0; l < k_; ++l) zeta[l] = out_[l] / A;
        coefficients(i, 1);
        rows_.add(W_.data(), i, all_.data(), k_, c_.data());
    }

    void certify() {
        double half_norm = 0, dual = 0;
        for (int32_t l = 0; l < k_; ++l)
            for (int64_t j = 0; j < rows_.d; ++j) half_norm += 0.5 * std::pow(rows_.weight(W_.data(), l, j), 2);
        primal = half_norm;
        for (int64_t i = 0; i < rows_.n; ++i) {
            const double kappa = 1 / (2 * cap_[i]), beta = beta_[i];
            const double S = std::accumulate(zeta_ + i * k_, zeta_ + (i + 1) * k_, 0.0);
            rows_.scores_all(W_.data(), i, f_.data());
            const double own = f_[y_[i]];
            f_[y_[i]] = -infinity;
            const double low = std::max(0.0, 1 - theta_ - own + *std::max_element(f_.begin(), f_.end()));
            const double high = mu_ > 0 ? std::max(0.0, own - frozen_[i] - 1 - theta_) : 0.0;
            primal += cap_[i] * (low * low + mu_ * high * high);
            dual += (1 - theta_) * S - 0.5 * kappa * S * S;
            if (beta > 0) dual -= (1 + theta_ + frozen_[i]) * beta + 0.5 * kappa / mu_ * beta * beta;
            poll_.work(2.0 * k_ * rows_.cost(i));
        }
        gap = std::max(0.0, primal - dual + half_norm);
    }

    const Rows& rows_;
    const int32_t k_;
    const int32_t* y_;
    const double* cap_;
    const double mu_, theta_;
    const double* frozen_;
    double *zeta_, *beta_;
    Poll& poll_;
    Buffer<double> W_;
    std::vector<double> norm_, f_, c_, v_, out_;
    std::vector<int32_t> all_;
};

}  // namespace skm

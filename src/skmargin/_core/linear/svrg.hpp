// One epoch of stochastic gradients, with or without variance reduction, for the machine of Xu et al. (2017).
//
//     (k+1)/2 ||W||^2 + 1/2 ||b||^2 + sum_i cap_i sum_{l != y_i} max(0, 1 - f_{i,y_i} + f_il)       (class vectors sum
//     to 0)
//
// The function of one sample is the penalty plus n cap_i times its loss, so that the mean over samples is the
// objective. P_il = 1 for the rivals with 1 - f_{i,y_i} + f_il > 0, P_{i,y_i} = -sum: the gradient of its loss is x_i
// P_i'. With the snapshot's gradient G of all losses and its P~ a step is
//     W -= eta ((k+1) W + G + n cap_i x_i (P_i - P~_i)'),        without variance reduction G = 0, P~ = 0
// W is kept as scale U + along G, which makes a step as cheap as the row is short.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/interrupt.hpp"
#include "base/random.hpp"
#include "rows/rows.hpp"

namespace skm {

template <class Rows>
class StochasticEpoch {
  public:
    using T = typename Rows::T;

    StochasticEpoch(const Rows& rows, const int32_t* y, const double* cap, bool intercept, InterruptPoll& poll)
        : rows_(rows), y_(y), cap_(cap), intercept_(intercept), poll_(poll), n_(rows.n), k_(rows.k),
          U_(rows.weights_size()), G_(rows.weights_size()), f_(k_), coef_(k_), all_(k_), b_(k_), slope_(k_) {
        for (int32_t l = 0; l < k_; ++l) all_[l] = l;
    }

    // W (k x d) and b are the start and the result.  Step number t of the epoch has the length eta / (1 + decay (t +
    // first)).
    void run(double* W, double* b, double eta, double decay, int64_t first, bool reduce, uint64_t seed) {
        read(W);
        std::copy(b, b + k_, b_.begin());
        if (reduce) snapshot();
        Random random(seed);
        double scale = 1, along = 0;
        std::vector<double> g(k_);
        for (int64_t t = 0; t < n_; ++t) {
            const int64_t i = random.below(static_cast<uint32_t>(n_));
            const double step = eta / (1 + decay * static_cast<double>(t + first));
            rows_.scores_all(U_.data(), i, f_.data());
            for (int32_t l = 0; l < k_; ++l) f_[l] = scale * f_[l] + b_[l];
            if (reduce) {
                const double* along_row = &along_scores_[i * k_];
                for (int32_t l = 0; l < k_; ++l) f_[l] += along * along_row[l];
            }
            indicators(i);
            if (reduce)
                for (int32_t l = 0; l < k_; ++l) coef_[l] -= taken_[i * k_ + l];
            const double shrink = 1 - step * (k_ + 1), weight = step * static_cast<double>(n_) * cap_[i];
            scale *= shrink;
            along = along * shrink - (reduce ? step : 0.0);
            if (std::abs(scale) < 1e-9) fold(scale, along);
            if (intercept_)
                for (int32_t l = 0; l < k_; ++l)
                    b_[l] -= step * (b_[l] + (reduce ? slope_[l] : 0.0)) + weight * coef_[l];
            int32_t m = 0;
            for (int32_t l = 0; l < k_; ++l)
                if (coef_[l] != 0) {
                    moved_[m] = l;
                    g[m++] = -weight * coef_[l] / scale;
                }
            if (m > 0) rows_.add(U_.data(), i, moved_.data(), m, g.data());
            poll_.count_work(2 * rows_.cost(i) * (k_ + m));
        }
        fold(scale, along);
        write(W);
        std::copy(b_.begin(), b_.end(), b);
    }

    // The objective at W, b.
    double objective(const double* W, const double* b) {
        read(W);
        std::copy(b, b + k_, b_.begin());
        double square = 0, sum = 0;
        for (int64_t j = 0; j < U_.size(); ++j) square += static_cast<double>(U_.data()[j]) * U_.data()[j];
        double total = 0.5 * (k_ + 1) * square;
        for (int32_t l = 0; l < k_; ++l) total += 0.5 * b[l] * b[l];
        for (int64_t i = 0; i < n_; ++i) {
            rows_.scores_all(U_.data(), i, f_.data());
            poll_.count_work(2 * rows_.cost(i) * k_);
            sum = 0;
            const double own = f_[y_[i]] + b[y_[i]];
            for (int32_t l = 0; l < k_; ++l)
                if (l != y_[i]) sum += std::max(0.0, 1 - own + f_[l] + b[l]);
            total += cap_[i] * sum;
        }
        return total;
    }

  private:
    // P_i from the scores in f_, into coef_.
    void indicators(int64_t i) {
        double count = 0;
        for (int32_t l = 0; l < k_; ++l) {
            coef_[l] = l != y_[i] && 1 - f_[y_[i]] + f_[l] > 0;
            count += coef_[l];
        }
        coef_[y_[i]] = -count;
    }

    // Gradient of all losses at U_, b_; what it adds to the scores of each sample; the indicators.
    void snapshot() {
        taken_.resize(n_ * k_);
        along_scores_.resize(n_ * k_);
        G_.clear();
        std::fill(slope_.begin(), slope_.end(), 0.0);
        std::vector<double> g(k_);
        for (int64_t i = 0; i < n_; ++i) {
            rows_.scores_all(U_.data(), i, f_.data());
            for (int32_t l = 0; l < k_; ++l) f_[l] += b_[l];
            indicators(i);
            for (int32_t l = 0; l < k_; ++l) {
                taken_[i * k_ + l] = coef_[l];
                g[l] = cap_[i] * coef_[l];
                slope_[l] += g[l];
            }
            rows_.add(G_.data(), i, all_.data(), k_, g.data());
            poll_.count_work(4 * rows_.cost(i) * k_);
        }
        for (int64_t i = 0; i < n_; ++i) {
            rows_.scores_all(G_.data(), i, &along_scores_[i * k_]);
            poll_.count_work(2 * rows_.cost(i) * k_);
        }
    }

    // U = scale U + along G
    void fold(double& scale, double& along) {
        for (int64_t j = 0; j < U_.size(); ++j)
            U_.data()[j] = static_cast<T>(scale * U_.data()[j] + along * G_.data()[j]);
        scale = 1;
        along = 0;
    }
    void read(const double* W) {
        U_.clear();
        for (int32_t l = 0; l < k_; ++l)
            for (int64_t j = 0; j < rows_.d; ++j) rows_.weight(U_.data(), l, j) = static_cast<T>(W[l * rows_.d + j]);
    }
    void write(double* W) {
        for (int32_t l = 0; l < k_; ++l)
            for (int64_t j = 0; j < rows_.d; ++j) W[l * rows_.d + j] = rows_.weight(U_.data(), l, j);
    }

    const Rows& rows_;
    const int32_t* y_;
    const double* cap_;
    const bool intercept_;
    InterruptPoll& poll_;
    const int64_t n_;
    const int32_t k_;
    Buffer<T> U_, G_;
    std::vector<double> f_, coef_;
    std::vector<int32_t> all_, moved_ = std::vector<int32_t>(k_);
    std::vector<double> b_, slope_, taken_, along_scores_;
};

}  // namespace skm

// Samples so far beyond their margins that a full check need not score them.
//
// A sample whose margins were 1 + slack at a check, and which has no duals, has no loss as long as W and b have not
// moved its margins by more than that.  By the inequality of Cauchy and Schwarz the margin against a rival l falls at
// most by
//     (||w_y - w_y'|| + ||w_l - w_l'||) ||x_i - c||  +  (f_l - f_l')(c) - (f_y - f_y')(c)
// where the dash marks the point of the last check and c is the centre of the rows.  Nothing of the row is read.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/sums.hpp"
#include "linear/class_vectors.hpp"

namespace skm {

class Screening {
  public:
    // Until this is called every sample is scored.
    void enable(const RowGeometry& geo) {
        const int64_t n = geo.rows.n;
        slack_.assign(n, 0.0f);
        radius_.resize(n);
        centre_share_ = geo.intercept() ? 1 : 0;
        if (geo.shifted() && !geo.intercept())
            for (const double z : geo.shift) centre_share_ += z / static_cast<double>(n);
        for (int64_t i = 0; i < n; ++i) {
            double square = geo.curvature[i];
            if (geo.intercept()) {
                square -= geo.t;
            } else if (geo.shifted()) {
                const double z = geo.shift[i];
                square += (1 - geo.t) * z * z + centre_share_ * (centre_share_ - 2 * z);
            }
            radius_[i] = static_cast<float>(std::sqrt(std::max(0.0, square)) * safety);
        }
    }

    // A check begins: measures how far the class vectors have moved since the last one.
    template <class Model>
    void follow(Model& model, const RowGeometry& geo) {
        if (slack_.empty()) return;
        const int64_t d = geo.rows.d;
        const int32_t k = geo.rows.k;
        std::vector<double> W(static_cast<size_t>(d * k)), b(k);
        model.publish(W.data(), b.data());
        for (int32_t l = 0; l < k && centre_share_ != 0; ++l)
            for (int64_t j = 0; j < d; ++j) b[l] += centre_share_ * geo.direction[j] * W[l * d + j];
        W_.resize(W.size(), 0.0);
        b_.resize(k, 0.0);
        drift_.assign(k, 0.0);
        offset_.assign(k, 0.0);
        double max_drift = 0, max_offset = -infinity;
        for (int32_t l = 0; l < k; ++l) {
            for (int64_t j = l * d; j < (l + 1) * d; ++j) drift_[l] += (W[j] - W_[j]) * (W[j] - W_[j]);
            drift_[l] = std::sqrt(drift_[l]);
            offset_[l] = b[l] - b_[l];
            max_drift = std::max(max_drift, drift_[l]);
            max_offset = std::max(max_offset, offset_[l]);
        }
        for (int32_t l = 0; l < k; ++l) {
            drift_[l] += max_drift;
            offset_[l] = max_offset - offset_[l];
        }
        W_.swap(W);
        b_.swap(b);
    }

    // Whether sample i of class `own` is certain to be beyond its margins still.
    bool surely_beyond(int64_t i, int32_t own) {
        if (slack_.empty() || !(slack_[i] > 0)) return false;
        slack_[i] -= static_cast<float>(drift_[own] * radius_[i] + offset_[own] * safety);
        return slack_[i] > 0;
    }
    // Sample i has no duals and its margins are at least 1 + slack; slack 0: it has to be scored at the next check.
    void set_slack(int64_t i, double slack) {
        if (!slack_.empty()) slack_[i] = static_cast<float>(slack);
    }

  private:
    static constexpr double safety = 1 + 1e-5;  // more than what rounding to single precision takes away
    std::vector<float> slack_, radius_;         // of each sample
    std::vector<double> W_, b_;                 // at the last check: class vectors, scores of the centre
    std::vector<double> drift_, offset_;        // of each class
    double centre_share_ = 0;                   // the centre of the rows in units of geo.direction
};

}  // namespace skm

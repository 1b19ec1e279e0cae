// Steps of the multipliers b (linear/class_vectors.hpp): when one is due, and how long it is.  The proximal-point
// method takes b += t r with the residual r of the constraint.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/sums.hpp"
#include "tuning.hpp"

namespace skm {

class ProximalSteps {
  public:
    explicit ProximalSteps(const ProximalTuning& tuning) : tuning_(tuning) {}

    // With an intercept.  The duals of a small class, `class_cap` in all, may be too small to move its b by a margin:
    // while its r does not change its steps may grow until they can, or until they are like those of a mean class.
    void limit_by_class(const std::vector<double>& class_cap, double t) {
        double mean = 0;
        for (const double v : class_cap) mean += v / static_cast<double>(class_cap.size());
        for (const double v : class_cap)
            max_class_scale_.push_back(v > 0 ? std::max(1.0, std::min(1 / t, mean) / v) : 1.0);
    }

    // Without an intercept r = tot - b: no step needs to be longer than the whole way from b to tot.
    void limit_overall(double t) { max_scale_ = 1 / t; }

    // Call after each pass, with the sum of the gaps of its samples.  A step is due once the blocks are solved well
    // enough for the present b, compared with what b can gain, t/2 ||r||^2.  How well is learnt: exact steps never
    // reverse r, so a step after which r has reversed came too early.  `score_per_unit`: by how much b moves a score.
    bool due(double gap, double t, const std::vector<double>& r, double score_per_unit) {
        double square = 0, turn = 0, before = 0, change = 0;
        residual_at_step_.resize(r.size(), 0.0);
        previous_residual_.resize(r.size(), 0.0);
        for (size_t l = 0; l < r.size(); ++l) {
            square += r[l] * r[l];
            turn += r[l] * residual_at_step_[l];
            before += residual_at_step_[l] * residual_at_step_[l];
            change += (r[l] - previous_residual_[l]) * (r[l] - previous_residual_[l]);
        }
        previous_residual_ = r;
        const double gain = 0.5 * t * square;
        // Without an intercept 1/2 ||r||^2 is part of the gap.  Where it is most of the gap, solving the blocks better
        // is of no use: it is enough that a pass hardly changes r.
        const bool stable = max_scale_ > 1 && std::max(gap, change) <= tuning_.stable * square;
        if (gap > max_gap_per_gain_ * gain && !stable) return false;
        if (turn < 0 && gain > 0) max_gap_per_gain_ = std::max(1.0, 0.5 * std::min(max_gap_per_gain_, gap / gain));
        if (max_scale_ > 1) {  // the secant through such an r and that of the last step (Barzilai and Borwein, 1988)
            const double fall = before - turn, bend = before - 2 * turn + square;
            const double growth = fall > 0 && bend > 0 ? fall / bend : infinity;
            scale_ = stable && before > 0 ? std::clamp(growth * scale_, 1.0, max_scale_) : 1.0;
        }
        steps_ = r;
        for (double& v : steps_) v *= scale_;
        if (!max_class_scale_.empty()) scale_classes(r, t);
        residual_at_step_ = r;
        const auto [least, most] = std::minmax_element(steps_.begin(), steps_.end());
        drift_ += t * score_per_unit * (*most - *least);
        return true;
    }
    // The step that is due, in units of t.
    const std::vector<double>& steps() const { return steps_; }

    // The lists of samples and rivals were made for one b: they are stale once it has moved by a margin, or by the part
    // of it that is learnt: if new lists show much more gap than the old ones did, b had moved too far.
    bool lists_are_stale() const { return drift_ > max_drift_; }
    // Where something else makes the lists it learns that itself.
    void limit_drift(double most) { max_drift_ = std::min(max_drift_, most); }
    double drift() const { return drift_; }
    void lists_renewed(double running, double full) {
        if (drift_ > 0 && full > 2 * running) max_drift_ = std::max(1e-3, 0.5 * std::min(max_drift_, drift_));
        else max_drift_ = std::min(1.0, 2 * max_drift_);
        drift_ = 0;
    }

  private:
    // Longer steps for classes whose residual hardly changes, by the secant through the last two steps.
    void scale_classes(const std::vector<double>& r, double t) {
        class_scale_.resize(r.size(), 1.0);
        double mean = 0;
        for (size_t l = 0; l < r.size(); ++l) {
            if (residual_at_step_[l] != 0) {
                // Where r hardly responds (all samples at their bounds) steps grow until b moves by a margin.
                const double response = std::abs(1 - r[l] / residual_at_step_[l]);
                double limit = max_class_scale_[l];
                if (response < tuning_.unresponsive) limit = std::max(limit, 1 / (t * std::abs(r[l])));
                const double secant = std::max(0.5, 1 - r[l] / residual_at_step_[l]);
                class_scale_[l] = std::clamp(class_scale_[l] / secant, 1.0, limit);
            }
            steps_[l] *= class_scale_[l];
            mean += steps_[l] / static_cast<double>(r.size());
        }
        for (double& v : steps_) v -= mean;  // a constant added to all intercepts changes nothing
    }

    const ProximalTuning tuning_;
    std::vector<double> max_class_scale_, class_scale_, steps_;  // of each class
    std::vector<double> residual_at_step_, previous_residual_;   // r of the last step, of the last pass
    double max_scale_ = 1, scale_ = 1;  // without an intercept: longest step of all classes, present one
    double max_gap_per_gain_ = infinity, drift_ = 0, max_drift_ = 1;
};

}  // namespace skm

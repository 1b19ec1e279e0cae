// When to move the multipliers (linear/class_vectors.hpp), and how far: b += t r is the step of the proximal point
// method.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/sums.hpp"
#include "losses/hinge.hpp"

namespace skm {

class Multipliers {
  public:
    // The duals of a class with few samples, `room` in all, may be too small to move its b by a margin: while its r
    // stays what it is its steps may grow until they can, or are like those of a class of mean size.
    void limit(const std::vector<double>& room, double t) {
        double mean = 0;
        for (const double v : room) mean += v / static_cast<double>(room.size());
        for (const double v : room) longest_.push_back(v > 0 ? std::max(1.0, std::min(1 / t, mean) / v) : 1.0);
    }

    // Without an intercept r = tot - b: no step has to be longer than all the way from b to tot.
    void limit(double t) { whole_ = 1 / t; }

    // Asked after a pass whose samples had the given sum of gaps.  A step is due once the blocks are solved well enough
    // for the present b, measured by what b can gain, t/2 ||r||^2.  How well is learnt: exact steps never turn r round,
    // so a step after which it has turned came too early.
    bool due(double gap, double t, const std::vector<double>& r, double reach) {
        double square = 0, turn = 0, before = 0, change = 0;
        last_.resize(r.size(), 0.0);
        seen_.resize(r.size(), 0.0);
        for (size_t l = 0; l < r.size(); ++l) {
            square += r[l] * r[l];
            turn += r[l] * last_[l];
            before += last_[l] * last_[l];
            change += (r[l] - seen_[l]) * (r[l] - seen_[l]);
        }
        seen_ = r;
        const double gain = 0.5 * t * square;
        // Without an intercept 1/2 ||r||^2 is part of the gap, however little of it a step can gain.  Where it is most
        // of it blocks that are solved better are of no use: it is enough that a pass hardly changes r.
        const bool calm = whole_ > 1 && gap <= 0.05 * square && change <= 0.04 * square;
        if (gap > haste_ * gain && !calm) return false;
        haste_ = turn < 0 && gain > 0 ? std::max(1.0, 0.5 * std::min(haste_, gap / gain)) : 1.1 * haste_;
        if (whole_ > 1) {  // the secant through such an r and that of the last step (Barzilai and Borwein, 1988)
            const double fall = before - turn, bend = before - 2 * turn + square;
            const double longer = fall > 0 && fall < 4 * bend ? fall / bend : 4.0;
            long_ = calm && before > 0 ? std::clamp(longer * long_, 1.0, whole_) : 1.0;
        }
        stretch_.resize(r.size(), 1.0);
        steps_ = r;
        for (double& v : steps_) v *= long_;
        if (!longest_.empty()) {
            double mean = 0;
            for (size_t l = 0; l < r.size(); ++l) {
                if (last_[l] != 0) {  // the secant through the last two steps
                    // Where nothing answers, all samples at their bounds, steps grow until b moves by part of a margin,
                    // and stay as long while little does.
                    const double answer = std::abs(1 - r[l] / last_[l]), margin = 0.25 / (t * std::abs(r[l]));
                    double longest = longest_[l];
                    if (answer < 0.5)
                        longest = std::max(longest, std::min(answer < 0.01 ? margin : stretch_[l], margin));
                    stretch_[l] = std::clamp(stretch_[l] / std::max(0.5, 1 - r[l] / last_[l]), 1.0, longest);
                }
                steps_[l] *= stretch_[l];
                mean += steps_[l] / static_cast<double>(r.size());
            }
            for (double& v : steps_) v -= mean;  // intercepts that differ by a constant are the same machine
        }
        last_ = r;
        const auto [least, most] = std::minmax_element(steps_.begin(), steps_.end());
        drift_ += t * reach * (*most - *least);
        return true;
    }
    // The step that is due, in units of t.
    const std::vector<double>& steps() const { return steps_; }

    // Lists of samples and rivals are made for one b: they are stale once it has moved by part of a margin.  Which part
    // is learnt: if more gap appears with new lists than there was on the old ones, b had moved too far.
    bool stale() const { return drift_ > far_; }
    void renewed(double running, double full) {
        if (drift_ > 0 && full > 2 * running) far_ = std::max(1e-3, 0.5 * std::min(far_, drift_));
        else far_ = std::min(0.2, 1.3 * far_);
        drift_ = 0;
    }

  private:
    std::vector<double> longest_, stretch_, steps_;  // of each class
    std::vector<double> last_, seen_;                // r of the last step, of the last pass
    double whole_ = 1, long_ = 1;                    // without an intercept: longest step of all classes, present one
    double haste_ = infinity, drift_ = 0, far_ = 0.2;
};

}  // namespace skm

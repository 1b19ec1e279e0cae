// When to move the multipliers (linear_model.hpp): b += t r, the step of the proximal point method.
#pragma once
#include <algorithm>
#include <vector>

#include "losses.hpp"

namespace skm {

class Multipliers {
  public:
    // Asked after a pass whose samples had the given sum of gaps.  A step is due once the blocks are solved well enough
    // for the present b, measured by what b can gain, t/2 ||r||^2.  How well is learnt: a step after which r has grown
    // came too early.
    bool due(double gap, double t, const std::vector<double>& r, double reach) {
        double square = 0, least = 0, most = 0;
        for (const double v : r) {
            square += v * v;
            least = std::min(least, v);
            most = std::max(most, v);
        }
        const double gain = 0.5 * t * square;
        if (gap > haste_ * gain) return false;
        haste_ = square > last_ && gain > 0 ? std::max(1.0, 0.5 * std::min(haste_, gap / gain)) : 1.1 * haste_;
        last_ = square;
        drift_ += t * reach * (most - least);
        return true;
    }
    // Lists of samples and rivals are made for one b: they are stale once it has moved by part of a margin.  Which part
    // is learnt: if more gap appears with new lists than there was on the old ones, b had moved too far.
    bool stale() const { return drift_ > far_; }
    void renewed(double running, double full) {
        if (drift_ > 0 && full > 2 * running) far_ = std::max(1e-3, 0.5 * std::min(far_, drift_));
        else far_ = std::min(0.2, 1.3 * far_);
        drift_ = 0;
    }

  private:
    double haste_ = infinity, last_ = infinity, drift_ = 0, far_ = 0.2;
};

}  // namespace skm

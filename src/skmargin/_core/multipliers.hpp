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
    // Lists of samples and rivals are made for one b: they are stale once it has moved by part of a margin.
    bool stale() const { return drift_ > 0.2; }
    void renewed() { drift_ = 0; }

  private:
    double haste_ = infinity, last_ = infinity, drift_ = 0;
};

}  // namespace skm

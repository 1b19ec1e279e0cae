// Samples that a pass leaves out.
//
// Near the end the gap is the sum of a few large shares and many small ones, and a visit cannot gain more than the
// share of its sample.  A sample whose share is below the mean rests for the next pass, one far below for several; a
// full check wakes all of them.  The share of a resting sample counts as it was: it steers the run, and the
// certificate is that of a full check.
#pragma once
#include <cstdint>
#include <vector>

namespace skm {

class Rests {
  public:
    // Before that no sample rests.
    void allow(int64_t n) {
        left_.assign(n, 0);
        share_.assign(n, 0.0);
    }

    // Whether sample i still rests; then its share is added to `gap`.
    bool resting(int64_t i, double& gap) {
        if (left_.empty() || left_[i] == 0) return false;
        --left_[i];
        gap += share_[i];
        return true;
    }
    void visited(int64_t i, double share) {
        if (left_.empty()) return;
        share_[i] = share;
        if (share < mean_) left_[i] = share < 0.1 * mean_ ? longest : 1;
    }
    void pass_ended(double gap, size_t samples) { mean_ = samples > 0 ? gap / static_cast<double>(samples) : 0.0; }
    void wake() { left_.assign(left_.size(), 0); }

  private:
    static constexpr uint8_t longest = 6;
    std::vector<uint8_t> left_;  // passes
    std::vector<double> share_;
    double mean_ = 0;
};

}  // namespace skm

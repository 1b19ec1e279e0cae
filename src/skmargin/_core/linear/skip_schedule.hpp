// Which samples a pass skips.
//
// Near the end the gap of a pass is the sum of a few large gaps of samples and many small ones, and a visit cannot gain
// more than the gap of its sample.  A sample with an m-th of the mean gap is skipped for m passes; a full check resets
// all of them.  The gap of a skipped sample counts as it was last seen: this only steers the run, the
// certificate is that of a full check.
#pragma once
#include <cstdint>
#include <vector>

#include "tuning.hpp"

namespace skm {

class SkipSchedule {
  public:
    explicit SkipSchedule(const BlockAscentTuning& tuning) : longest_(tuning.longest_skip) {}

    // Until this is called no sample is skipped.
    void enable(int64_t n) {
        passes_left_.assign(n, 0);
        gap_.assign(n, 0.0);
    }

    // Whether to skip sample i; then its gap, as last seen, is added to `gap`.
    bool skips(int64_t i, double& gap) {
        if (passes_left_.empty() || passes_left_[i] == 0) return false;
        --passes_left_[i];
        gap += gap_[i];
        return true;
    }
    void record(int64_t i, double sample_gap) {
        if (passes_left_.empty()) return;
        gap_[i] = sample_gap;
        if (sample_gap < mean_gap_)
            passes_left_[i] =
                mean_gap_ < longest_ * sample_gap ? static_cast<int32_t>(mean_gap_ / sample_gap) : longest_;
    }
    void end_pass(double gap, size_t samples) { mean_gap_ = samples > 0 ? gap / static_cast<double>(samples) : 0.0; }
    void reset() { passes_left_.assign(passes_left_.size(), 0); }

  private:
    const int32_t longest_;
    std::vector<int32_t> passes_left_;  // for which a sample is still skipped
    std::vector<double> gap_;
    double mean_gap_ = 0;
};

}  // namespace skm

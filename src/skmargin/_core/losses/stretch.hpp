// Longer class vectors as the primal point.
//
// Where C is large, small losses that remain although the dual is solved cost more than class vectors longer by a part
// of tol that would end them.  So the primal point of a certificate may be W and b times a factor a little above one.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace skm {

// A few factors that a sweep over all samples tries at once.
class StretchTrials {
  public:
    // Factors up to those whose longer vectors cost a fifth of tol; never more than 1.4: where W vanishes rounding
    // would be all of it.  `dual` and `penalty` are those of the last sweep.
    void start(double tol, double dual, double penalty) {
        const double most = penalty > 0 ? std::min(1.0, 0.5 * tol * dual / penalty) : 0;
        for (int j = 0; j < count; ++j) {
            factor_[j] = 1 + most * std::ldexp(0.4, -j);
            loss_[j] = 0;
        }
    }
    // Adds the loss of sample i.
    template <class Loss>
    void add(const Loss& loss, int64_t i, const double* d, int32_t m) {
        for (int j = 0; j < count; ++j) loss_[j] += loss.value(i, d, m, factor_[j]);
    }
    // Sets the best factor and returns the objective with it; `primal` is that of factor one.
    double choose(double primal, double penalty) {
        best_ = 1;
        for (int j = 0; j < count; ++j) {
            const double longer = loss_[j] + factor_[j] * factor_[j] * penalty;
            if (longer < primal) primal = longer, best_ = factor_[j];
        }
        return primal;
    }
    void clear() { best_ = 1; }
    double best() const { return best_; }

  private:
    static constexpr int count = 4;  // compile-time: the loop over them is unrolled for every sample
    double factor_[count] = {}, loss_[count] = {}, best_ = 1;
};

// What class vectors (and b) longer by given factors 1 + e save in losses.
class StretchSavings {
  public:
    StretchSavings(const double* more, int32_t count) : saved(count), more_(more) {}

    void clear() { std::fill(saved.begin(), saved.end(), 0.0); }
    template <class Loss>
    void add(const Loss& loss, int64_t i, const double* d, int32_t m, double value) {
        if constexpr (Loss::can_stretch)
            for (size_t j = 0; j < saved.size() && value > 0; ++j)
                saved[j] += loss.value(i, d, m, 1 + more_[j]) - value;
    }
    // What the best of them changes in P, with others that save as well; 0 if none is better.
    double change(double norm, const std::vector<double>& others) const {
        double best = 0;
        for (size_t j = 0; j < saved.size(); ++j)
            best = std::min(best, saved[j] + others[j] + (more_[j] + 0.5 * more_[j] * more_[j]) * norm);
        return best;
    }

    std::vector<double> saved;  // negative: the losses are smaller

  private:
    const double* more_;
};

}  // namespace skm

// The value of the dual at a point that satisfies the constraint of the free intercept, near the duals of block ascent.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/sums.hpp"
#include "intercept/circulation.hpp"
#include "intercept/circulation_ascent.hpp"
#include "linear/dual_lists.hpp"
#include "linear/dual_value.hpp"
#include "tuning.hpp"

namespace skm {

// What a full check records for the circulation: the duals that are not zero, some at zero that are nearly worth
// raising (their rivals are close to the margin), and the slope of the dual objective in each.
class DualSlopes {
  public:
    explicit DualSlopes(const CirculationTuning& tuning) : one_sided_share_(tuning.one_sided) {}

    // For each class: `total`, the excess of the duals of its samples over those against it, and `class_cap`, the most
    // that its samples may hold.
    void start(int64_t n, const std::vector<double>& total, const std::vector<double>& class_cap) {
        start_.resize(n + 1);
        seen_ = 0;
        cls_.clear();
        alpha_.clear();
        slope_.clear();
        cls_.reserve(2 * n);  // untouched memory is free, growing is not
        alpha_.reserve(2 * n);
        slope_.reserve(2 * n);
        one_sided_.clear();
        for (size_t l = 0; l < class_cap.size(); ++l)
            if (total[l] > one_sided_share_ * class_cap[l]) one_sided_.push_back(static_cast<int32_t>(l));
    }

    // Sample i of class `own` with the scores f, which are overwritten.  Samples come in order; those left out have no
    // duals.  Of the rivals at zero the closest is recorded, and all one-sided classes: only they can take the excess.
    void record(int64_t i, int32_t own, const DualLists::Row& r, double* f, int32_t k) {
        begin_sample(i);
        const double lead = std::exchange(f[own], -infinity) - 1;
        double top = 0;
        for (int32_t j = 0; j < r.size; ++j) {
            const double slope = std::exchange(f[r.cls[j]], -infinity) - lead;
            add(r.cls[j], r.alpha[j], slope);
            top = std::max(top, slope);
        }
        const double least = lead + top - near_margin, largest = max_of(f, k);
        if (!(largest > least)) return;
        const auto closest = static_cast<int32_t>(std::find(f, f + k, largest) - f);
        add(closest, 0, largest - lead);
        for (const int32_t l : one_sided_)
            if (l != closest && f[l] > least) add(l, 0, f[l] - lead);
    }

    void end() { begin_sample(static_cast<int64_t>(start_.size()) - 1); }

    DualLists::Row row(int64_t i) {
        const auto size = static_cast<int32_t>(start_[i + 1] - start_[i]);
        return {alpha_.data() + start_[i], cls_.data() + start_[i], size};
    }
    double slope(int64_t i, int32_t j) const { return slope_[start_[i] + j]; }

  private:
    void begin_sample(int64_t i) {
        while (seen_ <= i) start_[seen_++] = static_cast<int64_t>(cls_.size());
    }
    void add(int32_t rival, double alpha, double slope) {
        cls_.push_back(rival);
        alpha_.push_back(alpha);
        slope_.push_back(slope);
    }

    const double one_sided_share_;
    std::vector<int64_t> start_;
    int64_t seen_ = 0;
    std::vector<int32_t> cls_;
    std::vector<double> alpha_, slope_;
    std::vector<int32_t> one_sided_;  // classes whose samples hold most of what they may, with little held against them
};

// The recorded duals and slopes as intercept/circulation.hpp visits them.  Types of their own, not lambdas: the
// circulation is then compiled once for each loss, not for each kind of rows.
struct RecordedDuals {
    DualSlopes& slopes;
    const int32_t* y;

    template <class Visit>
    void operator()(int64_t i, Visit visit) const {
        if (const DualLists::Row r = slopes.row(i); r.size > 0) visit(y[i], r.cls, r.alpha, r.size);
    }
};
struct RecordedSlopes {
    const DualSlopes& slopes;
    double operator()(int64_t i, int32_t j) const { return slopes.slope(i, j); }
};

// Makes the duals in `slopes` feasible and returns the value of the dual there.  Below `target` some steps of ascent
// follow.
template <class Ascent>
double feasible_dual(Ascent& ascent, DualSlopes& slopes, double target) {
    const int64_t n = ascent.n;
    slopes.end();
    const auto row = [&](int64_t i) { return slopes.row(i); };
    const RecordedDuals with{slopes, ascent.y};
    const RecordedSlopes slope{slopes};
    const CandidatesByWidth candidates = make_circulation(ascent.k, n, ascent.loss, with, slope, ascent.team.poll);
    typename Ascent::Model feasible(ascent.geo);
    // Most duals do not change: where W is a plain sum, start from the present one and add only the changes.
    constexpr bool fresh = Ascent::Model::weighted;
    if constexpr (!fresh) feasible.add_scaled(ascent.model, 1.0);
    std::vector<double> moved(ascent.k);
    double value = 0;
    for (int64_t i = 0; i < n; ++i) {
        const DualLists::Row r = row(i);
        if (r.size == 0) continue;
        value += ascent.loss.dual(i, r.alpha, r.size);
        std::copy(r.alpha, r.alpha + r.size, moved.begin());
        for (int32_t j = 0; !fresh && j < ascent.duals[i].size; ++j) moved[j] -= ascent.duals[i].alpha[j];
        if (std::any_of(moved.begin(), moved.begin() + r.size, [](double a) { return a != 0; }))
            ascent.add_sample(feasible, i, DualLists::Row{moved.data(), r.cls, r.size});
    }
    ascent.update_norms(feasible, row);
    if constexpr (Ascent::Model::weighted) {
        return dual_value(ascent, row, value - feasible.conjugate());
    } else {
        double dual = value - 0.5 * feasible.squared_norm();
        // The circulation looked at slopes alone: moves along similar rows may have changed W by much.
        if constexpr (Ascent::plain_hinge)
            // Another one follows where one as good as the last reaches the target.
            for (double rise = infinity; dual < target && rise > target - dual; dual += rise)
                rise = CirculationStep(ascent, feasible, candidates, row, slope).take();
        return dual_value(ascent, row, dual);
    }
}

}  // namespace skm

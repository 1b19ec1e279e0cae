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
#include "losses/hinge.hpp"

namespace skm {

// What a check notes for the balance: the duals, some that are zero and nearly worth more (of rivals that just do not
// come too close), and the slopes of the dual objective in all of them.
class Slopes {
  public:
    // `total` is what the samples of each class hold more than is held against it, `room` what they may hold.
    void start(int64_t n, const std::vector<double>& total, const std::vector<double>& room) {
        start_.resize(n + 1);
        seen_ = 0;
        cls_.clear();
        alpha_.clear();
        slope_.clear();
        cls_.reserve(2 * n);  // memory that is not touched costs nothing, and growing would
        alpha_.reserve(2 * n);
        slope_.reserve(2 * n);
        needy_.clear();
        for (size_t l = 0; l < room.size(); ++l)
            if (total[l] > 0.5 * room[l]) needy_.push_back(static_cast<int32_t>(l));
    }

    // Sample i of class `own` with the scores f, which are spoilt; samples come in order, those that are passed over
    // have no duals.  Of the other rivals the closest is noted, and all that are needy: nobody else can balance those.
    void note(int64_t i, int32_t own, const Duals::Row& r, double* f, int32_t k) {
        begin(i);
        const double lead = std::exchange(f[own], -infinity) - 1;
        double top = 0;
        for (int32_t j = 0; j < r.size; ++j) {
            const double slope = std::exchange(f[r.cls[j]], -infinity) - lead;
            add(r.cls[j], r.alpha[j], slope);
            top = std::max(top, slope);
        }
        const double least = lead + top - widest, largest = largest_of(f, k);
        if (!(largest > least)) return;
        const auto closest = static_cast<int32_t>(std::find(f, f + k, largest) - f);
        add(closest, 0, largest - lead);
        for (const int32_t l : needy_)
            if (l != closest && f[l] > least) add(l, 0, f[l] - lead);
    }

    void end() { begin(static_cast<int64_t>(start_.size()) - 1); }

    Duals::Row row(int64_t i) {
        const auto size = static_cast<int32_t>(start_[i + 1] - start_[i]);
        return {alpha_.data() + start_[i], cls_.data() + start_[i], size};
    }
    double slope(int64_t i, int32_t j) const { return slope_[start_[i] + j]; }

  private:
    void begin(int64_t i) {
        while (seen_ <= i) start_[seen_++] = static_cast<int64_t>(cls_.size());
    }
    void add(int32_t rival, double alpha, double slope) {
        cls_.push_back(rival);
        alpha_.push_back(alpha);
        slope_.push_back(slope);
    }

    std::vector<int64_t> start_;
    int64_t seen_ = 0;
    std::vector<int32_t> cls_;
    std::vector<double> alpha_, slope_;
    std::vector<int32_t> needy_;  // classes that are the rival of hardly any sample while their own hold all they may
};

// Changes the duals in `slopes`.  A value below `enough` is worth some more work.
template <class Ascent>
double feasible_dual(Ascent& ascent, Slopes& slopes, double enough) {
    const int64_t n = ascent.n;
    slopes.end();
    const auto row = [&](int64_t i) { return slopes.row(i); };
    const auto with = [&](int64_t i, auto visit) {
        if (const Duals::Row r = row(i); r.size > 0) visit(ascent.y[i], r.cls, r.alpha, r.size);
    };
    const auto slope = [&](int64_t i, int32_t j) { return slopes.slope(i, j); };
    const Players players = balance(ascent.k, n, ascent.loss, with, slope, ascent.team.poll);
    typename Ascent::Model feasible(ascent.geo);
    // Most duals stay what they are: where W is a plain sum it is the present one and what the others change.
    constexpr bool fresh = Ascent::Model::weighted;
    if constexpr (!fresh) feasible.add_scaled(ascent.model, 1.0);
    std::vector<double> moved(ascent.k);
    double value = 0;
    for (int64_t i = 0; i < n; ++i) {
        const Duals::Row r = row(i);
        if (r.size == 0) continue;
        value += ascent.loss.dual(i, r.alpha, r.size);
        std::copy(r.alpha, r.alpha + r.size, moved.begin());
        for (int32_t j = 0; !fresh && j < ascent.duals[i].size; ++j) moved[j] -= ascent.duals[i].alpha[j];
        if (std::any_of(moved.begin(), moved.begin() + r.size, [](double a) { return a != 0; }))
            ascent.add_sample(feasible, i, Duals::Row{moved.data(), r.cls, r.size});
    }
    ascent.measure(feasible, row);
    if constexpr (Ascent::Model::weighted) {
        return value - feasible.conjugate();
    } else {
        double dual = value - 0.5 * feasible.squared_norm();
        // The balance looks at slopes alone: it may have changed W by much, with a few rows that are alike.
        if constexpr (Ascent::plain_hinge)
            for (double rise = infinity; dual < enough && rise > 0.3 * (enough - dual); dual += rise)
                rise = balanced_step(ascent, feasible, players, row, slope);
        return dual;
    }
}

}  // namespace skm

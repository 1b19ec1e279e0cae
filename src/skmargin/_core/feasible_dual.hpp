// The value of the dual at a point that satisfies the constraint of the free intercept, near the duals of block ascent.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "balance.hpp"
#include "duals.hpp"
#include "losses.hpp"

namespace skm {

// Slopes of the dual objective that a check notes for the balance: in all duals, and in some that are zero and nearly
// worth more, of rivals that just do not come too close.
struct Slopes {
    struct Outside {
        uint32_t sample;
        int32_t rival;
        double slope;
    };
    // In the order of the samples.
    std::vector<double> held;
    std::vector<Outside> outside;
    // Classes whose samples hold nearly all that they may, while the class is the rival of hardly any sample.
    std::vector<int32_t> needy;

    // `total` is what the samples of each class hold more than is held against it, `room` what they may hold.
    void start(const std::vector<double>& total, const std::vector<double>& room) {
        held.clear();
        outside.clear();
        needy.clear();
        for (size_t l = 0; l < room.size(); ++l)
            if (total[l] > 0.5 * room[l]) needy.push_back(static_cast<int32_t>(l));
    }

    // Sample i of class `own` with the scores f, which are spoilt.  Of the rivals outside the closest is noted, and
    // all that are needy: nobody else can balance those.
    void note(int64_t i, int32_t own, const Duals::Row& r, double* f, int32_t k) {
        const auto sample = static_cast<uint32_t>(i);
        const double lead = std::exchange(f[own], -infinity) - 1;
        double top = 0;
        for (int32_t j = 0; j < r.size; ++j) {
            held.push_back(std::exchange(f[r.cls[j]], -infinity) - lead);
            top = std::max(top, held.back());
        }
        const double least = lead + top - widest, largest = largest_of(f, k);
        if (!(largest > least)) return;
        const auto closest = static_cast<int32_t>(std::find(f, f + k, largest) - f);
        outside.push_back({sample, closest, largest - lead});
        for (const int32_t l : needy)
            if (l != closest && f[l] > least) outside.push_back({sample, l, f[l] - lead});
    }
};

template <class Ascent>
double feasible_dual(Ascent& ascent, const Slopes& slopes) {
    const int64_t n = ascent.n;
    std::vector<int64_t> start(n + 1, 0);
    std::vector<int32_t> cls;
    std::vector<double> alpha, slope;
    cls.reserve(slopes.held.size() + slopes.outside.size());
    alpha.reserve(cls.capacity());
    slope.reserve(cls.capacity());
    auto known = slopes.held.begin();
    auto other = slopes.outside.begin();
    for (int64_t i = 0; i < n; ++i) {
        const Duals::Row& r = ascent.duals[i];
        cls.insert(cls.end(), r.cls, r.cls + r.size);
        alpha.insert(alpha.end(), r.alpha, r.alpha + r.size);
        slope.insert(slope.end(), known, known + r.size);
        known += r.size;
        for (; other != slopes.outside.end() && other->sample == i; ++other) {
            cls.push_back(other->rival);
            alpha.push_back(0);
            slope.push_back(other->slope);
        }
        start[i + 1] = static_cast<int64_t>(cls.size());
    }
    const auto row = [&](int64_t i) {
        const auto size = static_cast<int32_t>(start[i + 1] - start[i]);
        return Duals::Row{alpha.data() + start[i], cls.data() + start[i], size};
    };
    const auto with = [&](int64_t i, auto visit) {
        if (const Duals::Row r = row(i); r.size > 0) visit(ascent.y[i], r.cls, r.alpha, r.size);
    };
    balance(ascent.k, n, ascent.loss, with, [&](int64_t i, int32_t j) { return slope[start[i] + j]; });
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
    if constexpr (Ascent::Model::weighted) return value - feasible.conjugate();
    else return value - 0.5 * feasible.squared_norm();
}

}  // namespace skm

// The value of the dual at a point that satisfies the constraint of the free intercept, near the duals of block ascent.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "balance.hpp"
#include "duals.hpp"

namespace skm {

// A rival that just does not come too close to a sample, the closest of those without a dual: what it might hold can
// balance the others.
struct Outside {
    int64_t sample;
    int32_t rival;
    double slope;  // of the dual objective
};

// `outside` has at most one rival of each sample.
template <class Ascent>
double feasible_dual(Ascent& ascent, const std::vector<Outside>& outside) {
    const int64_t n = ascent.n;
    std::vector<int64_t> start(n + 1, 0);
    for (const Outside& o : outside) ++start[o.sample + 1];
    for (int64_t i = 0; i < n; ++i) start[i + 1] += start[i] + ascent.duals[i].size;
    std::vector<int32_t> cls(start[n]), seen(ascent.k);
    std::vector<double> alpha(start[n]), slope(start[n]), f(ascent.k);
    for (int64_t i = 0; i < n; ++i) {
        const Duals::Row& r = ascent.duals[i];
        if (r.size == 0) continue;
        std::copy(r.cls, r.cls + r.size, &cls[start[i]]);
        std::copy(r.alpha, r.alpha + r.size, &alpha[start[i]]);
        seen[0] = ascent.y[i];
        std::copy(r.cls, r.cls + r.size, seen.begin() + 1);
        ascent.model.scores(i, seen.data(), r.size + 1, f.data());
        ascent.spend(ascent.geo.rows.cost(i) * (r.size + 1));
        for (int32_t j = 0; j < r.size; ++j) slope[start[i] + j] = 1 - f[0] + f[j + 1];
    }
    for (const Outside& o : outside) {
        const int64_t last = start[o.sample + 1] - 1;
        cls[last] = o.rival;
        slope[last] = o.slope;
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

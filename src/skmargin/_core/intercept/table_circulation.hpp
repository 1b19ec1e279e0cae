// A circulation from a table of duals that are all strictly inside their bounds (intercept/circulation.hpp tells what
// it is for).
//
// The duals of a smooth loss are its slopes.  Each may move by its capacity, either way, at a cost that grows with the
// square of the share that it uses: so all of them move at once, each by a share that is the difference of
// the potentials of its two classes.  With C_jl the capacity of all duals between the classes j and l,
//     sum_l C_jl (x_j - x_l) = excess of j,
// the flow of an electric network, is the cheapest way.  Shares above 1 are cut, and what is left then is moved along
// shortest paths.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/interrupt.hpp"
#include "base/sums.hpp"
#include "intercept/circulation.hpp"
#include "losses/loss.hpp"

namespace skm {

// Potentials x of classes with sum_l C_jl (x_j - x_l) = excess_j: conjugate gradients, preconditioned by the diagonal.
// C_jl is the sum of the numbers of the pairs (j, l) and (l, j).
template <class Pairs>
std::vector<double> electric_potentials(const Pairs& pairs, const std::vector<double>& C,
                                        const std::vector<double>& excess, InterruptPoll& poll) {
    const size_t k = excess.size();
    std::vector<double> x(k), r = excess, z(k), d(k), Ld(k), total(k);
    struct Link {
        int32_t other;
        double flow;
    };
    std::vector<std::vector<Link>> links(k);  // many classes: few pairs carry flow
    size_t size = 0;
    pairs.each([&](int32_t j, int32_t l, size_t pair) {
        if (j == l || !(C[pair] > 0)) return;
        links[j].push_back({l, C[pair]});
        links[l].push_back({j, C[pair]});
        total[j] += C[pair];
        total[l] += C[pair];
        size += 2;
    });
    const auto dot = [](const auto& a, const auto& b) {
        return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
    };
    double rho = 0, target = 0;
    for (size_t step = 0; step < 2 * k + 10; ++step) {
        for (size_t j = 0; j < k; ++j) z[j] = total[j] > 0 ? r[j] / total[j] : 0;
        const double before = rho;
        rho = dot(r, z);
        if (step == 0) target = 1e-26 * rho;  // less is rounding, which has a part that no flow can move
        if (!(rho > target)) break;
        for (size_t j = 0; j < k; ++j) d[j] = z[j] + (step ? rho / before : 0) * d[j];
        for (size_t j = 0; j < k; ++j) {
            double sum = 0;
            for (const Link& link : links[j]) sum += link.flow * d[link.other];
            Ld[j] = total[j] * d[j] - sum;
        }
        const double curvature = dot(d, Ld);
        if (!(curvature > 0)) break;
        for (size_t j = 0; j < k; ++j) x[j] += rho / curvature * d[j], r[j] -= rho / curvature * Ld[j];
        poll.count_work(2.0 * static_cast<double>(size) + 10.0 * static_cast<double>(k));
    }
    return x;
}

// The bounds of a table's duals: each at most the sample's weight, or all of a sample together.
struct TableLoss {
    const double* cap;
    bool shared_cap;

    static bool at_vertex(int64_t, const double*, int32_t) { return false; }
    bool movable_range(int64_t i, const double* alpha, int32_t m, const uint8_t*, double* down, double* up) const {
        double share = 1;
        if (shared_cap) {  // the rest of the weight is the dual of the own class
            const double sum = std::accumulate(alpha, alpha + m, 0.0);
            share = sum > 0 ? std::clamp((cap[i] - sum) / sum, 0.0, 1.0) : 0;
        }
        for (int32_t j = 0; j < m; ++j) {
            const double capacity = shared_cap ? share * alpha[j] : std::min(alpha[j], cap[i] - alpha[j]);
            down[j] = up[j] = capacity > 1e-9 * cap[i] ? capacity : 0;  // at a bound, up to rounding
        }
        return true;
    }
};

// Makes the duals of a table (n, k), zero in the column of the own class, a circulation.  `with` as for balance().
template <class Pairs, class With>
void make_table_circulation_on(Pairs& arc, int32_t k, int64_t n, const TableLoss& loss, With&& with,
                               InterruptPoll& poll) {
    std::vector<double> C(arc.size()), excess(k), capacity(k), also_capacity(k);
    double flow = 0;
    for (int64_t i = 0; i < n; ++i)
        with(i, [&](int32_t own, const int32_t*, const double* alpha, int32_t m) {
            loss.movable_range(i, alpha, m, nullptr, capacity.data(), also_capacity.data());
            for (int32_t l = 0; l < m; ++l) {
                excess[own] += alpha[l], excess[l] -= alpha[l], flow += alpha[l];
                if (!(capacity[l] > 0)) continue;
                const size_t pair = arc(own, l);
                if (pair >= C.size()) C.resize(pair + 1);
                C[pair] += capacity[l];
            }
        });
    const std::vector<double> x = electric_potentials(arc, C, excess, poll);
    std::fill(excess.begin(), excess.end(), 0.0);
    for (int64_t i = 0; i < n; ++i)
        with(i, [&](int32_t own, const int32_t*, double* alpha, int32_t m) {
            loss.movable_range(i, alpha, m, nullptr, capacity.data(), also_capacity.data());
            for (int32_t l = 0; l < m; ++l) {
                alpha[l] -= std::clamp(x[own] - x[l], -1.0, 1.0) * capacity[l];
                excess[own] += alpha[l], excess[l] -= alpha[l];
            }
        });
    if (std::any_of(excess.begin(), excess.end(), [&](double e) { return std::abs(e) > 1e-13 * flow; }))
        make_circulation(k, n, loss, with, [](int64_t, int32_t) { return infinity; }, poll);
}

template <class With>
void make_table_circulation(int32_t k, int64_t n, const TableLoss& loss, With&& with, InterruptPoll& poll) {
    with_pairs(k, [&](auto& pairs) { make_table_circulation_on(pairs, k, n, loss, with, poll); });
}

}  // namespace skm

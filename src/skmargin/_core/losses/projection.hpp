// Projections onto the sets in which the duals of one sample lie.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/sums.hpp"

namespace skm {

// The root nu of  sum_j (v_j - nu)_+ = min(nu, U), then out_j = (v_j - nu)_+, of two or three numbers.
// Any j of them with the sum s alone have the root max(s/(1 + j), (s - U)/j), which is not above that of all, and those
// that are positive in the end reach it: nu is the largest of the roots of the largest number, of all but the smallest,
// and of all.  All is counted from the largest number, `top`, so that numbers far above U keep their differences.
template <int m>
void project_few(const double* v, double U, double* out) {
    static_assert(m == 2 || m == 3);
    double top = v[0], lo = 0, sum = 0, held = 0;
    for (int j = 1; j < m; ++j) top = std::max(top, v[j]);
    for (int j = 0; j < m; ++j) {
        out[j] = v[j] - top;
        lo = std::min(lo, out[j]);
        sum += out[j];
    }
    double nu = std::max(std::max(-top / 2, -U), std::max((sum - top) / (1 + m), (sum - U) / m));
    if (m == 3) nu = std::max(nu, std::max((sum - lo - top) / 3, (sum - lo - U) / 2));
    for (int j = 0; j < m; ++j) held += out[j] = std::max(out[j] - nu, 0.0);
    if (top + nu >= U && std::abs(held - U) > 1e-15 * U)  // where the sum is U, make that exact
        for (int j = 0; j < m; ++j) out[j] *= U / held;
}

// The root nu of  sum_j clip(v_j - nu, 0, u) = min(nu, U), then out_j = clip(v_j - nu, 0, u).
// The left side falls and the right side rises, so there is one root.  Newton steps on this piecewise linear equation,
// kept inside a bracket, end as soon as the sets {v_j <= nu}, {v_j >= nu + u} repeat; a step that leaves the bracket
// is replaced by a random break point inside it, which gives O(m log m) in the worst case.
// All is counted from the largest number, `top`, which v loses: numbers far above U keep their differences.
inline void project_to_capped_simplex(double* v, int32_t m, double u, double U, double* out) {
    const double top = max_of(v, m);
    if (top <= 0) {
        std::fill(out, out + m, 0.0);
        return;
    }
    for (int32_t j = 0; j < m; ++j) v[j] -= top;
    double lo = -top, hi = 0, nu = lo;  // the root lies in [lo, hi]
    // The root if n numbers with the sum `free` are free and the others hold `full`.
    const auto root = [&](double free, double full, int32_t n, double none) {
        const double below = (free + full - top) / (1 + n);
        return top + below <= U ? below : n > 0 ? (free + full - U) / n : none;
    };
    uint32_t pick = 0x9E3779B9u;
    const bool capped = u < top;
    // Where no number can reach u: the largest one alone gives v - nu <= min(nu, U), a start left of the root, and from
    // the left Newton steps on a convex function rise to the root.
    // Only numbers above nu can be positive in the end: they are collected in `out`, soon two or three.
    if (!capped) {
        double next = std::max(-0.5 * top, -U);
        int32_t n = 0;
        for (int32_t j = 0; j < m; ++j) {
            out[n] = v[j];
            n += v[j] > next;
        }
        while (next > nu) {
            nu = next;
            double free = 0;
            const int32_t before = std::exchange(n, 0);
            for (int32_t j = 0; j < before; ++j) {
                const double value = out[j];
                out[n] = value;
                free += value > nu ? value : 0.0;
                n += value > nu;
            }
            next = root(free, 0, n, nu);
        }
    }
    for (bool first = true; capped; first = false) {
        double free = 0, full = 0, held = 0;
        int32_t n = 0;
        // The first set is "all rivals free", the cheapest guess; afterwards the set that nu itself gives.
        for (int32_t j = 0; j < m; ++j) {
            const double t = v[j] - nu;
            if (t <= 0) continue;
            if (t >= u && !first) {
                full += u;
                held += u;
            } else {
                free += v[j];
                held += t;
                ++n;
            }
        }
        if (!first) {
            const double excess = held - std::min(top + nu, U);
            if (!(excess < 0)) lo = std::max(lo, nu);  // what is no number ends it
            if (!(excess > 0)) hi = std::min(hi, nu);
            if (lo >= hi) break;
        }
        double next = root(free, full, n, infinity);
        if (!first && next == nu) break;
        if (next > lo && next < hi) {
            nu = next;
            continue;
        }
        if (!first && std::abs(next - nu) <= 4e-16 * (top + nu < U ? top : std::abs(nu))) break;
        // A break point strictly inside the bracket; if there is none, the bracket is one linear segment.
        double chosen = 0;
        uint32_t seen = 0;
        for (int32_t j = 0; j < m; ++j)
            for (const double b : {v[j], v[j] - u})
                if (b > lo && b < hi) {
                    ++seen;
                    pick = pick * 1664525u + 1013904223u;
                    if (static_cast<uint32_t>((static_cast<uint64_t>(pick) * seen) >> 32) == 0) chosen = b;
                }
        if (seen == 0) {
            const double mid = 0.5 * (lo + hi);
            free = full = 0;
            n = 0;
            for (int32_t j = 0; j < m; ++j) {
                const double t = v[j] - mid;
                if (t >= u) full += u;
                else if (t > 0) free += v[j], ++n;
            }
            nu = std::min(std::max(root(free, full, n, hi), lo), hi);
            break;
        }
        nu = chosen;
    }
    for (int32_t j = 0; j < m; ++j) out[j] = std::min(std::max(v[j] - nu, 0.0), u);
    if (top + nu < U) return;
    const double sum = sum_of(out, m);
    if (std::abs(sum - U) <= 1e-15 * U) return;
    int32_t n = 0;  // the sum is U: make that exact
    for (int32_t j = 0; j < m; ++j) n += out[j] > 0 && out[j] < u;
    for (int32_t j = 0; j < m; ++j)
        if (out[j] > 0 && out[j] < u) out[j] = std::min(std::max(out[j] + (U - sum) / n, 0.0), u);
}

}  // namespace skm

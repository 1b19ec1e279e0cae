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

// The equation  sum_j clip(v_j - nu, 0, u) = min(nu, U)  with all numbers counted from the largest one, `top`.
struct ClippedSumEquation {
    double top, u, U;

    // The root if n numbers with the sum `free` are strictly inside and the others hold `full`; `none` where nothing is
    // inside and the sum is above U.
    double root(double free, double full, int32_t n, double none) const {
        const double below = (free + full - top) / (1 + n);
        return top + below <= U ? below : n > 0 ? (free + full - U) / n : none;
    }
};

// The root where no number can reach u: the largest one alone gives v - nu <= min(nu, U), a start left of the root, and
// from the left Newton steps on a convex function rise to the root.
// Only numbers above nu can be positive in the end: they are collected in `out`, soon two or three.
inline double root_without_caps(const ClippedSumEquation& equation, const double* v, int32_t m, double* out) {
    double nu = -equation.top, next = std::max(-0.5 * equation.top, -equation.U);
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
        next = equation.root(free, 0, n, nu);
    }
    return nu;
}

// Where the numbers lie for one nu: sums over those strictly inside, over those at u, of all clip(v_j - nu, 0, u).
struct ClippedSums {
    double free = 0, full = 0, held = 0;
    int32_t n = 0;  // strictly inside

    // `capped` false: as if u were infinite.
    ClippedSums(const double* v, int32_t m, double nu, double u, bool capped = true) {
        for (int32_t j = 0; j < m; ++j) {
            const double t = v[j] - nu;
            if (t <= 0) continue;
            if (t >= u && capped) {
                full += u;
                held += u;
            } else {
                free += v[j];
                held += t;
                ++n;
            }
        }
    }
};

// A random one of the break points v_j, v_j - u strictly inside (lo, hi); false if there is none.
inline bool random_break_point(const double* v, int32_t m, double u, double lo, double hi, uint32_t& state,
                               double& chosen) {
    uint32_t seen = 0;
    for (int32_t j = 0; j < m; ++j)
        for (const double b : {v[j], v[j] - u})
            if (b > lo && b < hi) {
                ++seen;
                state = state * 1664525u + 1013904223u;
                if (static_cast<uint32_t>((static_cast<uint64_t>(state) * seen) >> 32) == 0) chosen = b;
            }
    return seen > 0;
}

// The root where numbers may reach u.  Newton steps on the piecewise linear equation, kept inside a bracket, end as
// soon as the sets {v_j <= nu}, {v_j >= nu + u} repeat; a step that leaves the bracket is replaced by a random break
// point inside it, which gives O(m log m) in the worst case.
inline double root_with_caps(const ClippedSumEquation& equation, const double* v, int32_t m) {
    const double top = equation.top, u = equation.u, U = equation.U;
    double lo = -top, hi = 0, nu = lo;  // the root lies in [lo, hi]
    uint32_t state = 0x9E3779B9u;
    // The first set is "all strictly inside", the cheapest guess; afterwards the sets that nu itself gives.
    for (bool first = true;; first = false) {
        const ClippedSums sums(v, m, nu, u, !first);
        if (!first) {
            const double excess = sums.held - std::min(top + nu, U);
            if (!(excess < 0)) lo = std::max(lo, nu);  // NaN ends it
            if (!(excess > 0)) hi = std::min(hi, nu);
            if (lo >= hi) return nu;
        }
        const double next = equation.root(sums.free, sums.full, sums.n, infinity);
        if (!first && next == nu) return nu;
        if (next > lo && next < hi) {
            nu = next;
            continue;
        }
        if (!first && std::abs(next - nu) <= 4e-16 * (top + nu < U ? top : std::abs(nu))) return nu;
        if (!random_break_point(v, m, u, lo, hi, state, nu)) {  // the bracket is one linear segment
            const ClippedSums inside(v, m, 0.5 * (lo + hi), u);
            return std::min(std::max(equation.root(inside.free, inside.full, inside.n, hi), lo), hi);
        }
    }
}

// The root nu of  sum_j clip(v_j - nu, 0, u) = min(nu, U), then out_j = clip(v_j - nu, 0, u).
// The left side falls and the right side rises, so there is one root.
// All is counted from the largest number, `top`, which v loses: numbers far above U keep their differences.
inline void project_to_capped_simplex(double* v, int32_t m, double u, double U, double* out) {
    const double top = max_of(v, m);
    if (top <= 0) {
        std::fill(out, out + m, 0.0);
        return;
    }
    for (int32_t j = 0; j < m; ++j) v[j] -= top;
    const ClippedSumEquation equation{top, u, U};
    const double nu = u < top ? root_with_caps(equation, v, m) : root_without_caps(equation, v, m, out);
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

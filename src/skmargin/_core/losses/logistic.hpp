// The logistic loss of the smallest margin (Lei et al. 2015, problem 10 with l(t) = log(1 + exp(-t))):
//
//     value = cap_i log(1 + exp(-min_l d_l))
//     dual  = cap_i entropy(S / cap_i),   S = sum alpha <= cap_i,   entropy(u) = -u log u - (1 - u) log(1 - u)
//
// The slope of the dual in S is log((cap - S) / S): every sample has duals, however far beyond the margin it is.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/softplus.hpp"
#include "base/sums.hpp"
#include "losses/loss.hpp"

namespace skm {

class LogisticLoss {
  public:
    struct Bounds {
        double lo;
    };

    explicit LogisticLoss(const double* cap) : cap_(cap) {}

    double sum_limit(int64_t i) const { return cap_[i]; }
    double dual_scale(int64_t i) const { return cap_[i]; }

    double value(int64_t i, const double* d, int32_t m) const { return cap_[i] * softplus(-min_of(d, m)); }
    double dual(int64_t i, const double* alpha, int32_t m) const {
        const double u = std::min(1.0, sum_of(alpha, m) / cap_[i]), rest = 1 - u;
        return cap_[i] * ((u > 0 ? -u * std::log(u) : 0.0) + (rest > 0 ? -rest * std::log1p(-u) : 0.0));
    }

    // S = cap sigma(x) at the root x of  x + h (cap sigma(x) - c) = 0; 1 - sigma(x) = sigma(-x) takes a positive root
    // to the other side.
    double best_sum(int64_t i, double h, double c) const {
        const double scale = h * cap_[i], a = h * c;
        return a <= 0.5 * scale ? cap_[i] * share(scale, a) : cap_[i] - cap_[i] * share(scale, scale - a);
    }

    bool sum_is_free(int64_t i, double S) const { return S > 0 && S < cap_[i] * (1 - 1e-12); }
    double dual_slope(int64_t i, double S) const { return std::log(cap_[i] - S) - std::log(S); }
    double dual_curvature(int64_t i, double S) const { return cap_[i] / (S * (cap_[i] - S)); }
    static constexpr bool curved_dual = true;

    // A rival at zero stays there while it is farther away than those that carry the loss: these have d = D'(S).
    Bounds bounds(int64_t i, const double* d, const double* alpha, int32_t m) const {
        const double u = sum_of(alpha, m) / cap_[i];
        double low = u >= 1 ? infinity : u > 0 ? std::log(u) - std::log1p(-u) : -infinity;
        for (int32_t j = 0; j < m; ++j)
            if (alpha[j] > 0) low = std::min(low, -d[j]);
        return {low};
    }
    bool idle(const Bounds& b, int64_t, int32_t, double d, double alpha, double slack) const {
        return alpha == 0 && -d < b.lo - slack;
    }
    static bool cannot_move(int64_t, const double*, const double*, int32_t m) { return m == 0; }

    // A dual may move as far as it is large, and all of them together up to the limit of their sum.
    bool movable_range(int64_t i, const double* alpha, int32_t m, const uint8_t*, double* down, double* up) const {
        const double left = std::max(0.0, cap_[i] - sum_of(alpha, m)) / std::max(m, 1);
        for (int32_t j = 0; j < m; ++j) {
            down[j] = alpha[j];
            up[j] = std::min(alpha[j], left);
        }
        return true;
    }
    static bool at_vertex(int64_t, const double* alpha, int32_t m) {
        return std::all_of(alpha, alpha + m, [](double a) { return a == 0; });
    }

    static int32_t fixed_rival(int64_t) { return -1; }
    static constexpr bool has_faces = false, only_largest_hinge = false, can_stretch = false;
    static constexpr double slack = 0;

  private:
    static double sigma(double x) { return 1 / (1 + std::exp(-x)); }

    // sigma(x) at the root x <= 0 of  x + scale sigma(x) = a.  Newton steps for the logarithms of scale sigma(x) and
    // a - x, nearly straight lines where x is far below zero; where one leaves the interval of the root, half of that.
    // With d = a - x, d exp(d) <= scale exp(a) gives its lower end.
    static double share(double scale, double a) {
        const double size = std::log(scale);
        double hi = std::min(0.0, a), lo = std::max(a - scale, a - std::max(1.0, size + a)), x = 0.5 * (lo + hi);
        for (int step = 0; step < 100; ++step) {  // about five are needed
            const double g = size - softplus(-x) - std::log(a - x);
            (g > 0 ? hi : lo) = x;
            double next = x - g / (sigma(-x) + 1 / (a - x));
            if (!(next >= lo && next <= hi)) next = 0.5 * (lo + hi);
            const bool done = std::abs(next - x) <= 1e-15 * (1 + std::abs(x));
            x = next;
            if (done) break;
        }
        return sigma(x);
    }

    const double* cap_;
};

static_assert(SumLoss<LogisticLoss>);

}  // namespace skm

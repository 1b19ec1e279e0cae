// The hinge losses of Crammer and Singer (the largest hinge), of Weston and Watkins (all of them), and of the top k.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/sums.hpp"
#include "losses/loss.hpp"
#include "losses/projection.hpp"

namespace skm {

// The hinge family, margin 1:  value = the sum of the top_k largest (1 - d_l)_+ times C s_i / top_k.
//     dual(alpha) = sum alpha  on  0 <= alpha_l <= u_i,  sum alpha <= U_i
// top_k = 1 Crammer-Singer (u infinite, U = C s_i), top_k = all Weston-Watkins (u = C s_i, U infinite),
// else top-k (u = C s_i/top_k, U = C s_i).
enum class Hinge { max, many };  // whether only the largest hinge counts; `many` is told at run time how many do

template <Hinge H>
class HingeLoss {
  public:
    struct Bounds {
        double lo, hi, full;
    };

    // cap[i] = C s_i; top_k = 0: all hinges count.
    explicit HingeLoss(const double* cap, int32_t top_k = 1) : cap_(cap), top_k_(top_k) {}

    double dual_limit(int64_t i) const { return H == Hinge::max ? infinity : all_count() ? cap_[i] : cap_[i] / top_k_; }
    double sum_limit(int64_t i) const { return all_count() ? infinity : cap_[i]; }
    double dual_scale(int64_t i) const { return cap_[i]; }

    // With W and b, and so the margins d, `stretch` times as long.
    double value(int64_t i, const double* d, int32_t m, double stretch = 1) const {
        if constexpr (H == Hinge::max) {
            return cap_[i] * std::max(0.0, 1 - stretch * min_of(d, m));
        } else if (all_count() || m <= top_k_) {
            double s = 0;
            for (int32_t j = 0; j < m; ++j) s += std::max(0.0, 1 - stretch * d[j]);
            return dual_limit(i) * s;
        } else {
            // The top_k largest hinges: selected in a copy that is kept between calls.
            thread_local std::vector<double> h;
            h.assign(d, d + m);
            std::nth_element(h.begin(), h.begin() + (top_k_ - 1), h.end());
            double s = 0;
            for (int32_t j = 0; j < top_k_; ++j) s += std::max(0.0, 1 - stretch * h[j]);
            return dual_limit(i) * s;
        }
    }

    double dual(int64_t, const double* alpha, int32_t m) const { return sum_of(alpha, m); }

    void block(int64_t i, double A, const double* d, const double* alpha, int32_t m, double* out) const {
        const double inverse = 1 / A;
        if (m == 1) {
            const double v = (1 - d[0]) * inverse + 2 * alpha[0];
            out[0] = std::min(std::max(0.5 * v, 0.0), std::min(dual_limit(i), sum_limit(i)));
            return;
        }
        const double S = sum_of(alpha, m);
        double small[64], *v = small;
        if (m > 64) {
            thread_local std::vector<double> work;
            work.resize(m);
            v = work.data();
        }
        for (int32_t j = 0; j < m; ++j) v[j] = (1 - d[j]) * inverse + alpha[j] + S;
        if (H == Hinge::max && m == 2) return project_few<2>(v, sum_limit(i), out);
        if (H == Hinge::max && m == 3) return project_few<3>(v, sum_limit(i), out);
        project_to_capped_simplex(v, m, dual_limit(i), sum_limit(i), out);
    }

    // For the largest hinge: dual = S up to the limit.
    double best_sum(int64_t i, double h, double c) const { return std::min(std::max(c + 1 / h, 0.0), sum_limit(i)); }
    static double dual_slope(int64_t, double) { return 1; }
    static double dual_curvature(int64_t, double) { return 0; }
    static constexpr bool curved_dual = false;

    // Rivals at zero with 1 - d below `lo`, and rivals at their limit with 1 - d above `hi`, stay where they are.
    Bounds bounds(int64_t i, const double* d, const double* alpha, int32_t m) const {
        if (all_count()) return {0, 0, cap_[i]};
        const double u = dual_limit(i), U = sum_limit(i);
        double S = 0, low = infinity, high = -infinity;
        for (int32_t j = 0; j < m; ++j) {
            S += alpha[j];
            if (alpha[j] > 0) low = std::min(low, 1 - d[j]);
            if (alpha[j] < u) high = std::max(high, 1 - d[j]);
        }
        if (S < U * (1 - 1e-12)) low = std::min(low, 0.0), high = std::max(high, 0.0);
        return {low, high, u};
    }

    // Whether a rival stays where it is.  `slack` > 0 asks for a safety margin: the scores move between visits.
    bool idle(const Bounds& b, int64_t, int32_t, double d, double alpha, double slack) const {
        if (alpha <= 0) return 1 - d < b.lo - slack;
        return all_count() && alpha >= b.full && 1 - d > b.hi + slack;
    }

    // A single rival that holds the whole sum and still violates its margin cannot move.
    bool cannot_move(int64_t i, const double* d, const double* alpha, int32_t m) const {
        if (all_count() || m != 1) return m == 0;
        return alpha[0] >= std::min(dual_limit(i), sum_limit(i)) * (1 - 1e-12) && d[0] < 1;
    }

    // How far the duals strictly inside their bounds, and those marked `near_margin`, may move down and up.  True: each
    // by itself, all together.  False: the sum is at its limit, and one may grow only as another falls.
    bool movable_range(int64_t i, const double* alpha, int32_t m, const uint8_t* near_margin, double* down,
                       double* up) const {
        const double u = dual_limit(i), U = sum_limit(i);
        double S = 0;
        int32_t count = 0;
        for (int32_t j = 0; j < m; ++j) {
            S += alpha[j];
            const bool movable = near_margin[j] || (alpha[j] > 0 && alpha[j] < u * (1 - 1e-9));
            down[j] = movable ? alpha[j] : 0;
            up[j] = movable ? std::max(0.0, u - alpha[j]) : 0;
            count += movable;
        }
        const bool sum_is_slack = S < U * (1 - 1e-9);
        for (int32_t j = 0; sum_is_slack && j < m; ++j) up[j] = std::min(up[j], (U - S) / std::max(count, 1));
        return sum_is_slack;
    }

    // Whether no dual is strictly inside its bounds.
    bool at_vertex(int64_t i, const double* alpha, int32_t m) const {
        const double full = std::min(dual_limit(i), sum_limit(i)) * (1 - 1e-12);
        for (int32_t j = 0; j < m; ++j)
            if (alpha[j] > 0 && alpha[j] < full) return false;
        return true;
    }

    // Is sum alpha free to change?
    bool sum_is_free(int64_t i, double S) const { return S < sum_limit(i) * (1 - 1e-12); }

    // The proximal map is a projection of the coefficients c.
    void prox(int64_t i, double sigma, const double* d, const double* alpha, int32_t m, double* out) const {
        block(i, sigma, d, alpha, m, out);
    }
    static double squared_distance(const double* a, const double* alpha, int32_t m) {
        double sum = 0, squares = 0;
        for (int32_t j = 0; j < m; ++j) {
            const double e = a[j] - alpha[j];
            sum += e;
            squares += e * e;
        }
        return squares + sum * sum;
    }

    // Its derivative is the projection on vectors of sum zero over the coefficients that are strictly inside.
    template <class Emit>
    void pairs(int64_t i, double sigma, const double* a, int32_t m, Emit emit) const {
        const double u = dual_limit(i);
        double S = 0;
        int32_t n = 0;
        for (int32_t j = 0; j < m; ++j) {
            S += a[j];
            n += a[j] > 0 && a[j] < u;
        }
        const bool own = sum_is_free(i, S);
        if (n + own < 2) return;
        const double w = 1 / (sigma * (n + own));
        for (int32_t j = 0; j < m; ++j) {
            if (!(a[j] > 0 && a[j] < u)) continue;
            if (own) emit(-1, j, w);
            for (int32_t l = 0; l < j; ++l)
                if (a[l] > 0 && a[l] < u) emit(l, j, w);
        }
    }

    double stability_radius(int64_t i, double sigma, const double* d, const double* alpha, const double* a,
                            int32_t m) const {
        const double u = dual_limit(i), U = sum_limit(i);
        double before = 0, S = 0;
        for (int32_t j = 0; j < m; ++j) before += alpha[j], S += a[j];
        const bool own = sum_is_free(i, S);
        // a = clip(v - nu, 0, u) holds for every nu in [below, above]; one free coefficient fixes nu.
        double below = own ? -infinity : U, above = infinity, fixed = own ? S : -1;
        for (int32_t j = 0; j < m; ++j) {
            const double v = (1 - d[j]) / sigma + alpha[j] + before;
            if (a[j] <= 0) {
                below = std::max(below, v);
            } else if (a[j] >= u) {
                above = std::min(above, v - u);
            } else {
                if (fixed >= 0) return 0;
                fixed = v - a[j];
            }
        }
        if (own) return sigma * std::min(fixed - below, above - fixed);
        // The sum is at its limit: nu moves with the free coefficient, so the others see twice the change.
        return 0.5 * sigma * (fixed >= 0 ? std::min(fixed - below, above - fixed) : above - below);
    }

    int32_t fixed_rival(int64_t) const { return -1; }
    static constexpr bool has_faces = true;  // the steps of linear/face_cg.hpp know these constraints
    static constexpr bool only_largest_hinge = H == Hinge::max;  // the value depends on one rival
    static constexpr bool can_stretch = true;                    // value takes a stretch
    static constexpr bool bounded = true;

    // Safety margin of `idle` between visits: with many hinges a sample the scores move more.
    static constexpr double slack = H == Hinge::max ? 0.0 : 1.0;

    // Whether every rival that is too close has its part of the value.
    bool all_count() const { return H == Hinge::many && top_k_ == 0; }

  private:
    const double* cap_;
    int32_t top_k_;
};

static_assert(SumLoss<HingeLoss<Hinge::max>>);
static_assert(ProximalLoss<HingeLoss<Hinge::max>> && ProximalLoss<HingeLoss<Hinge::many>>);

}  // namespace skm

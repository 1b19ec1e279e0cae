// Margin losses: what a dual solver needs to know of the loss of one sample.
//
// A sample i of class y has one dual number alpha_l for each rival l != y; its row of coefficients is
//     c_l = -alpha_l (l != y),   c_y = sum_l alpha_l,      W = sum_i x_i c_i'.
// With score differences d_l = f_y - f_l every machine here is
//     primal  P = 1/2 ||W||^2 + sum_i value_i(d_i)          dual  D = sum_i dual_i(alpha_i) - 1/2 ||W||^2
// and the duality gap is a sum over samples:  gap_i = value_i(d_i) - dual_i(alpha_i) + alpha_i'd_i >= 0.
//
// A loss gives, for a list of m rivals (the rest is fixed at zero):
//     value(i, d, m)                      loss of the sample (hinges: also at stretched margins)
//     dual(i, alpha, m)                   minus the conjugate
//     block(i, A, d, alpha, m, out)       argmin_a  A/2 [(sum a - sum alpha)^2 + ||a - alpha||^2] + d'a - dual_i(a)
//     bounds(i, d, alpha, m), idle(...)   which rivals cannot move now (shrinking)
//     stuck(i, d, alpha, m)               true if no rival of the list can move
//     room(i)                             scale of the duals: a step of this size is the largest possible
//     play(i, alpha, m, near, down, up)   how far duals strictly inside their bounds, or near, may move
//     (intercept/circulation.hpp) at_vertex(i, alpha, m)              true if no rival is strictly inside its bounds
//     leader(i)                           a rival that must stand first in its list; -1: any order will do
// and for the Newton gear:
//     prox(i, sigma, d, alpha, m, out)    argmax_a  dual_i(a) - d'a - sigma/2 moved(a, alpha)
//     moved(a, alpha, m)                  the square of a distance between duals
//     pairs(i, sigma, a, m, emit)         -da/dd as weighted pairs of rivals (-1 is the own class): emit(j, l, weight)
//     leeway(i, sigma, d, alpha, a, m)    a stays as it is while the d move by less than this; 0 unless a is a vertex
//     bounded                             whether the duals have upper bounds
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/sums.hpp"
#include "losses/projection.hpp"

namespace skm {

// The hinge family, margin 1:  value = the sum of the K largest (1 - d_l)_+ times C s_i / K.
//     dual(alpha) = sum alpha  on  0 <= alpha_l <= u_i,  sum alpha <= U_i
// K = 1 Crammer-Singer (u infinite, U = C s_i), K = all Weston-Watkins (u = C s_i, U infinite),
// else top-K (u = C s_i/K, U = C s_i).
enum class Hinge { max, sum, top };

template <Hinge H>
class HingeLoss {
  public:
    struct Bounds {
        double lo, hi, full;
    };

    // cap[i] = C s_i
    HingeLoss(const double* cap, int32_t K) : cap_(cap), K_(K) {}

    double limit(int64_t i) const { return H == Hinge::max ? infinity : H == Hinge::sum ? cap_[i] : cap_[i] / K_; }
    double total(int64_t i) const { return H == Hinge::sum ? infinity : cap_[i]; }
    double room(int64_t i) const { return cap_[i]; }

    // At the margins `stretch` times d, that is for W and b so much longer.
    double value(int64_t i, const double* d, int32_t m, double stretch = 1) const {
        if constexpr (H == Hinge::max) {
            return cap_[i] * std::max(0.0, 1 - stretch * least_of(d, m));
        } else if (H == Hinge::sum || m <= K_) {
            double s = 0;
            for (int32_t j = 0; j < m; ++j) s += std::max(0.0, 1 - stretch * d[j]);
            return limit(i) * s;
        } else {
            // The K largest hinges: a small heap would allocate; selection by threshold on a copy.
            thread_local std::vector<double> h;
            h.assign(d, d + m);
            std::nth_element(h.begin(), h.begin() + (K_ - 1), h.end());
            double s = 0;
            for (int32_t j = 0; j < K_; ++j) s += std::max(0.0, 1 - stretch * h[j]);
            return limit(i) * s;
        }
    }

    double dual(int64_t, const double* alpha, int32_t m) const { return sum_of(alpha, m); }

    void block(int64_t i, double A, const double* d, const double* alpha, int32_t m, double* out) const {
        const double inverse = 1 / A;
        if (m == 1) {
            const double v = (1 - d[0]) * inverse + 2 * alpha[0];
            out[0] = std::min(std::max(0.5 * v, 0.0), std::min(limit(i), total(i)));
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
        if (H == Hinge::max && m == 2) return clip_few<2>(v, total(i), out);
        if (H == Hinge::max && m == 3) return clip_few<3>(v, total(i), out);
        clip_to_sum(v, m, limit(i), total(i), out);
    }

    // Rivals at zero with 1 - d below `lo`, and rivals at their limit with 1 - d above `hi`, stay where they are.
    Bounds bounds(int64_t i, const double* d, const double* alpha, int32_t m) const {
        if constexpr (H == Hinge::sum) {
            return {0, 0, cap_[i]};
        } else {
            const double u = limit(i), U = total(i);
            double S = 0, low = infinity, high = -infinity;
            for (int32_t j = 0; j < m; ++j) {
                S += alpha[j];
                if (alpha[j] > 0) low = std::min(low, 1 - d[j]);
                if (alpha[j] < u) high = std::max(high, 1 - d[j]);
            }
            if (S < U * (1 - 1e-12)) low = std::min(low, 0.0), high = std::max(high, 0.0);
            return {low, high, u};
        }
    }

    // `slack` > 0 asks for a safety margin: the scores move between visits.
    static bool idle(const Bounds& b, int64_t, int32_t, double d, double alpha, double slack) {
        if (alpha <= 0) return 1 - d < b.lo - slack;
        return H == Hinge::sum && alpha >= b.full && 1 - d > b.hi + slack;
    }

    // One rival that holds everything and still violates its margin cannot move: the sum is used up.
    bool stuck(int64_t i, const double* d, const double* alpha, int32_t m) const {
        if (H == Hinge::sum || m != 1) return m == 0;
        return alpha[0] >= std::min(limit(i), total(i)) * (1 - 1e-12) && d[0] < 1;
    }

    // True: the duals may move by themselves, down and up so far in all.  False: the sum is used up, they can only
    // trade.
    bool play(int64_t i, const double* alpha, int32_t m, const uint8_t* near, double* down, double* up) const {
        const double u = limit(i), U = total(i);
        double S = 0;
        int32_t players = 0;
        for (int32_t j = 0; j < m; ++j) {
            S += alpha[j];
            const bool plays = near[j] || (alpha[j] > 0 && alpha[j] < u * (1 - 1e-9));
            down[j] = plays ? alpha[j] : 0;
            up[j] = plays ? std::max(0.0, u - alpha[j]) : 0;
            players += plays;
        }
        const bool alone = S < U * (1 - 1e-9);
        for (int32_t j = 0; alone && j < m; ++j) up[j] = std::min(up[j], (U - S) / std::max(players, 1));
        return alone;
    }

    // No rival strictly inside its bounds: such a sample moves only when its gap says so.
    bool at_vertex(int64_t i, const double* alpha, int32_t m) const {
        const double full = std::min(limit(i), total(i)) * (1 - 1e-12);
        for (int32_t j = 0; j < m; ++j)
            if (alpha[j] > 0 && alpha[j] < full) return false;
        return true;
    }

    // Is sum alpha free to change?
    bool sum_is_free(int64_t i, double S) const { return S < total(i) * (1 - 1e-12); }

    // A projection of the coefficients c.
    void prox(int64_t i, double sigma, const double* d, const double* alpha, int32_t m, double* out) const {
        block(i, sigma, d, alpha, m, out);
    }
    static double moved(const double* a, const double* alpha, int32_t m) {
        double sum = 0, squares = 0;
        for (int32_t j = 0; j < m; ++j) {
            const double e = a[j] - alpha[j];
            sum += e;
            squares += e * e;
        }
        return squares + sum * sum;
    }

    // It moves only inside the set of those coefficients that are free.
    template <class Emit>
    void pairs(int64_t i, double sigma, const double* a, int32_t m, Emit emit) const {
        const double u = limit(i);
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

    double leeway(int64_t i, double sigma, const double* d, const double* alpha, const double* a, int32_t m) const {
        const double u = limit(i), U = total(i);
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
        // Here nu moves with the free coefficient, against those at their bounds.
        return 0.5 * sigma * (fixed >= 0 ? std::min(fixed - below, above - fixed) : above - below);
    }

    int32_t leader(int64_t) const { return -1; }
    static constexpr bool has_faces = true;                // the steps of linear/face_cg.hpp know these constraints
    static constexpr bool largest_only = H == Hinge::max;  // the value depends on one rival
    static constexpr bool stretches = true;                // value takes a stretch
    static constexpr bool bounded = true;

    // How much WW-like shrinking needs as a margin.
    static constexpr double slack = H == Hinge::max ? 0.0 : 1.0;

  private:
    const double* cap_;
    int32_t K_;
};

}  // namespace skm

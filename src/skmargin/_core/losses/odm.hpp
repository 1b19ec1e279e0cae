// The loss of the optimal margin distribution machine (Zhang & Zhou 2017) with a fixed rival r_i in its upper part:
//
//     value = cap_i [ (1 - theta - min_l d_l)_+^2 + mu (d_{r_i} - 1 - theta)_+^2 ]
//
// Its duals are zeta_l >= 0 for the lower part and beta >= 0 for the upper one; with kappa = 1/(2 cap), S = sum zeta,
//     dual = (1 - theta) S - kappa/2 S^2 - (1 + theta) beta - kappa/(2 mu) beta^2.
// zeta_{r_i} and beta are never both positive, so one signed number alpha_{r_i} = zeta_{r_i} - beta holds both and the
// coefficients of the sample are those of any other loss (losses/loss.hpp).  The rival r_i stands first in every list,
// or, given `labels_if_ordered`, at its place among the rivals in increasing order. mu = 0: squared hinge of Crammer
// and Singer with margin 1 - theta; there is no fixed rival then.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/sums.hpp"
#include "losses/loss.hpp"

namespace skm {

// The root nu of  sum_j (v_j - nu)_+ = q (nu - p), then out_j = (v_j - nu)_+; returns their sum.  Newton steps from the
// left on a convex falling function: they never pass the root and end when the set {v_j > nu} repeats.
inline double shifted_soft_threshold(const double* v, int32_t m, double p, double q, double* out) {
    double nu = p;
    for (int32_t before = -1;;) {
        double sum = q * p;
        int32_t n = 0;
        for (int32_t j = 0; j < m; ++j)
            if (v[j] > nu) sum += v[j], ++n;
        if (n == before || n == 0) break;
        before = n;
        nu = std::max(nu, sum / (q + n));
    }
    double S = 0;
    for (int32_t j = 0; j < m; ++j) S += out[j] = std::max(0.0, v[j] - nu);
    return S;
}

class OdmLoss {
  public:
    struct Bounds {
        double lo;
    };

    // `rival` (n) is read only if mu > 0; `labels_if_ordered`: the labels, if rivals come in increasing order.
    OdmLoss(const double* cap, double mu, double theta, const int32_t* rival,
            const int32_t* labels_if_ordered = nullptr)
        : cap_(cap), mu_(mu), theta_(theta), rival_(rival), labels_if_ordered_(labels_if_ordered) {}

    int32_t fixed_rival(int64_t i) const { return mu_ > 0 ? rival_[i] : -1; }
    int32_t fixed_place(int64_t i) const {
        return mu_ > 0 && labels_if_ordered_ ? rival_[i] - (rival_[i] > labels_if_ordered_[i]) : 0;
    }
    double dual_scale(int64_t i) const { return 2 * cap_[i] * (1 - theta_); }

    double value(int64_t i, const double* d, int32_t m) const {
        double low = 0;
        for (int32_t j = 0; j < m; ++j) low = std::max(low, 1 - theta_ - d[j]);
        const double high = mu_ > 0 && m > 0 ? std::max(0.0, d[fixed_place(i)] - 1 - theta_) : 0.0;
        return cap_[i] * (low * low + mu_ * high * high);
    }

    double dual(int64_t i, const double* alpha, int32_t m) const {
        const double S = zeta_sum(alpha, m), beta = m > 0 ? std::max(0.0, -alpha[fixed_place(i)]) : 0.0;
        const double lower = (1 - theta_) * S - S * S / (4 * cap_[i]);
        return beta > 0 ? lower - (1 + theta_) * beta - beta * beta / (4 * cap_[i] * mu_) : lower;
    }

    // With v_l = (1 - theta - d_l)/A + alpha_l + sum alpha and nu the multiplier of S:  zeta_l = (v_l - nu)_+ and
    // either
    //     beta = 0,            S = q nu,          q = A/(A + kappa),        if A S <= F
    //     beta = (A S - F)/E,  S = q (nu - F/E),  q = A/(A + kappa - A^2/E),   zeta_{r_i} = 0
    // with E = 2 A + kappa/mu, F = 1 + theta - d_r + A (alpha_r + sum alpha).  Exactly one of the two is consistent.
    void block(int64_t i, double A, const double* d, const double* alpha, int32_t m, double* out) const {
        const double kappa = 1 / (2 * cap_[i]), inverse = 1 / A;
        double sum = 0;
        for (int32_t j = 0; j < m; ++j) sum += alpha[j];
        double small[64], *v = small;
        if (m > 64) {
            thread_local std::vector<double> work;
            work.resize(m);
            v = work.data();
        }
        for (int32_t j = 0; j < m; ++j) v[j] = (1 - theta_ - d[j]) * inverse + alpha[j] + sum;
        const double S = shifted_soft_threshold(v, m, 0.0, A / (A + kappa), out);
        if (!(mu_ > 0) || m == 0) return;
        const int32_t r = fixed_place(i);
        const double F = 1 + theta_ - d[r] + A * (alpha[r] + sum);
        if (A * S <= F) return;
        const double E = 2 * A + kappa / mu_;
        v[r] = -infinity;
        const double T = shifted_soft_threshold(v, m, F / E, A / (A + kappa - A * A / E), out);
        out[r] = -std::max(0.0, (A * T - F) / E);
    }

    // For mu = 0: dual = (1 - theta) S - kappa/2 S^2.
    double best_sum(int64_t i, double h, double c) const {
        return std::max(0.0, (h * c + 1 - theta_) / (h + 1 / (2 * cap_[i])));
    }
    static double sum_limit(int64_t) { return infinity; }
    static bool sum_is_free(int64_t, double) { return true; }
    double dual_slope(int64_t i, double S) const { return 1 - theta_ - S / (2 * cap_[i]); }
    double dual_curvature(int64_t i, double) const { return 1 / (2 * cap_[i]); }
    static constexpr bool curved_dual = true;

    // A rival at zero stays there while its hinge lies below that of the rivals that carry the loss.
    Bounds bounds(int64_t i, const double* d, const double* alpha, int32_t m) const {
        double low = zeta_sum(alpha, m) / (2 * cap_[i]);
        for (int32_t j = 0; j < m; ++j)
            if (alpha[j] > 0) low = std::min(low, 1 - theta_ - d[j]);
        return {std::max(0.0, low)};
    }
    bool idle(const Bounds& b, int64_t i, int32_t cls, double d, double alpha, double slack) const {
        return alpha == 0 && 1 - theta_ - d < b.lo - slack && cls != fixed_rival(i);
    }

    // A single rival inside the zone without loss, at zero.
    bool cannot_move(int64_t, const double* d, const double* alpha, int32_t m) const {
        if (mu_ > 0 && m == 1) return alpha[0] == 0 && std::abs(d[0] - 1) <= theta_;
        return m == 0;
    }

    // The duals have no upper bounds: each may move as far as it keeps its sign.
    static bool movable_range(int64_t, const double* alpha, int32_t m, const uint8_t*, double* down, double* up) {
        for (int32_t j = 0; j < m; ++j) down[j] = up[j] = std::abs(alpha[j]);
        return true;
    }
    bool at_vertex(int64_t, const double* alpha, int32_t m) const {
        return std::all_of(alpha, alpha + m, [](double a) { return a == 0; });
    }

    // The signed duals alone are held near `alpha`, not their sum: kappa does that.  With v_l = alpha_l + (1 - theta -
    // d_l)/sigma:  zeta_l = (v_l - nu)_+,  kappa S = sigma nu,  and
    //     beta = (d_r - 1 - theta - sigma alpha_r)_+ / (sigma + kappa/mu).
    void prox(int64_t i, double sigma, const double* d, const double* alpha, int32_t m, double* out) const {
        const double kappa = 1 / (2 * cap_[i]), inverse = 1 / sigma;
        double small[64], *v = small;
        if (m > 64) {
            thread_local std::vector<double> work;
            work.resize(m);
            v = work.data();
        }
        for (int32_t j = 0; j < m; ++j) v[j] = (1 - theta_ - d[j]) * inverse + alpha[j];
        shifted_soft_threshold(v, m, 0.0, sigma / kappa, out);
        if (!(mu_ > 0)) return;
        const int32_t r = fixed_place(i);
        const double over = d[r] - 1 - theta_ - sigma * alpha[r];
        if (over > 0) out[r] = -over / (sigma + kappa / mu_);
    }
    static double squared_distance(const double* a, const double* alpha, int32_t m) {
        double squares = 0;
        for (int32_t j = 0; j < m; ++j) squares += (a[j] - alpha[j]) * (a[j] - alpha[j]);
        return squares;
    }
    template <class Emit>
    void pairs(int64_t i, double sigma, const double* a, int32_t m, Emit emit) const {
        const double kappa = 1 / (2 * cap_[i]);
        int32_t n = 0;
        for (int32_t j = 0; j < m; ++j) n += a[j] > 0;
        const double own = 1 / (sigma + n * kappa), cross = kappa / sigma * own;
        for (int32_t j = 0; j < m; ++j) {
            if (a[j] < 0) emit(-1, j, 1 / (sigma + kappa / mu_));
            if (!(a[j] > 0)) continue;
            emit(-1, j, own);
            for (int32_t l = 0; l < j; ++l)
                if (a[l] > 0) emit(l, j, cross);
        }
    }
    double stability_radius(int64_t i, double sigma, const double* d, const double* alpha, const double* a,
                            int32_t m) const {
        double least = infinity;
        for (int32_t j = 0; j < m; ++j) {
            if (a[j] != 0) return 0;
            least = std::min(least, d[j] - (1 - theta_) - sigma * alpha[j]);
        }
        if (mu_ > 0) least = std::min(least, 1 + theta_ - d[fixed_place(i)] + sigma * alpha[fixed_place(i)]);
        return std::max(0.0, least);
    }

    static constexpr bool has_faces = false, bounded = false;
    static constexpr bool only_largest_hinge = false;
    static constexpr bool can_stretch = false;  // a squared loss leaves nothing to gain there
    static constexpr double slack = 0;

  private:
    static double zeta_sum(const double* alpha, int32_t m) {
        double S = 0;
        for (int32_t j = 0; j < m; ++j) S += std::max(0.0, alpha[j]);
        return S;
    }

    const double* cap_;
    double mu_, theta_;
    const int32_t *rival_, *labels_if_ordered_;
};

static_assert(ProximalLoss<OdmLoss> && SumLoss<OdmLoss>);

}  // namespace skm

// Dual coordinate ascent for two-class machines without a free intercept.
//
// Problem.  With margins delta_i = y_i f_i, f_i = w'phi_i, over w:
//     P(w) = 1/2 ||w||^2 + sum_i l_i(delta_i),     l_i(t) = cap_i (1 - t)_+ + kappa_i/2 t^2 - lin_i t
// (L1-SVM: kappa = lin = 0; LDM, Zhang & Zhou 2014 and Abe 2017 Eq. 14: see solvers/two_class/ldm.py).
// Dual.  w = sum_i y_i g_i phi_i, one number g_i a sample, maximise
//     D(g) = -1/2 ||w||^2 - sum_i l_i*(-g_i),   g_i = lin_i + u_i - kappa_i t for some t, u_i in [0, cap_i].
// Step.  With A = K_ii and r = delta_i - A g_i, all else fixed, the margin after the step is
//     t0 = (r + A lin)/(1 + A kappa)          if t0 >= 1:   u = 0
//     t1 = t0 + A cap/(1 + A kappa)           if t1 <= 1:   u = cap
//     1                                       otherwise;    g = (1 - r)/A
// and else g = lin + u - kappa t.  Exact, so D never falls.
// Stop.  P - D = sum_i [ l_i(delta_i) + l_i*(-g_i) + g_i delta_i ] <= tol * (size of P), where the size adds the
// absolute values of the three parts of P (P itself may be zero).
// Skipping.  A sample that did not move is skipped until the next check; only the full gap ends the run.
//
// Given: a View (score, add, curvature, cost of sample i), y in {-1, +1}, cap, lin, kappa >= 0, start g.
// Produced: g and, in the view, f = K (y g) or w.   `poll.count_work(flops)` is called on the way and may throw.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/interrupt.hpp"
#include "base/random.hpp"
#include "rows/rows.hpp"
#include "tuning.hpp"

namespace skm {

// Scores by a Gram matrix in memory: f = K c is kept.
class GramView {
  public:
    GramView(const double* K, int64_t n) : n(n), K_(K), f_(n), simd_(simd<double>()) {}

    double score(int64_t i) const { return f_.data()[i]; }
    void add(int64_t i, double c) {
        const int32_t first = 0;
        simd_.axpys(K_ + i * n, n, f_.data(), n, &first, 1, &c);
    }
    double curvature(int64_t i) const { return K_[i * n + i]; }
    double cost(int64_t i) const { return i >= 0 ? 2.0 * static_cast<double>(n) : 0; }
    const double* state() const { return f_.data(); }
    int64_t state_size() const { return n; }

    const int64_t n;

  private:
    const double* K_;
    Buffer<double> f_;
    const Simd<double>& simd_;
};

// Scores by the rows themselves: w is kept.
template <class Rows>
class WeightView {
  public:
    using T = typename Rows::T;
    explicit WeightView(const Rows& rows) : n(rows.n), rows_(rows), W_(rows.weights_size()), w_(rows.d) {}

    double score(int64_t i) const {
        double f = 0;
        rows_.scores_all(W_.data(), i, &f);
        return f;
    }
    void add(int64_t i, double c) {
        const int32_t first = 0;
        rows_.add(W_.data(), i, &first, 1, &c);
    }
    double curvature(int64_t i) const { return rows_.squared_norm(i); }
    double cost(int64_t i) const { return 4 * rows_.cost(i); }
    const double* state() {
        for (int64_t j = 0; j < rows_.d; ++j) w_[j] = rows_.weight(W_.data(), 0, j);
        return w_.data();
    }
    int64_t state_size() const { return rows_.d; }

    const int64_t n;

  private:
    const Rows& rows_;
    Buffer<T> W_;
    std::vector<double> w_;
};

struct BoxProblem {
    const double *y, *cap, *lin, *kappa;
};

struct BoxOutcome {
    double primal = 0, gap = 0, relative = 0;  // gap = P - D, relative = gap / size of P
    int64_t passes = 0;
    bool converged = false;
};

template <class View>
class BoxAscent {
  public:
    BoxAscent(View& view, const BoxProblem& problem, std::vector<double>& g, InterruptPoll& poll, uint64_t seed,
              const BoxTuning& tuning = {})
        : view_(view), p_(problem), g_(g), poll_(poll), tuning_(tuning), random_(seed), order_(view.n), rests_(view.n),
          curvature_(view.n) {
        for (int64_t i = 0; i < view.n; ++i) {
            order_[i] = i;
            curvature_[i] = std::max(0.0, view.curvature(i));
            if (g[i] != 0) view.add(i, p_.y[i] * g[i]);
            poll_.count_work(view.cost(i));
        }
    }

    BoxOutcome run(double tol, int64_t max_passes) {
        BoxOutcome out = measure(tol);
        while (!out.converged && out.passes < max_passes) {
            const int64_t some = std::min<int64_t>(tuning_.passes_between_checks, max_passes - out.passes);
            for (int64_t j = 0; j < some; ++j) pass();
            const int64_t passes = out.passes + some;
            out = measure(tol);
            out.passes = passes;
        }
        return out;
    }

  private:
    void pass() {
        random_.shuffle(order_.begin(), static_cast<uint32_t>(view_.n));
        for (const int64_t i : order_)
            if (!rests_[i]) rests_[i] = !(step(i) > 0);
    }

    double step(int64_t i) {
        const double A = curvature_[i], kappa = p_.kappa[i], y = p_.y[i];
        const double r = y * view_.score(i) - A * g_[i];
        poll_.count_work(view_.cost(i));
        const double scale = 1 + A * kappa;
        const double t0 = (r + A * p_.lin[i]) / scale, t1 = t0 + A * p_.cap[i] / scale;
        double g;
        if (t0 >= 1) {
            g = p_.lin[i] - kappa * t0;
        } else if (t1 <= 1) {
            g = p_.lin[i] + p_.cap[i] - kappa * t1;
        } else {
            g = (1 - r) / A;
        }
        const double change = g - g_[i];
        if (std::abs(change) <= 1e-15 * (std::abs(g) + p_.cap[i])) return 0;
        view_.add(i, y * change);
        g_[i] = g;
        return std::abs(change);
    }

    BoxOutcome measure(double tol) {
        double gap = 0, quadratic = 0, hinge = 0, square = 0, linear = 0;
        std::fill(rests_.begin(), rests_.end(), uint8_t{0});
        for (int64_t i = 0; i < view_.n; ++i) {
            const double kappa = p_.kappa[i], cap = p_.cap[i], lin = p_.lin[i], g = g_[i];
            const double delta = p_.y[i] * view_.score(i);
            double t = 1;  // where the conjugate is attained
            if (kappa > 0) t = lin - g >= kappa ? (lin - g) / kappa : std::min(1.0, (lin + cap - g) / kappa);
            gap += loss(cap, kappa, lin, delta) - loss(cap, kappa, lin, t) + g * (delta - t);
            quadratic += 0.5 * g * delta;
            hinge += cap * std::max(0.0, 1 - delta);
            square += 0.5 * kappa * delta * delta;
            linear += lin * delta;
            poll_.count_work(view_.cost(i));
        }
        BoxOutcome out;
        out.primal = quadratic + hinge + square - linear;
        out.gap = std::max(0.0, gap);
        const double size = quadratic + hinge + square + std::abs(linear);
        out.relative = size > 0 ? out.gap / size : 0;
        if (!std::isfinite(gap) || !std::isfinite(size)) out.relative = std::numeric_limits<double>::infinity();
        out.converged = out.relative <= tol;
        return out;
    }

    static double loss(double cap, double kappa, double lin, double t) {
        return cap * std::max(0.0, 1 - t) + 0.5 * kappa * t * t - lin * t;
    }

    View& view_;
    const BoxProblem p_;
    std::vector<double>& g_;
    InterruptPoll& poll_;
    const BoxTuning tuning_;
    Random random_;
    std::vector<int64_t> order_;
    std::vector<uint8_t> rests_;  // samples that did not move since the last check
    std::vector<double> curvature_;
};

}  // namespace skm

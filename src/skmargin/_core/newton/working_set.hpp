// The inner problem of the Newton method on its working set: proximal maps, Newton steps, the line search.
//
// Samples whose duals are a vertex that small moves of the scores do not change are linear: only the others enter.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/sums.hpp"
#include "newton/pair_laplacian.hpp"
#include "newton/point.hpp"
#include "tuning.hpp"

namespace skm {

template <ProximalLoss Loss>
class NewtonWorkingSet {
  public:
    NewtonWorkingSet(NewtonPoint<Loss>& point, const NewtonTuning& tuning)
        : p_(point), tuning_(tuning), system_(point.k, point.D, point.poll) {}

    // The proximal maps of all samples at the scores F: duals and V.  Returns phi.  `width` > 0 also selects the
    // working set: samples whose duals may change while scores move by that much.
    double apply_prox(double width) {
        double value = 0;
        double *d = &p_.scratch[0], *a = &p_.scratch[p_.k];
        moved_outside_ = 0;
        if (width > 0) samples_.clear(), radius_.clear();
        for (int64_t i = 0; i < p_.n; ++i) {
            p_.differences(i, &p_.F[i * p_.k], d);
            p_.loss.prox(i, p_.sigma_of(i), d, p_.centre_of(i), p_.m, a);
            value += p_.loss.dual(i, a, p_.m);
            for (int32_t j = 0; j < p_.m; ++j) value -= a[j] * d[j];
            const double moved = p_.distance_from_centre(i, a);
            value -= 0.5 * p_.sigma * moved;
            const double radius =
                width > 0 ? p_.loss.stability_radius(i, p_.sigma_of(i), d, p_.centre_of(i), a, p_.m) : infinity;
            if (radius <= width * p_.weight(i)) {
                samples_.push_back(i);
                radius_.push_back(radius);
            } else {
                moved_outside_ += moved;
            }
            double* old = p_.duals(i);
            if (!std::equal(a, a + p_.m, old)) {
                p_.note_change(i, old, a);
                std::copy(a, a + p_.m, old);
            }
            p_.poll.count_work(20.0 * p_.m);
        }
        p_.apply_changes();
        return value + p_.penalty_value();
    }

    // Newton on the working set: W, the duals and V move, F stays behind.  `target` is what the inner gap is compared
    // with besides the proximal terms, `fraction` how much better both have to be.  Returns the number of steps, at
    // most max_steps; `finished`: the inner problem is solved.
    int solve(double target, double fraction, int64_t max_steps, bool& finished) {
        load();
        const int64_t rows = static_cast<int64_t>(samples_.size());
        std::vector<double> gradient(p_.W.size()), step(p_.W.size());
        for (int done = 0;; ++done) {
            p_.set_gradient(gradient);
            if (done > 0) {
                finished = inner_gap(gradient) <= fraction * std::max(tuning_.inner_gap * proximal_terms(), target);
                if (finished || done >= tuning_.max_inner || done >= max_steps) return done;
            }
            newton_step(gradient, step);
            p_.rows.scores(X_.data(), rows, step, dF_.data());
            p_.move_W(line_search(gradient, step), step);
        }
    }

    // The working set was too small and phi rose from `start` (scores `before`) to W.  The way there goes downhill at
    // first, so a line search over all samples finds a better point on it.
    void search_on_all(const std::vector<double>& start, std::vector<double>& before) {
        std::vector<double> step = p_.W, gradient(p_.W.size());
        for (size_t q = 0; q < step.size(); ++q) step[q] -= start[q];
        p_.W = start;
        dF_ = p_.F;
        for (int64_t q = 0; q < p_.n * p_.k; ++q) dF_[q] -= before[q];
        p_.F.swap(before);
        apply_prox(infinity);
        F_ = p_.F;
        p_.set_gradient(gradient);
        p_.move_W(line_search(gradient, step), step);
        p_.F = F_;
    }

  private:
    int64_t size() const { return static_cast<int64_t>(samples_.size()); }

    // Rows and scores of the working set.
    void load() {
        const int64_t rows = size();
        X_.resize(rows * p_.D);
        F_.resize(rows * p_.k);
        dF_.resize(rows * p_.k);
        for (int64_t s = 0; s < rows; ++s) {
            std::copy_n(&p_.rows.X[samples_[s] * p_.D], p_.D, &X_[s * p_.D]);
            std::copy_n(&p_.F[samples_[s] * p_.k], p_.k, &F_[s * p_.k]);
        }
    }

    // Twice the duality gap of the inner problem: the square of the gradient in the metric of the penalty.
    double inner_gap(const std::vector<double>& gradient) const {
        double sum = 0;
        for (size_t q = 0; q < gradient.size(); ++q) sum += square(gradient[q]) / p_.penalty[q % p_.D];
        return sum;
    }
    // What the proximal terms of the duals and of the intercept amount to.
    double proximal_terms() const {
        double moved = moved_outside_;
        for (const int64_t i : samples_) moved += p_.distance_from_centre(i, p_.duals(i));
        double sum = p_.sigma * moved;
        if (p_.rows.intercept)
            for (int32_t l = 0; l < p_.k; ++l)
                sum += p_.penalty[p_.d] * square(p_.W[l * p_.D + p_.d] - p_.intercept_centre[l]);
        return sum;
    }

    void newton_step(const std::vector<double>& gradient, std::vector<double>& step) {
        system_.clear();
        for (int64_t s = 0; s < size(); ++s) {
            if (radius_[s] > 0) continue;
            const int64_t i = samples_[s];
            p_.loss.pairs(i, p_.sigma_of(i), p_.duals(i), p_.m, [&](int32_t j, int32_t l, double w) {
                system_.add(static_cast<int32_t>(s), j < 0 ? p_.y[i] : p_.rival(i, j), p_.rival(i, l), w);
            });
        }
        system_.factor(X_.data(), p_.penalty.data());
        for (size_t q = 0; q < step.size(); ++q) step[q] = -gradient[q];
        system_.solve(step.data());
    }

    // phi'(t) rises: look for |phi'(t)| <= 1/2 |phi'(0)| where phi itself has fallen.  Moves the scores, duals, V and
    // the radii to that t and returns it.
    double line_search(const std::vector<double>& gradient, const std::vector<double>& step) {
        double slope = 0, curvature = 0;
        for (size_t q = 0; q < step.size(); ++q) {
            slope += gradient[q] * step[q];
            curvature += p_.penalty[q % p_.D] * step[q] * step[q];
        }
        begin_search();
        double t = 1, lo = 0, at_lo = slope, hi = 0, at_hi = 0, largest_t = 0;
        for (int trial = 0;; ++trial) {
            largest_t = std::max(largest_t, t);
            const double now = slope + t * curvature - prox_along(t, largest_t);
            // As long as phi falls it has fallen; where it rises again it may have risen more.
            if (now <= 0.1 * std::abs(slope)
                    ? now >= 0.5 * slope
                    : now <= 0.5 * std::abs(slope) &&
                          t * (slope + 0.5 * t * curvature) + nonlinear_change(t, largest_t) <= 0)
                break;
            if (trial >= 30) {
                if (!(now <= 0)) prox_along(t = lo, largest_t);
                break;
            }
            if (!(now <= 0)) {                               // or NaN: far too far
                if (hi > 0 && trial % 3 == 2) at_lo *= 0.5;  // the Illinois rule: regula falsi must not stagnate
                hi = t, at_hi = now > 0 ? now : -slope;
            } else {
                if (hi > 0 && trial % 3 == 2) at_hi *= 0.5;
                lo = t, at_lo = now;
            }
            t = hi > 0 ? lo + std::clamp(at_lo / (at_lo - at_hi), 0.05, 0.95) * (hi - lo) : 3 * t;
        }
        accept(t);
        return t;
    }

    // Duals before the search, and the largest change of a score difference along it.
    void begin_search() {
        old_.resize(size() * p_.m);
        max_change_.resize(size());
        for (int64_t s = 0; s < size(); ++s) {
            const int64_t i = samples_[s];
            std::copy_n(p_.duals(i), p_.m, &old_[s * p_.m]);
            double* e = &p_.scratch[0];
            p_.differences(i, &dF_[s * p_.k], e);
            max_change_[s] = 0;
            for (int32_t j = 0; j < p_.m; ++j) max_change_[s] = std::max(max_change_[s], std::abs(e[j]));
        }
    }
    // Duals at t; returns <c(t) - c(0), dF>.  Samples that cannot have moved for any trial so far are left alone.
    double prox_along(double t, double largest_t) {
        double *f = &p_.scratch[0], *d = &p_.scratch[p_.k], *e = &p_.scratch[2 * p_.k], sum = 0;
        for (int64_t s = 0; s < size(); ++s) {
            if (largest_t * max_change_[s] < radius_[s]) continue;
            const int64_t i = samples_[s];
            for (int32_t l = 0; l < p_.k; ++l) f[l] = F_[s * p_.k + l] + t * dF_[s * p_.k + l];
            p_.differences(i, f, d);
            p_.differences(i, &dF_[s * p_.k], e);
            double *a = p_.duals(i), *old = &old_[s * p_.m];
            p_.loss.prox(i, p_.sigma_of(i), d, p_.centre_of(i), p_.m, a);
            for (int32_t j = 0; j < p_.m; ++j) sum += (a[j] - old[j]) * e[j];
            p_.poll.count_work(20.0 * p_.m);
        }
        return sum;
    }
    // How much the losses of phi have changed at t, where the duals are, beyond what is linear in t.
    double nonlinear_change(double t, double largest_t) {
        double *d = &p_.scratch[0], *e = &p_.scratch[p_.k], sum = 0;
        for (int64_t s = 0; s < size(); ++s) {
            if (largest_t * max_change_[s] < radius_[s]) continue;
            const int64_t i = samples_[s];
            const double *a = p_.duals(i), *old = &old_[s * p_.m];
            p_.differences(i, &F_[s * p_.k], d);
            p_.differences(i, &dF_[s * p_.k], e);
            sum += p_.loss.dual(i, a, p_.m) - p_.loss.dual(i, old, p_.m) -
                   0.5 * p_.sigma * (p_.distance_from_centre(i, a) - p_.distance_from_centre(i, old));
            for (int32_t j = 0; j < p_.m; ++j) sum -= (a[j] - old[j]) * (d[j] + t * e[j]);
            p_.poll.count_work(10.0 * p_.m);
        }
        return sum;
    }
    void accept(double t) {
        double* d = &p_.scratch[0];
        for (int64_t s = 0; s < size(); ++s) {
            const int64_t i = samples_[s];
            for (int32_t l = 0; l < p_.k; ++l) F_[s * p_.k + l] += t * dF_[s * p_.k + l];
            radius_[s] -= t * max_change_[s];
            if (radius_[s] > 0) continue;
            double* a = p_.duals(i);
            p_.differences(i, &F_[s * p_.k], d);
            radius_[s] = p_.loss.stability_radius(i, p_.sigma_of(i), d, p_.centre_of(i), a, p_.m);
            if (!std::equal(a, a + p_.m, &old_[s * p_.m])) p_.note_change(i, &old_[s * p_.m], a);
        }
        p_.apply_changes();
    }

    NewtonPoint<Loss>& p_;
    const NewtonTuning& tuning_;
    PairLaplacian system_;
    std::vector<int64_t> samples_;
    std::vector<double> radius_;            // while score differences move by less, the duals of the sample stay
    std::vector<double> X_, F_, dF_;        // rows, scores, changes of the scores along the step
    std::vector<double> old_, max_change_;  // duals before the search; largest change of a score difference
    double moved_outside_ = 0;              // distance of the other samples' duals from the centre
};

}  // namespace skm

// Semismooth Newton on the proximal dual: dense rows and few parameters, where the time hardly depends on C and tol.
//
// Problem   P(W, b) = 1/2 ||W||^2 + sum_i value_i(d_i),  d_il = f_iy - f_il,  f_i = W x_i + b   (losses/loss.hpp)
// Outer     proximal point in the dual, centre abar, weight sigma (and r for the intercept, centre bbar):
//               phi(W, b) = 1/2 ||W||^2 + r/2 ||b - bbar||^2 + sum_i theta_i(d_i)
//               theta_i(d) = max_a dual_i(a) - d'a - sigma_i/2 squared_distance(a, abar_i), maximiser
//               loss.prox(sigma_i)
//           sigma_i = sigma max(1, ||x_i||^2 / median) where the duals have bounds: those of rows far out are small,
//           their scores wild.  Without bounds the dual has a curvature of its own.
//           phi is smooth and piecewise quadratic.  When it is minimised: abar = a, bbar = b, smaller sigma and r.
// Inner     Newton (newton/working_set.hpp): gradient W - X'c, Hessian = identity + pair Laplacian
//           (newton/pair_laplacian.hpp), Cholesky, line search on the monotone derivative phi'(t), each trial of which
//           costs only the maps of the samples.
//           The inner duality gap is exactly 1/2 ||gradient||^2 (in the metric of the penalty).
// Working set: samples whose a is a vertex that small moves of the scores do not change are linear: only the others
//           enter the inner problem.  The value of phi on all samples guards this.
// Continuation: where the duals have bounds C is reached from a small C in factors of at most ten; duals stay feasible
//           when scaled with the caps.
// Stop      every a is feasible, so P - D is a certificate at each outer step; with the free intercept the duals
//           are first made a circulation (intercept/circulation.hpp).  A machine that is published by its duals
//           (`publish_duals`: kernels) has P at W = X'c instead, which every remainder of the gradient makes larger.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/interrupt.hpp"
#include "base/random.hpp"
#include "base/sums.hpp"
#include "intercept/circulation.hpp"
#include "linear/dual_value.hpp"
#include "linear/options.hpp"
#include "newton/point.hpp"
#include "newton/rows.hpp"
#include "newton/working_set.hpp"
#include "rows/rows.hpp"
#include "tuning.hpp"

namespace skm {

template <ProximalLoss Loss>
class Newton {
  public:
    // `cap` are the numbers that `loss` reads: continuation scales them, and they are as given when `solve` returns.
    Newton(const double* X, int64_t n, int64_t d, const int32_t* y, int32_t k, const Loss& loss, double* cap,
           bool intercept, InterruptPoll& poll, const NewtonTuning& tuning)
        : tuning_(tuning), rows_(X, n, d, k, cap, intercept, poll), p_(rows_, y, loss, poll), working_(p_, tuning_),
          cap_(cap) {}

    double objective = 0, gap = infinity;
    int64_t steps = 0;

    // Duals of a related problem (rivals in increasing order without the own class): n x (k - 1).
    std::vector<double>& duals() { return p_.a; }

    // `warm`: duals() and b hold a starting point.  Returns whether the target gap was reached; if not, the point of
    // the lowest objective is kept.  options.max_iter is exceeded by at most one step for each stage of the
    // continuation.
    bool solve(bool warm, const double* b, const Options& options, bool publish_duals = false) {
        options_ = options;
        publish_duals_ = publish_duals;
        const bool done = continuation(warm, b);
        gap += rounding_;  // which must not end the steps
        if (publish_duals_) p_.W = W_of_duals_, p_.a = feasible();
        return done;
    }

    // f = W x + b for the features as given.
    void publish(double* W, double* b) const { rows_.publish(p_.W, W, b); }

  private:
    // ---- plan: from a small C to the one asked for ----

    bool continuation(bool warm, const double* b) {
        std::vector<double> full(cap_, cap_ + p_.n), sorted = full;
        std::nth_element(sorted.begin(), sorted.begin() + p_.n / 2, sorted.end());
        const double C = sorted[p_.n / 2], C0 = std::min(C, tuning_.smoother / std::max(rows_.curvature, 1e-300));
        double scale = C0 / C;
        bool good_start = false;
        if (warm) {
            p_.recompute_V();
            p_.set_W(b);
            certify();
            if (gap <= target_gap(options_.tol, objective)) return true;
            good_start = tuning_.smoother * gap <= objective || !Loss::bounded;
        }
        if (good_start || !Loss::bounded) scale = 1;
        const int stages = static_cast<int>(std::ceil(std::log10(1 / scale) - 1e-9));
        const double ratio = stages > 0 ? std::pow(1 / scale, 1.0 / stages) : 1;
        rescale(full, scale, scale);
        if (!good_start) block_passes();
        bool done = false;
        for (int stage = 0; stage <= stages; ++stage) {
            if (stage > 0) {
                const double next = stage == stages ? 1.0 : scale * ratio;
                rescale(full, next, next / scale);
                scale = next;
            }
            const double unbounded = tuning_.squared_sigma / (warm ? tuning_.smoother : 1.0);
            const double sigma = (Loss::bounded ? 1.0 : unbounded) / (C * scale);
            done = solve_stage(sigma, stage == stages ? options_.tol : std::max(options_.tol, tuning_.stage_tol));
        }
        return done;
    }

    void rescale(const std::vector<double>& full, double cap_scale, double dual_scale) {
        for (int64_t i = 0; i < p_.n; ++i) cap_[i] = full[i] * cap_scale;
        for (double& a : p_.a) a *= dual_scale;
        for (double& v : p_.V) v *= dual_scale;
    }

    // Exact block ascent from the duals with b penalised: a start that is roughly right.
    void block_passes() {
        DenseRows<double> rows(rows_.X.data(), p_.n, p_.D, p_.D, p_.k);
        Buffer<double> W(rows.weights_size());
        std::vector<int64_t> order(p_.n);
        std::vector<int32_t> all(p_.k);
        std::vector<double> norm(p_.n);
        for (int32_t l = 0; l < p_.k; ++l)
            for (int32_t j = 0; j < p_.D; ++j) rows.weight(W.data(), l, j) = p_.V[l * p_.D + j];
        for (int64_t i = 0; i < p_.n; ++i) order[i] = i, norm[i] = rows.squared_norm(i);
        for (int32_t l = 0; l < p_.k; ++l) all[l] = l;
        Random random(options_.seed);
        double *f = &p_.scratch[0], *d = &p_.scratch[p_.k], *a = &p_.scratch[2 * p_.k], *c = &p_.scratch[3 * p_.k];
        for (int pass = 0; pass < tuning_.start_passes; ++pass) {
            random.shuffle(order.begin(), static_cast<uint32_t>(p_.n));
            for (const int64_t i : order) {
                if (norm[i] <= 0) continue;
                rows.scores_all(W.data(), i, f);
                p_.differences(i, f, d);
                double* old = p_.duals(i);
                p_.loss.block(i, norm[i], d, old, p_.m, a);
                p_.poll.count_work(2.0 * p_.k * p_.D);
                if (std::equal(a, a + p_.m, old)) continue;
                std::fill(c, c + p_.k, 0.0);
                p_.add_coefficients(i, a, 1, c);
                p_.add_coefficients(i, old, -1, c);
                rows.add(W.data(), i, all.data(), p_.k, c);
                std::copy(a, a + p_.m, old);
            }
        }
        p_.recompute_V();
        p_.W = p_.V;
        p_.update_scores();
    }

    // ---- one stage: one value of C ----

    // How a stage goes on.
    struct Stage {
        double sigma, cap, tol;           // the largest weight of the proximal term, and its inverse
        double last_move = 1, widen = 1;  // mean move of a score in the last step; of the working set
        int64_t since_centre = 0, last_gain = 0;
        double best_gap = infinity, best_gap_at_W = infinity;
        bool centred = false;
    };

    bool solve_stage(double sigma, double tol) {
        Stage stage{sigma, 1 / sigma, tol};
        stage.last_gain = steps;
        p_.sigma = sigma;
        target_fraction_ = 1;
        remember_zero();
        for (;;) {
            if (!stage.centred) set_centre(stage);
            const bool finished = minimise(stage);
            certify();
            p_.poll.report_gap(gap / objective, tol);
            if (gap <= target_gap(tol, objective)) {
                p_.recompute_V();
                certify();
                if (gap <= target_gap(tol, objective)) return true;
            }
            const bool close_at_W = gap_at_W_ <= target_gap(tol, primal_at_W_);  // but the point of the duals is not
            if (close_at_W) target_fraction_ = std::max(1e-6, 0.1 * target_fraction_);
            remember();
            if (gives_up(stage, close_at_W)) {
                restore();
                return gap <= target_gap(tol, objective);
            }
            next_sigma(stage, finished, close_at_W);
        }
    }

    // The centre of the proximal terms moves to the present point.
    void set_centre(Stage& stage) {
        p_.centre = p_.a;
        if (rows_.intercept) {
            for (int32_t l = 0; l < p_.k; ++l) p_.intercept_centre[l] = p_.W[l * p_.D + p_.d];
            p_.penalty[p_.d] = std::max(1e-6, std::min(1.0, p_.sigma * stage.cap) / tuning_.smoother);
        }
        stage.centred = true;
        stage.since_centre = 0;
    }

    // Newton on a working set, then all samples follow; returns whether phi is minimised.
    bool minimise(Stage& stage) {
        const double reach = tuning_.working_set_width;
        const double width =
            stage.widen * std::max(reach * p_.sigma * stage.cap, std::min(1.0, reach * stage.last_move));
        const double before = working_.apply_prox(width);
        const std::vector<double> start = p_.W;
        bool finished = false;
        const double target = 0.5 * tuning_.inner_gap * target_gap(stage.tol, primal_at_W_);
        const int inner = working_.solve(target, target_fraction_, options_.max_iter - steps, finished);
        steps += inner;
        stage.since_centre += inner;
        previous_F_.swap(p_.F);
        p_.F.resize(p_.n * p_.k);
        p_.update_scores();
        stage.last_move = mean_score_change();
        stage.widen = 1;
        if (working_.apply_prox(0) > before + 1e-12 * std::abs(before)) {
            working_.search_on_all(start, previous_F_);
            finished = false;
            stage.widen = tuning_.widen;
        }
        return finished;
    }
    double mean_score_change() const {
        double sum = 0;
        for (int64_t q = 0; q < p_.n * p_.k; ++q) sum += std::abs(p_.F[q] - previous_F_[q]);
        return sum / static_cast<double>(p_.n * p_.k);
    }

    // Whether the steps are used up, or the gap does not fall any more: then rounding is all that is left.
    bool gives_up(Stage& stage, bool close_at_W) const {
        if (gap <= 0.7 * stage.best_gap || (!close_at_W && gap_at_W_ <= 0.7 * stage.best_gap_at_W)) {
            stage.best_gap = std::min(stage.best_gap, gap);
            stage.best_gap_at_W = std::min(stage.best_gap_at_W, gap_at_W_);
            stage.last_gain = steps;
        }
        const int patience = gap <= 1e-9 * objective ? 10 : gap_at_W_ <= 1e-9 * primal_at_W_ ? 50 : 300;
        return steps >= options_.max_iter || steps > stage.last_gain + patience;
    }

    // The weight of the next proximal problem: the faster the last one was solved the smaller.
    void next_sigma(Stage& stage, bool finished, bool close_at_W) {
        const int64_t since = stage.since_centre;
        if (finished && close_at_W) {  // the rounding of the scores is 1/sigma as large in the duals
            p_.sigma = std::min(stage.sigma, tuning_.smoother * p_.sigma);
        } else if (finished) {
            p_.sigma *= since <= 5    ? tuning_.sharpen_fast
                        : since <= 14 ? tuning_.sharpen
                        : since <= 25 ? tuning_.sharpen_slow
                                      : 1.0;
        } else if (since >= 2 * tuning_.max_inner) {  // from kink to kink: smoother, with the duals found so far
            p_.sigma = std::min(stage.sigma, tuning_.smoother * p_.sigma);
        } else {
            return;
        }
        stage.centred = false;
    }

    // ---- certify ----

    double target_gap(double tol, double primal) const {
        return std::max(tol * primal, options_.majorizer_share * (options_.majorizer_value - primal));
    }

    // P at W, whose scores are F, or at W_of_duals_; D at feasible().
    void certify() {
        if (rows_.intercept) make_duals_feasible();
        const std::vector<double>& V = rows_.intercept ? feasible_V_ : p_.V;
        dual_ = dual_value(V);
        objective = primal_at_W_ = p_.primal(p_.W, p_.F);
        gap = gap_at_W_ = objective - dual_;
        if (!publish_duals_) return;
        W_of_duals_ = V;
        if (rows_.intercept)
            for (int32_t l = 0; l < p_.k; ++l) W_of_duals_[l * p_.D + p_.d] = p_.W[l * p_.D + p_.d];
        p_.buffer.resize(p_.n * p_.k);
        rows_.scores(W_of_duals_, p_.buffer.data());
        objective = p_.primal(W_of_duals_, p_.buffer);
        gap = objective - dual_;
    }
    // The value of the dual; sets its rounding.
    double dual_value(const std::vector<double>& V) {
        const std::vector<double>& a = feasible();
        DualRounding rounding(p_.k);
        Sum value;
        std::vector<double> c(p_.k), squares(p_.k);
        double longest = 0;
        for (int64_t i = 0; i < p_.n; ++i) {
            const double gained = p_.loss.dual(i, &a[i * p_.m], p_.m);
            value.add(gained);
            rounding.add_value(gained);
            std::fill(c.begin(), c.end(), 0.0);
            p_.add_coefficients(i, &a[i * p_.m], 1, c.data());
            for (int32_t l = 0; l < p_.k; ++l) rounding.add(l, c[l], rows_.length[i]);
            longest = std::max(longest, rows_.length[i]);
        }
        for (int32_t l = 0; l < p_.k; ++l)
            for (int64_t j = 0; j < p_.d; ++j) squares[l] += square(V[l * p_.D + j]);
        rounding_ = rounding.total(squares, p_.d, rows_.additions(), rows_.intercept ? longest : 0);
        return value.value() - p_.half_norm(V.data());
    }
    // Duals that satisfy all constraints.
    const std::vector<double>& feasible() const { return rows_.intercept ? feasible_a_ : p_.a; }
    void make_duals_feasible() {
        feasible_a_ = p_.a;
        std::vector<int32_t> rivals(p_.m);
        const auto with = [&](int64_t i, auto visit) {
            for (int32_t j = 0; j < p_.m; ++j) rivals[j] = p_.rival(i, j);
            visit(p_.y[i], rivals.data(), &feasible_a_[i * p_.m], p_.m);
        };
        const auto slope = [&](int64_t i, int32_t j) {
            return 1 - p_.F[i * p_.k + p_.y[i]] + p_.F[i * p_.k + p_.rival(i, j)];
        };
        make_circulation(p_.k, p_.n, p_.loss, with, slope, p_.poll);
        p_.products_of(feasible_a_, feasible_V_);
    }

    // The lowest objective and the highest bound so far, which need not belong to one point; zero is known beforehand.
    void remember_zero() {
        best_W_.assign(p_.k * p_.D, 0.0);
        best_a_.assign(p_.n * p_.m, 0.0);
        p_.buffer.assign(p_.n * p_.k, 0.0);
        best_primal_ = p_.primal(best_W_, p_.buffer);
        best_dual_ = best_rounding_ = 0;
    }
    void remember() {
        if (dual_ - rounding_ > best_dual_ - best_rounding_) {  // not of the gap: it has the rounding of the objective
            best_dual_ = dual_;
            best_rounding_ = rounding_;
        }
        if (!(objective < best_primal_)) return;
        best_primal_ = objective;
        best_W_ = publish_duals_ ? W_of_duals_ : p_.W;
        best_a_ = publish_duals_ ? feasible() : p_.a;
    }
    // Back to the best point: what came after it was rounding, or is not finished.
    void restore() {
        p_.W.swap(best_W_);
        p_.a.swap(best_a_);
        p_.recompute_V();
        p_.update_scores();
        certify();
        if (dual_ - rounding_ > best_dual_ - best_rounding_) return;
        gap = objective - best_dual_;
        rounding_ = best_rounding_;
    }

    const NewtonTuning tuning_;
    NewtonRows rows_;
    NewtonPoint<Loss> p_;
    NewtonWorkingSet<Loss> working_;
    double* cap_;
    Options options_;
    bool publish_duals_ = false;
    std::vector<double> previous_F_;                            // scores before the last step
    std::vector<double> feasible_a_, feasible_V_, W_of_duals_;  // of the last certificate
    std::vector<double> best_W_, best_a_;
    double best_primal_ = infinity, best_dual_ = 0, best_rounding_ = 0;
    double dual_ = 0, rounding_ = 0, primal_at_W_ = 0, gap_at_W_ = 0;
    double target_fraction_ = 1;  // how well inner problems are solved: better where P at the duals alone is too large
};

}  // namespace skm

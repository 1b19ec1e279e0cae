// Block ascent on the dual of a linear large-margin machine, one block a sample (gears A and C).
//
//     primal  min_{W,b}  1/2 ||W||^2 + sum_i value_i(f_{i,y_i} - f_il),    f_i = W x_i + b
//     dual    max_alpha  sum_i dual_i(alpha_i) - 1/2 ||W||^2,   W = sum_i x_i c_i',   b free:  sum_i c_i = 0
//
// A visit solves the block of one sample exactly (losses/hinge.hpp).  What makes it fast:
//   - lists: a sample keeps the few rivals that can move; idle rivals and stuck samples leave until the next check;
//   - the gap is a sum over samples, known at each visit before the step: its running sum says when a full check of
//     all samples and classes is worth its cost.  Only a full check can end the run;
//   - samples far beyond their margins are passed over by a check (linear/screening.hpp);
//   - samples whose share of the gap is small rest for some passes (linear/skip_schedule.hpp), where there are no steps
//   on the face;
//   - conjugate gradients on the face of the dual (linear/face_cg.hpp) between passes;
//   - the primal point may be W stretched a little: where C is large, losses that remain although the dual is solved
//     vanish when W grows by a part of tol, and nothing has to be iterated for them.
// Stopping test: (P - D)/P <= tol at a full check, with D at an exactly feasible dual point
// (intercept/feasible_dual.hpp). Crammer & Singer (2001), Keerthi et al. (2008); the layout is described in
// rows/rows.hpp.
#pragma once
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "base/sums.hpp"
#include "base/thread_team.hpp"
#include "intercept/feasible_dual.hpp"
#include "intercept/proximal_steps.hpp"
#include "linear/class_vectors.hpp"
#include "linear/dual_lists.hpp"
#include "linear/screening.hpp"
#include "linear/skip_schedule.hpp"
#include "losses/hinge.hpp"

namespace skm {

struct Limits {
    double tol;          // relative duality gap
    int64_t passes;      // full or shrunk
    double work;         // flops; the driver may change gear after that
    bool stop_on_stall;  // give up where float32 cannot go on
    // A majoriser of `majorizer_value` need not be solved further than to this share of what it gained already.
    double majorizer_share = 0, majorizer_value = 0;
    double work_when_near = infinity;  // as `work`, counted from where the gap has fallen below a tenth of P

    // The gap that is small enough.
    double target_gap(double primal) const {
        return std::max(tol * primal, majorizer_share * (majorizer_value - primal));
    }
};

struct Outcome {
    double primal = 0, gap = infinity;
    int64_t passes = 0;
    double work = 0;
    bool converged = false;
};

template <class Rows, class Loss, class Vectors = ClassVectors<Rows>>
class BlockAscent {
  public:
    using Model = Vectors;
    static constexpr bool plain_hinge = Loss::can_stretch && !Model::weighted;

    BlockAscent(const RowGeometry<Rows>& geo, const Loss& loss, const int32_t* y, DualLists& duals, double* b,
                ThreadTeam& team, uint64_t seed)
        : geo(geo), loss(loss), y(y), duals(duals), model(geo), team(team), n(geo.rows.n), k(geo.rows.k), b_(b),
          random_(seed), f_(k + 1), d_(k + 1), old_(k + 1), new_(k + 1), step_(k + 1), cls_(k + 1), moved_(k + 1),
          curvature_(geo.curvature) {
        // A row of (nearly) no length: a larger curvature is still an ascent step and keeps the arithmetic sound.
        for (int64_t i = 0; i < n; ++i) curvature_[i] = std::max(curvature_[i], 1e-7 / loss.dual_scale(i));
        if (geo.intercept()) {
            class_cap_.assign(k, 0.0);
            for (int64_t i = 0; i < n; ++i) class_cap_[y[i]] += loss.dual_scale(i);
            proximal_.limit_by_class(class_cap_, geo.t);
        } else if (geo.shifted() && !Model::weighted) {
            proximal_.limit_overall(geo.t);
        }
        for (int64_t i = 0; i < n; ++i)
            if (duals[i].size > 0) add_sample(model, i, duals[i]);
        if (geo.shifted()) model.add_multipliers(b_);
        update_norms(model);
    }

    // Passes leave out samples with little to gain (linear/skip_schedule.hpp): good where there are no steps on the
    // face.
    void enable_skipping() { skips_.enable(n); }
    // Checks pass over samples far beyond their margins (linear/screening.hpp): good where W is small beside the rows.
    void enable_screening() { screening_.enable(geo); }

    // One pass over the active samples in random order; `gap` becomes the sum of their gaps before their steps,
    // returned is this sum with the primal point stretched.
    double pass(double& gap) {
        random_.shuffle(active_.begin(), static_cast<uint32_t>(active_.size()));
        gap = 0;
        stretch_saving_ = 0;
        size_t kept = 0;
        for (size_t a = 0; a < active_.size(); ++a) {
            const int64_t i = active_[a];
            if (a + 2 < active_.size()) prefetch(active_[a + 2]);
            if (a + 1 < active_.size()) geo.rows.prefetch(active_[a + 1]);
            active_[kept] = active_[a];
            const double before = gap;
            if (skips_.skips(i, gap)) {
                ++kept;
                continue;
            }
            kept += visit(i, gap);
            skips_.record(i, gap - before);
        }
        skips_.end_pass(gap, active_.size());
        active_.resize(kept);
        if (++passes_ == 1) update_norms(model);
        return gap + stretch_saving_ + (stretch_ * stretch_ - 1) * penalty_;
    }

    // After a pass with the given sum of gaps.
    void move_multipliers(double gap) {
        if (!geo.shifted()) return;
        const double weight = model.stiffness();
        if (proximal_.due(gap, geo.t / weight, model.residual(b_), geo.score_per_unit * weight))
            model.multiplier_step(b_, proximal_.steps());
    }

    // Scores of all samples and classes: P, the gap, new lists.  Returns the certified gap.
    double check(bool last = false) {
        double loss_sum = 0, gap = 0, cf = 0;
        for (int j = 0; j < n_stretches; ++j) {
            // Not more than twice as long: where W vanishes rounding would be all of it.
            const double max_new = penalty_ > 0 ? std::min(1.0, 0.5 * limits_.tol * dual_ / penalty_) : 0;
            stretch_trials_[j] = 1 + max_new * std::ldexp(0.4, -j);
            stretched_loss_[j] = 0;
        }
        active_.clear();
        skips_.reset();
        check_work_ = -work_;
        update_norms(model);
        const bool records_slopes = geo.intercept() && (last || expected_gap_ <= 10 * limits_.target_gap(primal));
        if (records_slopes) slopes_.start(n, model.total(), class_cap_);
        if constexpr (plain_hinge) screening_.follow(model, geo);
        for (int64_t next = 0; next < n;) {
            next = score_batch(next);
            for (size_t r = 0; r < batch_.size(); ++r) {
                const int64_t i = batch_[r];
                std::copy_n(&batch_scores_[r * k], k, f_.begin());
                double value, inner;
                gap += relist(i, value, inner, max_new_rivals);
                loss_sum += value;
                cf += inner;
                screening_.set_slack(i, slack_);
                if (duals[i].active > 0) active_.push_back(static_cast<uint32_t>(i));
                if (records_slopes) slopes_.record(i, y[i], duals[i], &batch_scores_[r * k], k);
            }
        }
        check_work_ += work_checked_ = work_;
        if (geo.intercept())
            for (int32_t l = 0; l < k; ++l) cf -= (b_[l] + geo.t * model.total()[l]) * model.total()[l];
        else if constexpr (!Model::weighted)
            for (int32_t l = 0; geo.shifted() && l < k; ++l) {  // the weight of the direction is tot - tilt
                cf -= (model.total()[l] - model.tilt()[l]) * model.tilt()[l];
                gap += 0.5 * model.tilt()[l] * model.tilt()[l];
            }
        penalty_ = std::max(0.0, 0.5 * cf);  // a difference: rounding may take it below
        if constexpr (Model::weighted) {
            penalty_ = model.penalty();
            gap += penalty_ + model.conjugate() - cf;  // cf = <W, V>; with the floor the link is not exact
        }
        primal = loss_sum + penalty_;
        gap -= primal;
        dual_ = std::max(0.0, -gap);
        stretch_ = 1;
        if constexpr (can_stretch)
            for (int j = 0; j < n_stretches; ++j) {
                const double longer = stretched_loss_[j] + stretch_trials_[j] * stretch_trials_[j] * penalty_;
                if (longer < primal) primal = longer, stretch_ = stretch_trials_[j];
            }
        block_gap_ = gap += primal;
        if (!geo.intercept()) return gap;
        // The running gap belongs to the proximal problem in b: only worth a certificate when it is small itself.
        if (last || gap <= limits_.target_gap(primal)) {
            if (!records_slopes) return check(true);  // sooner than expected
            best_dual_ = std::max(best_dual_, feasible_dual(*this, slopes_, primal - limits_.target_gap(primal)));
        }
        return std::max(primal - best_dual_, gap);
    }

    // `between` is called after each pass: the steps on the face (linear/face_cg.hpp) come in there.
    template <class Between>
    Outcome run(const Limits& limits, Between&& between) {
        Outcome out;
        limits_ = limits;
        double work_when_near = limits.work_when_near;
        floor_ = std::min(std::max(1e-2 * limits.tol, 1e-10), 1e-4);
        double full = 0;
        check_work_ = 0;
        for (int64_t i = 0; i < n; ++i) check_work_ += 2 * geo.rows.cost(i) * k;
        if (!warm_) {
            std::vector<double> zeros(k, 0.0);  // at W = 0 the gap is the loss: no check needed
            full = 0;
            for (int64_t i = 0; i < n; ++i) full += loss.value(i, zeros.data(), k - 1);
            primal = full;
            active_.resize(n);
            std::iota(active_.begin(), active_.end(), 0u);
            for (int64_t i = 0; i < n; ++i) warm_ = warm_ || duals[i].size > 0;
            if (!warm_) {
                for (int64_t i = 0; i < n; ++i) duals[i].active = never_scored;
                set_first_weights();
            }
        }
        block_gap_ = full;
        if (warm_) full = check();
        warm_ = true;
        int64_t last_check = 0, last_gain = 0;
        double best = full, best_dual_seen = 0, most_work = limits.work, gap = 0, running = infinity,
               growth_at_check = infinity;
        bool step_pending = false;  // a step of the multipliers
        for (;;) {
            const bool nothing_moves = active_.empty();
            if (nothing_moves || full <= limits.target_gap(primal)) {
                if (last_check < passes_) full = check(), last_check = passes_;
                if (full <= limits.target_gap(primal)) {
                    out.converged = true;
                    break;
                }
                if (active_.empty() && !geo.shifted()) break;  // every block is optimal to rounding
            }
            if (passes_ >= limits.passes || work_ >= most_work) {
                if (last_check < passes_ || full == infinity) full = check(true);
                out.converged = full <= limits.target_gap(primal);
                break;
            }
            if (std::exchange(step_pending, false)) move_multipliers(gap);
            const double before = running;
            running = expected_gap_ = pass(gap);
            team.poll.report_gap(running / primal, limits.tol);
            const int64_t since = passes_ - last_check;
            const double count_work = work_ - work_checked_, target_gap = limits.target_gap(primal);
            const bool below_goal = running <= 0.7 * target_gap;
            // A check is due for new lists once the old ones have paid for them, and where it may end the run: the gap
            // is small, or will be after this pass if it falls as before and new lists find as much more as the last.
            const bool renew = since >= 200 || (count_work > 4 * check_work_ && count_work > work_checked_) ||
                               (running <= 0.1 * block_gap_ && count_work >= 0.3 * check_work_);
            const bool ends_soon = running * std::min(1.0, running / before) * growth_at_check <= 0.5 * target_gap;
            step_pending = since >= min_passes_between_checks_ &&
                           ((running <= target_gap && (below_goal || running <= 0.1 * block_gap_)) ||
                            (ends_soon && (renew || count_work >= check_work_)));
            // A step of b raises the gap at first, one on the face takes as long as several passes: not before a check
            // that may end the run.
            if (!step_pending) {
                move_multipliers(gap);
                if (running > 0.5 * before) between();  // passes that do so well need no help
            }
            if (step_pending || renew || proximal_.lists_are_stale()) {
                full = check();
                last_check = passes_;
                growth_at_check = std::max(1.0, block_gap_ / running);
                proximal_.lists_renewed(running, block_gap_);
                // The multipliers may lag behind: wait longer before the next try.
                if (below_goal && geo.shifted())
                    min_passes_between_checks_ = std::min<int64_t>(2 * min_passes_between_checks_, 32);
                if (block_gap_ <= 0.7 * best || dual_ > (1 + 1e-5) * best_dual_seen) {
                    best = std::min(best, block_gap_);
                    best_dual_seen = std::max(best_dual_seen, dual_);
                    last_gain = passes_;
                }
                if (limits.stop_on_stall && passes_ >= last_gain + 100) break;
                if (block_gap_ <= 0.1 * primal)
                    most_work = std::min(most_work, work_ + work_when_near), work_when_near = infinity;
            }
        }
        out.primal = primal;
        out.gap = full;
        out.passes = passes_;
        out.work = work_;
        return out;
    }

    // Adds sample i with the given duals of its rivals to a model.
    void add_sample(Model& to, int64_t i, const DualLists::Row& r) {
        const int32_t m = coefficients(i, r);
        to.add(i, moved_.data(), m, step_.data());
        spend(geo.rows.cost(i) * m);
    }

    // The coefficients themselves, in moved_ and step_; returns how many.
    int32_t coefficients(int64_t i, const DualLists::Row& r) {
        int32_t m = 0;
        double S = 0;
        for (int32_t j = 0; j < r.size; ++j) {
            if (r.alpha[j] == 0) continue;
            S += r.alpha[j];
            moved_[m] = r.cls[j];
            step_[m++] = -r.alpha[j];
        }
        moved_[m] = y[i];
        step_[m++] = S;
        return m;
    }

    // Squared norms of the class vectors, v_l'v_l = sum_i c_il v_l'x_i, where the norm weighs the classes
    // (block_norm/class_vectors.hpp).
    void update_norms(Model& of) {
        update_norms(of, [this](int64_t i) { return duals[i]; });
    }
    template <class Row>
    void update_norms(Model& of, Row row) {
        if constexpr (Model::weighted) {
            double* squares = of.squares();
            std::fill(squares, squares + k, 0.0);
            for (int64_t i = 0; i < n; ++i) {
                const DualLists::Row r = row(i);
                if (r.size == 0) continue;
                const int32_t m = coefficients(i, r);
                of.products(i, moved_.data(), m, f_.data());
                spend(geo.rows.cost(i) * m);
                for (int32_t j = 0; j < m; ++j) squares[moved_[j]] += step_[j] * f_[j];
            }
            of.update_weights(floor_);
        }
    }

    void spend(double flops) {
        work_ += 2 * flops;
        team.poll.count_work(2 * flops);
    }
    // Multiply-adds of a loop that told the team of them.
    void count_work(double flops) { work_ += 2 * flops; }

    const RowGeometry<Rows>& geo;
    const Loss& loss;
    const int32_t* y;
    DualLists& duals;
    Model model;
    ThreadTeam& team;
    const int64_t n;
    const int32_t k;
    double primal = 0;
    const std::vector<uint32_t>& active() const { return active_; }
    // A row so short that its block step uses a larger curvature than its own.
    bool has_raised_curvature(int64_t i) const { return curvature_[i] > geo.curvature[i]; }
    int64_t passes() const { return passes_; }
    // The primal point is the model times this.
    double stretch() const { return stretch_; }

  private:
    static constexpr int32_t never_scored = -1;
    static constexpr int n_stretches = 4;
    static constexpr bool can_stretch = Loss::can_stretch;
    // Rivals that may enter a list at once: memory for many classes.  At the start all scores are equal, and where one
    // rival is enough in the end, to give all of them a dual would be work for the next passes.
    static constexpr int32_t max_new_rivals = 64, max_first_rivals = Loss::only_largest_hinge ? 8 : max_new_rivals;

    void prefetch(int64_t i) const {
#if defined(__GNUC__) || defined(__clang__)
        const DualLists::Row& r = duals[i];
        __builtin_prefetch(r.alpha);
        __builtin_prefetch(r.cls);
#else
        (void)i;
#endif
    }

    // All scores of the next few samples from i on that a check has to look at; returns where they end.
    int64_t score_batch(int64_t i) {
        const bool alone = Model::weighted || team.threads() == 1;
        double work = 0;
        batch_.clear();
        for (; i < n && (alone ? batch_.size() < 16 : work < 4 * team.threads() * ThreadTeam::min_part_flops); ++i) {
            if (plain_hinge && screening_.surely_beyond(i, y[i])) continue;
            batch_.push_back(i);
            work += 2 * geo.rows.cost(i) * k;
        }
        const size_t size = batch_.size();
        batch_scores_.resize(std::max(batch_scores_.size(), size * k));
        const int parts = alone ? 1 : static_cast<int>(work / ThreadTeam::min_part_flops) + 1;
        team.for_each_part(parts, [&](int part) {
            for (size_t r = size * part / parts; r < size * (part + 1) / parts; ++r) {
                geo.rows.prefetch(batch_[std::min(r + 1, size - 1)]);
                model.scores_all(batch_[r], &batch_scores_[r * k]);
                team.count_work(2 * geo.rows.cost(batch_[r]) * k);
            }
        });
        work_ += work;
        return i;
    }

    // One exact block step.  Returns false if the sample can leave the active set.
    bool visit(int64_t i, double& gap) {
        DualLists::Row& r = duals[i];
        int32_t m;
        if (r.active == never_scored) {
            model.scores_all(i, f_.data());
            spend(geo.rows.cost(i) * k);
            double value, inner;
            gap += relist(i, value, inner, max_first_rivals);
            m = r.active;
            for (int32_t j = 0; j < m; ++j) d_[j] = f_[y[i]] - f_[r.cls[j]];
        } else {
            m = r.active;
            cls_[0] = y[i];
            std::copy(r.cls, r.cls + m, cls_.begin() + 1);
            model.scores(i, cls_.data(), m + 1, f_.data());
            spend(geo.rows.cost(i) * (m + 1));
            for (int32_t j = 0; j < m; ++j) d_[j] = f_[0] - f_[j + 1];
            double inner = 0;
            for (int32_t j = 0; j < m; ++j) inner += r.alpha[j] * d_[j];
            const double value = loss.value(i, d_.data(), m);
            gap += value - loss.dual(i, r.alpha, m) + inner;
            if constexpr (can_stretch)
                if (value > 0 && stretch_ > 1) stretch_saving_ += loss.value(i, d_.data(), m, stretch_) - value;
            m = shrink(i, r, m);
        }
        if (loss.cannot_move(i, d_.data(), r.alpha, m)) return false;
        if constexpr (Model::weighted)
            model.block(i, curvature_[i], loss.sum_limit(i), y[i], r.cls, d_.data(), r.alpha, m, new_.data());
        else loss.block(i, curvature_[i], d_.data(), r.alpha, m, new_.data());
        int32_t moved = 0;
        double sum = 0;
        for (int32_t j = 0; j < m; ++j) {
            const double change = new_[j] - r.alpha[j];
            if (change == 0) continue;
            sum += change;
            moved_[moved] = r.cls[j];
            step_[moved++] = -change;
            r.alpha[j] = new_[j];
        }
        if (moved == 0) return true;
        if (sum != 0) {
            moved_[moved] = y[i];
            step_[moved++] = sum;
        }
        model.add(i, moved_.data(), moved, step_.data());
        spend(geo.rows.cost(i) * moved);
        return true;
    }

    // Idle rivals leave the active part of the list: those at zero altogether, the others are parked behind it.
    int32_t shrink(int64_t i, DualLists::Row& r, int32_t m) {
        const auto bounds = loss.bounds(i, d_.data(), r.alpha, m);
        int32_t j = 0;
        while (j < m) {
            if (!loss.idle(bounds, i, r.cls[j], d_[j], r.alpha[j], Loss::slack)) {
                ++j;
                continue;
            }
            --m;
            std::swap(d_[j], d_[m]);
            std::swap(r.alpha[j], r.alpha[m]);
            std::swap(r.cls[j], r.cls[m]);
            if (r.alpha[m] == 0) {  // close the hole with the last parked rival
                --r.size;
                r.alpha[m] = r.alpha[r.size];
                r.cls[m] = r.cls[r.size];
            }
        }
        r.active = m;
        return m;
    }

    // Samples that a check does not change, most of them in the end: beyond their margins and without duals, or, where
    // only the largest hinge counts, with all that they may hold at the rival that violates its margin most.
    bool is_settled(int64_t i, double& value, double& inner) {
        DualLists::Row& r = duals[i];
        if (r.size > (Loss::only_largest_hinge ? 1 : 0)) return false;
        const double own = std::exchange(f_[y[i]], -infinity), largest = max_of(f_.data(), k), d = own - largest;
        f_[y[i]] = own;
        value = inner = 0;
        if (r.size == 0) {
            if (!(d > 1)) return false;
            slack_ = geo.intercept() ? d - 1 - near_margin : d - 1;
        } else {
            if (f_[r.cls[0]] < largest || !loss.cannot_move(i, &d, r.alpha, 1)) return false;
            value = loss.value(i, &d, 1);
            for (int j = 0; j < n_stretches; ++j) stretched_loss_[j] += loss.value(i, &d, 1, stretch_trials_[j]);
            inner = r.alpha[0] * d;
        }
        r.active = 0;
        return true;
    }

    // Loss of sample i from d_; what it would be with W stretched is added up.
    double loss_value(int64_t i, int32_t rivals) {
        if constexpr (!can_stretch) {
            return loss.value(i, d_.data(), rivals);
        } else {
            const double least = Loss::only_largest_hinge ? min_of(d_.data(), rivals) : 0;
            const double* d = Loss::only_largest_hinge ? &least : d_.data();
            if (Loss::only_largest_hinge) rivals = 1;
            const double value = loss.value(i, d, rivals);
            for (int j = 0; j < n_stretches && value > 0; ++j)
                stretched_loss_[j] += loss.value(i, d, rivals, stretch_trials_[j]);
            return value;
        }
    }

    // New list of sample i from its scores f_ for all classes, with at most so many new rivals; value of the loss,
    // alpha'd; returns its gap.
    double relist(int64_t i, double& value, double& inner, int32_t max_new) {
        DualLists::Row& r = duals[i];
        const int32_t own = y[i];
        slack_ = 0;
        if constexpr (can_stretch)
            if (is_settled(i, value, inner)) return value - loss.dual(i, r.alpha, r.size) + inner;
        int32_t rivals = 0;
        for (int32_t l = 0; l < k; ++l) old_[l] = 0;
        for (int32_t j = 0; j < r.size; ++j) old_[r.cls[j]] = r.alpha[j];
        for (int32_t l = 0; l < k; ++l) {  // compress to the rivals: d_, old_, cls_
            if (l == own) continue;
            d_[rivals] = f_[own] - f_[l];
            old_[rivals] = old_[l];
            cls_[rivals++] = l;
        }
        const int32_t fixed_rival = loss.fixed_rival(i), fixed = fixed_rival >= 0;
        if (fixed) {
            const int32_t j = fixed_rival - (fixed_rival > own);
            std::swap(d_[0], d_[j]);
            std::swap(old_[0], old_[j]);
            std::swap(cls_[0], cls_[j]);
        }
        inner = 0;
        for (int32_t j = 0; j < rivals; ++j) inner += old_[j] * d_[j];
        value = loss_value(i, rivals);
        const double gap = value - loss.dual(i, old_.data(), rivals) + inner;

        const auto bounds = loss.bounds(i, d_.data(), old_.data(), rivals);
        double cut = infinity;  // of the rivals at zero, only the closest enter a list at once
        if (rivals > max_new) {
            int32_t zeros = 0;
            for (int32_t j = fixed; j < rivals; ++j)
                if (old_[j] == 0 && !loss.idle(bounds, i, cls_[j], d_[j], 0.0, 0.0)) new_[zeros++] = d_[j];
            if (zeros > max_new) {
                std::nth_element(new_.begin(), new_.begin() + max_new, new_.begin() + zeros);
                cut = new_[max_new];
            }
        }
        int32_t active = 0, parked = 0, entered = 0;
        for (int32_t j = 0; j < rivals; ++j) {
            const bool idle = loss.idle(bounds, i, cls_[j], d_[j], old_[j], 0.0);
            if (idle && old_[j] == 0) continue;
            if (j >= fixed && old_[j] == 0) {
                if (d_[j] > cut || (d_[j] == cut && entered >= max_new)) continue;
                ++entered;
            }
            if (idle) {
                moved_[parked] = cls_[j];
                step_[parked++] = old_[j];
            } else {
                cls_[active] = cls_[j];
                new_[active] = old_[j];
                d_[active++] = d_[j];
            }
        }
        if (loss.cannot_move(i, d_.data(), new_.data(), active)) {
            for (int32_t j = 0; j < active; ++j)
                if (new_[j] != 0) {
                    moved_[parked] = cls_[j];
                    step_[parked++] = new_[j];
                }
            active = 0;
        }
        std::copy(moved_.begin(), moved_.begin() + parked, cls_.begin() + active);
        std::copy(step_.begin(), step_.begin() + parked, new_.begin() + active);
        duals.assign(i, cls_.data(), new_.data(), active + parked, active);
        return gap;
    }

    // At the start all norms are zero: weigh the classes alike, as if each had the norm that one sample can give it.
    void set_first_weights() {
        if constexpr (Model::weighted) {
            double largest = 0;
            for (int64_t i = 0; i < n; ++i)
                largest = std::max(largest, loss.dual_scale(i) * loss.dual_scale(i) * geo.curvature[i]);
            model.update_weights_absolute(largest);
        }
    }

    double* b_;
    Random random_;
    std::vector<double> f_, d_, old_, new_, step_;
    std::vector<int32_t> cls_, moved_;
    std::vector<double> curvature_;
    std::vector<uint32_t> active_;
    std::vector<int64_t> batch_;
    std::vector<double> batch_scores_;
    Limits limits_{};
    int64_t passes_ = 0, min_passes_between_checks_ = 1;
    double work_ = 0, work_checked_ = 0, check_work_ = 0;  // in all, at the last check, of a check
    double best_dual_ = -infinity, block_gap_ = infinity;
    double expected_gap_ = 0;                      // the gap that a check will find, as far as is known
    double penalty_ = 0, dual_ = 0, stretch_ = 1;  // of the last check
    double stretch_trials_[n_stretches] = {},
           stretched_loss_[n_stretches] = {};  // stretches that a check tries, and the sum of the losses
    double stretch_saving_ = 0;                // loss that the stretch saved in this pass
    std::vector<double> class_cap_;            // with an intercept: what the duals of a class may hold
    DualSlopes slopes_;
    double slack_ = 0;  // of the sample that was looked at last, beyond its margins
    ProximalSteps proximal_;
    SkipSchedule skips_;
    Screening screening_;
    double floor_ = 1e-6;  // least norm of a class vector that the weights see, relative to the largest
    bool warm_ = false;
};

}  // namespace skm

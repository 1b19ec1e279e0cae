// Block ascent on the dual of a linear large-margin machine, one block a sample.
//
//     primal  min_{W,b}  1/2 ||W||^2 + sum_i value_i(f_{i,y_i} - f_il),    f_i = W x_i + b
//     dual    max_alpha  sum_i dual_i(alpha_i) - 1/2 ||W||^2,   W = sum_i x_i c_i',   b free:  sum_i c_i = 0
//
// A visit solves the block of one sample exactly (losses/loss.hpp).  What makes it fast:
//   - lists: a sample keeps the few rivals that can move; idle rivals, and samples none of whose rivals can move, leave
//     until the next full check (linear/sample_visits.hpp);
//   - the gap is a sum over samples, known at each visit before the step: the sum of a pass says when a full check of
//   all
//     samples and classes is worth its cost.  Only a full check can end the run;
//   - a full check does not score samples far beyond their margins (linear/screening.hpp);
//   - passes skip samples with a small share of the gap (linear/skip_schedule.hpp), where there are no steps on the
//   face;
//   - conjugate gradients on the face of the dual (linear/face_cg.hpp) between passes;
//   - the primal point may be W stretched a little (losses/stretch.hpp).
// Stopping test: (P - D)/P <= tol at a full check, with D at an exactly feasible dual point
// (intercept/feasible_dual.hpp).  Crammer & Singer (2001), Keerthi et al. (2008); the layout is described in
// rows/rows.hpp.
#pragma once
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "base/sums.hpp"
#include "intercept/feasible_dual.hpp"
#include "intercept/proximal_steps.hpp"
#include "linear/ascent_state.hpp"
#include "linear/dual_value.hpp"
#include "linear/options.hpp"
#include "linear/sample_visits.hpp"
#include "linear/screening.hpp"
#include "linear/skip_schedule.hpp"
#include "losses/stretch.hpp"

namespace skm {

// Called after block passes: the steps on the face (linear/face_cg.hpp) come in there.
class AfterPass {
  public:
    virtual ~AfterPass() = default;
    virtual void operator()() = 0;
};

template <MarginLoss Loss, class Vectors = ClassVectors>
class BlockAscent {
  public:
    using State = AscentState<Loss, Vectors>;

    BlockAscent(const RowGeometry& geo, const Loss& loss, const int32_t* y, DualLists& duals, double* b,
                ThreadTeam& team, uint64_t seed, const BlockAscentTuning& tuning)
        : state(geo, loss, y, duals, team, tuning), tuning_(tuning), visits_(state, stretch_), b_(b), random_(seed),
          slopes_(tuning.circulation), proximal_(tuning.proximal), skips_(tuning) {
        if (geo.intercept()) {
            class_cap_.assign(state.k, 0.0);
            for (int64_t i = 0; i < state.n; ++i) class_cap_[y[i]] += loss.dual_scale(i);
            proximal_.limit_by_class(class_cap_, geo.t);
        } else if (geo.shifted() && !Vectors::weighted) {
            proximal_.limit_overall(geo.t);
        }
        if (geo.shifted()) state.model.add_multipliers(b_);
        state.update_norms();
    }
    // For some of the rows of a larger problem: the class vectors of all of them, with b.
    BlockAscent(const RowGeometry& geo, const Loss& loss, const int32_t* y, DualLists& duals, double* b,
                ThreadTeam& team, uint64_t seed, const BlockAscentTuning& tuning, Vectors&& model)
        : state(geo, loss, y, duals, team, tuning, std::move(model)), tuning_(tuning), visits_(state, stretch_), b_(b),
          random_(seed), slopes_(tuning.circulation), proximal_(tuning.proximal), skips_(tuning) {}

    // Passes leave out samples with little to gain: good where there are no steps on the face.
    void enable_skipping() { skips_.enable(state.n); }
    // Checks leave out samples far beyond their margins: good where W is small beside the rows.
    void enable_screening() { screening_.enable(state.geo); }

    Outcome run(const Options& options, AfterPass* face = nullptr) {
        begin(options);
        while (!ended()) {
            if (std::exchange(step_pending_, false)) move_multipliers();
            const double before = running_;
            running_ = pass();
            state.team.poll.report_gap(running_ / primal_, options.tol);
            const Plan plan = plan_check(before);
            step_pending_ = plan.may_end;
            // A step of b raises the gap at first, one on the face takes as long as several passes: not before a check
            // that may end the run.
            if (!plan.may_end) {
                move_multipliers();
                if (face) (*face)();
            }
            if (!plan.may_end && !plan.renew && !proximal_.lists_are_stale()) continue;
            renew_lists(plan);
            if (options.stop_on_stall && state.passes >= last_gain_ + tuning_.stall_passes) break;
        }
        return {primal_, gap_, state.passes, state.work, converged_};
    }

    // Passes over given lists without full checks, where something else makes the lists (many_classes): until the sum
    // of the gaps, and what the circulation of a certificate will have to move at the price of a near margin, are at
    // most `goal`.  Returns this sum of gaps.
    struct ListLimits {
        double goal;
        int64_t max_passes;
        double max_work;  // flops, looked at after the first passes
        double norm_floor;
        double max_drift;  // of the multipliers, see ProximalSteps
    };
    double run_on_lists(const ListLimits& limits) {
        constexpr int64_t min_passes = 5;
        state.norm_floor = limits.norm_floor;
        proximal_.limit_drift(limits.max_drift);
        bool cold = true;
        state.active.clear();
        for (int64_t i = 0; i < state.n; ++i) {
            const DualLists::Row& r = state.duals[i];
            if (r.active > 0) state.active.push_back(static_cast<uint32_t>(i));
            for (int32_t j = 0; j < r.size; ++j) cold = cold && r.alpha[j] == 0;
        }
        if (cold) set_first_weights();
        else state.update_norms();
        const bool intercept = state.geo.intercept();
        while (state.passes < limits.max_passes && !state.active.empty()) {
            pass();
            double excess = 0;
            if (intercept)
                for (const double total : state.model.total()) excess += 0.5 * near_margin * std::abs(total);
            if (pass_gap_ + excess <= limits.goal && (state.passes > 1 || !intercept)) break;
            if (state.passes >= min_passes && state.work >= limits.max_work) break;
            move_multipliers();
            if (proximal_.lists_are_stale()) break;
        }
        return pass_gap_;
    }

    // So many passes over all samples, of which the first makes new lists.  Returns the sum of the gaps that it found.
    double visit_all(int64_t passes) {
        state.active.resize(state.n);
        std::iota(state.active.begin(), state.active.end(), 0u);
        for (int64_t i = 0; i < state.n; ++i) state.duals[i].active = SampleVisits<State>::never_scored;
        double gap = 0;
        for (int64_t p = 0; p < passes && !state.active.empty(); ++p) {
            pass();
            if (p == 0) gap = pass_gap_;
        }
        return gap;
    }
    // A step of b, where it is free.
    void step_intercept() {
        if (state.geo.intercept()) state.model.multiplier_step(b_, state.model.residual(b_));
    }

    double drift() const { return proximal_.drift(); }
    // The primal point is the class vectors times this.
    double stretch() const { return stretch_.best(); }

    State state;

  private:
    // What to do after a pass.
    struct Plan {
        bool may_end;       // a full check may end the run
        bool renew;         // the lists have paid for new ones
        bool below_target;  // the gap of the pass is
    };

    // ---- plan ----

    // The start of a run: from zero duals the gap is the loss, else a full check.
    void begin(const Options& options) {
        options_ = options;
        state.norm_floor = std::min(std::max(1e-2 * options.tol, 1e-10), 1e-4);
        check_work_ = 0;
        for (int64_t i = 0; i < state.n; ++i) check_work_ += 2 * state.geo.rows.cost(i) * state.k;
        std::vector<double> zeros(state.k, 0.0);
        gap_ = 0;
        for (int64_t i = 0; i < state.n; ++i) gap_ += state.loss.value(i, zeros.data(), state.k - 1);
        primal_ = gap_;
        state.active.resize(state.n);
        std::iota(state.active.begin(), state.active.end(), 0u);
        bool warm = false;
        for (int64_t i = 0; i < state.n; ++i) warm = warm || state.duals[i].size > 0;
        block_gap_ = gap_;
        if (warm) {
            gap_ = check();
        } else {
            for (int64_t i = 0; i < state.n; ++i) state.duals[i].active = SampleVisits<State>::never_scored;
            set_first_weights();
        }
        best_gap_ = gap_;
    }

    // At the start all norms are zero: weigh the classes alike, as if each had the norm that one sample can give it.
    void set_first_weights() {
        if constexpr (Vectors::weighted) {
            double largest = 0;
            for (int64_t i = 0; i < state.n; ++i) {
                const double scale = state.loss.dual_scale(i);
                largest = std::max(largest, scale * scale * state.geo.curvature[i]);
            }
            state.model.update_weights_absolute(largest);
        }
    }

    // Whether the run is over: certified, out of passes or work, or no block can move.
    bool ended() {
        if (state.active.empty() || gap_ <= options_.target_gap(primal_)) {
            if (last_check_ < state.passes) gap_ = check(), last_check_ = state.passes;
            if (gap_ <= options_.target_gap(primal_)) return converged_ = true;
            if (state.active.empty() && !state.geo.shifted()) return true;  // every block is optimal to rounding
        }
        if (state.passes < options_.max_iter && state.work < options_.max_work) return false;
        if (last_check_ < state.passes || gap_ == infinity) {
            gap_ = check(true);
        } else if (!state.geo.intercept()) {  // the last check believed in the scores: rows far from zero spoil them
            const auto row = [this](int64_t i) { return state.duals[i]; };
            gap_ = std::max(gap_, primal_ - dual_value(state, row, primal_ - gap_));
        }
        converged_ = gap_ <= options_.target_gap(primal_);
        return true;
    }

    // A check is due for new lists once the old ones have paid for them, and where it may end the run: the gap is at
    // the target, or will be after this pass if it falls as before and new lists find as much more as the last ones
    // did.
    Plan plan_check(double before) const {
        const double spent = state.work - work_at_check_, target = options_.target_gap(primal_);
        const bool below_target = running_ <= target;
        const bool fell = running_ <= tuning_.check_after_fall * block_gap_ && spent >= check_work_;
        const bool renew = fell || (spent > tuning_.work_between_checks * check_work_ && spent > work_at_check_);
        const bool ends_soon = running_ * std::min(1.0, running_ / before) * growth_at_check_ <= target;
        const bool may_end =
            state.passes - last_check_ >= min_wait_ && (below_target || (ends_soon && spent >= check_work_));
        return {may_end, renew, below_target};
    }

    // ---- passes ----

    // One pass over the active samples in random order; pass_gap_ becomes the sum of their gaps before their steps,
    // returned is this sum with the primal point stretched.
    double pass() {
        std::vector<uint32_t>& active = state.active;
        random_.shuffle(active.begin(), static_cast<uint32_t>(active.size()));
        double gap = 0, saved = 0;
        size_t kept = 0;
        for (size_t a = 0; a < active.size(); ++a) {
            const int64_t i = active[a];
            if (a + 2 < active.size()) prefetch(active[a + 2]);
            if (a + 1 < active.size()) state.geo.rows.prefetch(active[a + 1]);
            active[kept] = active[a];
            const double before = gap;
            if (skips_.skips(i, gap)) {
                ++kept;
                continue;
            }
            kept += visits_.visit(i, gap, saved);
            skips_.record(i, gap - before);
        }
        skips_.end_pass(gap, active.size());
        active.resize(kept);
        if (++state.passes == 1) state.update_norms();
        pass_gap_ = gap;
        return gap + saved + (stretch() * stretch() - 1) * penalty_;
    }

    void prefetch(int64_t i) const {
#if defined(__GNUC__) || defined(__clang__)
        const DualLists::Row& r = state.duals[i];
        __builtin_prefetch(r.alpha);
        __builtin_prefetch(r.cls);
#else
        (void)i;
#endif
    }

    // A step of the multipliers, where one is due.
    void move_multipliers() {
        if (!state.geo.shifted()) return;
        const double weight = state.model.stiffness();
        if (proximal_.due(pass_gap_, state.geo.t / weight, state.model.residual(b_), state.geo.score_per_unit * weight))
            state.model.multiplier_step(b_, proximal_.steps());
    }

    // ---- certify ----

    // A full check within the run, and what follows from it.
    void renew_lists(const Plan& plan) {
        gap_ = check();
        last_check_ = state.passes;
        growth_at_check_ = std::max(1.0, block_gap_ / running_);
        proximal_.lists_renewed(running_, block_gap_);
        // The multipliers may lag behind: wait longer before the next try.
        if (plan.below_target && state.geo.shifted()) min_wait_ *= 2;
        if (block_gap_ <= 0.7 * best_gap_ || dual_ > (1 + 1e-5) * best_block_dual_) {
            best_gap_ = std::min(best_gap_, block_gap_);
            best_block_dual_ = std::max(best_block_dual_, dual_);
            last_gain_ = state.passes;
        }
    }

    // Sums over all samples.
    struct Sums {
        double loss = 0, gap = 0, product = 0;
    };

    // Scores of all samples and classes: P, the gap, new lists.  Returns the certified gap.
    double check(bool last = false) {
        if constexpr (Loss::can_stretch) stretch_.start(options_.tol, dual_, penalty_);
        state.active.clear();
        skips_.reset();
        check_work_ = -state.work;
        state.update_norms();
        Sums sums = score_all();
        check_work_ += work_at_check_ = state.work;
        add_penalty(sums);
        primal_ = sums.loss + penalty_;
        sums.gap -= primal_;
        dual_ = std::max(0.0, -sums.gap);
        if constexpr (Loss::can_stretch) primal_ = stretch_.choose(primal_, penalty_);
        block_gap_ = sums.gap + primal_;
        if (!state.geo.intercept()) {
            if (!last && block_gap_ > options_.target_gap(primal_)) return block_gap_;
            const auto row = [this](int64_t i) { return state.duals[i]; };
            return std::max(block_gap_, primal_ - dual_value(state, row, primal_ - block_gap_));
        }
        // The sum of the gaps belongs to the proximal problem in b: only worth a certificate when it is small itself.
        if (last || block_gap_ <= options_.target_gap(primal_)) {
            const double target = primal_ - options_.target_gap(primal_);
            best_dual_ = std::max(best_dual_, feasible_dual(state, slopes_, target));
        }
        return std::max(primal_ - best_dual_, block_gap_);
    }

    // Scores all samples that are not surely beyond their margins, and makes their lists.
    Sums score_all() {
        Sums sums;
        const bool records = state.geo.intercept();
        const int32_t k = state.k;
        if (records) slopes_.start(state.n, state.model.total(), class_cap_);
        if constexpr (State::plain_hinge) screening_.follow(state.model, state.geo);
        for (int64_t next = 0; next < state.n;) {
            next = score_batch(next);
            for (size_t r = 0; r < batch_.size(); ++r) {
                const int64_t i = batch_[r];
                std::copy_n(&batch_scores_[r * k], k, visits_.scores.begin());
                const SampleGap sample = visits_.relist(i, tuning_.new_rivals);
                sums.gap += sample.gap;
                sums.loss += sample.value;
                sums.product += sample.product;
                screening_.set_slack(i, visits_.slack);
                if (state.duals[i].active > 0) state.active.push_back(static_cast<uint32_t>(i));
                if (records) slopes_.record(i, state.y[i], state.duals[i], &batch_scores_[r * k], k);
            }
        }
        return sums;
    }

    // All scores of the next few samples from i on that a check has to look at; returns where they end.
    int64_t score_batch(int64_t i) {
        constexpr size_t alone_size = 16;  // samples, without other threads: their scores stay in the cache
        ThreadTeam& team = state.team;
        const bool alone = Vectors::weighted || team.threads() == 1;
        double work = 0;
        batch_.clear();
        for (; i < state.n && (alone ? batch_.size() < alone_size : work < 4 * team.threads() * min_part_flops); ++i) {
            if (State::plain_hinge && screening_.surely_beyond(i, state.y[i])) continue;
            batch_.push_back(i);
            work += 2 * state.geo.rows.cost(i) * state.k;
        }
        const size_t size = batch_.size();
        batch_scores_.resize(std::max(batch_scores_.size(), size * state.k));
        const int parts = alone ? 1 : static_cast<int>(work / min_part_flops) + 1;
        team.for_each_part(parts, [&](int part) {
            for (size_t r = size * part / parts; r < size * (part + 1) / parts; ++r) {
                state.geo.rows.prefetch(batch_[std::min(r + 1, size - 1)]);
                state.model.scores_all(batch_[r], &batch_scores_[r * state.k]);
                team.count_work(2 * state.geo.rows.cost(batch_[r]) * state.k);
            }
        });
        state.work += work;
        return i;
    }

    // The penalty of the class vectors from sum_i c_i'f_i, which has parts of the multipliers; and their part of the
    // gap.
    void add_penalty(Sums& sums) {
        const auto& model = state.model;
        double product = sums.product;
        if (state.geo.intercept())
            for (int32_t l = 0; l < state.k; ++l)
                product -= (b_[l] + state.geo.t * model.total()[l]) * model.total()[l];
        else if constexpr (!Vectors::weighted)
            for (int32_t l = 0; state.geo.shifted() && l < state.k; ++l) {  // the weight of the direction is tot - tilt
                product -= (model.total()[l] - model.tilt()[l]) * model.tilt()[l];
                sums.gap += 0.5 * model.tilt()[l] * model.tilt()[l];
            }
        penalty_ = std::max(0.0, 0.5 * product);  // a difference: rounding may take it below
        if constexpr (Vectors::weighted) {
            penalty_ = model.penalty();
            sums.gap +=
                penalty_ + model.conjugate() - product;  // product = <W, V>; with the floor the link is not exact
        }
    }

    const BlockAscentTuning& tuning_;
    StretchTrials stretch_;
    SampleVisits<State> visits_;
    double* b_;
    Random random_;
    std::vector<double> class_cap_;  // with an intercept: what the duals of a class may hold
    DualSlopes slopes_;
    ProximalSteps proximal_;
    SkipSchedule skips_;
    Screening screening_;
    std::vector<int64_t> batch_;  // samples that a check scores together
    std::vector<double> batch_scores_;

    Options options_;
    // The run so far.
    double gap_ = 0, primal_ = 0;  // certified gap and primal objective of the last check
    bool converged_ = false, step_pending_ = false;
    double pass_gap_ = 0, running_ = infinity;  // of the last pass; with the primal point stretched
    double growth_at_check_ = infinity;         // gap of the last check / of the pass before it
    int64_t last_check_ = 0, last_gain_ = 0;    // passes at the last check, at the last progress
    int64_t min_wait_ = 1;                      // passes between checks that may end the run
    double best_gap_ = infinity, best_block_dual_ = 0, best_dual_ = -infinity;
    // The last check.
    double work_at_check_ = 0, check_work_ = 0;  // flops before it, and of it
    double block_gap_ = infinity, penalty_ = 0, dual_ = 0;
};

}  // namespace skm

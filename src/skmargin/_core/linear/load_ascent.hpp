// Block ascent over rows that come in loads, each row once in a pass: of all rows but those of the load only the class
// vectors and the duals are kept.
//
//     pass       for each load: a few passes of block ascent over its rows, and a step of the intercept
//     W          summed anew from the duals, in double precision, as the loads go by; it replaces the one that the
//                steps have changed
//     gap        P at the point of the beginning of the pass, at which the rows are scored besides; D at its end
//     intercept  the duals of the last load are changed so that sum_i c_i = 0 over all rows
//
// So every reading of the rows is a pass and, where the gap may be small enough, a certificate.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "intercept/circulation.hpp"
#include "intercept/feasible_dual.hpp"
#include "linear/block_ascent.hpp"
#include "linear/dual_value.hpp"
#include "losses/stretch.hpp"

namespace skm {

// What does not depend on the rows of a load.
struct LoadSettings {
    int64_t n;                                // rows in all
    double total_cap;                         // of all rows
    std::optional<std::vector<double>> mean;  // of the features, where the intercept is free
    double tol;
    BlockAscentTuning tuning;
    ProximalWeightTuning weight;
};

// What a pass has found.
struct LoadOutcome {
    double gap = 0;                              // of the blocks, as the passes met them
    double primal = infinity, dual = -infinity;  // at the beginning, infinite where it is not known; at the end
    bool balanced = false;                       // whether the dual is that of a point that satisfies all constraints
};

class LoadAscent {
  public:
    using Model = ClassVectors;
    using Numbers = Model::Numbers;

    // `none` are no rows, of the width and the number of classes of the loads.
    LoadAscent(std::unique_ptr<AnyRows> none, const LoadSettings& settings)
        : given_(std::move(none)), none_(*given_), settings_(settings), b_(none_.k),
          numbers_(Model(RowGeometry(none_)).release()), sum_(none_) {}

    // The point to start from, in place of zero: class vectors (k x d, row-major) and intercepts.  The duals that the
    // first pass is given should be those of this point.
    void start(const double* W, const double* b) {
        std::vector<double> V(static_cast<size_t>(none_.k * none_.d));
        for (int32_t l = 0; l < none_.k; ++l) {
            b_[l] = b[l];
            for (int64_t j = 0; j < none_.d; ++j) {
                const double w = W[l * none_.d + j];
                V[static_cast<size_t>(none_.place(l, j))] = w;
                if (settings_.mean) b_[l] += w * (*settings_.mean)[j];
            }
            if (settings_.mean) numbers_.base[l] = b[l];
        }
        none_.assign(numbers_.V, V.data());
    }

    // `scored`: P is wanted at the present point.
    void begin_pass(bool scored) {
        found_ = LoadOutcome();
        scored_ = scored;
        sum_.clear();
        if (!scored) return;
        Model now(frame(), std::move(numbers_));
        fixed_ = now.copy();
        std::vector<double> W(static_cast<size_t>(none_.k * none_.d)), b(none_.k);
        now.publish(W.data(), b.data());
        numbers_ = now.release();
        loss_ = penalty_ = 0;
        for (const double w : W) penalty_ += 0.5 * w * w;
        stretch_.start(settings_.tol, last_dual_, penalty_);
    }

    // A load.  `last`: its duals are to balance those of all rows.
    template <class Loss>
    void visit(const AnyRows& rows, const Loss& loss, const int32_t* y, DualLists& duals, int passes, bool last,
               uint64_t seed, ThreadTeam& team) {
        RowGeometry geo(rows, settings_.weight);
        centre(geo);
        longest_ = std::max(longest_, geo.longest);
        if (scored_) score(geo, loss, y, team);
        BlockAscent<Loss> ascent(geo, loss, y, duals, b_.data(), team, seed, settings_.tuning,
                                 Model(geo, std::move(numbers_)));
        found_.gap += ascent.visit_all(passes);
        ascent.step_intercept();
        bool balanced = true;
        if (last && settings_.mean) balanced = balance(ascent.state, rows);
        for (int64_t i = 0; i < rows.n; ++i)
            if (duals[i].size > 0)
                ascent.state.with_coefficients(i, duals[i], [&](const int32_t* cls, int32_t m, const double* coef) {
                    sum_.add(rows, i, loss.dual(i, duals[i].alpha, duals[i].size), cls, m, coef);
                });
        numbers_ = ascent.state.model.release();
        if (last) end_pass(balanced, Loss::can_stretch);
    }

    const LoadOutcome& found() const { return found_; }

    // Class vectors (k x d, row-major) and intercepts of the point at which P was taken, or of the present one.
    void publish(bool fixed, double* W, double* b) {
        Numbers& numbers = fixed ? *fixed_ : numbers_;
        Model model(frame(), std::move(numbers));
        model.publish(W, b);
        numbers = model.release();
        const double factor = fixed ? stretch_.best() : 1.0;
        for (int64_t j = 0; j < none_.k * none_.d; ++j) W[j] *= factor;
        for (int32_t l = 0; l < none_.k; ++l) b[l] *= factor;
    }
    double longest() const { return longest_; }

  private:
    void centre(RowGeometry& geo) {
        if (!settings_.mean) return;
        if (!(t_ > 0)) {  // the first load stands for all rows
            const double share = static_cast<double>(geo.rows.n) / static_cast<double>(settings_.n);
            geo.centre(settings_.mean->data(), share * settings_.total_cap);
            t_ = geo.t;
        } else {
            geo.centre_with(*settings_.mean, t_);
        }
    }
    // The geometry without rows.
    const RowGeometry& frame() {
        frame_.emplace(none_);
        if (settings_.mean && t_ > 0) frame_->centre_with(*settings_.mean, t_);
        return *frame_;
    }

    // The losses of a load at the point at the beginning of the pass.
    template <class Loss>
    void score(const RowGeometry& geo, const Loss& loss, const int32_t* y, ThreadTeam& team) {
        const int32_t k = geo.rows.k;
        Model at(geo, std::move(*fixed_));
        std::vector<double> f(k), d(k);
        for (int64_t i = 0; i < geo.rows.n; ++i) {
            at.scores_all(i, f.data());
            const int32_t fixed = loss.fixed_rival(i);
            int32_t m = 0;
            if (fixed >= 0) d[m++] = f[y[i]] - f[fixed];  // it stands first
            for (int32_t l = 0; l < k; ++l)
                if (l != y[i] && l != fixed) d[m++] = f[y[i]] - f[l];
            const double value = loss.value(i, d.data(), m);
            loss_ += value;
            if constexpr (Loss::can_stretch)
                if (value > 0) stretch_.add(loss, i, d.data(), m);
            team.poll.count_work(2 * geo.rows.cost(i) * k);
        }
        fixed_ = at.release();
    }

    // Changes the duals of the load so that all rows satisfy the constraint of the intercept; false where they cannot.
    template <class State>
    bool balance(State& state, const AnyRows& rows) {
        const int32_t k = rows.k;
        std::vector<double> outside = state.model.total(), class_cap(k), f(k);
        for (int64_t i = 0; i < rows.n; ++i) {
            class_cap[state.y[i]] += state.loss.dual_scale(i);
            if (state.duals[i].size > 0)
                state.with_coefficients(i, state.duals[i], [&](const int32_t* cls, int32_t m, const double* coef) {
                    for (int32_t j = 0; j < m; ++j) outside[cls[j]] -= coef[j];
                });
        }
        DualSlopes slopes(settings_.tuning.circulation);
        slopes.start(rows.n, state.model.total(), class_cap);
        for (int64_t i = 0; i < rows.n; ++i) {
            state.model.scores_all(i, f.data());
            state.spend(rows.cost(i) * k);
            slopes.record(i, state.y[i], state.duals[i], f.data(), k);
        }
        slopes.end();
        make_circulation(k, rows.n, state.loss, RecordedDuals{slopes, state.y}, RecordedSlopes{slopes}, state.team.poll,
                         outside);
        for (int64_t i = 0; i < rows.n; ++i) {
            const DualLists::Row r = slopes.row(i);
            state.duals.assign(i, r.cls, r.alpha, r.size, r.size);
            if (r.size > 0)
                state.with_coefficients(i, r, [&](const int32_t* cls, int32_t m, const double* coef) {
                    for (int32_t j = 0; j < m; ++j) outside[cls[j]] += coef[j];
                });
        }
        const double most = balanced_share * settings_.total_cap;
        return std::all_of(outside.begin(), outside.end(), [&](double left) { return std::abs(left) <= most; });
    }

    void end_pass(bool balanced, bool stretches) {
        found_.balanced = balanced;
        found_.dual = last_dual_ = sum_.value(none_, settings_.mean ? longest_ : 0.0);
        if (scored_) found_.primal = loss_ + penalty_;
        if (scored_ && stretches) found_.primal = stretch_.choose(found_.primal, penalty_);
        Model model(frame(), std::move(numbers_));
        model.assign(sum_.V(), sum_.totals(), b_);
        numbers_ = model.release();
    }

    // Of all caps, that may be left of the sums of the duals: rounding.
    static constexpr double balanced_share = 1e-12;

    const std::unique_ptr<AnyRows> given_;
    const AnyRows& none_;
    const LoadSettings settings_;
    std::optional<RowGeometry> frame_;
    double t_ = 0, longest_ = 0, last_dual_ = 0;
    double loss_ = 0, penalty_ = 0;  // at the beginning of the pass
    std::vector<double> b_;
    Numbers numbers_;
    std::optional<Numbers> fixed_;  // of the beginning of the pass
    DualSum sum_;
    StretchTrials stretch_;
    LoadOutcome found_;
    bool scored_ = false;
};

}  // namespace skm

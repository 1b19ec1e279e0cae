// What block ascent does with one sample: the exact step, shrinking its list of rivals, a new list from all scores.
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/sums.hpp"
#include "intercept/circulation.hpp"
#include "linear/ascent_state.hpp"
#include "losses/stretch.hpp"

namespace skm {

// A sample with all its rivals: value of the loss, alpha'd, duality gap.
struct SampleGap {
    double value = 0, product = 0, gap = 0;
};

template <class State>
class SampleVisits {
  public:
    using Loss = std::remove_cvref_t<decltype(std::declval<State>().loss)>;
    static constexpr int32_t never_scored = -1;  // as the active part of a list

    SampleVisits(State& state, StretchTrials& stretch)
        : s_(state), stretch_(stretch), scores(state.k + 1), d_(state.k + 1), old_(state.k + 1), new_(state.k + 1),
          step_(state.k + 1), parked_alpha_(state.k + 1), cls_(state.k + 1), step_cls_(state.k + 1),
          parked_(state.k + 1) {}

    // One exact block step; adds the gap before it to `gap`, and what the stretch saved to `saved`.  Returns false if
    // the sample can leave the active set.
    bool visit(int64_t i, double& gap, double& saved) {
        DualLists::Row& r = s_.duals[i];
        const int32_t m = r.active == never_scored ? first_scores(i, gap) : list_scores(i, gap, saved);
        if (s_.loss.cannot_move(i, d_.data(), r.alpha, m)) return false;
        if constexpr (State::Model::weighted)
            s_.model.block(s_.loss, i, s_.curvature[i], s_.y[i], r.cls, d_.data(), r.alpha, m, new_.data());
        else s_.loss.block(i, s_.curvature[i], d_.data(), r.alpha, m, new_.data());
        int32_t moved = 0;
        double sum = 0;
        for (int32_t j = 0; j < m; ++j) {
            const double change = new_[j] - r.alpha[j];
            if (change == 0) continue;
            sum += change;
            step_cls_[moved] = r.cls[j];
            step_[moved++] = -change;
            r.alpha[j] = new_[j];
        }
        if (moved == 0) return true;
        if (sum != 0) {
            step_cls_[moved] = s_.y[i];
            step_[moved++] = sum;
        }
        s_.model.add(i, step_cls_.data(), moved, step_.data());
        s_.spend(s_.geo.rows.cost(i) * moved);
        return true;
    }

    // A new list of sample i from its `scores` for all classes, with at most so many new rivals.
    SampleGap relist(int64_t i, int32_t max_new) {
        SampleGap out;
        slack = 0;
        if constexpr (Loss::can_stretch)
            if (is_settled(i, out)) return out;
        const int32_t rivals = all_rivals(i), fixed = s_.loss.fixed_rival(i) >= 0;
        for (int32_t j = 0; j < rivals; ++j) out.product += old_[j] * d_[j];
        out.value = loss_value(i, rivals);
        out.gap = out.value - s_.loss.dual(i, old_.data(), rivals) + out.product;
        const auto bounds = s_.loss.bounds(i, d_.data(), old_.data(), rivals);
        const double cut = entry_cut(i, bounds, rivals, fixed, max_new);
        int32_t active = 0, parked = 0, entered = 0;
        for (int32_t j = 0; j < rivals; ++j) {
            const bool idle = s_.loss.idle(bounds, i, cls_[j], d_[j], old_[j], 0.0);
            if (idle && old_[j] == 0) continue;
            if (j >= fixed && old_[j] == 0) {
                if (d_[j] > cut || (d_[j] == cut && entered >= max_new)) continue;
                ++entered;
            }
            if (idle) {
                park(parked, cls_[j], old_[j]);
            } else {
                cls_[active] = cls_[j];
                new_[active] = old_[j];
                d_[active++] = d_[j];
            }
        }
        if (s_.loss.cannot_move(i, d_.data(), new_.data(), active)) {
            for (int32_t j = 0; j < active; ++j)
                if (new_[j] != 0) park(parked, cls_[j], new_[j]);
            active = 0;
        }
        std::copy(parked_.begin(), parked_.begin() + parked, cls_.begin() + active);
        std::copy(parked_alpha_.begin(), parked_alpha_.begin() + parked, new_.begin() + active);
        s_.duals.assign(i, cls_.data(), new_.data(), active + parked, active);
        return out;
    }

  private:
    State& s_;
    StretchTrials& stretch_;

  public:
    std::vector<double> scores;  // of all classes, for `relist`
    double slack = 0;            // by which the sample of the last `relist` is beyond its margins, without duals

  private:
    // The first visit of a sample: scores of all classes, and a list with the first rivals.
    int32_t first_scores(int64_t i, double& gap) {
        const DualLists::Row& r = s_.duals[i];
        s_.model.scores_all(i, scores.data());
        s_.spend(s_.geo.rows.cost(i) * s_.k);
        gap += relist(i, s_.tuning.new_rivals).gap;
        for (int32_t j = 0; j < r.active; ++j) d_[j] = scores[s_.y[i]] - scores[r.cls[j]];
        return r.active;
    }
    // Scores of the listed rivals; idle ones leave the list.  Returns how many are left.
    int32_t list_scores(int64_t i, double& gap, double& saved) {
        DualLists::Row& r = s_.duals[i];
        const int32_t m = r.active;
        cls_[0] = s_.y[i];
        std::copy(r.cls, r.cls + m, cls_.begin() + 1);
        s_.model.scores(i, cls_.data(), m + 1, scores.data());
        s_.spend(s_.geo.rows.cost(i) * (m + 1));
        for (int32_t j = 0; j < m; ++j) d_[j] = scores[0] - scores[j + 1];
        double product = 0;
        for (int32_t j = 0; j < m; ++j) product += r.alpha[j] * d_[j];
        const double value = s_.loss.value(i, d_.data(), m);
        gap += value - s_.loss.dual(i, r.alpha, m) + product;
        if constexpr (Loss::can_stretch)
            if (value > 0 && stretch_.best() > 1) saved += s_.loss.value(i, d_.data(), m, stretch_.best()) - value;
        return shrink(i, r, m);
    }

    // Idle rivals leave the active part of the list: those at zero altogether, the others are parked behind it.
    int32_t shrink(int64_t i, DualLists::Row& r, int32_t m) {
        const auto bounds = s_.loss.bounds(i, d_.data(), r.alpha, m);
        int32_t j = 0;
        while (j < m) {
            if (!s_.loss.idle(bounds, i, r.cls[j], d_[j], r.alpha[j], Loss::slack)) {
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
    bool is_settled(int64_t i, SampleGap& out) {
        DualLists::Row& r = s_.duals[i];
        if (r.size > (Loss::only_largest_hinge ? 1 : 0)) return false;
        const double own = std::exchange(scores[s_.y[i]], -infinity), largest = max_of(scores.data(), s_.k);
        const double d = own - largest;
        scores[s_.y[i]] = own;
        if (r.size == 0) {
            if (!(d > 1)) return false;
            slack = s_.geo.intercept() ? d - 1 - near_margin : d - 1;
        } else {
            if (scores[r.cls[0]] < largest || !s_.loss.cannot_move(i, &d, r.alpha, 1)) return false;
            out.value = s_.loss.value(i, &d, 1);
            stretch_.add(s_.loss, i, &d, 1);
            out.product = r.alpha[0] * d;
        }
        r.active = 0;
        out.gap = out.value - s_.loss.dual(i, r.alpha, r.size) + out.product;
        return true;
    }

    // All rivals with their duals, in d_, old_ and cls_, a fixed rival first; returns how many.
    int32_t all_rivals(int64_t i) {
        const DualLists::Row& r = s_.duals[i];
        const int32_t own = s_.y[i], fixed = s_.loss.fixed_rival(i);
        int32_t rivals = 0;
        for (int32_t l = 0; l < s_.k; ++l) old_[l] = 0;
        for (int32_t j = 0; j < r.size; ++j) old_[r.cls[j]] = r.alpha[j];
        for (int32_t l = 0; l < s_.k; ++l) {
            if (l == own) continue;
            d_[rivals] = scores[own] - scores[l];
            old_[rivals] = old_[l];
            cls_[rivals++] = l;
        }
        if (fixed >= 0) {
            const int32_t j = fixed - (fixed > own);
            std::swap(d_[0], d_[j]);
            std::swap(old_[0], old_[j]);
            std::swap(cls_[0], cls_[j]);
        }
        return rivals;
    }

    // Loss of sample i from d_; what it would be with W stretched is added up.
    double loss_value(int64_t i, int32_t rivals) {
        if constexpr (!Loss::can_stretch) {
            return s_.loss.value(i, d_.data(), rivals);
        } else {
            const double least = Loss::only_largest_hinge ? min_of(d_.data(), rivals) : 0;
            const double* d = Loss::only_largest_hinge ? &least : d_.data();
            if (Loss::only_largest_hinge) rivals = 1;
            const double value = s_.loss.value(i, d, rivals);
            if (value > 0) stretch_.add(s_.loss, i, d, rivals);
            return value;
        }
    }

    // Of the rivals at zero only the closest, up to this d, enter a list at once.
    template <class Bounds>
    double entry_cut(int64_t i, const Bounds& bounds, int32_t rivals, int32_t fixed, int32_t max_new) {
        if (rivals <= max_new) return infinity;
        int32_t zeros = 0;
        for (int32_t j = fixed; j < rivals; ++j)
            if (old_[j] == 0 && !s_.loss.idle(bounds, i, cls_[j], d_[j], 0.0, 0.0)) new_[zeros++] = d_[j];
        if (zeros <= max_new) return infinity;
        std::nth_element(new_.begin(), new_.begin() + max_new, new_.begin() + zeros);
        return new_[max_new];
    }
    void park(int32_t& parked, int32_t cls, double alpha) {
        parked_[parked] = cls;
        parked_alpha_[parked++] = alpha;
    }

    std::vector<double> d_, old_, new_;        // of the rivals in cls_: f_y - f_l, duals, new duals
    std::vector<double> step_, parked_alpha_;  // changes of the coefficients of step_cls_; duals of parked_
    std::vector<int32_t> cls_, step_cls_, parked_;
};

}  // namespace skm

// Conjugate gradients on the face of the dual that the block passes have found.
//
// Near the solution the set of coordinates strictly inside their bounds hardly changes, and block ascent is slow
// along this face.  Here the dual is maximised over the face alone: the variables are the steps x_i of the coefficients
// c_i on S_i = {rivals with 0 < alpha_l < limit} plus the own class where sum alpha is free, with sum x_i = 0.  A few
// CG steps (preconditioner 1/A_i, one step costs one pass) give x; alpha + s x is projected back on the constraints and
// an exact line search makes sure that the dual rises.  The number of steps adapts to the success; half as many
// passes follow.  Threads share the samples (base/thread_team.hpp).
#pragma once
#include <algorithm>
#include <array>
#include <deque>
#include <numeric>
#include <vector>

#include "linear/block_ascent.hpp"

namespace skm {

// When steps on a face are tried and how far they go: `Steps` gives collect, empty, conjugate_gradients, try_step,
// accept.
template <class Steps, class Ascent>
class FaceControl : public AfterPass {
  public:
    explicit FaceControl(Ascent& ascent)
        : a_(ascent), tuning_(ascent.tuning.face), steps_(tuning_.first_steps), next_(steps_) {}

    // Called after each block pass.
    void operator()() override {
        if (a_.passes < next_) return;
        steps_ = step() > tuning_.more_steps_above ? steps_ + steps_ / 2 + 1 : steps_ - steps_ / 3;
        next_ = a_.passes + std::max(steps_, tuning_.first_steps) / 2;
    }

  protected:
    Ascent& a_;
    const FaceTuning tuning_;
    int steps_;  // of conjugate gradients

  private:
    // Gain of the dual relative to what conjugate gradients promised on the face.
    double step() {
        Steps& steps = static_cast<Steps&>(*this);
        steps.collect();
        if (steps.empty()) return 0;
        const double predicted = steps.conjugate_gradients();
        if (!(predicted > 0)) return 0;
        for (double t = 1; t > 0.02; t *= tuning_.shorten) {
            const double gain = steps.try_step(t);
            if (gain > (t == 1 ? 0 : tuning_.min_gain * predicted * t)) {
                steps.accept();
                return gain / predicted;
            }
        }
        return 0;
    }

    int64_t next_;  // pass of the next one
};

template <class Loss>
class FaceSteps : public FaceControl<FaceSteps<Loss>, AscentState<Loss, ClassVectors>> {
  public:
    using State = AscentState<Loss, ClassVectors>;
    explicit FaceSteps(State& state) : Control(state) {}

  private:
    friend class FaceControl<FaceSteps, State>;
    using Control = FaceControl<FaceSteps, State>;
    using Control::a_, Control::steps_, Control::tuning_;

    bool empty() const { return sample_.empty(); }

    // The free coordinates of the active samples, with the centred gradient of the dual.
    void collect() {
        sample_.clear();
        start_.assign(1, 0);
        cls_.clear();
        entry_.clear();
        slope_.clear();
        slope_start_.assign(1, 0);
        residual_.clear();
        std::vector<double> f(a_.k + 1);
        std::vector<int32_t> cls(a_.k + 1);
        for (const int64_t i : a_.active) {
            const DualLists::Row& r = a_.duals[i];
            if (r.active <= 0 || a_.has_raised_curvature(i)) continue;
            double S = 0;
            int32_t free = 0;
            for (int32_t j = 0; j < r.size; ++j) S += r.alpha[j];
            for (int32_t j = 0; j < r.active; ++j) free += inside(i, r.alpha[j]);
            const bool own = a_.loss.sum_is_free(i, S);
            if (free + own < 2 || free == 0) continue;
            cls[0] = a_.y[i];
            std::copy(r.cls, r.cls + r.active, cls.begin() + 1);
            a_.model.scores(i, cls.data(), r.active + 1, f.data());
            a_.spend(a_.geo.rows.cost(i) * (r.active + 1));
            double mean = own ? 1 - f[0] : 0;  // gradient in c_y; in c_l it is -f_l
            for (int32_t j = 0; j < r.active; ++j)
                if (inside(i, r.alpha[j])) mean -= f[j + 1];
            mean /= free + own;
            sample_.push_back(i);
            if (own) push(a_.y[i], own_class, 1 - f[0] - mean);
            for (int32_t j = 0; j < r.active; ++j) {
                slope_.push_back(1 - f[0] + f[j + 1]);  // gradient in alpha_l
                if (inside(i, r.alpha[j])) push(r.cls[j], j, -f[j + 1] - mean);
            }
            slope_start_.push_back(slope_.size());
            start_.push_back(cls_.size());
        }
        divide();
    }
    void push(int32_t cls, int32_t entry, double gradient) {
        cls_.push_back(cls);
        entry_.push_back(entry);
        residual_.push_back(gradient);
    }
    bool inside(int64_t i, double alpha) const { return alpha > 0 && alpha < a_.loss.dual_limit(i); }

    // Parts of the samples, each with a V of its own: as many as are worth it.
    void divide() {
        flops_ = 0;
        for (size_t s = 0; s < sample_.size(); ++s) flops_ += a_.geo.rows.cost(sample_[s]) * size(s);
        const double enough = std::max(min_part_flops, 16.0 * static_cast<double>(a_.geo.rows.weights_size()));
        parts_ = static_cast<int>(std::clamp(2 * flops_ / enough, 1.0, 1.0 * max_parts));
        while (V_.size() < static_cast<size_t>(parts_)) V_.emplace_back(a_.geo);
    }
    int32_t size(size_t s) const { return static_cast<int32_t>(start_[s + 1] - start_[s]); }

    // The sum of term(s, part) over the samples.
    template <class Term>
    double sum(const Term& term) {
        std::array<double, max_parts> sums{};
        const size_t all = sample_.size();
        a_.team.for_each_part(parts_, [&](int part) {
            double sum = 0;
            for (size_t s = all * part / parts_; s < all * (part + 1) / parts_; ++s) sum += term(s, part);
            sums[part] = sum;
        });
        return std::accumulate(sums.begin(), sums.begin() + parts_, 0.0);
    }
    // The same, where term(s, V) adds the sample to V, which holds their sum at the end.
    template <class Term>
    double gather(const Term& term) {
        for (int part = 0; part < parts_; ++part) V_[part].clear();
        const double total = sum([&](size_t s, int part) { return term(s, V_[part]); });
        for (int part = 1; part < parts_; ++part) V_[0].add_scaled(V_[part], 1);
        a_.count_work(flops_);
        return total;
    }
    // Class vectors of m classes were added to or read for sample s.
    void count_work(size_t s, int32_t m) { a_.team.count_work(2 * a_.geo.rows.cost(sample_[s]) * m); }

    double conjugate_gradients() {
        x_.assign(cls_.size(), 0.0);
        p_.assign(cls_.size(), 0.0);
        q_.resize(cls_.size());
        double beta = 0, gained = 0, best = 0;
        double rz = sum([&](size_t s, int) { return squared_residual(s); });
        for (int step = 0; step < steps_ && rz > 0; ++step) {
            gather([&](size_t s, ClassVectors& V) {
                const double curvature = a_.geo.curvature[sample_[s]];
                for (size_t e = start_[s]; e < start_[s + 1]; ++e) p_[e] = residual_[e] / curvature + beta * p_[e];
                V.add(sample_[s], &cls_[start_[s]], size(s), &p_[start_[s]]);
                count_work(s, size(s));
                return 0.0;
            });
            const double pq = sum([&](size_t s, int) {
                const int32_t m = size(s);
                double *q = &q_[start_[s]], mean = 0, product = 0;
                V_[0].scores(sample_[s], &cls_[start_[s]], m, q);
                count_work(s, m);
                for (int32_t j = 0; j < m; ++j) mean += q[j] / m;
                for (int32_t j = 0; j < m; ++j) product += (q[j] -= mean) * p_[start_[s] + j];
                return product;
            });
            a_.count_work(flops_);
            if (!(pq > 0)) break;
            const double length = rz / pq, gain = 0.5 * length * rz;
            gained += gain;
            best = std::max(best, gain);
            const double next = sum([&](size_t s, int) {
                for (size_t e = start_[s]; e < start_[s + 1]; ++e) {
                    x_[e] += length * p_[e];
                    residual_[e] -= length * q_[e];
                }
                return squared_residual(s);
            });
            if (gain < tuning_.stop_cg_below * best) break;
            beta = next / rz;
            rz = next;
        }
        return gained;
    }
    double squared_residual(size_t s) const {
        double square = 0;
        for (size_t e = start_[s]; e < start_[s + 1]; ++e) square += residual_[e] * residual_[e];
        return square / a_.geo.curvature[sample_[s]];
    }

    // Project alpha + t x, then search along the projected step; returns the gain of the dual.
    double try_step(double t) {
        target_.resize(slope_.size());
        const double rise = gather([&](size_t s, ClassVectors& V) {
            thread_local std::vector<double> d, change;
            thread_local std::vector<int32_t> cls;
            const int64_t i = sample_[s];
            const DualLists::Row& r = a_.duals[i];
            // `block` with curvature 1 and d = 1 + t (x_l - x_y) is the projection on the constraints of the hinge
            // family.
            d.assign(r.active, 0.0);
            change.resize(r.active + 1);
            cls.resize(r.active + 1);
            double own = 0;
            for (size_t e = start_[s]; e < start_[s + 1]; ++e) (entry_[e] == own_class ? own : d[entry_[e]]) = x_[e];
            for (int32_t j = 0; j < r.active; ++j) d[j] = 1 + t * (d[j] - own);
            double* target = &target_[slope_start_[s]];
            a_.loss.block(i, 1.0, d.data(), r.alpha, r.active, target);
            int32_t m = 0;
            double sum = 0, mine = 0;
            for (int32_t j = 0; j < r.active; ++j) {
                const double e = target[j] - r.alpha[j];
                if (e == 0) continue;
                mine += e * slope_[slope_start_[s] + j];
                sum += e;
                cls[m] = r.cls[j];
                change[m++] = -e;
            }
            cls[m] = a_.y[i];
            change[m++] = sum;
            V.add(i, cls.data(), m, change.data());
            count_work(s, m);
            return mine;
        });
        const double bend = V_[0].squared_norm();
        length_ = bend > 0 ? std::min(1.0, rise / bend) : 1.0;
        return length_ > 0 ? length_ * rise - 0.5 * length_ * length_ * bend : 0.0;
    }

    void accept() {
        for (size_t s = 0; s < sample_.size(); ++s) {
            DualLists::Row& r = a_.duals[sample_[s]];
            const double* target = &target_[slope_start_[s]];
            for (int32_t j = 0; j < r.active; ++j)
                r.alpha[j] = length_ == 1 ? target[j] : r.alpha[j] + length_ * (target[j] - r.alpha[j]);
        }
        a_.model.add_scaled(V_[0], length_);
    }

    static constexpr int32_t own_class = -1;
    static constexpr int max_parts = 8;
    std::deque<ClassVectors>
        V_;  // of a step, one for each part of the samples; made where a step is tried: each is as large as W
    int parts_ = 1;
    double flops_ = 0;  // multiply-adds of a product with all samples
    std::vector<int64_t> sample_;
    std::vector<size_t> start_, slope_start_;
    std::vector<int32_t> cls_, entry_;  // free coordinates: class, position in the list of the sample
    std::vector<double> slope_, residual_, x_, p_, q_, target_;
    double length_ = 0;
};

}  // namespace skm

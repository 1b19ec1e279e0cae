// Conjugate gradients on the face of the dual that the block passes have found.
//
// Near the solution the set of coordinates strictly inside their bounds hardly changes, and block ascent crawls along
// this face.  Here the dual is maximised over the face alone: the variables are the steps x_i of the coefficients c_i
// on S_i = {rivals with 0 < alpha_l < limit} plus the own class where sum alpha is free, with sum x_i = 0.  A few CG
// steps (preconditioner 1/A_i, one step costs one pass) give x; alpha + s x is projected back on the constraints and an
// exact line search makes sure that the dual rises.  The number of steps and of passes in between adapts to the
// success.
#pragma once
#include <cmath>
#include <optional>
#include <vector>

#include "linear_blocks.hpp"

namespace skm {

// When steps on a face are tried and how far they go: `Steps` gives collect, empty, conjugate_gradients, try_step,
// accept.
template <class Steps, class Ascent>
class FaceControl {
  public:
    explicit FaceControl(Ascent& ascent) : a_(ascent) {}

    // Called after each block pass.
    void operator()() {
        if (a_.passes() < next_) return;
        const double ratio = step();
        if (ratio > 0.75) steps_ = std::min(200, steps_ + steps_ / 2 + 1);
        if (ratio < 0.4) steps_ = std::max(4, 2 * steps_ / 3);
        next_ = a_.passes() + (ratio < 0.02 ? 40 : std::max(steps_, 5));
    }

  protected:
    Ascent& a_;
    int steps_ = 10;  // of conjugate gradients

  private:
    // Gain of the dual relative to what conjugate gradients promised on the face.
    double step() {
        Steps& steps = static_cast<Steps&>(*this);
        steps.collect();
        if (steps.empty()) return 0;
        const double promise = steps.conjugate_gradients();
        if (!(promise > 0)) return 0;
        for (double t = 1; t > 0.02; t *= 0.4) {
            const double gain = steps.try_step(t);
            if (gain > (t == 1 ? 0 : 0.1 * promise * t)) {
                steps.accept();
                return gain / promise;
            }
        }
        return 0;
    }

    int64_t next_ = 10;
};

template <class Rows, class Loss>
class FaceSteps : public FaceControl<FaceSteps<Rows, Loss>, BlockAscent<Rows, Loss>> {
  public:
    explicit FaceSteps(BlockAscent<Rows, Loss>& ascent) : Control(ascent) {}

  private:
    friend class FaceControl<FaceSteps, BlockAscent<Rows, Loss>>;
    using Control = FaceControl<FaceSteps, BlockAscent<Rows, Loss>>;
    using Control::a_, Control::steps_;

    bool empty() const { return sample_.empty(); }

    // The free coordinates of the active samples, with the centred gradient of the dual.
    void collect() {
        if (!V_) V_.emplace(a_.geo);
        sample_.clear();
        start_.assign(1, 0);
        cls_.clear();
        entry_.clear();
        slope_.clear();
        slope_start_.assign(1, 0);
        residual_.clear();
        std::vector<double> f(a_.k + 1);
        std::vector<int32_t> cls(a_.k + 1);
        for (const int64_t i : a_.active()) {
            const Duals::Row& r = a_.duals[i];
            if (r.active <= 0 || a_.negligible(i)) continue;
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
    }
    void push(int32_t cls, int32_t entry, double gradient) {
        cls_.push_back(cls);
        entry_.push_back(entry);
        residual_.push_back(gradient);
    }
    bool inside(int64_t i, double alpha) const { return alpha > 0 && alpha < a_.loss.limit(i); }

    double conjugate_gradients() {
        const size_t size = cls_.size();
        x_.assign(size, 0.0);
        p_.resize(size);
        q_.resize(size);
        double rz = 0, gained = 0, best = 0;
        for (size_t s = 0; s < sample_.size(); ++s)
            for (size_t e = start_[s]; e < start_[s + 1]; ++e) {
                p_[e] = residual_[e] / a_.geo.curvature[sample_[s]];
                rz += residual_[e] * p_[e];
            }
        for (int step = 0; step < steps_ && rz > 0; ++step) {
            V_->clear();
            for (size_t s = 0; s < sample_.size(); ++s) {
                const int32_t m = static_cast<int32_t>(start_[s + 1] - start_[s]);
                V_->add(sample_[s], &cls_[start_[s]], m, &p_[start_[s]]);
                a_.spend(a_.geo.rows.cost(sample_[s]) * m);
            }
            double pq = 0;
            for (size_t s = 0; s < sample_.size(); ++s) {
                const int32_t m = static_cast<int32_t>(start_[s + 1] - start_[s]);
                double* q = &q_[start_[s]];
                V_->scores(sample_[s], &cls_[start_[s]], m, q);
                a_.spend(a_.geo.rows.cost(sample_[s]) * m);
                double mean = 0;
                for (int32_t j = 0; j < m; ++j) mean += q[j] / m;
                for (int32_t j = 0; j < m; ++j) pq += (q[j] -= mean) * p_[start_[s] + j];
            }
            if (!(pq > 0)) break;
            const double length = rz / pq, gain = 0.5 * length * rz;
            gained += gain;
            best = std::max(best, gain);
            double next = 0;
            for (size_t s = 0; s < sample_.size(); ++s)
                for (size_t e = start_[s]; e < start_[s + 1]; ++e) {
                    x_[e] += length * p_[e];
                    residual_[e] -= length * q_[e];
                    next += residual_[e] * residual_[e] / a_.geo.curvature[sample_[s]];
                }
            if (gain < 0.02 * best) break;
            const double beta = next / rz;
            rz = next;
            for (size_t s = 0; s < sample_.size(); ++s)
                for (size_t e = start_[s]; e < start_[s + 1]; ++e)
                    p_[e] = residual_[e] / a_.geo.curvature[sample_[s]] + beta * p_[e];
        }
        return gained;
    }

    // Project alpha + t x, then search along the projected step; returns the gain of the dual.
    double try_step(double t) {
        target_.resize(slope_.size());
        V_->clear();
        double rise = 0;
        std::vector<double> d(a_.k), change(a_.k + 1);
        std::vector<int32_t> cls(a_.k + 1);
        for (size_t s = 0; s < sample_.size(); ++s) {
            const int64_t i = sample_[s];
            const Duals::Row& r = a_.duals[i];
            // `block` with curvature 1 and d = 1 + t (x_l - x_y) is the projection on the constraints of the hinge
            // family.
            std::fill(d.begin(), d.begin() + r.active, 0.0);
            double own = 0;
            for (size_t e = start_[s]; e < start_[s + 1]; ++e) (entry_[e] == own_class ? own : d[entry_[e]]) = x_[e];
            for (int32_t j = 0; j < r.active; ++j) d[j] = 1 + t * (d[j] - own);
            double* target = &target_[slope_start_[s]];
            a_.loss.block(i, 1.0, d.data(), r.alpha, r.active, target);
            int32_t m = 0;
            double sum = 0;
            for (int32_t j = 0; j < r.active; ++j) {
                const double e = target[j] - r.alpha[j];
                if (e == 0) continue;
                rise += e * slope_[slope_start_[s] + j];
                sum += e;
                cls[m] = r.cls[j];
                change[m++] = -e;
            }
            cls[m] = a_.y[i];
            change[m++] = sum;
            V_->add(i, cls.data(), m, change.data());
            a_.spend(a_.geo.rows.cost(i) * m);
        }
        const double bend = V_->squared_norm();
        length_ = bend > 0 ? std::min(1.0, rise / bend) : 1.0;
        return length_ > 0 ? length_ * rise - 0.5 * length_ * length_ * bend : 0.0;
    }

    void accept() {
        for (size_t s = 0; s < sample_.size(); ++s) {
            Duals::Row& r = a_.duals[sample_[s]];
            const double* target = &target_[slope_start_[s]];
            for (int32_t j = 0; j < r.active; ++j)
                r.alpha[j] = length_ == 1 ? target[j] : r.alpha[j] + length_ * (target[j] - r.alpha[j]);
        }
        a_.model.add_scaled(*V_, length_);
    }

    static constexpr int32_t own_class = -1;
    std::optional<LinearModel<Rows>> V_;  // of a step; as large as W, so only where there is one
    std::vector<int64_t> sample_;
    std::vector<size_t> start_, slope_start_;
    std::vector<int32_t> cls_, entry_;  // free coordinates: class, position in the list of the sample
    std::vector<double> slope_, residual_, x_, p_, q_, target_;
    double length_ = 0;
};

}  // namespace skm

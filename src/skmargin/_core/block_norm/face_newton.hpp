// Newton steps by conjugate gradients on the face of the dual that the block passes have found, for the norm of
// Lei et al. (the counterpart of linear/face_cg.hpp, whose dual is quadratic).
//
// The block steps see a quadratic that does not know how the classes are coupled; for large p that makes them short.
// Here the dual is expanded to second order in the coordinates strictly inside their bounds.  With U = sum_i x_i e_i'
// the Hessian of G = 1/2 ||V||_{2,q}^2 along U is
//     bet_l [u_l + (q-2) (v_l'u_l/||v_l||^2 - R) v_l],     R = sum_j bet_j v_j'u_j / ||V||_{2,q}^2
// and needs only v_l'x_i, known at the start, and u_l'x_i, one pass over the face.  The step of CG is projected back on
// the constraints, and a line search on the dual itself, whose cost does not depend on the data, makes sure it rises.
// The dual of a loss, a function of the sum of a sample's duals, has its own second derivative where it is not linear.
#pragma once
#include <vector>

#include "block_norm/class_vectors.hpp"
#include "linear/face_cg.hpp"

namespace skm {

template <SumLoss Loss>
class BlockNormFaceSteps : public FaceControl<BlockNormFaceSteps<Loss>, AscentState<Loss, BlockNormVectors>> {
  public:
    using Ascent = AscentState<Loss, BlockNormVectors>;
    BlockNormFaceSteps(Ascent& ascent, double q)
        : Control(ascent), U_(ascent.geo), q_(q), along_(ascent.k), squares_(ascent.k) {}

  private:
    friend class FaceControl<BlockNormFaceSteps, Ascent>;
    using Control = FaceControl<BlockNormFaceSteps, Ascent>;
    using Control::a_, Control::steps_, Control::tuning_;

    bool empty() const { return sample_.empty(); }

    // The coordinates inside their bounds, each sample with its own class first (which may be bound: `first_`).
    void collect() {
        sample_.clear();
        start_.assign(1, 0);
        first_.clear();
        cls_.clear();
        for (auto* v : {&gradient_, &product_, &metric_, &sum_, &curvature_}) v->clear();
        std::vector<double> x(a_.k + 1);
        for (const int64_t i : a_.active) {
            DualLists::Row& r = a_.duals[i];
            if (r.active <= 0 || a_.has_raised_curvature(i)) continue;
            double S = 0;
            for (int32_t j = 0; j < r.size; ++j) S += r.alpha[j];
            int32_t inner = 0;  // free rivals go to the front of the list
            for (int32_t j = 0; j < r.active; ++j)
                if (r.alpha[j] > 0) {
                    std::swap(r.alpha[j], r.alpha[inner]);
                    std::swap(r.cls[j], r.cls[inner++]);
                }
            const bool own = a_.loss.sum_is_free(i, S);
            if (inner + own < 2 || inner == 0 || (Loss::curved_dual && !own)) continue;
            const size_t at = cls_.size();
            cls_.push_back(a_.y[i]);
            cls_.insert(cls_.end(), r.cls, r.cls + inner);
            a_.model.products(i, &cls_[at], inner + 1, x.data());
            a_.spend(a_.geo.rows.cost(i) * (inner + 1));
            sum_.push_back(S);
            curvature_.push_back(own ? a_.loss.dual_curvature(i, S) : 0.0);
            for (int32_t j = 0; j <= inner; ++j) {
                const int32_t l = cls_[at + j];
                gradient_.push_back((j == 0 ? a_.loss.dual_slope(i, S) : 0.0) - a_.model.score(i, l, x[j]));
                product_.push_back(a_.model.with_direction(i, l, x[j]));
                metric_.push_back(a_.model.metric(i, l, x[j]) + (j == 0 ? curvature_.back() : 0.0));
            }
            sample_.push_back(i);
            first_.push_back(at + !own);
            start_.push_back(cls_.size());
        }
    }

    // z = r / metric on the free coordinates, with sum zero for each sample; returns r'z.
    double precondition(const std::vector<double>& r, std::vector<double>& z) const {
        double rz = 0;
        for (size_t s = 0; s < sample_.size(); ++s) {
            double held = 0, give = 0;
            for (size_t e = first_[s]; e < start_[s + 1]; ++e) {
                held += r[e] / metric_[e];
                give += 1 / metric_[e];
            }
            for (size_t e = first_[s]; e < start_[s + 1]; ++e) {
                z[e] = (r[e] - held / give) / metric_[e];
                rz += r[e] * z[e];
            }
        }
        return rz;
    }

    // U = sum x_i e_i', along_l = v_l'u_l; the coordinates of sample s from `first[s]` on.
    void gather(const std::vector<double>& e, const std::vector<size_t>& first) {
        U_.clear();
        std::fill(along_.begin(), along_.end(), 0.0);
        for (size_t s = 0; s < sample_.size(); ++s) {
            const size_t at = first[s], m = start_[s + 1] - at;
            U_.add(sample_[s], &cls_[at], static_cast<int32_t>(m), &e[at]);
            a_.spend(a_.geo.rows.cost(sample_[s]) * static_cast<double>(m));
            for (size_t j = at; j < at + m; ++j) along_[cls_[j]] += e[j] * product_[j];
        }
    }
    // u_l'x_i for these coordinates.
    void read_products(const std::vector<size_t>& first, std::vector<double>& out) {
        for (size_t s = 0; s < sample_.size(); ++s) {
            const size_t at = first[s], m = start_[s + 1] - at;
            U_.products(sample_[s], &cls_[at], static_cast<int32_t>(m), &out[at]);
            a_.spend(a_.geo.rows.cost(sample_[s]) * static_cast<double>(m));
        }
    }

    double conjugate_gradients() {
        const size_t size = cls_.size();
        x_.assign(size, 0.0);
        residual_ = gradient_;
        for (auto* v : {&p_, &z_, &Hp_}) v->assign(size, 0.0);
        std::vector<double> coupling(a_.k);
        double rz = precondition(residual_, p_), gained = 0, best = 0;
        for (int step = 0; step < steps_ && rz > 0; ++step) {
            gather(p_, first_);
            double R = 0, square = 0;
            for (int32_t l = 0; l < a_.k; ++l) {
                R += a_.model.weight(l) * along_[l];
                square += a_.model.weight(l) * a_.model.length2(l);
            }
            R /= square;
            for (int32_t l = 0; l < a_.k; ++l) {
                const double n2 = a_.model.length2(l);
                coupling[l] = n2 > 0 ? a_.model.weight(l) * (q_ - 2) * (along_[l] / n2 - R) : 0.0;
            }
            read_products(first_, Hp_);
            double curvature = 0;
            for (size_t s = 0; s < sample_.size(); ++s)
                for (size_t e = first_[s]; e < start_[s + 1]; ++e) {
                    const int32_t l = cls_[e];
                    Hp_[e] = a_.model.weight(l) * Hp_[e] + coupling[l] * product_[e] +
                             a_.model.multiplier_score(U_, sample_[s], l);
                    if (e == start_[s]) Hp_[e] += curvature_[s] * p_[e];
                    curvature += Hp_[e] * p_[e];
                }
            if (!(curvature > 0)) break;
            const double length = rz / curvature, gain = 0.5 * length * rz;
            gained += gain;
            best = std::max(best, gain);
            for (size_t e = 0; e < size; ++e) {
                x_[e] += length * p_[e];
                residual_[e] -= length * Hp_[e];
            }
            if (gain < tuning_.stop_cg_below * best) break;
            const double next = precondition(residual_, z_), beta = next / rz;
            rz = next;
            for (size_t e = 0; e < size; ++e) p_[e] = z_[e] + beta * p_[e];
        }
        return gained;
    }

    // Project alpha + t x, then search along the projected step; returns the gain of the dual.
    double try_step(double t) {
        change_.resize(cls_.size());
        std::vector<double> d(a_.k), target(a_.k);
        double rise = 0;
        for (size_t s = 0; s < sample_.size(); ++s) {
            const double* alpha = a_.duals[sample_[s]].alpha;
            const size_t at = start_[s];
            const int32_t m = static_cast<int32_t>(start_[s + 1] - at) - 1;
            if constexpr (Loss::curved_dual) {
                keep_feasible(s, t, alpha, m, target.data());
            } else {  // `block` with curvature 1 and d = 1 + t (x_l - x_y) is the projection on the constraints
                for (int32_t j = 0; j < m; ++j) d[j] = 1 + t * (x_[at + 1 + j] - x_[at]);
                a_.loss.block(sample_[s], 1.0, d.data(), alpha, m, target.data());
            }
            change_[at] = 0;
            for (int32_t j = 0; j < m; ++j) {
                change_[at + 1 + j] = alpha[j] - target[j];
                change_[at] -= change_[at + 1 + j];
            }
            for (size_t e = at; e < start_[s + 1]; ++e) rise += change_[e] * gradient_[e];
        }
        if (!(rise > 0)) return 0;
        gather(change_, start_);
        read_products(start_, Hp_);
        std::fill(squares_.begin(), squares_.end(), 0.0);
        for (size_t e = 0; e < cls_.size(); ++e) squares_[cls_[e]] += change_[e] * Hp_[e];
        double free = 0, linear = 0;
        for (int32_t l = 0; l < a_.k; ++l) {
            free += a_.model.multiplier_curvature(U_, l);
            linear += a_.model.weight(l) * along_[l];
            squares_[l] = std::max(squares_[l], 0.0) + a_.model.direction_move2(U_, l);
        }
        // The slope of the concave dual along the step falls: bisection.
        auto slope = [&](double s) {
            return rise + linear + loss_bend(s).slope - s * free - a_.model.slope(along_, squares_, s);
        };
        length_ = 1;
        if (slope(1) < 0) {
            double lo = 0, hi = 1;
            for (int half = 0; half < 30; ++half) {
                length_ = 0.5 * (lo + hi);
                (slope(length_) < 0 ? hi : lo) = length_;
            }
        }
        return length_ * (rise + linear) + loss_bend(length_).value - 0.5 * length_ * length_ * free -
               a_.model.increase(along_, squares_, length_);
    }

    // Where the sum of the duals has a dual that bends: the step with negative duals cut off, short of the limit.
    void keep_feasible(size_t s, double t, const double* alpha, int32_t m, double* target) const {
        double before = 0, sum = 0;
        for (int32_t j = 0; j < m; ++j) {
            before += alpha[j];
            sum += target[j] = std::max(0.0, alpha[j] - t * x_[start_[s] + 1 + j]);
        }
        const double rest = sum_[s] - before, limit = 0.5 * (a_.loss.sum_limit(sample_[s]) + sum_[s]);
        if (!(rest + sum > limit)) return;
        for (int32_t j = 0; j < m; ++j) target[j] *= (limit - rest) / sum;
    }

    // What the duals of the losses have beyond their linear parts after a step of this length, and its slope.
    struct Bend {
        double value = 0, slope = 0;
    };
    Bend loss_bend(double length) const {
        Bend bend;
        if constexpr (Loss::curved_dual)
            for (size_t s = 0; s < sample_.size(); ++s) {
                const int64_t i = sample_[s];
                const double change = change_[start_[s]], S = sum_[s];
                if (change == 0) continue;
                const double moved = std::max(0.0, S + length * change), slope = a_.loss.dual_slope(i, S);
                bend.value += a_.loss.dual(i, &moved, 1) - a_.loss.dual(i, &S, 1) - length * change * slope;
                bend.slope += (a_.loss.dual_slope(i, moved) - slope) * change;
            }
        return bend;
    }

    void accept() {
        for (size_t s = 0; s < sample_.size(); ++s) {
            double* alpha = a_.duals[sample_[s]].alpha;
            for (size_t e = start_[s] + 1; e < start_[s + 1]; ++e, ++alpha)
                *alpha = std::max(0.0, *alpha - length_ * change_[e]);
        }
        a_.model.add_scaled(U_, along_, squares_, length_);
    }

    BlockNormVectors U_;
    const double q_;
    std::vector<int64_t> sample_;
    std::vector<size_t> start_, first_;
    std::vector<int32_t> cls_;
    std::vector<double> gradient_, product_, metric_;  // of the dual in c_il; v_l'x_i; diagonal of the Hessian
    std::vector<double> sum_, curvature_;              // of the samples: of all duals, of the dual in that sum
    std::vector<double> residual_, x_, p_, z_, Hp_, change_;
    std::vector<double> along_, squares_;  // v_l'u_l, ||u_l||^2
    double length_ = 0;
};

}  // namespace skm

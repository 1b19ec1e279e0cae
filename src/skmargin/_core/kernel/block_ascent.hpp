// Block ascent on the working set of a kernel machine.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/random.hpp"
#include "base/sums.hpp"
#include "kernel/momentum.hpp"
#include "kernel/samples.hpp"

namespace skm {

struct Ascended {
    double gap = 0;
    int64_t passes = 0, updates = 0;
};

// Over-relaxation: a block is solved with curvature / omega, and the dual rises for every omega < 2.
constexpr double omega = 1.3;
constexpr int64_t crawl = 100;  // passes without the target after which they gather momentum
constexpr int64_t mend = 40;    // passes, or a quarter of all, for what the end of momentum breaks
constexpr double quiet = 0.5;   // of the mean gap: a sample below rests,
constexpr double hushed = 0.3;  // and with momentum
constexpr int64_t rest = 5;     // passes that leave a sample out
constexpr double wake = 0.05;   // an intercept that moved so far, beside margins of one, is news to all of them
constexpr int window = 5;       // points in a mean
constexpr double reach = 4;     // points belong to a mean, which costs time, with gaps up to so many targets
constexpr int patience = 50;    // passes from one check to the next at most

// The point of block ascent on a working set, and the mean of the points after the last passes.
//
// Long before the dual has stopped rising, its points wander about the solution, and the loss, which has kinks there,
// feels every step: the primal objective of a point is further from the optimum than its dual by a factor of ten to a
// hundred.  The mean of some points is as feasible as they are, its scores are the mean of theirs, and it wanders less.
template <class T>
class MeanPoint {
  public:
    MeanPoint(const KernelSamples<T>& samples, double* b, double* tot)
        : F_(samples.F, samples.k * samples.ld), alpha_(samples.alpha, samples.n * samples.k), b_(b, samples.k),
          tot_(tot, samples.k) {}

    int count() const { return count_; }
    void add() {
        ++count_;
        each([](auto& part) { part.add(); });
    }
    // The point becomes the mean, or again what it was.
    void swap() {
        each([this](auto& part) { part.swap(1.0 / count_); });
        count_ = 1;
    }
    void clear() {
        count_ = 0;
        each([](auto& part) { std::fill(part.sum.begin(), part.sum.end(), 0); });
    }

  private:
    template <class U>
    struct Part {
        Part(U* point, int64_t size) : now(point), sum(size) {}
        void add() {
            for (size_t j = 0; j < sum.size(); ++j) sum[j] += now[j];
        }
        void swap(double scale) {
            for (size_t j = 0; j < sum.size(); ++j) {
                const U mean = static_cast<U>(scale * sum[j]);
                sum[j] = now[j];
                now[j] = mean;
            }
        }
        U* now;
        std::vector<U> sum;
    };
    template <class Action>
    void each(Action action) {
        action(F_), action(alpha_), action(b_), action(tot_);
    }
    Part<T> F_;
    Part<double> alpha_, b_, tot_;
    int count_ = 0;
};

// Block ascent on the working set, one pass at least, until its gaps sum to a target.
//
//   K, row                             kernel values, ld columns as in F; row[i] is the row of sample i (none: i),
//                                      samples.column its column; curvature[i] = K_ii
//   lengths, norm                      what longer class vectors save over all samples at the start; sum_l c_l'K c_l
//   b, tot, t                          intercept without penalty: blocks see F + b + t tot and curvature K_ii + t, and
//                                      b += t tot after every pass (t = 0: none)
//
// A pass visits the samples in fresh random order and moves those whose gap exceeds tau, a share of the mean gap of
// the pass before.  The others rest for the next passes, and their gaps count as they were: those that move settle with
// each other first.  The intercept listens to all of them, so they wake when it has moved.  Only a check, the exact sum
// of all gaps of the point or of the mean of the last points, can end the loop; it wakes all.
//
// Passes that have not met the target for long go on with momentum (kernel/momentum.hpp); blocks then move its point z,
// and after every pass the samples have the scores and duals of x.
template <class T, class Loss>
class KernelAscent {
  public:
    KernelAscent(const KernelSamples<T>& samples, const Loss& loss, const T* K, const int64_t* row,
                 const double* curvature, double* b, double* tot, double t, Lengths& lengths, double norm,
                 uint64_t seed, Poll& poll)
        : s_(samples), loss_(loss), K_(K), row_(row), curvature_(curvature), b_(b), tot_(tot), t_(t), lengths_(lengths),
          outside_(lengths.saved), norm_(norm), random_(seed), poll_(poll), moves_(samples), view_(moves_, loss),
          point_(samples, loss), mean_(samples, b, tot), shift_(samples.k), next_(samples.k), coef_(2 * samples.k),
          cls_(2 * samples.k), share_(samples.n), rests_(samples.n), order_(samples.n), start_(b, b + samples.k),
          asked_(start_) {}

    Ascended run(double target, int64_t max_passes) {
        result_.gap = full_gap();
        for (size_t j = 0; j < outside_.size(); ++j) outside_[j] -= lengths_.saved[j];
        tau_ = quiet * result_.gap / static_cast<double>(s_.n);
        double best = infinity;
        int64_t best_pass = 0;
        do {  // a round without a pass would come again, and again
            if (accelerates && !met_ && result_.passes == crawl) gather();
            const double seen = pass();
            if (!momentum_) result_.gap = seen;
            if (drift_ > 1) {  // samples outside the working set have a say in b: ask them
                result_.gap = std::min(seen, target);
                break;
            }
            const bool last = (!momentum_ && seen <= target) || result_.passes == max_passes;
            const bool due = last || result_.passes % (momentum_ || met_ ? window : patience) == 0;
            if (due || seen <= reach * target) mean_.add();
            if (!due && mean_.count() < window) continue;
            check(target, last);
            if (momentum_ && result_.gap <= target) {
                settle();
                max_passes = std::min(max_passes, result_.passes + std::max(mend, result_.passes / 4));
            } else if (momentum_ && momentum_->spent(dual_, result_.gap, result_.passes)) {
                momentum_->begin(result_.passes);
            }
            // The number type may not resolve the target: no progress over many passes ends the loop as well.
            if (result_.gap < 0.9 * best) {
                best = result_.gap;
                best_pass = result_.passes;
            } else if (result_.passes - best_pass >= 1000) {
                break;
            }
        } while (result_.gap > target && result_.passes < max_passes);
        if (met_ && result_.gap > target) {
            met_->swap();
            result_.gap = target;
        }
        return result_;
    }

  private:
    // The squared loss of the band has no flat directions.
    static constexpr bool accelerates = Loss::bounded;

    // From here on, passes have momentum.
    void gather() {
        momentum_.emplace(s_, tot_, result_.passes);
        moves_ = momentum_->samples();
    }

    // Momentum ends, the target is met.  Its means of duals are next to bounds where the points z are at them: samples
    // go there where D rises, and the next working sets and the machine are smaller.  The loss feels these steps, but
    // some plain passes mend that; or else the point that has met the target comes back.
    void settle() {
        met_.emplace(s_, b_, tot_);
        met_->add();
        const std::vector<double> z = momentum_->duals();
        momentum_.reset();
        moves_ = s_;
        set_shift();
        for (int64_t i = 0; i < s_.n; ++i) {
            view_.load(i, shift_.data());
            poll_.work(8.0 * s_.k);
            for (int32_t j = 0; j < view_.m; ++j) next_[j] = z[i * s_.k + view_.cls(j)];
            if (loss_.at_vertex(i, next_.data(), view_.m) && rise(i) > 0) take(i);
        }
        result_.gap = best_gap();
        tau_ = quiet * result_.gap / static_cast<double>(s_.n);
    }
    // What the next duals of the sample in view add to D.
    double rise(int64_t i) const {
        double sum = 0, squares = 0, product = 0;
        for (int32_t j = 0; j < view_.m; ++j) {
            const double step = next_[j] - view_.alpha[j];
            sum += step;
            squares += step * step;
            product += step * view_.d[j];
        }
        return loss_.dual(i, next_.data(), view_.m) - view_.dual - product -
               0.5 * (curvature_[i] + t_) * (sum * sum + squares);
    }

    // One visit of all samples that do not rest; returns the sum of the gaps that it saw.
    double pass() {
        ++result_.passes;
        double seen = 0;
        uint32_t awake = 0;
        for (int64_t i = 0; i < s_.n; ++i) {  // without branches, which no processor could guess
            order_[awake] = static_cast<int32_t>(i);
            const bool rested = rests_[i] < result_.passes;
            seen += rested ? 0.0 : share_[i];
            awake += rested;
        }
        random_.shuffle(order_.begin(), awake);
        for (uint32_t place = 0; place < awake; ++place) {
            const int64_t i = order_[place];
            const double gap = load(i);
            seen += share_[i] = gap;
            poll_.work(8.0 * s_.k);
            if (gap <= tau_) rests_[i] = result_.passes + rest;
            else move(i);
            if (momentum_) momentum_->next();
        }
        if (momentum_) momentum_->publish();
        if (t_ > 0) listen();
        tau_ = (momentum_ ? hushed : quiet) * seen / static_cast<double>(s_.n);
        return seen;
    }

    double load(int64_t i) {
        if (!momentum_) return view_.load(i, shift_.data());
        if (t_ > 0) momentum_->shift(b_, t_, shift_.data());
        return view_.load(i, shift_.data(), momentum_->weight());
    }

    // Solves the block of the sample that is in view.
    void move(int64_t i) {
        const double stride = momentum_ ? momentum_->stride() : omega;
        loss_.block(i, (curvature_[i] + t_) / stride, view_.d.data(), view_.alpha.data(), view_.m, next_.data());
        take(i);
    }
    // The duals of the sample in view become the next ones.
    void take(int64_t i) {
        double* alpha = moves_.alpha + i * s_.k;
        double own = 0;
        int32_t changed = 0;
        for (int32_t j = 0; j < view_.m; ++j) {
            const double step = next_[j] - view_.alpha[j];
            if (step == 0) continue;
            cls_[changed] = view_.cls(j);
            alpha[cls_[changed]] = next_[j];
            coef_[changed++] = -step;
            own += step;
        }
        if (changed == 0) return;
        cls_[changed] = s_.y[i];
        coef_[changed++] = own;
        const int32_t sums = momentum_ ? momentum_->step(i, cls_.data(), coef_.data(), changed) : changed;
        const T* values = K_ + (row_ ? row_[i] : i) * s_.ld;
        simd_.axpys(values, s_.ld, moves_.F, s_.ld, cls_.data(), sums, coef_.data());
        ++result_.updates;
        poll_.work(2.0 * sums * static_cast<double>(s_.ld));
        if (t_ > 0 && !momentum_)
            for (int32_t j = 0; j < changed; ++j) {
                tot_[cls_[j]] += coef_[j];
                shift_[cls_[j]] = b_[cls_[j]] + t_ * tot_[cls_[j]];
            }
    }

    // A step of the multipliers.
    void listen() {
        double moved = 0, squares = 0;
        for (int32_t l = 0; l < s_.k; ++l) {
            b_[l] += t_ * tot_[l];
            squares += tot_[l] * tot_[l];
            drift_ = std::max(drift_, std::abs(b_[l] - start_[l]));
            moved = std::max(moved, std::abs(b_[l] - asked_[l]));
        }
        if (moved > wake) {
            wake_all();
            asked_.assign(b_, b_ + s_.k);
        }
        set_shift();
        if (momentum_) momentum_->lower(t_ * squares);
    }

    // The exact gap of the mean of the last points, or of the point where that misses the target.
    void check(double target, bool last) {
        wake_all();
        const bool several = mean_.count() > 1;
        mean_.swap();
        result_.gap = best_gap();
        if (result_.gap > target) {
            mean_.swap();
            if (several && (last || momentum_)) result_.gap = best_gap();
            set_shift();
        }
        mean_.clear();
    }

    // Exact sum of the gaps, plus with an intercept the dual weight that is out of balance; D, with multipliers.
    double full_gap() {
        double sum = 0;
        dual_ = 0;
        set_shift();
        lengths_.clear();
        for (int64_t i = 0; i < s_.n; ++i) {
            sum += point_.load(i, shift_.data());
            dual_ += point_.dual - 0.5 * point_.product;
            lengths_.add(loss_, i, point_.d.data(), point_.m, point_.value);
            poll_.work(8.0 * s_.k);
        }
        if (t_ > 0)
            for (int32_t l = 0; l < s_.k; ++l) {
                sum += std::abs(tot_[l]);
                dual_ -= 0.5 * b_[l] * tot_[l];
            }
        return sum;
    }
    // With class vectors of the best length.
    double best_gap() {
        const double gap = full_gap();
        return gap + lengths_.change(norm_, outside_);
    }

    void set_shift() {
        for (int32_t l = 0; l < s_.k; ++l) shift_[l] = b_[l] + t_ * tot_[l];
    }
    void wake_all() { std::fill(rests_.begin(), rests_.end(), int64_t{0}); }

    const KernelSamples<T>& s_;
    const Loss& loss_;
    const Simd<T>& simd_ = simd<T>();
    const T* K_;
    const int64_t* row_;
    const double* curvature_;
    double *b_, *tot_;
    const double t_;
    Lengths& lengths_;
    std::vector<double> outside_;  // what longer class vectors save beside the working set
    const double norm_;
    Random random_;
    Poll& poll_;
    KernelSamples<T> moves_;     // the point that blocks move,
    SampleView<T, Loss> view_;   // a sample of it,
    SampleView<T, Loss> point_;  // and of the point that is measured
    std::optional<Momentum<T>> momentum_;
    MeanPoint<T> mean_;
    std::optional<MeanPoint<T>> met_;  // the target, with momentum
    std::vector<double> shift_, next_, coef_;
    std::vector<int32_t> cls_;
    std::vector<double> share_;        // gaps as they were last seen
    std::vector<int64_t> rests_;       // up to this pass
    std::vector<int32_t> order_;       // of visits
    const std::vector<double> start_;  // the intercepts at the start,
    std::vector<double> asked_;        // and when all samples were asked last
    double drift_ = 0;                 // how far the intercepts have been from the start
    double tau_ = 0, dual_ = 0;
    Ascended result_;
};

}  // namespace skm

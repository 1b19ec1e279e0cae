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
#include "tuning.hpp"

namespace skm {

struct AscentStats {
    double gap = 0;
    int64_t passes = 0, updates = 0;
};

// The point of block ascent on a working set, and the mean of the points after the last passes.
//
// Long before the dual has stopped rising its points oscillate about the solution, and the loss, which has kinks there,
// grows with every deviation: the primal objective of a point is further from the optimum than its dual by a factor of
// ten to a hundred.  The mean of some points is as feasible as they are, its scores are the mean of theirs, and its
// deviation is smaller.
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
    // Exchanges the point with the mean; a second call takes it back.
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
// A block is solved with its curvature divided by the over-relaxation; the dual rises for every value below 2.
// A pass visits the samples in fresh random order and moves those whose gap exceeds a threshold, a share of the mean
// gap of the pass before.  The others are skipped in the next passes, and their gaps count as they were last seen.  The
// intercept depends on all samples, so all are visited again when it has moved.  Only a check, the exact sum of all
// gaps of the point or of the mean of the last points, can end the loop; it resets the skips too.
//
// Passes that have not met the target for long go on with momentum (kernel/momentum.hpp); block steps then move its
// point z, and after every pass the samples have the scores and duals of its point x.
template <class T, BlockLoss Loss>
class KernelAscent {
  public:
    KernelAscent(const KernelSamples<T>& samples, const Loss& loss, const T* K, const int64_t* row,
                 const double* curvature, double* b, double* tot, double t, StretchSavings& lengths, double norm,
                 uint64_t seed, InterruptPoll& poll, const KernelAscentTuning& tuning)
        : s_(samples), loss_(loss), K_(K), row_(row), curvature_(curvature), b_(b), tot_(tot), t_(t), lengths_(lengths),
          outside_(lengths.saved), norm_(norm), random_(seed), poll_(poll), tuning_(tuning), moving_(samples),
          view_(moving_, loss), point_(samples, loss), mean_(samples, b, tot), shift_(samples.k), next_(samples.k),
          coef_(2 * samples.k), cls_(2 * samples.k), last_gap_(samples.n), skip_until_(samples.n), order_(samples.n),
          start_(b, b + samples.k), intercept_at_reset_(start_) {}

    AscentStats run(double target, int64_t max_passes) {
        begin();
        do {  // one pass at least: a call that changes nothing would be repeated for ever
            if (can_accelerate && !target_point_ && result_.passes == tuning_.momentum_after) start_momentum();
            const double seen = pass();
            if (!momentum_) result_.gap = seen;
            if (drift_ > 1) {  // b has moved by a margin: samples outside the working set matter now
                result_.gap = std::min(seen, target);
                break;
            }
            const bool last = (!momentum_ && seen <= target) || result_.passes == max_passes;
            if (!check_is_due(seen, target, last)) continue;
            check(target, last);
            if (momentum_) max_passes = adjust_momentum(target, max_passes);
            if (stalled()) break;
        } while (result_.gap > target && result_.passes < max_passes);
        if (target_point_ && result_.gap > target) {
            target_point_->swap();
            result_.gap = target;
        }
        return result_;
    }

  private:
    // The squared loss of ODM has no flat directions: momentum is of no use.
    static constexpr bool can_accelerate = Loss::bounded;

    // After a check momentum ends at the target, where some plain passes settle, and restarts where it overshoots.
    // Returns the new limit of the passes.
    int64_t adjust_momentum(double target, int64_t max_passes) {
        if (result_.gap <= target) {
            end_momentum();
            return std::min(max_passes, result_.passes + std::max(tuning_.settle_passes, result_.passes / 4));
        }
        if (momentum_->overshoots(dual_, result_.gap, result_.passes)) momentum_->begin(result_.passes);
        return max_passes;
    }

    void begin() {
        result_.gap = full_gap();
        for (size_t j = 0; j < outside_.size(); ++j) outside_[j] -= lengths_.saved[j];
        skip_threshold_ = tuning_.skip_below * result_.gap / static_cast<double>(s_.n);
    }

    // Whether the point is to be checked now; points near the target enter the mean that is checked.
    bool check_is_due(double seen, double target, bool last) {
        const int interval = momentum_ || target_point_ ? tuning_.mean_window : tuning_.check_interval;
        const bool due = last || result_.passes % interval == 0;
        if (due || seen <= tuning_.mean_max_targets * target) mean_.add();
        return due || mean_.count() >= tuning_.mean_window;
    }

    // The number type may not resolve the target: no progress over many passes ends the loop as well.
    bool stalled() {
        if (result_.gap < 0.9 * best_gap_) {
            best_gap_ = result_.gap;
            best_pass_ = result_.passes;
            return false;
        }
        return result_.passes - best_pass_ >= tuning_.stall_passes;
    }

    // From here on passes have momentum.
    void start_momentum() {
        momentum_.emplace(s_, tot_, result_.passes, tuning_);
        moving_ = momentum_->samples();
    }

    // Momentum ends: the target is met.  Its point x, a mean of points z, has duals next to bounds at which those of z
    // are: samples move there where D rises, which makes the next working sets and the result sparser.  These steps
    // raise the loss, which some plain passes repair; if they do not, the point that has met the target is restored.
    void end_momentum() {
        target_point_.emplace(s_, b_, tot_);
        target_point_->add();
        const std::vector<double> z = momentum_->duals();
        momentum_.reset();
        moving_ = s_;
        set_shift();
        for (int64_t i = 0; i < s_.n; ++i) {
            view_.load(i, shift_.data());
            poll_.count_work(8.0 * s_.k);
            for (int32_t j = 0; j < view_.m; ++j) next_[j] = z[i * s_.k + view_.cls(j)];
            if (loss_.at_vertex(i, next_.data(), view_.m) && rise(i) > 0) take(i);
        }
        result_.gap = stretched_gap();
        skip_threshold_ = tuning_.skip_below * result_.gap / static_cast<double>(s_.n);
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

    // Visits all samples that are not skipped; returns the sum of the gaps as they were seen.
    double pass() {
        ++result_.passes;
        double seen = 0;
        uint32_t visited = 0;
        for (int64_t i = 0; i < s_.n; ++i) {  // without branches: they would be mispredicted
            order_[visited] = static_cast<int32_t>(i);
            const bool visits = skip_until_[i] < result_.passes;
            seen += visits ? 0.0 : last_gap_[i];
            visited += visits;
        }
        random_.shuffle(order_.begin(), visited);
        for (uint32_t place = 0; place < visited; ++place) {
            const int64_t i = order_[place];
            const double gap = load(i);
            seen += last_gap_[i] = gap;
            poll_.count_work(8.0 * s_.k);
            if (gap <= skip_threshold_) skip_until_[i] = result_.passes + tuning_.skip_passes;
            else move(i);
            if (momentum_) momentum_->next();
        }
        if (momentum_) momentum_->publish();
        if (t_ > 0) step_multipliers();
        skip_threshold_ =
            (momentum_ ? tuning_.skip_below_momentum : tuning_.skip_below) * seen / static_cast<double>(s_.n);
        return seen;
    }

    double load(int64_t i) {
        if (!momentum_) return view_.load(i, shift_.data());
        if (t_ > 0) momentum_->shift(b_, t_, shift_.data());
        return view_.load(i, shift_.data(), momentum_->weight());
    }

    // Solves the block of the sample that is in view.
    void move(int64_t i) {
        const double stride = momentum_ ? momentum_->stride() : tuning_.over_relaxation;
        loss_.block(i, (curvature_[i] + t_) / stride, view_.d.data(), view_.alpha.data(), view_.m, next_.data());
        take(i);
    }
    // The duals of the sample in view become the next ones.
    void take(int64_t i) {
        double* alpha = moving_.alpha + i * s_.k;
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
        simd_.axpys(values, s_.ld, moving_.F, s_.ld, cls_.data(), sums, coef_.data());
        ++result_.updates;
        poll_.count_work(2.0 * sums * static_cast<double>(s_.ld));
        if (t_ > 0 && !momentum_)
            for (int32_t j = 0; j < changed; ++j) {
                tot_[cls_[j]] += coef_[j];
                shift_[cls_[j]] = b_[cls_[j]] + t_ * tot_[cls_[j]];
            }
    }

    // A step of the multipliers.
    void step_multipliers() {
        double moved = 0, squares = 0;
        for (int32_t l = 0; l < s_.k; ++l) {
            b_[l] += t_ * tot_[l];
            squares += tot_[l] * tot_[l];
            drift_ = std::max(drift_, std::abs(b_[l] - start_[l]));
            moved = std::max(moved, std::abs(b_[l] - intercept_at_reset_[l]));
        }
        if (moved > tuning_.intercept_news) {
            visit_all_again();
            intercept_at_reset_.assign(b_, b_ + s_.k);
        }
        set_shift();
        if (momentum_) momentum_->shift_dual(t_ * squares);
    }

    // The exact gap of the mean of the last points, or of the point where that misses the target.
    void check(double target, bool last) {
        visit_all_again();
        const bool is_mean = mean_.count() > 1;
        mean_.swap();
        result_.gap = stretched_gap();
        if (result_.gap > target) {
            mean_.swap();
            if (is_mean && (last || momentum_)) result_.gap = stretched_gap();
            set_shift();
        }
        mean_.clear();
    }

    // Exact sum of the gaps, plus with an intercept the violation of its constraint; also D, with multipliers.
    double full_gap() {
        double sum = 0;
        dual_ = 0;
        set_shift();
        lengths_.clear();
        for (int64_t i = 0; i < s_.n; ++i) {
            sum += point_.load(i, shift_.data());
            dual_ += point_.dual - 0.5 * point_.product;
            lengths_.add(loss_, i, point_.d.data(), point_.m, point_.value);
            poll_.count_work(8.0 * s_.k);
        }
        if (t_ > 0)
            for (int32_t l = 0; l < s_.k; ++l) {
                sum += std::abs(tot_[l]);
                dual_ -= 0.5 * b_[l] * tot_[l];
            }
        return sum;
    }
    // With class vectors of the best length.
    double stretched_gap() {
        const double gap = full_gap();
        return gap + lengths_.change(norm_, outside_);
    }

    void set_shift() {
        for (int32_t l = 0; l < s_.k; ++l) shift_[l] = b_[l] + t_ * tot_[l];
    }
    void visit_all_again() { std::fill(skip_until_.begin(), skip_until_.end(), int64_t{0}); }

    const KernelSamples<T>& s_;
    const Loss& loss_;
    const Simd<T>& simd_ = simd<T>();
    const T* K_;
    const int64_t* row_;
    const double* curvature_;
    double *b_, *tot_;
    const double t_;
    StretchSavings& lengths_;
    std::vector<double> outside_;  // what longer class vectors save outside the working set
    const double norm_;
    Random random_;
    InterruptPoll& poll_;
    const KernelAscentTuning tuning_;
    KernelSamples<T> moving_;    // the point that blocks move,
    SampleView<T, Loss> view_;   // a sample of it,
    SampleView<T, Loss> point_;  // and of the point that is measured
    std::optional<Momentum<T>> momentum_;
    MeanPoint<T> mean_;
    std::optional<MeanPoint<T>> target_point_;  // where momentum met the target
    std::vector<double> shift_, next_, coef_;
    std::vector<int32_t> cls_;
    std::vector<double> last_gap_;            // gaps as they were last seen
    std::vector<int64_t> skip_until_;         // up to this pass
    std::vector<int32_t> order_;              // of visits
    const std::vector<double> start_;         // the intercepts at the start,
    std::vector<double> intercept_at_reset_;  // and at the last reset of the skips
    double drift_ = 0;                        // how far the intercepts have been from the start
    double skip_threshold_ = 0, dual_ = 0;
    double best_gap_ = infinity;  // of the checks,
    int64_t best_pass_ = 0;       // after so many passes
    AscentStats result_;
};

}  // namespace skm

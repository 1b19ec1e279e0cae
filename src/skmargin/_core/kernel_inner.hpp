// Block ascent on the working set of a kernel machine.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernel_blocks.hpp"
#include "random.hpp"

namespace skm {

struct InnerResult {
    double gap = 0;
    int64_t passes = 0, updates = 0;
};

// Over-relaxation: a block is solved with curvature / omega, and the dual rises for every omega < 2.
constexpr double omega = 1.3;
constexpr int64_t rest = 5;    // passes that leave a sample out
constexpr double wake = 0.05;  // an intercept that moved so far, beside margins of one, is news to all of them
constexpr int window = 5;      // points in a mean
constexpr double reach = 4;    // points belong to a mean, which costs time, with gaps up to so many targets
constexpr int patience = 50;   // passes from one check to the next at most

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

// Block ascent on the working set until its gaps sum to `target`.
//
//   K, row                             kernel values, ld columns as in F; row[i] is the row of sample i (none: i),
//                                      samples.column its column; curvature[i] = K_ii
//   lengths, norm                      what longer class vectors save over all samples at the start; sum_l c_l'K c_l
//   b, tot, t                          intercept without penalty: blocks see F + b + t tot and curvature K_ii + t, and
//                                      b += t tot after every pass (t = 0: none)
//
// A pass visits the samples in fresh random order and moves those whose gap exceeds tau, half of the mean gap of the
// pass before.  The others rest for the next passes, and their gaps count as they were: those that move settle with
// each other first.  The intercept listens to all of them, so they wake when it has moved.  Only a check, the exact sum
// of all gaps of the point or of the mean of the last points, can end the loop; it wakes all.
template <class T, class Loss>
InnerResult kernel_inner(const KernelSamples<T>& samples, const Loss& loss, const T* K, const int64_t* row,
                         const double* curvature, double* b, double* tot, double t, Lengths& lengths, double norm,
                         double target, int64_t max_passes, uint64_t seed, Poll& poll) {
    const int32_t k = samples.k;
    const int64_t n = samples.n;
    const Simd<T>& vector = simd<T>();
    SampleView<T, Loss> view(samples, loss);
    std::vector<double> shift(k), next(k), coef(k);
    std::vector<int32_t> cls(k);
    std::vector<double> share(n);
    std::vector<int64_t> rests(n);  // up to this pass
    std::vector<int32_t> order(n);
    Random random(seed);
    InnerResult result;

    const auto set_shift = [&] {
        for (int32_t l = 0; l < k; ++l) shift[l] = b[l] + t * tot[l];
    };
    // Exact sum of the gaps, plus with an intercept the dual weight that is out of balance.
    const auto full_gap = [&] {
        double sum = 0;
        set_shift();
        lengths.clear();
        for (int64_t i = 0; i < n; ++i) {
            sum += view.load(i, shift.data());
            lengths.add(loss, i, view.d.data(), view.m, view.value);
            poll.work(8.0 * k);
        }
        if (t > 0)
            for (int32_t l = 0; l < k; ++l) sum += std::abs(tot[l]);
        return sum;
    };

    std::vector<double> outside = lengths.saved;
    result.gap = full_gap();
    for (size_t j = 0; j < outside.size(); ++j) outside[j] -= lengths.saved[j];
    // With class vectors of the best length.
    const auto best_gap = [&] {
        const double gap = full_gap();
        return gap + lengths.change(norm, outside);
    };
    MeanPoint<T> mean(samples, b, tot);
    const std::vector<double> start(b, b + k);
    std::vector<double> asked = start;
    double drift = 0;
    double tau = 0.5 * result.gap / static_cast<double>(n), best = infinity;
    int64_t best_pass = 0;
    while (result.gap > target && result.passes < max_passes) {
        ++result.passes;
        double seen = 0;
        uint32_t awake = 0;
        for (int64_t i = 0; i < n; ++i) {  // without branches, which no processor could guess
            order[awake] = static_cast<int32_t>(i);
            const bool rested = rests[i] < result.passes;
            seen += rested ? 0.0 : share[i];
            awake += rested;
        }
        random.shuffle(order.begin(), awake);
        for (uint32_t place = 0; place < awake; ++place) {
            const int64_t i = order[place];
            const double gap = view.load(i, shift.data());
            seen += share[i] = gap;
            poll.work(8.0 * k);
            if (gap <= tau) {
                rests[i] = result.passes + rest;
                continue;
            }
            loss.block(i, (curvature[i] + t) / omega, view.d.data(), view.alpha.data(), view.m, next.data());
            const int32_t y = samples.y[i];
            double* alpha = samples.alpha + i * k;
            double own = 0;
            int32_t changed = 0;
            for (int32_t j = 0; j < view.m; ++j) {
                const double step = next[j] - view.alpha[j];
                if (step == 0) continue;
                cls[changed] = view.cls(j);
                alpha[cls[changed]] = next[j];
                coef[changed++] = -step;
                own += step;
            }
            if (changed == 0) continue;
            cls[changed] = y;
            coef[changed++] = own;
            const T* values = K + (row ? row[i] : i) * samples.ld;
            vector.axpys(values, samples.ld, samples.F, samples.ld, cls.data(), changed, coef.data());
            ++result.updates;
            if (t > 0)
                for (int32_t j = 0; j < changed; ++j) {
                    tot[cls[j]] += coef[j];
                    shift[cls[j]] = b[cls[j]] + t * tot[cls[j]];
                }
            poll.work(2.0 * changed * static_cast<double>(samples.ld));
        }
        if (t > 0) {
            double moved = 0;
            for (int32_t l = 0; l < k; ++l) {
                b[l] += t * tot[l];
                drift = std::max(drift, std::abs(b[l] - start[l]));
                moved = std::max(moved, std::abs(b[l] - asked[l]));
            }
            if (moved > wake) {
                std::fill(rests.begin(), rests.end(), int64_t{0});
                asked.assign(b, b + k);
            }
            set_shift();
        }
        tau = 0.5 * seen / static_cast<double>(n);
        result.gap = seen;
        if (drift > 1) {  // samples outside the working set have a say in b: ask them
            result.gap = std::min(seen, target);
            break;
        }
        const bool last = seen <= target || result.passes == max_passes, due = last || result.passes % patience == 0;
        if (due || seen <= reach * target) mean.add();
        if (due || mean.count() == window) {
            std::fill(rests.begin(), rests.end(), int64_t{0});
            mean.swap();
            result.gap = best_gap();
            if (result.gap > target) {
                mean.swap();
                if (last) result.gap = best_gap();
                set_shift();
            }
            mean.clear();
            // The number type may not resolve the target: no progress over many passes ends the loop as well.
            if (result.gap < 0.9 * best) {
                best = result.gap;
                best_pass = result.passes;
            } else if (result.passes - best_pass >= 1000) {
                break;
            }
        }
    }
    return result;
}

}  // namespace skm

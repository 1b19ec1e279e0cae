// Block ascent on the working set of a kernel machine.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "kernel_blocks.hpp"
#include "random.hpp"

namespace skm {

struct InnerResult {
    double gap = 0;
    int64_t passes = 0, updates = 0;
};

// Over-relaxation: a block is solved with curvature / omega, and the dual rises for every omega < 2.  Where convergence
// is slow a larger omega pays, but its steps make noise in the primal objective: short steps now and then let it
// settle.
inline double relaxation(int64_t pass) {
    if (pass <= 100) return 1.2;
    return pass % 10 >= 8 ? 0.3 : 1.5;
}

// Block ascent on the working set until its gaps sum to `target`.
//
//   K (n x ld, zero beyond column n)   kernel values within the set; curvature[i] = K_ii
//   b, tot, t                          intercept without penalty: blocks see F + b + t tot and curvature K_ii + t, and
//                                      b += t tot after every pass (t = 0: none)
//
// A pass visits the active samples in fresh random order and moves those whose gap exceeds tau, half of the mean gap
// of the pass before.  A sample far below tau three times in a row is left out until the next exact sum of all gaps;
// only such a sum can end the loop.
template <class T, class Loss>
InnerResult kernel_inner(const KernelSamples<T>& samples, const Loss& loss, const T* K, const double* curvature,
                         double* b, double* tot, double t, double target, int64_t max_passes, uint64_t seed,
                         Poll& poll) {
    const int32_t k = samples.k;
    const int64_t n = samples.n;
    const Simd<T>& vector = simd<T>();
    SampleView<T, Loss> view(samples, loss);
    std::vector<double> shift(k), next(k), coef(k);
    std::vector<int32_t> cls(k);
    std::vector<uint8_t> quiet(n);
    std::vector<int64_t> active;
    Random random(seed);
    InnerResult result;

    const auto set_shift = [&] {
        for (int32_t l = 0; l < k; ++l) shift[l] = b[l] + t * tot[l];
    };
    // Exact sum of the gaps, plus with an intercept the dual weight that is out of balance.
    const auto full_gap = [&] {
        double sum = 0;
        set_shift();
        for (int64_t i = 0; i < n; ++i) {
            sum += view.load(i, shift.data());
            poll.work(8.0 * k);
        }
        if (t > 0)
            for (int32_t l = 0; l < k; ++l) sum += std::abs(tot[l]);
        return sum;
    };

    result.gap = full_gap();
    const std::vector<double> start(b, b + k);
    double drift = 0;
    double tau = 0.5 * result.gap / static_cast<double>(n), best = infinity;
    int64_t best_pass = 0;
    while (result.gap > target && result.passes < max_passes) {
        if (active.empty()) {
            active.resize(n);
            std::iota(active.begin(), active.end(), int64_t{0});
            std::fill(quiet.begin(), quiet.end(), uint8_t{0});
        }
        ++result.passes;
        const double omega = relaxation(result.passes);
        random.shuffle(active.begin(), static_cast<uint32_t>(active.size()));
        double seen = 0;
        size_t kept = 0;
        for (size_t p = 0; p < active.size(); ++p) {
            const int64_t i = active[p];
            const double gap = view.load(i, shift.data());
            seen += gap;
            poll.work(8.0 * k);
            if (gap <= tau) {
                quiet[i] = gap <= 0.05 * tau ? quiet[i] + 1 : 0;
                if (quiet[i] < 3 || t > 0) active[kept++] = i;  // a free intercept moves every score
                continue;
            }
            quiet[i] = 0;
            active[kept++] = i;
            loss.block(i, (curvature[i] + t) / omega, view.d.data(), view.alpha.data(), view.m, next.data());
            const int32_t y = samples.y[i];
            double* alpha = samples.alpha + i * k;
            double own = 0;
            int32_t changed = 0;
            for (int32_t j = 0; j < view.m; ++j) {
                const double step = next[j] - view.alpha[j];
                if (step == 0) continue;
                alpha[view.cls[j]] = next[j];
                cls[changed] = view.cls[j];
                coef[changed++] = -step;
                own += step;
            }
            if (changed == 0) continue;
            cls[changed] = y;
            coef[changed++] = own;
            vector.axpys(K + i * samples.ld, samples.ld, samples.F, samples.ld, cls.data(), changed, coef.data());
            ++result.updates;
            if (t > 0)
                for (int32_t j = 0; j < changed; ++j) {
                    tot[cls[j]] += coef[j];
                    shift[cls[j]] = b[cls[j]] + t * tot[cls[j]];
                }
            poll.work(2.0 * changed * static_cast<double>(samples.ld));
        }
        active.resize(kept);
        if (t > 0) {
            for (int32_t l = 0; l < k; ++l) {
                b[l] += t * tot[l];
                drift = std::max(drift, std::abs(b[l] - start[l]));
            }
            set_shift();
        }
        tau = 0.5 * seen / static_cast<double>(n);
        result.gap = seen;
        if (drift > 0.3) {  // samples outside the working set have a say in b: ask them
            result.gap = std::min(seen, target);
            break;
        }
        if (seen <= target || kept == 0 || result.passes == max_passes || result.passes % 100 == 0) {
            result.gap = full_gap();
            active.clear();
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

// Samples of a kernel machine with their scores and duality gaps.
//
// The scores F = K c are class-major (one row a class): a step changes the two or three classes of one sample, so it
// adds multiples of one row of K to as many rows of F, all of them contiguous.  The rows of K are float32 or float64;
// duals, score differences and gaps are always float64.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/interrupt.hpp"
#include "base/sums.hpp"
#include "intercept/circulation.hpp"
#include "losses/loss.hpp"
#include "losses/stretch.hpp"
#include "simd/simd.hpp"

namespace skm {

// Samples with their scores (k rows of F, `ld` apart), duals (n x k, zero at the own class) and labels.  `column` is
// where the scores of each sample stand in F; none: in the order of the samples.
template <class T>
struct KernelSamples {
    T* F;
    int64_t ld;
    double* alpha;
    const int32_t* y;
    int64_t n;
    int32_t k;
    const int64_t* column = nullptr;

    const T* scores(int64_t i) const { return F + (column ? column[i] : i); }
};

// One sample seen by its loss: score differences d_l = f_y - f_l and duals of the rivals, own class left out.
template <class T, class Loss>
class SampleView {
  public:
    SampleView(const KernelSamples<T>& samples, const Loss& loss)
        : s_(samples), loss_(loss), d(samples.k), alpha(samples.k), m(samples.k - 1) {}

    // Loads sample i with scores F + shift; returns its gap value - dual + alpha'd, which is never negative.
    double load(int64_t i, const double* shift) {
        return load(i, shift, [](const T* f) { return *f; });
    }
    // The scores of a second point stand below those of the first, and count so many times.
    double load(int64_t i, const double* shift, double weight) {
        const int64_t below = s_.k * s_.ld;
        return load(i, shift, [=](const T* f) { return *f + weight * f[below]; });
    }
    // The class of rival j.
    int32_t cls(int32_t j) const {
        j = j == 0 ? first_ : j == first_ ? 0 : j;
        return j + (j >= y_);
    }

  private:
    const KernelSamples<T>& s_;
    const Loss& loss_;
    int32_t y_ = 0, first_ = 0;  // own class; place of the rival that stands first

  public:
    std::vector<double> d, alpha;
    int32_t m;
    double value = 0, dual = 0, product = 0;

  private:
    template <class Score>
    double load(int64_t i, const double* shift, Score score) {
        y_ = s_.y[i];
        const double own = score(s_.scores(i) + y_ * s_.ld) + shift[y_];
        product = rivals(i, shift, score, own, 0, y_, 0) + rivals(i, shift, score, own, y_ + 1, s_.k, y_);
        const int32_t fixed_rival = loss_.fixed_rival(i);
        first_ = fixed_rival < 0 ? 0 : fixed_rival - (fixed_rival > y_);
        if (first_ > 0) {
            std::swap(d[0], d[first_]);
            std::swap(alpha[0], alpha[first_]);
        }
        value = loss_.value(i, d.data(), m);
        dual = loss_.dual(i, alpha.data(), m);
        return std::max(0.0, value - dual + product);
    }
    // The classes from first to last become rivals at the places from j on; returns their part of alpha'd.
    template <class Score>
    double rivals(int64_t i, const double* shift, Score score, double own, int32_t first, int32_t last, int32_t j) {
        const T* f = s_.scores(i) + first * s_.ld;
        const double* a = s_.alpha + i * s_.k + first;
        shift += first;
        double *to = d.data() + j, *dual = alpha.data() + j, even = 0, odd = 0;
        const int32_t count = last - first;
        int32_t l = 0;
        for (; l + 2 <= count; l += 2, f += 2 * s_.ld) {
            to[l] = own - (score(f) + shift[l]);
            to[l + 1] = own - (score(f + s_.ld) + shift[l + 1]);
            dual[l] = a[l];
            dual[l + 1] = a[l + 1];
            even += to[l] * a[l];
            odd += to[l + 1] * a[l + 1];
        }
        if (l < count) {
            to[l] = own - (score(f) + shift[l]);
            dual[l] = a[l];
            even += to[l] * a[l];
        }
        return even + odd;
    }
};

struct GapSums {
    double gap = 0, value = 0, dual = 0, product = 0;  // P = product/2 + value, D = dual - product/2
};

// Gaps of all samples (into g), which of them are support vectors strictly inside their bounds (into free), and sums.
template <class T, class Loss>
GapSums kernel_gaps(const KernelSamples<T>& samples, const Loss& loss, const double* shift, double* g, uint8_t* free,
                    StretchSavings& lengths, InterruptPoll& poll) {
    SampleView<T, Loss> view(samples, loss);
    GapSums sums;
    for (int64_t i = 0; i < samples.n; ++i) {
        g[i] = view.load(i, shift);
        free[i] = !loss.at_vertex(i, view.alpha.data(), view.m);
        lengths.add(loss, i, view.d.data(), view.m, view.value);
        sums.gap += g[i];
        sums.value += view.value;
        sums.dual += view.dual;
        sums.product += view.product;
        poll.count_work(8.0 * samples.k);
    }
    return sums;
}

// Turns the duals into a circulation between the classes, sum_i c_il = 0 (intercept/circulation.hpp).
template <class T, class Loss>
void kernel_circulation(const KernelSamples<T>& samples, const Loss& loss, const double* shift, InterruptPoll& poll) {
    const int32_t k = samples.k;
    std::vector<int32_t> all(k);
    std::iota(all.begin(), all.end(), 0);
    const auto with = [&](int64_t i, auto visit) { visit(samples.y[i], all.data(), samples.alpha + i * k, k); };
    const auto score = [&](int64_t i, int32_t l) { return samples.scores(i)[l * samples.ld] + shift[l]; };
    const auto slope = [&](int64_t i, int32_t l) {
        return l == samples.y[i] ? -infinity : 1 - score(i, samples.y[i]) + score(i, l);
    };
    make_circulation(k, samples.n, loss, with, slope, poll);
}

}  // namespace skm

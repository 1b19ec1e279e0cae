// Samples of a kernel machine with their scores: duality gaps, rows of the kernel matrix added to scores.
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
#include "losses/hinge.hpp"
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

// What class vectors (and b) longer by some factors 1 + e save in losses.  Where C is large, small losses that remain
// although the dual is solved cost more than the longer vectors that would end them.
class StretchedLosses {
  public:
    StretchedLosses(const double* more, int32_t count) : saved(count), more_(more) {}

    void clear() { std::fill(saved.begin(), saved.end(), 0.0); }
    template <class Loss>
    void add(const Loss& loss, int64_t i, const double* d, int32_t m, double value) {
        if constexpr (Loss::can_stretch)
            for (size_t j = 0; j < saved.size() && value > 0; ++j)
                saved[j] += loss.value(i, d, m, 1 + more_[j]) - value;
    }
    // What the best of them changes in P, with others that save as well; 0 if none is better.
    double change(double norm, const std::vector<double>& others) const {
        double best = 0;
        for (size_t j = 0; j < saved.size(); ++j)
            best = std::min(best, saved[j] + others[j] + (more_[j] + 0.5 * more_[j] * more_[j]) * norm);
        return best;
    }

    std::vector<double> saved;  // negative: the losses are smaller

  private:
    const double* more_;
};

struct GapSums {
    double gap = 0, value = 0, dual = 0, product = 0;  // P = product/2 + value, D = dual - product/2
};

// Gaps of all samples (into g), which of them are support vectors strictly inside their bounds (into free), and sums.
template <class T, class Loss>
GapSums kernel_gaps(const KernelSamples<T>& samples, const Loss& loss, const double* shift, double* g, uint8_t* free,
                    StretchedLosses& lengths, InterruptPoll& poll) {
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

// F[l, :] += sum_r coef[r, l] store[slot[r], :], by strips of columns that stay in the cache.  `careful`: T sums up a
// few rows at a time, and float64 these sums, since long sums of large numbers of both signs lose more than the rows
// did.
template <class T>
void kernel_add(T* F, int64_t n, int32_t k, const T* store, const int64_t* slot, int64_t rows, const double* coef,
                bool careful, InterruptPoll& poll) {
    constexpr int64_t strip = 4096, rows_per_sum = 128;
    const Simd<T>& vector = simd<T>();
    std::vector<int32_t> cls;
    std::vector<double> value;
    std::vector<int64_t> first{0};
    for (int64_t r = 0; r < rows; ++r) {
        for (int32_t l = 0; l < k; ++l)
            if (coef[r * k + l] != 0) {
                cls.push_back(l);
                value.push_back(coef[r * k + l]);
            }
        first.push_back(static_cast<int64_t>(cls.size()));
    }
    std::vector<double> sums(careful ? k * strip : 0);
    for (int64_t j = 0; j < n; j += strip) {
        const int64_t width = std::min(strip, n - j);
        if (careful) std::fill(sums.begin(), sums.end(), 0.0);
        // F is added to the sums and begins again at zero, or (`back`) takes their values.
        const auto exchange = [&](bool back) {
            for (int32_t l = 0; l < k; ++l) {
                T* f = F + l * n + j;
                double* sum = sums.data() + l * strip;
                for (int64_t c = 0; c < width; ++c) {
                    sum[c] += f[c];
                    f[c] = back ? static_cast<T>(sum[c]) : T{0};
                }
            }
        };
        for (int64_t r = 0; r < rows; ++r) {
            if (careful && r % rows_per_sum == 0) exchange(false);
            const int32_t m = static_cast<int32_t>(first[r + 1] - first[r]);
            vector.axpys(store + slot[r] * n + j, width, F + j, n, cls.data() + first[r], m, value.data() + first[r]);
            poll.count_work(2.0 * m * static_cast<double>(width));
        }
        if (careful) exchange(true);
    }
}

// out[a, c] = store[slot[a], column[c]], zero in the padding up to ld
template <class T>
void kernel_gather(const T* store, int64_t n, const int64_t* slot, const int64_t* column, int64_t rows, int64_t columns,
                   T* out, int64_t ld, InterruptPoll& poll) {
    for (int64_t a = 0; a < rows; ++a) {
        const T* row = store + slot[a] * n;
        T* to = out + a * ld;
        for (int64_t c = 0; c < columns; ++c) to[c] = row[column[c]];
        std::fill(to + columns, to + ld, T{0});
        poll.count_work(4.0 * static_cast<double>(ld));
    }
}

// out[a, column[c]] = values[a, c]; out has n columns
template <class T>
void kernel_scatter(const T* values, const int64_t* column, int64_t rows, int64_t columns, T* out, int64_t n,
                    InterruptPoll& poll) {
    for (int64_t a = 0; a < rows; ++a, values += columns, out += n) {
        for (int64_t c = 0; c < columns; ++c) out[column[c]] = values[c];
        poll.count_work(4.0 * static_cast<double>(columns));
    }
}

// out[a, kept[c]] = store[slot[c], sample[a]]: entries of other rows of a symmetric matrix of n columns, read from rows
// that are kept; by strips of kept rows, of which a cache line each stays in the cache.
template <class T>
void kernel_mirror(const T* store, int64_t n, const int64_t* slot, const int64_t* kept, int64_t columns,
                   const int64_t* sample, int64_t rows, T* out, InterruptPoll& poll) {
    constexpr int64_t strip = 16;
    for (int64_t first = 0; first < columns; first += strip) {
        const int64_t last = std::min(columns, first + strip);
        for (int64_t a = 0; a < rows; ++a) {
            T* to = out + a * n;
            const T* from = store + sample[a];
            for (int64_t c = first; c < last; ++c) to[kept[c]] = from[slot[c] * n];
            poll.count_work(4.0 * strip);
        }
    }
}

// Rows `row` of X in the number type T after the centre was taken away in float64, and their squared norms.
template <class S, class T>
void kernel_centre(const S* X, int64_t d, const int64_t* row, int64_t rows, const double* centre, T* out, T* norms,
                   InterruptPoll& poll) {
    const int32_t self = 0;
    for (int64_t a = 0; a < rows; ++a, out += d) {
        const S* x = X + row[a] * d;
        for (int64_t j = 0; j < d; ++j) out[j] = static_cast<T>(x[j] - centre[j]);
        double norm = 0;
        simd<T>().dots(out, d, out, d, &self, 1, &norm);
        norms[a] = static_cast<T>(norm);
        poll.count_work(3.0 * static_cast<double>(d));
    }
}

}  // namespace skm

// Scores X W' + b of many rows at once, and which class has the largest.
//
// Where W is small BLAS spends more time on its preparations than on the product, and NumPy more on finding the largest
// numbers than on both.  A score does not depend on the rows beside it, so that every function here agrees on the
// winner.
//
// SciPy's product of sparse rows reads and writes the scores of a row once for each of its numbers; here they stay in
// registers.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

#include "base/interrupt.hpp"
#include "rows/rows.hpp"
#include "simd/simd.hpp"

namespace skm {

// Dense rows and a linear machine of k classes, or of two with one score: W has one feature after the other, b one
// number a score.
template <class T>
class DenseScores {
  public:
    DenseScores(const T* X, int64_t n, const T* W, const T* b, int64_t d, int64_t k)
        : X_(X), n_(n), d_(d), k_(k), ld_(k == 1 ? 1 : rounded_up(k, simd_.few)), W_(rounded_up(d * ld_, simd_.lanes)),
          b_(ld_) {
        for (int64_t j = 0; j < d; ++j) std::copy(W + j * k, W + (j + 1) * k, W_.data() + j * ld_);
        std::fill_n(b_.data(), ld_, -std::numeric_limits<T>::infinity());
        std::copy(b, b + k, b_.data());
    }

    // All scores.  `out` has room for one vector behind them.
    void scores(InterruptPoll& poll, T* out) {
        visit(poll, [&](const T* x, int64_t first, int64_t rows, int64_t wanted) {
            if (k_ == 1) {
                T f[block];
                simd_.single(x, rows, d_, W_.data(), b_.data()[0], f);
                std::copy(f, f + wanted, out + first);
            } else {
                simd_.products(x, wanted, d_, W_.data(), ld_, b_.data(), out + first * k_, k_);
            }
        });
    }

    // The name of the class with the largest score for each row, the first of equals; of a single score the second name
    // if it is positive.  Says whether all rows are finite: numbers that are not show in the score of every class.
    bool labels(const int64_t* names, InterruptPoll& poll, int64_t* out) {
        constexpr bool direct = sizeof(T) == sizeof(int64_t);
        Place<T> found[block];
        Buffer<Place<T>> places(ld_);
        if constexpr (direct) std::copy(names, names + k_, places.data());
        else std::iota(places.data(), places.data() + k_, 0);
        bool finite = true;
        visit(poll, [&](const T* x, int64_t first, int64_t rows, int64_t wanted) {
            if (k_ == 1) {
                T f[block];
                simd_.single(x, rows, d_, W_.data(), b_.data()[0], f);
                for (int64_t i = 0; i < wanted; ++i) {
                    finite = finite && f[i] - f[i] == 0;
                    out[first + i] = names[f[i] > 0];
                }
                return;
            }
            if constexpr (direct)
                if (rows == wanted) {
                    finite &= simd_.labels(x, rows, d_, W_.data(), ld_, b_.data(), places.data(), out + first);
                    return;
                }
            finite &= simd_.labels(x, rows, d_, W_.data(), ld_, b_.data(), places.data(), found);
            for (int64_t i = 0; i < wanted; ++i) out[first + i] = direct ? found[i] : names[found[i]];
        });
        return finite;
    }

  private:
    static constexpr int64_t block = 512;  // rows, a multiple of every tile

    // Calls see(rows, number of the first, how many, how many of them are wanted) for one block after the other.  The
    // last rows are copied, so that there are whole tiles with a vector behind them.
    template <class See>
    void visit(InterruptPoll& poll, See see) {
        const int64_t tile = simd_.tile, behind = (simd_.lanes + d_ - 1) / d_;
        const int64_t whole = std::max<int64_t>(0, n_ - behind) / tile * tile, rest = rounded_up(n_ - whole, tile);
        for (int64_t i = 0; i < whole; i += block) {
            const int64_t rows = std::min(block, whole - i);
            see(X_ + i * d_, i, rows, rows);
            poll.count_work(2.0 * static_cast<double>(rows * d_ * ld_));
        }
        Buffer<T> last(rest * d_ + simd_.lanes);
        std::copy(X_ + whole * d_, X_ + n_ * d_, last.data());
        see(last.data(), whole, rest, n_ - whole);
    }

    const Simd<T>& simd_ = simd<T>();
    const T* X_;
    const int64_t n_, d_, k_, ld_;
    Buffer<T> W_, b_;
};

// The same of sparse rows.  W is read where it lies: a copy would take longer than the scores of few rows.
template <class T, class I>
class SparseScores {
  public:
    SparseScores(const I* indptr, const I* indices, const T* values, int64_t n, const T* W, const T* b, int64_t d,
                 int64_t k)
        : indptr_(indptr), indices_(indices), values_(values), n_(n), k_(k), b_(b), wide_(rounded_up(k, simd_.lanes)),
          safe_(d * k < wide_ ? 0 : (d * k - wide_) / k + 1), last_((d - safe_ + 1) * k + wide_),
          W_{W, k, safe_, d, last_.data()} {
        std::copy(W + safe_ * k, W + d * k, last_.data());
        std::fill_n(last_.data() + (d - safe_) * k, k, std::numeric_limits<T>::quiet_NaN());
    }

    void scores(InterruptPoll& poll, T* out) {
        visit(poll, [&](int64_t i, const T* f) {
            for (int64_t l = 0; l < k_; ++l) out[i * k_ + l] = f[l] + b_[l];
        });
    }

    bool labels(const int64_t* names, InterruptPoll& poll, int64_t* out) {
        bool finite = true;
        visit(poll, [&](int64_t i, const T* f) {
            T largest = f[0] + b_[0];
            finite = finite && largest - largest == 0;
            int64_t at = k_ == 1 ? largest > 0 : 0;
            for (int64_t l = 1; l < k_; ++l) {
                const T score = f[l] + b_[l];
                if (score > largest) largest = score, at = l;
            }
            out[i] = names[at];
        });
        return finite;
    }

  private:
    // Calls see(row, its scores without b).
    template <class See>
    void visit(InterruptPoll& poll, See see) {
        Buffer<T> f(wide_);
        for (int64_t i = 0; i < n_; ++i) {
            const int64_t stored = static_cast<int64_t>(indptr_[i + 1] - indptr_[i]);
            simd_.packed_scores(indices_ + indptr_[i], values_ + indptr_[i], stored, W_, f.data());
            see(i, f.data());
            poll.count_work(2.0 * static_cast<double>((stored + 1) * wide_));
        }
    }

    const SparseSimd<T, I>& simd_ = sparse_simd<T, I>();
    const I *indptr_, *indices_;
    const T* values_;
    const int64_t n_, k_;
    const T* b_;
    const int64_t wide_, safe_;
    Buffer<T> last_;
    const Packed<T> W_;
};

}  // namespace skm

// Scores X W' + b of many rows at once, and which class has the largest.
//
// Where W is small BLAS spends more time on its preparations than on the product, and NumPy more on finding the largest
// numbers than on both.  A score does not depend on the rows beside it, so that every function here agrees on the
// winner.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

#include "poll.hpp"
#include "rows.hpp"
#include "simd.hpp"

namespace skm {

// A linear machine of k classes, or of two with one score: W has one feature after the other, b one number a score.
template <class T>
class LinearScores {
  public:
    LinearScores(const T* W, const T* b, int64_t d, int32_t k)
        : d_(d), k_(k), ld_(k == 1 ? 1 : rounded_up(k, simd_.few)), W_(rounded_up(d * ld_, simd_.lanes)), b_(ld_) {
        for (int64_t j = 0; j < d; ++j) std::copy(W + j * k, W + (j + 1) * k, W_.data() + j * ld_);
        std::fill_n(b_.data(), ld_, -std::numeric_limits<T>::infinity());
        std::copy(b, b + k, b_.data());
    }

    // All scores.  `out` has room for one vector behind them.
    void scores(const T* X, int64_t n, Poll& poll, T* out) {
        visit(X, n, poll, [&](const T* x, int64_t first, int64_t rows, int64_t wanted) {
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
    bool labels(const T* X, int64_t n, const int64_t* names, Poll& poll, int64_t* out) {
        constexpr bool direct = sizeof(T) == sizeof(int64_t);
        Place<T> found[block];
        Buffer<Place<T>> places(ld_);
        if constexpr (direct) std::copy(names, names + k_, places.data());
        else std::iota(places.data(), places.data() + k_, 0);
        bool finite = true;
        visit(X, n, poll, [&](const T* x, int64_t first, int64_t rows, int64_t wanted) {
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
    void visit(const T* X, int64_t n, Poll& poll, See see) {
        const int64_t tile = simd_.tile, behind = (simd_.lanes + d_ - 1) / d_;
        const int64_t whole = std::max<int64_t>(0, n - behind) / tile * tile, rest = rounded_up(n - whole, tile);
        for (int64_t i = 0; i < whole; i += block) {
            const int64_t rows = std::min(block, whole - i);
            see(X + i * d_, i, rows, rows);
            poll.work(2.0 * static_cast<double>(rows * d_ * ld_));
        }
        Buffer<T> last(rest * d_ + simd_.lanes);
        std::copy(X + whole * d_, X + n * d_, last.data());
        see(last.data(), whole, rest, n - whole);
    }

    const Simd<T>& simd_ = simd<T>();
    int64_t d_, k_, ld_;
    Buffer<T> W_, b_;
};

}  // namespace skm

// Scores X W + b of many rows at once, and which class has the largest.
//
// Where W is small BLAS spends more time on its preparations than on the product, and NumPy more on finding the largest
// numbers than on both.  A score does not depend on the rows beside it, so that every function here agrees on the
// winner.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "poll.hpp"
#include "rows.hpp"
#include "simd.hpp"

namespace skm {

constexpr int64_t score_rows = 64;  // in one block, a multiple of every vector

// Calls visit(first row, how many, their scores, distance between rows) for one block of rows after the other; the
// scores have room behind them for Simd::winners.
template <class T, class Visit>
void visit_scores(const T* X, int64_t n, int64_t d, const T* W, const T* b, int32_t k, Poll& poll, Visit visit) {
    const Simd<T>& vectors = simd<T>();
    const int64_t ld = rounded_up(k, vectors.few);
    Buffer<T> padded(d * ld), offsets(ld), scores(score_rows * ld + vectors.lanes);
    for (int64_t j = 0; j < d; ++j) std::copy(W + j * k, W + (j + 1) * k, padded.data() + j * ld);
    std::copy(b, b + k, offsets.data());
    for (int64_t i = 0; i < n; i += score_rows) {
        const int64_t rows = std::min(score_rows, n - i);
        vectors.products(X + i * d, rows, d, padded.data(), ld, offsets.data(), scores.data());
        visit(i, rows, scores.data(), ld);
        poll.work(2.0 * static_cast<double>(rows * d * ld));
    }
}

// All scores.  `out` has room for one vector behind them: rows are copied by whole vectors, and the next one overwrites
// what was too much.
template <class T>
void linear_scores(const T* X, int64_t n, int64_t d, const T* W, const T* b, int32_t k, Poll& poll, T* out) {
    constexpr int64_t step = 16 / sizeof(T);  // the shortest vector
    visit_scores(X, n, d, W, b, k, poll, [&](int64_t first, int64_t rows, const T* f, int64_t ld) {
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t l = 0; l < ld; l += step) std::memcpy(out + (first + i) * k + l, f + i * ld + l, 16);
    });
}

// The label of the class with the largest score for each row, the first of equals; of a single score the second label
// if it is positive.  Says whether all rows are finite: numbers that are not show in the score of every class.
template <class T>
bool linear_labels(const T* X, int64_t n, int64_t d, const T* W, const T* b, int32_t k, const int64_t* labels,
                   Poll& poll, int64_t* out) {
    if (k == 1) {
        std::vector<T> pair(static_cast<size_t>(2 * d)), offsets{0, b[0]};
        for (int64_t j = 0; j < d; ++j) pair[2 * j + 1] = W[j];
        return linear_labels(X, n, d, pair.data(), offsets.data(), 2, labels, poll, out);
    }
    int64_t winners[score_rows];
    bool finite = true;
    visit_scores(X, n, d, W, b, k, poll, [&](int64_t first, int64_t rows, const T* f, int64_t ld) {
        finite = simd<T>().winners(f, rows, ld, k, winners) && finite;
        for (int64_t i = 0; i < rows; ++i) out[first + i] = labels[winners[i]];
    });
    return finite;
}

}  // namespace skm

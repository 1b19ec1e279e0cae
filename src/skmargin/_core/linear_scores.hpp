// Scores X W + b of many rows at once, and which class has the largest.
//
// Where W is small BLAS spends more time on its preparations than on the product, and NumPy more on finding the largest
// numbers than on both.  A score does not depend on the rows beside it, so that every function here agrees on the
// winner.
#pragma once
#include <algorithm>
#include <cstdint>

#include "poll.hpp"
#include "rows.hpp"
#include "simd.hpp"

namespace skm {

// The position of the largest of k numbers, the first of equals; of a single number whether it is positive.
template <class T>
int64_t winner(const T* f, int32_t k) {
    if (k == 1) return f[0] > 0;
    T best = f[0];
    int64_t first = 0;
    for (int32_t l = 1; l < k; ++l) {
        first = f[l] > best ? l : first;
        best = f[l] > best ? f[l] : best;
    }
    return first;
}

// Calls visit(first row, how many, their scores, distance between rows) for one block of rows after the other.
template <class T, class Visit>
void linear_scores(const T* X, int64_t n, int64_t d, const T* W, const T* b, int32_t k, Poll& poll, Visit visit) {
    const Simd<T>& vectors = simd<T>();
    const int64_t ld = rounded_up(k, vectors.few), block = std::clamp<int64_t>(4096 / ld, 4, 64);
    Buffer<T> padded(d * ld), offsets(ld), scores(block * ld);
    for (int64_t j = 0; j < d; ++j) std::copy(W + j * k, W + (j + 1) * k, padded.data() + j * ld);
    std::copy(b, b + k, offsets.data());
    for (int64_t i = 0; i < n; i += block) {
        const int64_t rows = std::min(block, n - i);
        vectors.products(X + i * d, rows, d, padded.data(), ld, offsets.data(), scores.data());
        visit(i, rows, scores.data(), ld);
        poll.work(2.0 * static_cast<double>(rows * d * ld));
    }
}

}  // namespace skm

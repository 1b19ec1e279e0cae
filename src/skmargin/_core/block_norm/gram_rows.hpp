// A kernel matrix as rows of block ascent.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "rows/rows.hpp"

namespace skm {

// The "class vectors" are the scores F = K c, one row a class.  `Row` gives row i of the
// matrix, which need not outlive the next one.
template <class Number>
class GramRows {
  public:
    using T = Number;
    using Row = std::function<const T*(int64_t)>;
    GramRows(Row row, std::vector<T> diagonal, int32_t k)
        : n(static_cast<int64_t>(diagonal.size())), d(n), k(k), row_(std::move(row)), diagonal_(std::move(diagonal)),
          ld_(rounded_up(n, 64 / sizeof(T))), simd_(simd<T>()) {}

    int64_t weights_size() const { return ld_ * k; }
    double cost(int64_t) const { return static_cast<double>(n); }
    void scores(const T* F, int64_t i, const int32_t* cls, int32_t m, double* f) const {
        for (int32_t j = 0; j < m; ++j) f[j] = F[cls[j] * ld_ + i];
    }
    void scores_all(const T* F, int64_t i, double* f) const {
        for (int32_t l = 0; l < k; ++l) f[l] = F[l * ld_ + i];
    }
    void add(T* F, int64_t i, const int32_t* cls, int32_t m, const double* coef) const {
        simd_.axpys(row_(i), n, F, ld_, cls, m, coef);
    }
    void prefetch(int64_t) const {}
    double squared_norm(int64_t i) const { return std::max(0.0, static_cast<double>(diagonal_[i])); }
    double inner(int64_t, const double*) const { return 0; }

    const int64_t n, d;
    const int32_t k;

  private:
    const Row row_;
    const std::vector<T> diagonal_;
    int64_t ld_;
    const Simd<T>& simd_;
};

}  // namespace skm

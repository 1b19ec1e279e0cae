// The value of the dual at given duals, from the rows alone: the lower bound that a certificate rests on.
//
// The class vectors that block ascent works with have taken many steps, perhaps in float32.  Here V = sum_i x_i c_i' is
// summed anew in double precision, `batch` rows at a time where rows are dense, and what its rounding may hide is taken
// off: with at most m additions in a sum, v_l is wrong by at most  m u sum_i |c_il| ||x_i||.  Where the intercept is
// free the sums r_l = sum_i c_il are zero but for rounding: duals that differ by no more than r make them zero, and the
// value changes by at most the slopes, 1 + 2 ||V|| max ||x_i||, times that.
#pragma once
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "linear/dual_lists.hpp"
#include "losses/hinge.hpp"

namespace skm {

// 1/2 ||V||_{2,q}^2 from the squared norms of the class vectors, or 1/2 sum_l weight_l ||v_l||^2 where there are
// weights.
inline double half_square_of_norms(const std::vector<double>& squares, double q, const std::vector<double>& weights) {
    double sum = 0, largest = 0;
    if (!weights.empty()) return 0.5 * std::inner_product(squares.begin(), squares.end(), weights.begin(), 0.0);
    for (const double s : squares) sum += s, largest = std::max(largest, s);
    if (q == 2 || !(largest > 0)) return 0.5 * sum;
    sum = 0;
    for (const double s : squares) sum += std::pow(s / largest, q / 2);
    return 0.5 * largest * std::pow(sum, 2 / q);
}

// A sum that keeps what its additions round off (Neumaier).
class Sum {
  public:
    void add(double x) {
        const double t = sum_ + x;
        rest_ += std::abs(sum_) >= std::abs(x) ? (sum_ - t) + x : (x - t) + sum_;
        sum_ = t;
    }
    double value() const { return sum_ + rest_; }

  private:
    double sum_ = 0, rest_ = 0;
};

// `row` gives the duals of a sample, all feasible; `known` is the value that the solver believes in, the answer where
// the rows have no numbers of their own (kernels).
template <class Ascent, class Row>
double dual_value(Ascent& ascent, Row row, double known) {
    const auto& rows = ascent.geo.rows;
    if constexpr (!requires { rows.place(0, 0); }) {
        return known;
    } else {
        constexpr int64_t batch = 64;
        constexpr double unit = 0x1p-53;
        const int64_t n = ascent.n, d = rows.d;
        const int32_t k = ascent.k;
        const size_t size = static_cast<size_t>(k * d);
        const bool batches = rows.batches();
        std::vector<double> V(size), part(batches ? size : 0), sizes(k), squares(k);
        std::vector<Sum> sums(k);
        Sum value;
        int64_t used = 0;
        double counted = 0;
        const auto flush = [&] {
            for (size_t j = 0; j < part.size(); ++j) V[j] += std::exchange(part[j], 0.0);
        };
        for (int64_t i = 0; i < n; ++i) {
            const DualLists::Row r = row(i);
            if (r.size == 0) continue;
            const double gained = ascent.loss.dual(i, r.alpha, r.size), length = std::sqrt(rows.squared_norm(i));
            value.add(gained);
            counted += std::abs(gained);
            ascent.with_coefficients(i, r, [&](const int32_t* cls, int32_t m, const double* coef) {
                rows.accumulate(batches ? part.data() : V.data(), i, cls, m, coef);
                for (int32_t j = 0; j < m; ++j) sizes[cls[j]] += std::abs(coef[j]) * length, sums[cls[j]].add(coef[j]);
            });
            if (++used % batch == 0) flush();
        }
        flush();
        const double additions = batches ? static_cast<double>(batch + used / batch + 2) : static_cast<double>(used);
        double longest = 0, rounding = 8 * unit * counted;
        for (int32_t l = 0; l < k; ++l) {
            for (int64_t j = 0; j < d; ++j) {
                const double v = V[static_cast<size_t>(rows.place(l, j))];
                squares[l] += v * v;
            }
            longest = std::max(longest, std::sqrt(squares[l]));
            rounding +=
                unit * ((additions + 2) * std::sqrt(squares[l]) * sizes[l] + static_cast<double>(d) * squares[l]);
        }
        if (ascent.geo.intercept())
            for (int32_t l = 0; l < k; ++l)
                rounding += (1 + 2 * ascent.geo.longest * longest) * std::abs(sums[l].value());
        const double fresh =
            value.value() - half_square_of_norms(squares, ascent.geo.q, ascent.geo.class_weights) - rounding;
        return fresh == fresh ? fresh : -infinity;
    }
}

}  // namespace skm

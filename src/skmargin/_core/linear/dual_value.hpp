// The value of the dual at given duals, from the rows alone: the lower bound that a certificate rests on.
//
// The class vectors that block ascent works with have taken many steps, perhaps in float32.  Here V = sum_i x_i c_i' is
// summed anew in double precision, `batch` rows at a time where rows are dense, and what its rounding may hide is taken
// off: with at most m additions in a sum, v_l is wrong by at most  e_l = m u sum_i |c_il| ||x_i||, and 1/2 ||v_l||^2 by
// ||v_l|| e_l + 1/2 e_l^2.  Where the intercept is free the sums r_l = sum_i c_il are zero but for rounding: duals that
// differ by no more than r make them zero, and the value changes by at most the slopes, 1 + 2 ||V|| max ||x_i||, times
// that, and by its square.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "linear/dual_lists.hpp"
#include "losses/hinge.hpp"
#include "rows/any_rows.hpp"

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

// What rounding may hide in the value of a dual; see the head of this file.
class DualRounding {
  public:
    explicit DualRounding(int32_t k) : sizes_(k), sums_(k) {}

    void add_value(double gained) { counted_ += std::abs(gained); }
    // A coefficient of class l for a row of this length.
    void add(int32_t l, double coef, double length) {
        sizes_[l] += std::abs(coef) * length;
        sums_[l].add(coef);
    }
    std::vector<double> totals() const {  // of the coefficients of each class
        std::vector<double> out;
        for (const Sum& sum : sums_) out.push_back(sum.value());
        return out;
    }
    // `squares` of the class vectors, of d numbers each, whose sums have so many `additions`; `longest` is the length
    // of the longest row where the intercept is free, else zero.  The slope of the penalty at v_l is at most `slope`
    // times its length, or times `least` where that is more.
    double total(const std::vector<double>& squares, int64_t d, double additions, double longest_row, double slope = 1,
                 double least = 0) const {
        constexpr double unit = 0x1p-53;
        double longest = 0, rounding = 8 * unit * counted_;
        for (size_t l = 0; l < squares.size(); ++l) {
            const double length = std::max(std::sqrt(squares[l]), least), wrong = unit * (additions + 2) * sizes_[l];
            longest = std::max(longest, length);
            rounding += slope * ((length + 0.5 * wrong) * wrong + unit * static_cast<double>(d) * squares[l]);
        }
        for (size_t l = 0; l < squares.size() && longest_row > 0; ++l) {
            const double left = std::abs(sums_[l].value()), moved = longest_row * left;
            rounding += left + slope * (2 * longest + moved) * moved;
        }
        return rounding;
    }

  private:
    std::vector<double> sizes_;
    std::vector<Sum> sums_;
    double counted_ = 0;
};

// The value of a dual, summed row by row.
class DualSum {
  public:
    // In the memory of `buffer`, whatever it holds.
    explicit DualSum(const AnyRows& rows, std::vector<double> buffer = {})
        : d_(rows.d), V_(std::move(buffer)), rounding_(rows.k) {
        V_.assign(static_cast<size_t>(rows.k * rows.d), 0.0);
        if (rows.batches()) part_.resize(V_.size());
    }

    void clear() {
        std::fill(V_.begin(), V_.end(), 0.0);
        std::fill(part_.begin(), part_.end(), 0.0);
        rounding_ = DualRounding(static_cast<int32_t>(rounding_.totals().size()));
        value_ = Sum();
        used_ = 0;
    }
    // Row i, whose duals are worth `gained`, with its coefficients.
    void add(const AnyRows& rows, int64_t i, double gained, const int32_t* cls, int32_t m, const double* coef) {
        const double length = std::sqrt(rows.squared_norm(i));
        value_.add(gained);
        rounding_.add_value(gained);
        rows.accumulate(part_.empty() ? V_.data() : part_.data(), i, cls, m, coef);
        for (int32_t j = 0; j < m; ++j) rounding_.add(cls[j], coef[j], length);
        if (++used_ % batch == 0) flush();
    }
    // A lower bound of the value.  `longest` is the length of the longest row where the intercept is free, else zero;
    // `q` and `weights` say which norm.
    double value(const AnyRows& rows, double longest, double q = 2, const std::vector<double>& weights = {}) {
        flush();
        const int32_t k = rows.k;
        std::vector<double> squares(k);
        for (int64_t from = 0; from < d_; from += batch)  // in either order of V, what was read is still in the cache
            for (int32_t l = 0; l < k; ++l)
                for (int64_t j = from; j < std::min(from + batch, d_); ++j) {
                    const double v = V_[static_cast<size_t>(rows.place(l, j))];
                    squares[l] += v * v;
                }
        const double additions =
            part_.empty() ? static_cast<double>(used_) : static_cast<double>(batch + used_ / batch + 2);
        const double half = half_square_of_norms(squares, q, weights);
        const double slope = weights.empty() ? 1.0 : *std::max_element(weights.begin(), weights.end());
        const double least = q < 2 ? std::sqrt(2 * half) : 0.0;
        const double fresh = value_.value() - half - rounding_.total(squares, d_, additions, longest, slope, least);
        return fresh == fresh ? fresh : -infinity;
    }
    // The class vectors, after `value`, and the sums of the coefficients.
    const std::vector<double>& V() const { return V_; }
    std::vector<double> take_V() { return std::move(V_); }
    std::vector<double> totals() const { return rounding_.totals(); }

  private:
    static constexpr int64_t batch = 64;
    void flush() {
        for (size_t j = 0; j < part_.size(); ++j) V_[j] += std::exchange(part_[j], 0.0);
    }

    int64_t d_, used_ = 0;
    std::vector<double> V_, part_;
    DualRounding rounding_;
    Sum value_;
};

// `row` gives the duals of a sample, all feasible; `known` is the value that the solver believes in, the answer where
// the rows have no numbers of their own (kernels).
template <class Ascent, class Row>
double dual_value(Ascent& ascent, Row row, double known) {
    const AnyRows& rows = ascent.geo.rows;
    if (!rows.has_sums()) return known;
    DualSum sum(rows, std::move(ascent.buffer));
    for (int64_t i = 0; i < ascent.n; ++i) {
        const DualLists::Row r = row(i);
        if (r.size == 0) continue;
        const double gained = ascent.loss.dual(i, r.alpha, r.size);
        ascent.with_coefficients(
            i, r, [&](const int32_t* cls, int32_t m, const double* coef) { sum.add(rows, i, gained, cls, m, coef); });
    }
    const double longest = ascent.geo.intercept() ? ascent.geo.longest : 0;
    const double value = sum.value(rows, longest, ascent.geo.q, ascent.geo.class_weights);
    ascent.buffer = sum.take_V();
    return value;
}

}  // namespace skm

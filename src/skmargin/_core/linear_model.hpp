// Class vectors over a view of the rows, with centred features and an intercept that is not penalised.
//
// The intercept b is handled by the method of multipliers (math: proximal point in b): the blocks see
//     f_il = w_l'(x_i - mean) + b_l + t tot_l,     tot_l = sum_i c_il,     curvature ||x_i - mean||^2 + t
// and after a pass b += t tot.  X is never centred in memory: with V = sum_i x_i c_i', w_l = v_l - tot_l mean and
// shift_i = x_i'mean, the score is  v_l'x_i + base_l - shift_i tot_l,  where one number a class,
//     base_l = b_l + t tot_l - v_l'mean + tot_l ||mean||^2,
// collects all that does not depend on the sample.  Sparse rows stay sparse, at one multiply-add a class.
// Without an intercept mean, t, shift, base and tot are zero and the same code runs.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "rows.hpp"

namespace skm {

// Facts about the rows that every gear needs.
template <class Rows>
struct Geometry {
    Geometry(const Rows& rows, bool intercept) : rows(rows), curvature(rows.n), shift(intercept ? rows.n : 0) {
        for (int64_t i = 0; i < rows.n; ++i) curvature[i] = rows.squared_norm(i);
    }

    // With an intercept: centre at `mean`; t is a tenth of the mean of ||x_i - mean||^2:
    // larger values shorten the steps of the blocks, smaller ones those of b.
    void centre(const double* mean) {
        double average = 0;
        for (int64_t j = 0; j < rows.d; ++j) mean2 += mean[j] * mean[j];
        for (int64_t i = 0; i < rows.n; ++i) {
            shift[i] = rows.inner(i, mean);
            curvature[i] = std::max(0.0, curvature[i] - 2 * shift[i] + mean2);
            average += curvature[i] / static_cast<double>(rows.n);
        }
        t = average > 0 ? 0.1 * average : 1.0;
        for (double& a : curvature) a += t;
    }

    const Rows& rows;
    std::vector<double> curvature;  // A_i (+ t)
    std::vector<double> shift;      // x_i'mean; empty without an intercept
    double mean2 = 0, t = 0;
    double q = 2;  // of the norm ||V||_{2,q} in the dual
    bool intercept() const { return !shift.empty(); }
};

template <class Rows>
class LinearModel {
  public:
    using T = typename Rows::T;
    static constexpr bool weighted = false;
    explicit LinearModel(const Geometry<Rows>& geometry)
        : geo_(geometry), V_(geometry.rows.weights_size()), base_(geometry.rows.k), tot_(geometry.rows.k) {}

    void scores(int64_t i, const int32_t* cls, int32_t m, double* f) const {
        geo_.rows.scores(V_.data(), i, cls, m, f);
        if (geo_.intercept())
            for (int32_t j = 0; j < m; ++j) f[j] += base_[cls[j]] - geo_.shift[i] * tot_[cls[j]];
    }
    void scores_all(int64_t i, double* f) const {
        geo_.rows.scores_all(V_.data(), i, f);
        if (geo_.intercept())
            for (int32_t l = 0; l < geo_.rows.k; ++l) f[l] += base_[l] - geo_.shift[i] * tot_[l];
    }
    void add(int64_t i, const int32_t* cls, int32_t m, const double* coef) {
        geo_.rows.add(V_.data(), i, cls, m, coef);
        if (geo_.intercept())
            for (int32_t j = 0; j < m; ++j) {
                tot_[cls[j]] += coef[j];
                base_[cls[j]] += coef[j] * (geo_.mean2 + geo_.t - geo_.shift[i]);
            }
    }
    void clear() {
        V_.clear();
        std::fill(base_.begin(), base_.end(), 0.0);
        std::fill(tot_.begin(), tot_.end(), 0.0);
    }
    // this += s * other
    void add_scaled(const LinearModel& other, double s) {
        T* v = V_.data();
        const T* o = other.V_.data();
        const T scale = static_cast<T>(s);
        for (int64_t j = 0; j < V_.size(); ++j) v[j] += scale * o[j];
        for (int32_t l = 0; l < geo_.rows.k; ++l) {
            base_[l] += s * other.base_[l];
            tot_[l] += s * other.tot_[l];
        }
    }
    // Start from the intercept b (the scores gain b_l).
    void shift_base(const double* b) {
        for (int32_t l = 0; l < geo_.rows.k; ++l) base_[l] += b[l];
    }
    // The step of the multipliers: b += t tot, which the scores then see on top of t tot.
    void multiplier_step(double* b) {
        for (int32_t l = 0; l < geo_.rows.k; ++l) {
            b[l] += geo_.t * tot_[l];
            base_[l] += geo_.t * tot_[l];
        }
    }
    // ||W||^2 + t ||tot||^2 of a model without b.
    double squared_norm() const {
        double s = 0;
        for (int64_t j = 0; j < V_.size(); ++j) s += static_cast<double>(V_.data()[j]) * V_.data()[j];
        for (int32_t l = 0; l < geo_.rows.k; ++l)
            s += 2 * tot_[l] * base_[l] - tot_[l] * tot_[l] * (geo_.mean2 + geo_.t);
        return s;
    }
    const std::vector<double>& total() const { return tot_; }

    // Class vectors (k x d, row-major) and intercepts as a user sees them: f = W x + b.
    void publish(const double* mean, double* W, double* b) {
        for (int32_t l = 0; l < geo_.rows.k; ++l) {
            for (int64_t j = 0; j < geo_.rows.d; ++j) {
                double w = geo_.rows.weight(V_.data(), l, j);
                if (geo_.intercept()) w -= tot_[l] * mean[j];
                W[l * geo_.rows.d + j] = w;
            }
            // v_l'x + base_l - tot_l mean'x = w_l'x + base_l
            b[l] = base_[l];
        }
    }

  private:
    const Geometry<Rows>& geo_;
    Buffer<T> V_;
    std::vector<double> base_, tot_;
};

}  // namespace skm

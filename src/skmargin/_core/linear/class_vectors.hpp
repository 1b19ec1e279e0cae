// Class vectors over a view of the rows, with centred features and an intercept that is not penalised.
//
// The intercept b is handled by the method of multipliers (math: proximal point in b): the blocks see
//     f_il = w_l'(x_i - mean) + b_l + t tot_l,     tot_l = sum_i c_il,     curvature ||x_i - mean||^2 + t
// and after a pass b += t tot.  X is never centred in memory: with V = sum_i x_i c_i', w_l = v_l - tot_l mean and
// shift_i = x_i'mean, the score is  v_l'x_i + base_l - shift_i tot_l,  where one number a class,
//     base_l = b_l + t tot_l - v_l'mean + tot_l ||mean||^2,
// collects all that does not depend on the sample.  Sparse rows stay sparse, at one multiply-add a class.
//
// Without an intercept the direction of the mean is the same burden: most of ||x_i||^2 lies in it, and the blocks can
// only take short steps.  So its weight beta_l gets multipliers as well (here it is penalised like the rest): with the
// direction e, z_i = x_i'e, tot_l = sum_i z_i c_il and the proximal point b_l, minimising 1/2 beta^2 and the proximal
// term gives beta_l = (1 - t) b_l + t tot_l, the score is  v_l'x_i - z_i tilt_l  with tilt_l = tot_l - beta_l, the
// curvature ||x_i||^2 - (1 - t) z_i^2, and after a pass b += t (tot - b).  The gap is that of the blocks plus
// 1/2 ||tilt||^2.
// One code serves both:  score = v_l'x_i + base_l - shift_i tilt_l  (intercept: shift_i = x_i'mean, tilt = tot;
// without: base = 0, shift_i = z_i).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "rows/any_rows.hpp"
#include "tuning.hpp"

namespace skm {

// What block ascent needs to know about the rows: curvatures, and how they are centred.
struct RowGeometry {
    explicit RowGeometry(const AnyRows& rows, const ProximalWeightTuning& tuning = {})
        : rows(rows), curvature(rows.n), tuning_(tuning) {
        for (int64_t i = 0; i < rows.n; ++i) curvature[i] = rows.squared_norm(i);
        for (const double square : curvature) longest = std::max(longest, std::sqrt(square));
    }

    // With an intercept: centre the features at `mean` and choose the proximal weight t.  A large t makes the steps of
    // the blocks short, since it is added to the inner products of all pairs of rows; a small t makes those of b short.
    // The choice: small beside the inner products; larger where the duals, `total_cap` in all, could not move b by a
    // margin with that.
    void centre(const double* mean, double total_cap = std::numeric_limits<double>::infinity()) {
        subtract(mean);
        double average = 0;
        for (const double square : curvature) average += square / static_cast<double>(rows.n);
        // The blocks see the curvatures times the weights of the classes (block_norm/class_vectors.hpp): k^(2/q - 1)
        // where all norms are equal.
        double weight = std::pow(static_cast<double>(rows.k), 2 / q - 1);
        if (!class_weights.empty())
            weight = std::accumulate(class_weights.begin(), class_weights.end(), 0.0) / static_cast<double>(rows.k);
        const double typical =
            small_beside_products(average, [&](int64_t i, int64_t j) { return mean2 - shift[i] - shift[j]; });
        t = std::max(typical * weight, 1 / total_cap);
        if (!(t > 0)) t = 1;
        for (double& a : curvature) a += t;
    }
    // The same with a t that is known, of other rows of the same problem.
    void centre_with(const std::vector<double>& mean, double weight) {
        subtract(mean.data());
        t = weight;
        for (double& a : curvature) a += t;
    }

    // Without an intercept: treat the direction of the mean apart where it holds most of the rows' squares.
    void deflate(const double* mean) {
        double length = 0, along = 0, across = 0;
        for (int64_t j = 0; j < rows.d; ++j) length += mean[j] * mean[j];
        if (!(length > 0)) return;
        length = std::sqrt(length);
        direction.assign(mean, mean + rows.d);
        for (double& e : direction) e /= length;
        shift.resize(rows.n);
        for (int64_t i = 0; i < rows.n; ++i) {
            shift[i] = rows.inner(i, direction.data());
            along += shift[i] * shift[i];
            across += std::max(0.0, curvature[i] - shift[i] * shift[i]);
        }
        if (!(across > rounding * along && across < along)) {
            shift.clear();
            direction.clear();
            return;
        }
        const double n = static_cast<double>(rows.n);
        t = std::min(
            1.0,
            small_beside_products(across / n, [&](int64_t i, int64_t j) { return -shift[i] * shift[j]; }) * n / along);
        score_per_unit = std::sqrt(along / static_cast<double>(rows.n));
        for (int64_t i = 0; i < rows.n; ++i)
            curvature[i] = std::max(t * curvature[i], curvature[i] - (1 - t) * shift[i] * shift[i]);
    }

    const AnyRows& rows;
    std::vector<double> curvature;  // of a block
    std::vector<double> shift;      // x_i'mean or z_i
    std::vector<double> direction;  // mean or e; empty without multipliers
    double mean2 = 0, t = 0;
    double longest = 0;                 // row, as it is given
    double score_per_unit = 1;          // by how much a unit of a multiplier moves a typical score
    double q = 2;                       // of the norm ||V||_{2,q} in the dual
    std::vector<double> class_weights;  // where given, the square of that norm is sum_l class_weights_l ||v_l||^2
    bool shifted() const { return !direction.empty(); }
    bool intercept() const { return has_intercept_; }

  private:
    void subtract(const double* mean) {
        has_intercept_ = true;
        direction.assign(mean, mean + rows.d);
        shift.resize(rows.n);
        for (int64_t j = 0; j < rows.d; ++j) mean2 += mean[j] * mean[j];
        for (int64_t i = 0; i < rows.n; ++i) {
            shift[i] = rows.inner(i, mean);
            curvature[i] = std::max(0.0, curvature[i] - 2 * shift[i] + mean2);
        }
    }

    // A number small beside the inner products x_i'x_j + shifted(i, j): a share of their typical size, at least what n
    // orthogonal rows of mean square `square` would give.  Inner products of kernel rows are not sampled, they cost too
    // much: half of the square is taken as typical.
    template <class Shifted>
    double small_beside_products(double square, Shifted shifted) const {
        const uint32_t n = static_cast<uint32_t>(rows.n);
        double typical = 0.5 * square;
        if (rows.has_products()) {
            Random random(0);
            typical = 0;
            for (uint32_t p = 0; p < n && n > 1; ++p) {
                const int64_t i = random.below(n), other = random.below(n - 1), j = other + (other >= i);
                typical += std::abs(rows.product(i, j) + shifted(i, j)) / n;
            }
        }
        return std::max(tuning_.small_share * typical, square / n);
    }

    static constexpr double rounding = 1e-14;  // of a square beside the length of its row
    const ProximalWeightTuning tuning_;
    bool has_intercept_ = false;
};

class ClassVectors {
  public:
    static constexpr bool weighted = false;
    // The numbers alone, which other rows of the same problem may go on with.
    struct Numbers {
        AnyRows::Weights V;
        std::vector<double> base, tilt, tot;
    };

    explicit ClassVectors(const RowGeometry& geometry)
        : ClassVectors(geometry, {AnyRows::Weights(geometry.rows.weights_bytes()), std::vector<double>(geometry.rows.k),
                                  std::vector<double>(geometry.rows.k), std::vector<double>(geometry.rows.k)}) {}
    ClassVectors(const RowGeometry& geometry, Numbers&& numbers)
        : geo_(geometry), V_(std::move(numbers.V)), base_(std::move(numbers.base)), tilt_(std::move(numbers.tilt)),
          tot_(std::move(numbers.tot)) {}
    Numbers release() { return {std::move(V_), std::move(base_), std::move(tilt_), std::move(tot_)}; }
    Numbers copy() const {
        Numbers out{AnyRows::Weights(V_.size()), base_, tilt_, tot_};
        std::copy(V_.data(), V_.data() + V_.size(), out.V.data());
        return out;
    }
    // V and tot from double precision, V in the order of `place` (rows/any_rows.hpp); b are the multipliers.
    void assign(const std::vector<double>& V, const std::vector<double>& tot, const std::vector<double>& b) {
        const AnyRows& rows = geo_.rows;
        rows.assign(V_, V.data());
        if (!geo_.intercept()) return;
        std::vector<double> at_mean(rows.k);
        for (int32_t l = 0; l < rows.k; ++l)
            for (int64_t j = 0; j < rows.d; ++j)
                at_mean[l] += V[static_cast<size_t>(rows.place(l, j))] * geo_.direction[j];
        tot_ = tilt_ = tot;
        for (int32_t l = 0; l < rows.k; ++l) base_[l] = b[l] + tot[l] * (geo_.t + geo_.mean2) - at_mean[l];
    }

    void scores(int64_t i, const int32_t* cls, int32_t m, double* f) const {
        geo_.rows.scores(V_, i, cls, m, f);
        if (geo_.shifted())
            for (int32_t j = 0; j < m; ++j) f[j] += base_[cls[j]] - geo_.shift[i] * tilt_[cls[j]];
    }
    void scores_all(int64_t i, double* f) const {
        geo_.rows.scores_all(V_, i, f);
        if (geo_.shifted())
            for (int32_t l = 0; l < geo_.rows.k; ++l) f[l] += base_[l] - geo_.shift[i] * tilt_[l];
    }
    void add(int64_t i, const int32_t* cls, int32_t m, const double* coef) {
        geo_.rows.add(V_, i, cls, m, coef);
        if (!geo_.shifted()) return;
        const double z = geo_.shift[i];
        for (int32_t j = 0; j < m; ++j) {
            const int32_t l = cls[j];
            if (geo_.intercept()) {
                tot_[l] += coef[j];
                tilt_[l] += coef[j];
                base_[l] += coef[j] * (geo_.mean2 + geo_.t - z);
            } else {
                tot_[l] += coef[j] * z;
                tilt_[l] += coef[j] * z * (1 - geo_.t);
            }
        }
    }
    // Start anywhere, whatever the duals: steps are added to these class vectors (k x d) and intercepts.
    void start_at(const double* W, const double* b) {
        clear();
        const AnyRows& rows = geo_.rows;
        std::vector<double> placed(static_cast<size_t>(rows.weights_size()));
        for (int32_t l = 0; l < rows.k; ++l)
            for (int64_t j = 0; j < rows.d; ++j) placed[static_cast<size_t>(rows.place(l, j))] = W[l * rows.d + j];
        rows.assign(V_, placed.data());
        std::copy(b, b + geo_.rows.k, base_.begin());
    }
    void clear() {
        V_.clear();
        for (std::vector<double>* v : {&base_, &tilt_, &tot_}) std::fill(v->begin(), v->end(), 0.0);
    }
    // this += s * other
    void add_scaled(const ClassVectors& other, double s) {
        geo_.rows.add_scaled(V_, other.V_, s);
        for (int32_t l = 0; l < geo_.rows.k; ++l) {
            base_[l] += s * other.base_[l];
            tilt_[l] += s * other.tilt_[l];
            tot_[l] += s * other.tot_[l];
        }
    }
    // Start from the multipliers b; without an intercept from those that fit the duals.
    void add_multipliers(double* b) {
        for (int32_t l = 0; l < geo_.rows.k; ++l) {
            if (geo_.intercept()) {
                base_[l] += b[l];
            } else {
                b[l] = tot_[l];
                tilt_[l] -= (1 - geo_.t) * b[l];
            }
        }
    }
    // What the multipliers follow: a step is b += t residual.
    const std::vector<double>& residual(const double* b) {
        residual_ = tot_;
        if (!geo_.intercept())
            for (int32_t l = 0; l < geo_.rows.k; ++l) residual_[l] -= b[l];
        return residual_;
    }
    double stiffness() const { return 1; }
    void multiplier_step(double* b, const std::vector<double>& steps) {
        for (int32_t l = 0; l < geo_.rows.k; ++l) {
            const double step = geo_.t * steps[l];
            b[l] += step;
            if (geo_.intercept()) base_[l] += step;
            else tilt_[l] -= (1 - geo_.t) * step;
        }
    }
    // The curvature of the blocks' problem along a model without b:  ||W||^2 + t ||tot||^2, W without the direction.
    double squared_norm() const {
        double s = geo_.rows.weights_square(V_);
        for (int32_t l = 0; l < geo_.rows.k; ++l)
            s += geo_.intercept() ? 2 * tot_[l] * base_[l] - tot_[l] * tot_[l] * (geo_.mean2 + geo_.t)
                                  : -tot_[l] * tilt_[l];
        return s;
    }
    const std::vector<double>& total() const { return tot_; }
    const std::vector<double>& tilt() const { return tilt_; }

    // Largest size that the terms of a score add up to: its rounding, and that of the published numbers, is at most
    // (d + 16) units of that.  Infinite where scores are not computed in double precision.
    double score_size() const {
        if (!geo_.rows.double_precision()) return std::numeric_limits<double>::infinity();
        const int64_t d = geo_.rows.d;
        std::vector<double> V(static_cast<size_t>(geo_.rows.k * d));
        geo_.rows.read(V_, V.data());
        double most = 0, furthest = 0;
        for (const double z : geo_.shift) furthest = std::max(furthest, std::abs(z));
        for (int32_t l = 0; l < geo_.rows.k; ++l) {
            double square = 0;
            for (int64_t j = l * d; j < (l + 1) * d; ++j) square += V[j] * V[j];
            most =
                std::max(most, std::sqrt(square) * geo_.longest + std::abs(base_[l]) + furthest * std::abs(tilt_[l]));
        }
        return most;
    }

    // Class vectors (k x d, row-major) and intercepts as a user sees them: f = W x + b.
    void publish(double* W, double* b) {
        const int64_t d = geo_.rows.d;
        geo_.rows.read(V_, W);
        for (int32_t l = 0; l < geo_.rows.k; ++l) {
            for (int64_t j = 0; geo_.shifted() && j < d; ++j) W[l * d + j] -= tilt_[l] * geo_.direction[j];
            b[l] = base_[l];
        }
    }

  private:
    const RowGeometry& geo_;
    AnyRows::Weights V_;
    std::vector<double> base_, tilt_, tot_, residual_;
};

}  // namespace skm

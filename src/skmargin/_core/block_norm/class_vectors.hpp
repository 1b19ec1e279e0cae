// Class vectors under the block norm of Lei et al. (2015), for the block ascent of linear/block_ascent.hpp.
//
//     primal  1/2 ||W||_{2,p}^2 + losses,   ||W||_{2,p} = (sum_l ||w_l||^p)^(1/p),   1/p + 1/q = 1
//     dual    sum_i dual_i(alpha_i) - G(V),   G(V) = 1/2 ||V||_{2,q}^2,   V = sum_i x_i c_i'
//     link    w_l = bet_l v_l,   bet_l = (||v_l|| / ||V||_{2,q})^(q-2)      (the gradient of G)
//
// The scores of a dual point are those of its link, so that the duality gap is a sum over samples as in the other
// machines.  A block step moves v_l by a multiple of x_i; G is replaced by a quadratic with the curvatures
//     h_l = A_i bet_l (1 + (q-2)_+ cos^2(v_l, x_i))
// For q <= 2 it lies above G, and every step is an ascent.  For q > 2 it is the exact second derivative, and a step
// that gains less than half of what the quadratic predicted is repeated with larger curvatures; (q-1) A_i, where that
// ends, lies above G. The norms ||v_l|| follow each step in O(1) a class: a pass costs what a pass of Crammer-Singer
// costs. `floor`^2 is added to the squared norms: with q < 2 a class whose vector is zero could not leave zero, and
// with q near 1 the norms of the v_l differ by more digits than a number has.  The floor moves the optimum by about its
// own (relative) size, and the certificate is that of the exact problem.
//
// Without an intercept, and for q < 2, the direction e of the mean is set apart as in linear/class_vectors.hpp: with
// v_l = u_l + tot_l e the weight of the direction is beta_l = (1 - t) b_l + t bet_l tot_l, b_l the multiplier, and G is
// taken at (u_l, tau_l) with tau_l = beta_l / bet_l: then the quadratic with bet still lies above what the blocks
// minimise. The gap is that of w_l = bet_l u_l + beta_l e and V, whatever b is.
//
// Given weights (`RowGeometry::class_weights`, problem 14 of the paper) take the place of bet: the penalty is then
// 1/2 sum_l ||w_l||^2 / bet_l, G = 1/2 sum_l bet_l ||v_l||^2, and the steps are those of q = 2.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "base/sums.hpp"
#include "linear/class_vectors.hpp"

namespace skm {

class BlockNormVectors {
  public:
    static constexpr bool weighted = true;

    explicit BlockNormVectors(const RowGeometry& geometry)
        : geo_(geometry), q_(geometry.q), k_(geometry.rows.k), fixed_(!geometry.class_weights.empty()),
          V_(geometry.rows.weights_bytes()), tot_(k_), centre_(k_), base_(k_), square_(k_), tau_(k_), product_(k_),
          power_(k_), share_(k_), curvature_(k_ + 1), z_(k_),
          direction_apart_(geometry.shifted() && !geometry.intercept()),
          proximal_curvature_(geometry.intercept() ? geometry.t : 0.0) {}

    void scores(int64_t i, const int32_t* cls, int32_t m, double* f) {
        products(i, cls, m, f);
        for (int32_t j = 0; j < m; ++j) {
            product_[cls[j]] = f[j];
            f[j] = score(i, cls[j], f[j]);
        }
        scored_ = i;
    }
    void scores_all(int64_t i, double* f) {
        geo_.rows.scores_all(V_, i, f);
        for (int32_t l = 0; l < k_; ++l) {
            if (geo_.shifted()) f[l] += centre_[l] - geo_.shift[i] * tot_[l];
            product_[l] = f[l];
            f[l] = score(i, l, f[l]);
        }
        scored_ = i;
    }
    // v_l'(x_i - mean) or u_l'x_i for some classes.
    void products(int64_t i, const int32_t* cls, int32_t m, double* f) const {
        geo_.rows.scores(V_, i, cls, m, f);
        if (geo_.shifted())
            for (int32_t j = 0; j < m; ++j) f[j] += centre_[cls[j]] - geo_.shift[i] * tot_[cls[j]];
    }
    // The score from such a product.
    double score(int64_t i, int32_t l, double product) const {
        return weight(l) * product + (direction_apart_ ? geo_.shift[i] * beta(l) : base_[l]);
    }
    // V += x_i coef'.  Norms follow if the scores of these classes were the last thing asked.
    void add(int64_t i, const int32_t* cls, int32_t m, const double* coef) {
        geo_.rows.add(V_, i, cls, m, coef);
        if (geo_.intercept())
            for (int32_t j = 0; j < m; ++j) {
                tot_[cls[j]] += coef[j];
                centre_[cls[j]] += coef[j] * (geo_.mean2 - geo_.shift[i]);
                base_[cls[j]] += coef[j] * geo_.t;
            }
        else if (direction_apart_)
            for (int32_t j = 0; j < m; ++j) tot_[cls[j]] += coef[j] * geo_.shift[i];
        if (scored_ != i) return;
        scored_ = -1;
        const double A =
            geo_.curvature[i] - (direction_apart_ ? geo_.t * geo_.shift[i] * geo_.shift[i] : proximal_curvature_);
        for (int32_t j = 0; j < m; ++j) {
            const int32_t l = cls[j];
            square_[l] = std::max(0.0, square_[l] + coef[j] * (2 * product_[l] + coef[j] * A));
            if (fixed_) continue;
            sum_ -= share_[l];
            set_power(l);
            sum_ += share_[l];
        }
        if (fixed_) return;
        if (++steps_ % 16 == 0) sum_shares();
        scale_ = sum_ > 0 ? std::pow(sum_, (2 - q_) / q_) : 1.0;  // all rows may be zero
    }

    // Squared norms from outside, see BlockAscent::measure.
    double* squares() { return square_.data(); }
    // Weights of the classes from the squared norms; `floor` is relative to the largest norm.
    void update_weights(double floor) {
        double top = 0;
        for (int32_t l = 0; l < k_; ++l) top = std::max(top, square_[l] + tau_[l] * tau_[l]);
        update_weights_absolute(floor * floor * top);
    }
    void update_weights_absolute(double floor2) {
        if (fixed_) {
            power_ = geo_.class_weights;
            for (double& square : square_) square = std::max(0.0, square);
            return;
        }
        floor2_ = floor2;
        double top = floor2;
        for (int32_t l = 0; l < k_; ++l) {
            square_[l] = std::max(0.0, square_[l]);
            set_tau(l);
            top = std::max(top, square_[l] + tau_[l] * tau_[l]);
        }
        unit2_ = top > 0 ? top + floor2 : 1.0;
        for (int32_t l = 0; l < k_; ++l) set_power(l);
        sum_shares();
        scale_ = sum_ > 0 ? std::pow(sum_, (2 - q_) / q_) : 1.0;
    }

    // One block of a loss whose dual is a function of S = sum alpha alone: the minimiser over a >= 0 of
    //     1/2 h_y (sum a - sum alpha)^2 + 1/2 sum h_l (a_l - alpha_l)^2 + sum d_l (a_l - alpha_l) - dual_i(sum a)
    // is a_l = (z_l - nu)_+/h_l, z_l = h_l alpha_l - d_l.  With the rivals that have z_l > nu given, their sum is a
    // proximal point of the dual (`best_sum`), and nu follows from it.  To take too many of them gives a nu below the
    // right one: from the left, nu rises to it as rivals leave.
    template <class Loss>
    void block(const Loss& loss, int64_t i, double curvature, int32_t own, const int32_t* cls, const double* d,
               const double* alpha, int32_t m, double* out) {
        const double A = std::max(curvature - proximal_curvature_, 0.0);
        for (int32_t j = 0; j < m; ++j) curvature_[j] = curvature_along(A, cls[j], product_[cls[j]]);
        curvature_[m] = curvature_along(A, own, product_[own]);
        for (int tries = 0; tries < 64; ++tries) {  // doubling from 1e-6 reaches the limit much sooner
            minimise(loss, i, d, alpha, m, out);
            if (q_ <= 2 || gains_half(loss, i, own, cls, d, alpha, m, out)) return;
            bool largest = true;
            for (int32_t j = 0; j <= m; ++j) {
                const double most = (q_ - 1) * A;
                largest = largest && curvature_[j] >= most;
                curvature_[j] = std::min(2 * std::max(curvature_[j], 1e-3 * most), most);
            }
            if (largest) return;
        }
    }

    void clear() {
        V_.clear();
        for (auto* v : {&tot_, &centre_, &base_, &square_}) std::fill(v->begin(), v->end(), 0.0);
        scored_ = -1;
        update_weights_absolute(0);
    }
    void add_multipliers(const double* b) {
        for (int32_t l = 0; l < k_; ++l) base_[l] += (direction_apart_ ? 1 - geo_.t : 1.0) * b[l];
    }
    void multiplier_step(double* b, const std::vector<double>& steps) {
        for (int32_t l = 0; l < k_; ++l) {
            const double step = geo_.t * steps[l];
            b[l] += step;
            base_[l] += (direction_apart_ ? 1 - geo_.t : 1.0) * step;
        }
        if (direction_apart_) update_weights_absolute(floor2_);
    }
    // 1/2 ||W||_{2,p}^2 of the published vectors, and 1/2 ||V||_{2,q}^2; without the floor they would be equal.
    double penalty() const {
        if (fixed_) return conjugate();
        const double p = q_ / (q_ - 1);
        return half_square(p, [&](int32_t l) {
            return std::hypot(weight(l) * std::sqrt(square_[l]), direction_apart_ ? beta(l) : 0.0);
        });
    }
    double conjugate() const {
        if (fixed_) return 0.5 * std::inner_product(square_.begin(), square_.end(), power_.begin(), 0.0);
        return half_square(
            q_, [&](int32_t l) { return std::hypot(std::sqrt(square_[l]), direction_apart_ ? tot_[l] : 0.0); });
    }
    const std::vector<double>& total() const { return tot_; }
    // What a step of the multipliers moves: b += t residual.
    const std::vector<double>& residual(const double* b) {
        if (!direction_apart_) return tot_;
        residual_.resize(k_);
        for (int32_t l = 0; l < k_; ++l) residual_[l] = weight(l) * tot_[l] - b[l];
        return residual_;
    }
    // A residual r gains t r^2 / 2 over this, which is the mean weight where the residual has one.
    double stiffness() const {
        double sum = 0;
        for (int32_t l = 0; l < k_; ++l) sum += weight(l) / k_;
        return direction_apart_ && sum > 0 ? sum : 1.0;
    }
    double weight(int32_t l) const { return power_[l] * scale_; }
    double length2(int32_t l) const { return square_[l] + tau_[l] * tau_[l] + floor2_; }

    // For the steps on the face (block_norm/face_newton.hpp): G along V + s U, with along_l = v_l'u_l and squares_l =
    // ||u_l||^2: its slope, its increase, and the step itself.  With a direction apart the vectors are (u_l, tau_l),
    // and tau_l moves by t times what tot_l moves by; the remaining part is a quadratic of the multipliers,
    // `multiplier_curvature`.
    double direction_move2(const BlockNormVectors& U, int32_t l) const {
        return direction_apart_ ? geo_.t * geo_.t * U.tot_[l] * U.tot_[l] : 0.0;
    }
    // v_l'x_i of these vectors and the row that belongs to them, from the product of `products`.
    double with_direction(int64_t i, int32_t l, double product) const {
        return direction_apart_ ? product + geo_.t * geo_.shift[i] * tau_[l] : product;
    }
    // What the multipliers add to the score of U.
    double multiplier_score(const BlockNormVectors& U, int64_t i, int32_t l) const {
        return direction_apart_ ? geo_.t * weight(l) * geo_.shift[i] * U.tot_[l] : proximal_curvature_ * U.tot_[l];
    }
    double multiplier_curvature(const BlockNormVectors& U, int32_t l) const {
        return (direction_apart_ ? geo_.t * (1 - geo_.t) * weight(l) : proximal_curvature_) * U.tot_[l] * U.tot_[l];
    }
    // Diagonal of the Hessian; x as `products` gives it.
    double metric(int64_t i, int32_t l, double x) const {
        return curvature_along(geo_.curvature[i] - proximal_curvature_, l, x) + proximal_curvature_;
    }
    double slope(const std::vector<double>& along, const std::vector<double>& squares, double s) const {
        double sum = 0, slope = 0;
        for (int32_t l = 0; l < k_; ++l) {
            const double u2 = moved2(along, squares, s, l) / unit2_;
            if (u2 <= 0) continue;
            const double power = std::pow(u2, 0.5 * q_ - 1);
            sum += power * u2;
            slope += power * (along[l] + s * squares[l]);
        }
        return sum > 0 ? std::pow(sum, (2 - q_) / q_) * slope : 0.0;
    }
    double increase(const std::vector<double>& along, const std::vector<double>& squares, double s) const {
        double sum = 0;
        for (int32_t l = 0; l < k_; ++l) sum += std::pow(moved2(along, squares, s, l) / unit2_, 0.5 * q_);
        return 0.5 * unit2_ * (std::pow(sum, 2 / q_) - std::pow(sum_, 2 / q_));
    }
    void add_scaled(const BlockNormVectors& U, const std::vector<double>& along, const std::vector<double>& squares,
                    double s) {
        geo_.rows.add_scaled(V_, U.V_, s);
        for (int32_t l = 0; l < k_; ++l) {
            tot_[l] += s * U.tot_[l];
            base_[l] += s * U.base_[l];
            centre_[l] += s * U.centre_[l];
            const double tau = tau_[l] + (direction_apart_ ? s * geo_.t * U.tot_[l] : 0.0);
            square_[l] = moved2(along, squares, s, l) - floor2_ - tau * tau;
        }
        scored_ = -1;
        update_weights_absolute(floor2_);
    }
    // Curvature of the model of G along x_i, where x = v_l'x_i.
    double curvature_along(double A, int32_t l, double x) const {
        const double w = weight(l);
        if (q_ <= 2) return A * w;
        const double length = A * square_[l];
        const double cos2 = length > 0 ? std::min(1.0, x * x / length) : 0.0;
        return A * std::max(w * (1 + (q_ - 2) * cos2), 1e-6 * (q_ - 1));
    }

    // Class vectors and intercepts as a user sees them: f = W x + b.
    void publish(double* W, double* b) {
        const int64_t d = geo_.rows.d;
        geo_.rows.read(V_, W);
        for (int32_t l = 0; l < k_; ++l) {
            const double tilt = weight(l) * tot_[l] - (direction_apart_ ? beta(l) : 0.0);
            for (int64_t j = l * d; j < (l + 1) * d; ++j) {
                W[j] *= weight(l);
                if (geo_.shifted()) W[j] -= tilt * geo_.direction[j - l * d];
            }
            b[l] = direction_apart_ ? 0.0 : base_[l] + weight(l) * centre_[l];
        }
    }
    // The same for a kernel machine: the scores are weight_l sum_i K(x, x_i) c_il + b_l.
    void publish_weights(double* weights, double* b) const {
        for (int32_t l = 0; l < k_; ++l) {
            weights[l] = weight(l);
            b[l] = base_[l];
        }
    }

  private:
    // Half of the squared p-norm of k numbers, in units of the largest.
    template <class Norm>
    double half_square(double p, Norm norm) const {
        double top = 0, sum = 0;
        for (int32_t l = 0; l < k_; ++l) top = std::max(top, norm(l));
        if (top == 0) return 0;
        for (int32_t l = 0; l < k_; ++l) sum += std::pow(norm(l) / top, p);
        return 0.5 * top * top * std::pow(sum, 2 / p);
    }
    // power = u^(q-2), share = u^q for the norm u in units that keep q = 21 in range
    void set_power(int32_t l) {
        set_tau(l);
        const double u2 = length2(l) / unit2_;
        power_[l] = u2 > 0 ? std::pow(u2, 0.5 * q_ - 1) : 1.0;  // all squares are zero
        share_[l] = power_[l] * u2;
    }
    double beta(int32_t l) const { return base_[l] + geo_.t * weight(l) * tot_[l]; }
    void set_tau(int32_t l) {
        if (direction_apart_) tau_[l] = geo_.t * tot_[l] + (weight(l) > 0 ? base_[l] / weight(l) : 0.0);
    }
    void sum_shares() {
        sum_ = 0;
        for (const double s : share_) sum_ += s;
    }

    double moved2(const std::vector<double>& along, const std::vector<double>& squares, double s, int32_t l) const {
        return std::max(square_[l] + tau_[l] * tau_[l] + s * (2 * along[l] + s * squares[l]), 0.0) + floor2_;
    }

    template <class Loss>
    void minimise(const Loss& loss, int64_t i, const double* d, const double* alpha, int32_t m, double* out) {
        const double t = proximal_curvature_, own = curvature_[m] + t;
        if (m == 1) {
            const double h = own + curvature_[0] + t;
            out[0] = loss.best_sum(i, h, alpha[0] - d[0] / h);
            return;
        }
        const double S = sum_of(alpha, m);
        for (int32_t j = 0; j < m; ++j) z_[j] = (curvature_[j] + t) * alpha[j] - d[j];
        double nu = -infinity;
        for (int32_t last = m + 1;;) {
            double held = 0, give = 0;
            int32_t count = 0;
            for (int32_t j = 0; j < m; ++j)
                if (z_[j] > nu) {
                    held += z_[j] / (curvature_[j] + t);
                    give += 1 / (curvature_[j] + t);
                    ++count;
                }
            if (count == 0) break;
            const double h = own + 1 / give;
            nu = (held - loss.best_sum(i, h, (own * S + held / give) / h)) / give;
            if (count >= last) break;  // at rounding the set may come back
            last = count;
        }
        double sum = 0;
        for (int32_t j = 0; j < m; ++j) sum += out[j] = std::max(z_[j] - nu, 0.0) / (curvature_[j] + t);
        const double U = loss.sum_limit(i);
        if (sum > U)  // rounding
            for (int32_t j = 0; j < m; ++j) out[j] *= U / sum;
    }

    // Whether the dual gains at least half of what the quadratic said.
    template <class Loss>
    bool gains_half(const Loss& loss, int64_t i, int32_t own, const int32_t* cls, const double* d, const double* alpha,
                    int32_t m, const double* out) const {
        const double A = geo_.curvature[i] - proximal_curvature_;
        double change = 0, rise = 0, squares = 0, linear = 0, sum = sum_;
        auto move = [&](int32_t l, double c, double h) {
            squares += h * c * c;
            linear += c * weight(l) * product_[l];
            const double u2 = (std::max(0.0, square_[l] + c * (2 * product_[l] + c * A)) + floor2_) / unit2_;
            sum += std::pow(u2, 0.5 * q_) - share_[l];
        };
        for (int32_t j = 0; j < m; ++j) {
            const double a = out[j] - alpha[j];
            if (a == 0) continue;
            change += a;
            rise -= a * d[j];
            move(cls[j], -a, curvature_[j]);
        }
        rise += loss.dual(i, out, m) - loss.dual(i, alpha, m);
        if (rise == 0) return true;
        move(own, change, curvature_[m]);
        // The terms of the loss and the quadratic of the intercept are the same on both sides:
        // predicted = rise - squares/2 - ..., gain = rise - [G(new) - G(old) - linear] - ...
        const double before = unit2_ * std::pow(sum_, 2 / q_), after = unit2_ * std::pow(std::max(sum, 0.0), 2 / q_);
        const double excess = 0.5 * (after - before) - linear;
        double free = rise;
        if (proximal_curvature_ > 0) {
            double squares = change * change;
            for (int32_t j = 0; j < m; ++j) squares += (out[j] - alpha[j]) * (out[j] - alpha[j]);
            free -= 0.5 * proximal_curvature_ * squares;
        }
        return free - excess >= 0.5 * (free - 0.5 * squares) - 1e-14 * (1 + before);
    }

    const RowGeometry& geo_;
    const double q_;
    const int32_t k_;
    const bool fixed_;  // the weights of the classes are given
    AnyRows::Weights V_;
    // sum_i c_i, (v_l - tot_l mean)'(-mean), b + t tot; with a direction apart v_l'e, 0, (1 - t) b
    std::vector<double> tot_, centre_, base_;
    std::vector<double> square_, tau_, product_;  // ||v_l||^2 (centred), or ||u_l||^2 and tau; v_l'x of the last sample
    std::vector<double> power_, share_, curvature_, z_, residual_;
    const bool direction_apart_;       // the direction of the mean, see above
    const double proximal_curvature_;  // curvature that the multipliers of an intercept add
    double floor2_ = 0, unit2_ = 1, sum_ = 0, scale_ = 1;
    int64_t scored_ = -1, steps_ = 0;
};

}  // namespace skm

// Momentum of block ascent on the working set of a kernel machine: accelerated coordinate descent on -D (Fercoq &
// Richtarik 2015, "APPROX", one block at a time).
//
// Where C is large, plain passes are slow along the flat directions of the dual.  Two points, with theta = 1/n, z = x
// and u = 0 at the start (n samples, F_. = K c_.):
//     visit of sample i:  e = block(curvature n theta K_ii, scores F_z + theta^2 F_u, duals z_i) - z_i
//                         z_i += e,   u_i -= (1 - n theta)/theta^2 e,   F_z and F_u alike: one row of K, twice
//                         theta <- (sqrt(theta^4 + 4 theta^2) - theta^2)/2
//     x = z + theta^2 u   with the theta of the last visit
// All z are feasible, and x is a mean of them: it is the point that is measured.  The first pass is a plain one; after
// p of them n theta is about 2/(p + 2), so that steps of z are p/2 times as long.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/sums.hpp"
#include "kernel/samples.hpp"
#include "tuning.hpp"

namespace skm {

template <class T>
class Momentum {
  public:
    // x and its sums tot are what `publish` writes.
    Momentum(const KernelSamples<T>& x, double* tot, int64_t passes, const KernelAscentTuning& tuning)
        : x_(x), tot_(tot), tuning_(tuning), z_(x.n * x.k), u_(x.n * x.k), tot_z_(x.k), tot_u_(x.k),
          storage_(2 * x.k * x.ld + cache_line) {
        F_ = storage_.data() +
             (cache_line - reinterpret_cast<uintptr_t>(storage_.data()) / sizeof(T) % cache_line) % cache_line;
        begin(passes);
    }

    // From x on, without any momentum.
    void begin(int64_t passes) {
        const int64_t size = x_.k * x_.ld;
        std::copy(x_.F, x_.F + size, F_);
        std::fill(F_ + size, F_ + 2 * size, T{0});
        std::copy(x_.alpha, x_.alpha + x_.n * x_.k, z_.begin());
        std::copy(tot_, tot_ + x_.k, tot_z_.begin());
        std::fill(u_.begin(), u_.end(), 0.0);
        std::fill(tot_u_.begin(), tot_u_.end(), 0.0);
        theta_ = 1.0 / static_cast<double>(x_.n);
        last_weight_ = 0;
        first_pass_ = passes;
        smallest_gap_ = infinity;
    }

    // The duals z, and the scores of z and u, one below the other.
    KernelSamples<T> samples() { return {F_, x_.ld, z_.data(), x_.y, x_.n, x_.k, x_.column}; }
    const std::vector<double>& duals() const { return z_; }
    double weight() const { return theta_ * theta_; }
    // How much longer steps are than those of plain ascent.
    double stride() const { return 1 / share(); }
    void shift(const double* b, double t, double* out) const {
        for (int32_t l = 0; l < x_.k; ++l) out[l] = b[l] + t * (tot_z_[l] + weight() * tot_u_[l]);
    }

    // The coefficients of sample i in z have changed, that of its own class (the last) as well: u, and the coefficients
    // of its row in F_u behind those in F_z.  Returns how many there are now.
    int32_t step(int64_t i, int32_t* cls, double* coef, int32_t changed) {
        const double back = (share() - 1) / weight();
        for (int32_t j = 0; j < changed; ++j) {
            cls[changed + j] = x_.k + cls[j];
            coef[changed + j] = back * coef[j];
            if (j + 1 < changed) u_[i * x_.k + cls[j]] -= back * coef[j];
            tot_z_[cls[j]] += coef[j];
            tot_u_[cls[j]] += back * coef[j];
        }
        return 2 * changed;
    }
    // After every visit.
    void next() {
        last_weight_ = weight();
        if (share() > tuning_.min_theta_share)
            theta_ = 0.5 * (std::sqrt(last_weight_ * last_weight_ + 4 * last_weight_) - last_weight_);
    }

    // x = z + theta^2 u, whose duals rounding must not make negative.
    void publish() {
        const int64_t size = x_.k * x_.ld;
        const T weight = static_cast<T>(last_weight_);
        for (int64_t j = 0; j < size; ++j) x_.F[j] = F_[j] + weight * F_[size + j];
        for (size_t j = 0; j < u_.size(); ++j) x_.alpha[j] = std::max(0.0, z_[j] + last_weight_ * u_[j]);
        for (int32_t l = 0; l < x_.k; ++l) tot_[l] = tot_z_[l] + last_weight_ * tot_u_[l];
    }

    // Whether momentum should restart: D and the gap of x have both become worse, so there is more momentum than the
    // conditioning of the problem can use.  A fall of D alone is no sign of that: from a start with a good D far from
    // the solution it falls at first.
    bool overshoots(double dual, double gap, int64_t passes) {
        const bool is = dual < dual_ && gap > tuning_.restart_growth * smallest_gap_ &&
                        passes - first_pass_ >= tuning_.min_momentum_passes;
        dual_ = dual;
        smallest_gap_ = std::min(smallest_gap_, gap);
        return is;
    }
    // A step of the multipliers has lowered D by `change`.
    void shift_dual(double change) { dual_ -= change; }

  private:
    static constexpr size_t cache_line = 64 / sizeof(T);  // numbers; steps write faster to scores that begin at one
    double share() const { return static_cast<double>(x_.n) * theta_; }

    const KernelSamples<T>& x_;
    double* tot_;
    const KernelAscentTuning& tuning_;
    std::vector<double> z_, u_, tot_z_, tot_u_;
    std::vector<T> storage_;
    T* F_;                                        // of z, of u
    double theta_ = 0, last_weight_ = 0;          // theta; theta^2 of the last visit
    double dual_ = -infinity, smallest_gap_ = 0;  // D at the last check, the smallest gap since the beginning,
    int64_t first_pass_ = 0;                      // after so many passes
};

}  // namespace skm

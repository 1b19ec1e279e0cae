// Losses of a published machine: their sum, and the largest sum that scores within a known rounding can have.
//
// The scores of sample i are wrong by at most error_i, so that its margins are by at most 2 error_i.  Hinges fall with
// every margin: they are largest where all margins are lower by that.  The loss of the optimal margin distribution
// machine, a function of the smallest margin, falls and then rises: it is largest at one of the two ends.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/softplus.hpp"

namespace skm {

struct LossSum {
    double value = 0, largest = 0;
};

// How a sample is punished: the largest hinge, their sum, the mean of the K largest, the two-sided square or the
// logistic loss of the smallest margin.
class MarginLoss {
  public:
    enum class Kind { max, sum, top, odm, logistic };
    MarginLoss(Kind kind, int32_t K, double mu, double theta) : kind_(kind), K_(K), mu_(mu), theta_(theta) {}

    // d (m numbers) may be reordered.
    double operator()(double* d, int32_t m, double shift) const {
        if (kind_ == Kind::sum) {
            double sum = 0;
            for (int32_t j = 0; j < m; ++j) sum += std::max(0.0, 1 - d[j] - shift);
            return sum;
        }
        if (kind_ == Kind::top && K_ < m) std::nth_element(d, d + K_ - 1, d + m);
        if (kind_ == Kind::top) {
            const int32_t count = std::min(K_, m);
            double sum = 0;
            for (int32_t j = 0; j < count; ++j) sum += std::max(0.0, 1 - d[j] - shift);
            return sum / count;
        }
        const double least = *std::min_element(d, d + m) + shift;
        if (kind_ == Kind::max) return std::max(0.0, 1 - least);
        if (kind_ == Kind::logistic) return softplus(-least);
        const double below = std::max(0.0, 1 - theta_ - least), above = std::max(0.0, least - 1 - theta_);
        return below * below + mu_ * above * above;
    }

    double largest(double* d, int32_t m, double error) const {
        const double low = (*this)(d, m, -error);
        return kind_ == Kind::odm ? std::max(low, (*this)(d, m, error)) : low;
    }

  private:
    Kind kind_;
    int32_t K_;
    double mu_, theta_;
};

// F (n, k) holds the scores, `error` (n) their rounding, cap (n) the weights.
inline LossSum published_losses(const double* F, const double* error, const int32_t* y, const double* cap, int64_t n,
                                int32_t k, const MarginLoss& loss) {
    LossSum out;
    std::vector<double> d(k);
    for (int64_t i = 0; i < n; ++i) {
        const double* f = F + i * k;
        int32_t m = 0;
        for (int32_t l = 0; l < k; ++l)
            if (l != y[i]) d[m++] = f[y[i]] - f[l];
        out.value += cap[i] * loss(d.data(), m, 0.0);
        out.largest += cap[i] * loss.largest(d.data(), m, 2 * error[i]);
    }
    return out;
}

}  // namespace skm

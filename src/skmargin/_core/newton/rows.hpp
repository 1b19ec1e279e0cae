// Dense rows for the Newton method: centred, with one more feature for the intercept, and products by BLAS.
//
// The intercept is the weight of a feature of constant value sqrt(t), t = median ||x - mean||^2: alike in size.
// Features are centred then, which changes nothing but the conditioning.  Features that cannot move a score by a
// margin, or are constant but for rounding, say nothing about b: t is at least the inverse of the mean cap.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/blas.hpp"
#include "base/interrupt.hpp"

namespace skm {

class NewtonRows {
  public:
    NewtonRows(const double* given, int64_t n, int64_t d, int32_t k, const double* cap, bool intercept,
               InterruptPoll& poll)
        : n(n), d(d), D(static_cast<int>(d + intercept)), k(k), intercept(intercept), X(n * D), mean(d), length(n),
          distance(n), poll_(poll) {
        if (intercept) {
            for (int64_t i = 0; i < n; ++i)
                for (int64_t j = 0; j < d; ++j) mean[j] += given[i * d + j] / static_cast<double>(n);
        }
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < d; ++j) {
                const double x = given[i * d + j] - mean[j];
                X[i * D + j] = x;
                distance[i] += x * x;
            }
        for (int64_t i = 0; i < n; ++i) length[i] = std::sqrt(distance[i]);
        set_curvature();
        for (double& s : distance) s = curvature > 0 ? std::max(1.0, s / curvature) : 1.0;
        if (!intercept) return;
        const double total_cap = std::accumulate(cap, cap + n, 0.0);
        constant = std::sqrt(std::max(curvature, static_cast<double>(n) / total_cap));
        for (int64_t i = 0; i < n; ++i) X[i * D + d] = constant;
    }

    // F (rows x k) = X V', V: k x D
    void scores(const double* from, int64_t rows, const std::vector<double>& V, double* F) const {
        const double one = 1, zero = 0;
        each_piece(rows, rows, [&](int64_t at, int size) {
            blas.gemm("T", "N", &k, &size, &D, &one, V.data(), &D, from + at * D, &D, &zero, F + at * k, &k);
        });
    }
    void scores(const std::vector<double>& V, double* F) const { scores(X.data(), n, V, F); }

    // V += X'c, c: rows x k
    void add_products(const double* from, int64_t rows, const double* c, double* V) const {
        const double one = 1;
        each_piece(std::min(rows, most_added), rows, [&](int64_t at, int size) {
            blas.gemm("N", "T", &D, &k, &size, &one, from + at * D, &D, c + at * k, &k, &one, V, &D);
        });
    }
    // How often a number of V is added to, in any order that BLAS may choose.
    double additions() const { return static_cast<double>(std::min(n, most_added) + n / most_added); }

    // Class vectors and intercepts for the features as given: f = W x + b.
    void publish(const std::vector<double>& from, double* W, double* b) const {
        for (int32_t l = 0; l < k; ++l) {
            const double* w = &from[l * D];
            std::copy(w, w + d, W + l * d);
            b[l] = 0;
            if (!intercept) continue;
            b[l] = w[d] * constant;
            for (int64_t j = 0; j < d; ++j) b[l] -= w[j] * mean[j];
        }
    }

    const int64_t n, d;
    const int D;  // features with the constant one
    const int32_t k;
    const bool intercept;
    std::vector<double> X, mean;
    std::vector<double> length;    // ||x_i||
    std::vector<double> distance;  // max(1, ||x_i||^2 / median)
    double curvature = 0;          // the median of ||x_i||^2 that are not zero
    double constant = 1;           // value of the constant feature

  private:
    static constexpr int64_t most_added = 4096;  // rows of a product that is added to V: short sums round less
    void set_curvature() {
        std::vector<double> sorted;
        for (const double s : distance)
            if (s > 0) sorted.push_back(s);
        if (sorted.empty()) return;
        const auto middle = sorted.begin() + sorted.size() / 2;
        std::nth_element(sorted.begin(), middle, sorted.end());
        curvature = *middle;
    }
    // In pieces, so that an interrupt never waits.
    template <class Work>
    void each_piece(int64_t most, int64_t rows, Work work) const {
        const int64_t piece = std::min(std::max<int64_t>(64, 10'000'000 / (static_cast<int64_t>(D) * k)), most);
        for (int64_t from = 0; from < rows; from += piece) {
            const int64_t size = std::min(piece, rows - from);
            work(from, static_cast<int>(size));
            poll_.count_work(2.0 * size * D * k);
        }
    }

    InterruptPoll& poll_;
};

}  // namespace skm

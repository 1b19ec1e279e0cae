// The point of the Newton method: class vectors, duals, the centre of the proximal term, and what follows from them.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/interrupt.hpp"
#include "losses/loss.hpp"
#include "newton/rows.hpp"

namespace skm {

inline double square(double v) { return v * v; }

template <ProximalLoss Loss>
class NewtonPoint {
  public:
    NewtonPoint(const NewtonRows& rows, const int32_t* y, const Loss& loss, InterruptPoll& poll)
        : rows(rows), y(y), loss(loss), poll(poll), n(rows.n), d(rows.d), D(rows.D), k(rows.k), m(k - 1), W(k * D),
          V(k * D), penalty(D, 1.0), intercept_centre(k), F(n * k), a(n * m), centre(n * m), scratch(6 * k) {}

    // ---- one sample ----

    // The class of rival j: rivals come in increasing order without the own class.
    int32_t rival(int64_t i, int32_t j) const { return j + (j >= y[i]); }
    // Score differences f_y - f_l.
    void differences(int64_t i, const double* f, double* out) const {
        const int32_t own = y[i];
        for (int32_t j = 0; j < own; ++j) out[j] = f[own] - f[j];
        for (int32_t j = own; j < m; ++j) out[j] = f[own] - f[j + 1];
    }
    // c += s times the coefficients of these duals
    void add_coefficients(int64_t i, const double* duals, double s, double* c) const {
        const int32_t own = y[i];
        double S = 0;
        for (int32_t j = 0; j < m; ++j) {
            S += duals[j];
            c[j + (j >= own)] -= s * duals[j];
        }
        c[own] += s * S;
    }
    double* duals(int64_t i) { return &a[i * m]; }
    const double* duals(int64_t i) const { return &a[i * m]; }
    const double* centre_of(int64_t i) const { return &centre[i * m]; }
    // Duals of rows far out are small and their scores wild: with bounds they get a larger weight.
    double weight(int64_t i) const { return Loss::bounded ? rows.distance[i] : 1.0; }
    double sigma_of(int64_t i) const { return sigma * weight(i); }
    double distance_from_centre(int64_t i, const double* duals) const {
        return weight(i) * loss.squared_distance(duals, centre_of(i), m);
    }

    // ---- V follows the duals ----

    // The duals of sample i change: V will follow with apply_changes.
    void note_change(int64_t i, const double* from, const double* to) {
        changed_.push_back(i);
        const size_t at = change_.size();
        change_.resize(at + k, 0.0);
        add_coefficients(i, to, 1, &change_[at]);
        add_coefficients(i, from, -1, &change_[at]);
    }
    void apply_changes() {
        constexpr int64_t piece = 512;  // rows gathered at once
        buffer.resize(piece * D);
        for (int64_t from = 0; from < static_cast<int64_t>(changed_.size()); from += piece) {
            const int64_t size = std::min<int64_t>(piece, changed_.size() - from);
            for (int64_t s = 0; s < size; ++s) std::copy_n(&rows.X[changed_[from + s] * D], D, &buffer[s * D]);
            rows.add_products(buffer.data(), size, &change_[from * k], V.data());
        }
        changed_.clear();
        change_.clear();
    }
    // V from the duals alone, without the rounding of many changes.
    void recompute_V() { products_of(a, V); }
    void products_of(const std::vector<double>& duals, std::vector<double>& out) {
        buffer.assign(n * k, 0.0);
        for (int64_t i = 0; i < n; ++i) add_coefficients(i, &duals[i * m], 1, &buffer[i * k]);
        out.assign(k * D, 0.0);
        rows.add_products(rows.X.data(), n, buffer.data(), out.data());
    }

    // ---- objectives ----

    // Penalty of phi at W, with the proximal term of the intercept.
    double penalty_value() const {
        double s = 0;
        for (int32_t l = 0; l < k; ++l) {
            for (int64_t j = 0; j < d; ++j) s += W[l * D + j] * W[l * D + j];
            if (rows.intercept) s += penalty[d] * square(W[l * D + d] - intercept_centre[l]);
        }
        return 0.5 * s;
    }
    // gradient of phi = penalty'(W) - X'c
    void set_gradient(std::vector<double>& gradient) const {
        for (size_t q = 0; q < gradient.size(); ++q) gradient[q] = W[q] - V[q];
        if (rows.intercept)
            for (int32_t l = 0; l < k; ++l)
                gradient[l * D + d] = penalty[d] * (W[l * D + d] - intercept_centre[l]) - V[l * D + d];
    }
    // 1/2 ||.||^2 of the penalised part
    double half_norm(const double* of) const {
        double s = 0;
        for (int32_t l = 0; l < k; ++l)
            for (int64_t j = 0; j < d; ++j) s += of[l * D + j] * of[l * D + j];
        return 0.5 * s;
    }
    // P at class vectors with these scores.
    double primal(const std::vector<double>& at, const std::vector<double>& scores) {
        double *differ = &scratch[0], sum = half_norm(at.data());
        for (int64_t i = 0; i < n; ++i) {
            differences(i, &scores[i * k], differ);
            sum += loss.value(i, differ, m);
        }
        poll.count_work(4.0 * n * k);
        return sum;
    }

    // W = V with the intercepts b, and its scores.
    void set_W(const double* b) {
        W = V;
        if (rows.intercept)
            for (int32_t l = 0; l < k; ++l) {
                double shift = b[l];
                for (int64_t j = 0; j < d; ++j) shift += W[l * D + j] * rows.mean[j];
                W[l * D + d] = shift / rows.constant;
            }
        update_scores();
    }
    void update_scores() { rows.scores(W, F.data()); }
    void move_W(double t, const std::vector<double>& step) {
        for (size_t q = 0; q < step.size(); ++q) W[q] += t * step[q];
    }

    const NewtonRows& rows;
    const int32_t* y;
    const Loss& loss;
    InterruptPoll& poll;
    const int64_t n, d;
    const int D;
    const int32_t k, m;                    // classes; rivals of a sample
    std::vector<double> W, V;              // k x D; V = X'c
    std::vector<double> penalty;           // the weight of each feature's square; 1, and r for the constant
    std::vector<double> intercept_centre;  // of its proximal term
    std::vector<double> F;                 // n x k: scores of W
    std::vector<double> a, centre;         // n x (k - 1): duals, centre of their proximal term
    double sigma = 1;                      // weight of that
    std::vector<double> scratch, buffer;

  private:
    std::vector<int64_t> changed_;
    std::vector<double> change_;
};

}  // namespace skm

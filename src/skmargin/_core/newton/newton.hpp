// Semismooth Newton on the proximal dual: dense rows and few parameters, where the time hardly depends on C and tol.
//
// Problem   P(W, b) = 1/2 ||W||^2 + sum_i value_i(d_i),  d_il = f_iy - f_il,  f_i = W x_i + b   (losses/hinge.hpp)
// Outer     proximal point in the dual, centre abar, weight sigma (and r for the intercept, centre bbar):
//               phi(W, b) = 1/2 ||W||^2 + r/2 ||b - bbar||^2 + sum_i theta_i(d_i)
//               theta_i(d) = max_a dual_i(a) - d'a - sigma_i/2 moved_i(a, abar_i),   maximiser a_i = loss.prox(sigma_i)
//           sigma_i = sigma rho_i, rho_i = max(1, ||x_i||^2 / median), where the duals have bounds: those of rows far
//           out are small, their scores wild.  Without bounds the dual has a curvature of its own.
//           phi is smooth and piecewise quadratic.  When it is minimised: abar = a, bbar = b, smaller sigma and r.
// Inner     Newton: gradient W - X'c, Hessian = identity + pair Laplacian (newton/pair_laplacian.hpp), Cholesky, line
// search
//           on the monotone derivative phi'(t), each trial of which costs only the maps of the samples.
//           The inner duality gap is exactly 1/2 ||gradient||^2 (in the metric of the penalty).
// Working set: samples whose a is a vertex that small moves of the scores do not change are linear: only the others
//           enter the inner problem.  The value of phi on all samples guards this.
// Ladder    where the duals have bounds C is reached from a small C in factors of at most ten; duals stay feasible when
//           scaled with the caps.
// Stop      every a is feasible, so P - D is a certificate at each outer step; with the free intercept the duals
//           are first made a circulation (intercept/circulation.hpp).  A machine that is published by its duals
//           (`publish_duals`: kernels) has P at W = X'c instead, which every remainder of the gradient makes larger.
//
// The intercept is the weight of one more feature, of constant value sqrt(t), t = median ||x - mean||^2: alike in size.
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
#include "base/random.hpp"
#include "base/sums.hpp"
#include "intercept/circulation.hpp"
#include "newton/pair_laplacian.hpp"
#include "rows/rows.hpp"

namespace skm {

template <class Loss>
class Newton {
  public:
    // `cap` are the numbers that `loss` reads: the ladder scales them, and they are as given when `solve` returns.
    Newton(const double* X, int64_t n, int64_t d, const int32_t* y, int32_t k, const Loss& loss, double* cap,
           bool intercept, InterruptPoll& poll)
        : n_(n), d_(d), D_(static_cast<int>(d + intercept)), k_(k), m_(k - 1), y_(y), loss_(loss), cap_(cap),
          intercept_(intercept), poll_(poll), system_(k, D_, poll), X_(n * D_), mean_(d), penalty_(D_, 1.0), W_(k * D_),
          V_(k * D_), centre_(k), F_(n * k), a_(n * m_), abar_(n * m_), scratch_(6 * k), rho_(n) {
        copy(X);
    }

    double objective = 0, gap = infinity;
    int64_t steps = 0;

    // DualLists of a related problem (rivals in increasing order without the own class): n x (k - 1).
    std::vector<double>& duals() { return a_; }

    // `warm`: duals() and b hold a starting point.  Returns whether gap <= tol objective was reached, or the gap that a
    // majoriser of `majorizer_value` needs (linear/block_ascent.hpp); if not, the point of the lowest objective is
    // kept. `max_steps` is exceeded by at most one step for each rung of the ladder.
    bool solve(bool warm, const double* b, double tol, int64_t max_steps, uint64_t seed, double majorizer_share = 0,
               double majorizer_value = 0, bool publish_duals = false) {
        publish_duals_ = publish_duals;
        const bool done = continuation(warm, b, tol, max_steps, seed, majorizer_share, majorizer_value);
        if (publish_duals_) W_ = W_of_duals_, a_ = feasible();
        return done;
    }

    // f = W x + b for the features as given.
    void publish(double* W, double* b) const {
        for (int32_t l = 0; l < k_; ++l) {
            const double* w = &W_[l * D_];
            std::copy(w, w + d_, W + l * d_);
            b[l] = 0;
            if (!intercept_) continue;
            b[l] = w[d_] * constant_;
            for (int64_t j = 0; j < d_; ++j) b[l] -= w[j] * mean_[j];
        }
    }

  private:
    static constexpr double first_stage_curvature = 10;  // C0 times the median curvature

    bool continuation(bool warm, const double* b, double tol, int64_t max_steps, uint64_t seed, double majorizer_share,
                      double majorizer_value) {
        max_steps_ = max_steps;
        majorizer_share_ = majorizer_share;
        majorizer_value_ = majorizer_value;
        std::vector<double> full(cap_, cap_ + n_), sorted = full;
        std::nth_element(sorted.begin(), sorted.begin() + n_ / 2, sorted.end());
        const double C = sorted[n_ / 2], C0 = std::min(C, first_stage_curvature / std::max(curvature_, 1e-300));
        double scale = C0 / C;
        bool start_is_good = false;
        if (warm) {
            recompute_V();
            set_W(b);
            certify();
            if (gap <= target_gap(tol)) return true;
            start_is_good = gap <= 0.1 * objective || !Loss::bounded;
        }
        if (start_is_good || !Loss::bounded) scale = 1;
        const int n_stages = static_cast<int>(std::ceil(std::log10(1 / scale) - 1e-9));
        const double ratio = n_stages > 0 ? std::pow(1 / scale, 1.0 / n_stages) : 1;
        rescale(full, scale, scale);
        if (!start_is_good) block_passes(seed);
        bool done = false;
        for (int stage = 0; stage <= n_stages; ++stage) {
            if (stage > 0) {
                const double next = stage == n_stages ? 1.0 : scale * ratio;
                rescale(full, next, next / scale);
                scale = next;
            }
            const double sigma = (Loss::bounded ? 1.0 : warm ? 0.05 : 0.5) / (C * scale);
            done = solve_stage(sigma, stage == n_stages ? tol : std::max(tol, 3e-2));
        }
        return done;
    }

    void copy(const double* X) {
        if (intercept_) {
            for (int64_t i = 0; i < n_; ++i)
                for (int64_t j = 0; j < d_; ++j) mean_[j] += X[i * d_ + j] / static_cast<double>(n_);
        }
        for (int64_t i = 0; i < n_; ++i)
            for (int64_t j = 0; j < d_; ++j) {
                const double x = X[i * d_ + j] - mean_[j];
                X_[i * D_ + j] = x;
                rho_[i] += x * x;
            }
        std::vector<double> sorted;
        for (const double s : rho_)
            if (s > 0) sorted.push_back(s);
        if (!sorted.empty()) {
            const auto middle = sorted.begin() + sorted.size() / 2;
            std::nth_element(sorted.begin(), middle, sorted.end());
            curvature_ = *middle;
        }
        for (double& s : rho_) s = curvature_ > 0 ? std::max(1.0, s / curvature_) : 1.0;
        if (!intercept_) return;
        const double total_cap = std::accumulate(cap_, cap_ + n_, 0.0);
        constant_ = std::sqrt(std::max(curvature_, static_cast<double>(n_) / total_cap));
        for (int64_t i = 0; i < n_; ++i) X_[i * D_ + d_] = constant_;
    }

    // ---- products, in pieces so that an interrupt never waits ----

    // F (rows x k) = X V'
    void scores(const double* X, int64_t rows, const std::vector<double>& V, double* F) {
        const double one = 1, zero = 0;
        each_piece(rows, [&](int64_t from, int size) {
            blas.gemm("T", "N", &k_, &size, &D_, &one, V.data(), &D_, X + from * D_, &D_, &zero, F + from * k_, &k_);
        });
    }
    // V += X'c, c: rows x k
    void add_products(const double* X, int64_t rows, const double* c, double* V) {
        const double one = 1;
        each_piece(rows, [&](int64_t from, int size) {
            blas.gemm("N", "T", &D_, &k_, &size, &one, X + from * D_, &D_, c + from * k_, &k_, &one, V, &D_);
        });
    }
    template <class Work>
    void each_piece(int64_t rows, Work work) {
        const int64_t piece = std::max<int64_t>(64, 10'000'000 / (static_cast<int64_t>(D_) * k_));
        for (int64_t from = 0; from < rows; from += piece) {
            const int64_t size = std::min(piece, rows - from);
            work(from, static_cast<int>(size));
            poll_.count_work(2.0 * size * D_ * k_);
        }
    }

    // ---- one sample ----

    int32_t rival(int64_t i, int32_t j) const { return j + (j >= y_[i]); }
    void differences(int64_t i, const double* f, double* d) const {
        const int32_t y = y_[i];
        for (int32_t j = 0; j < y; ++j) d[j] = f[y] - f[j];
        for (int32_t j = y; j < m_; ++j) d[j] = f[y] - f[j + 1];
    }
    // c += s a
    void add_coefficients(int64_t i, const double* a, double s, double* c) const {
        const int32_t y = y_[i];
        double S = 0;
        for (int32_t j = 0; j < m_; ++j) {
            S += a[j];
            c[j + (j >= y)] -= s * a[j];
        }
        c[y] += s * S;
    }
    double weight(int64_t i) const { return Loss::bounded ? rho_[i] : 1.0; }
    double sigma(int64_t i) const { return sigma_ * weight(i); }
    double distance_from_centre(int64_t i, const double* a) const {
        return weight(i) * loss_.squared_distance(a, &abar_[i * m_], m_);
    }

    // ---- all samples ----

    // The proximal maps at the scores F_: a_ and V_ = X'c.  Returns phi; `theta` > 0 also selects the working set.
    double apply_prox(double theta) {
        double value = 0;
        double *d = &scratch_[0], *a = &scratch_[k_];
        moved_outside_ = 0;
        if (theta > 0) working_.clear(), stability_radius_.clear();
        for (int64_t i = 0; i < n_; ++i) {
            differences(i, &F_[i * k_], d);
            loss_.prox(i, sigma(i), d, &abar_[i * m_], m_, a);
            value += loss_.dual(i, a, m_);
            for (int32_t j = 0; j < m_; ++j) value -= a[j] * d[j];
            const double moved_here = distance_from_centre(i, a);
            value -= 0.5 * sigma_ * moved_here;
            const double stability_radius =
                theta > 0 ? loss_.stability_radius(i, sigma(i), d, &abar_[i * m_], a, m_) : infinity;
            if (stability_radius <= theta * weight(i)) {
                working_.push_back(i);
                stability_radius_.push_back(stability_radius);
            } else {
                moved_outside_ += moved_here;
            }
            double* old = &a_[i * m_];
            if (!std::equal(a, a + m_, old)) {
                note_change(i, old, a);
                std::copy(a, a + m_, old);
            }
            poll_.count_work(20.0 * m_);
        }
        apply_changes();
        return value + penalty();
    }
    void note_change(int64_t i, const double* from, const double* to) {
        changed_.push_back(i);
        const size_t at = change_.size();
        change_.resize(at + k_, 0.0);
        add_coefficients(i, to, 1, &change_[at]);
        add_coefficients(i, from, -1, &change_[at]);
    }
    // V_ follows the noted changes of a_.
    void apply_changes() {
        constexpr int64_t piece = 512;
        buffer_.resize(piece * D_);
        for (int64_t from = 0; from < static_cast<int64_t>(changed_.size()); from += piece) {
            const int64_t size = std::min<int64_t>(piece, changed_.size() - from);
            for (int64_t s = 0; s < size; ++s) std::copy_n(&X_[changed_[from + s] * D_], D_, &buffer_[s * D_]);
            add_products(buffer_.data(), size, &change_[from * k_], V_.data());
        }
        changed_.clear();
        change_.clear();
    }
    // V_ = X'c from a_ alone.
    void recompute_V() { products_of_duals(a_, V_); }
    void products_of_duals(const std::vector<double>& a, std::vector<double>& V) {
        buffer_.assign(n_ * k_, 0.0);
        for (int64_t i = 0; i < n_; ++i) add_coefficients(i, &a[i * m_], 1, &buffer_[i * k_]);
        V.assign(k_ * D_, 0.0);
        add_products(X_.data(), n_, buffer_.data(), V.data());
    }
    double penalty() const {
        double s = 0;
        for (int32_t l = 0; l < k_; ++l) {
            for (int64_t j = 0; j < d_; ++j) s += W_[l * D_ + j] * W_[l * D_ + j];
            if (intercept_) s += penalty_[d_] * square(W_[l * D_ + d_] - centre_[l]);
        }
        return 0.5 * s;
    }
    static double square(double v) { return v * v; }
    // The gap that is small enough.
    double target_gap(double tol) const { return target_gap(tol, objective); }
    double target_gap(double tol, double P) const {
        return std::max(tol * P, majorizer_share_ * (majorizer_value_ - P));
    }
    double half_norm(const double* V) const {  // of the penalised part
        double s = 0;
        for (int32_t l = 0; l < k_; ++l)
            for (int64_t j = 0; j < d_; ++j) s += V[l * D_ + j] * V[l * D_ + j];
        return 0.5 * s;
    }
    void set_W(const double* b) {
        W_ = V_;
        if (intercept_)
            for (int32_t l = 0; l < k_; ++l) {
                double shift = b[l];
                for (int64_t j = 0; j < d_; ++j) shift += W_[l * D_ + j] * mean_[j];
                W_[l * D_ + d_] = shift / constant_;
            }
        scores(X_.data(), n_, W_, F_.data());
    }

    // P at W_, whose scores are F_, or at `W_of_duals_`; D at feasible().
    void certify() {
        if (intercept_) make_duals_feasible();
        const std::vector<double>& a = feasible();
        dual_ = -half_norm(intercept_ ? feasible_V_.data() : V_.data());
        for (int64_t i = 0; i < n_; ++i) dual_ += loss_.dual(i, &a[i * m_], m_);
        objective = primal_at_W_ = primal(W_, F_);
        gap = gap_at_W_ = objective - dual_;
        if (!publish_duals_) return;
        W_of_duals_ = intercept_ ? feasible_V_ : V_;
        if (intercept_)
            for (int32_t l = 0; l < k_; ++l) W_of_duals_[l * D_ + d_] = W_[l * D_ + d_];
        buffer_.resize(n_ * k_);
        scores(X_.data(), n_, W_of_duals_, buffer_.data());
        objective = primal(W_of_duals_, buffer_);
        gap = objective - dual_;
    }
    double primal(const std::vector<double>& W, const std::vector<double>& F) {
        double *d = &scratch_[0], sum = half_norm(W.data());
        for (int64_t i = 0; i < n_; ++i) {
            differences(i, &F[i * k_], d);
            sum += loss_.value(i, d, m_);
        }
        poll_.count_work(4.0 * n_ * k_);
        return sum;
    }
    // DualLists that satisfy all constraints.
    const std::vector<double>& feasible() const { return intercept_ ? feasible_duals_ : a_; }
    void make_duals_feasible() {
        feasible_duals_ = a_;
        std::vector<int32_t> rivals(m_);
        const auto with = [&](int64_t i, auto visit) {
            for (int32_t j = 0; j < m_; ++j) rivals[j] = rival(i, j);
            visit(y_[i], rivals.data(), &feasible_duals_[i * m_], m_);
        };
        make_circulation(
            k_, n_, loss_, with,
            [&](int64_t i, int32_t j) { return 1 - F_[i * k_ + y_[i]] + F_[i * k_ + rival(i, j)]; }, poll_);
        products_of_duals(feasible_duals_, feasible_V_);
    }

    // ---- start ----

    void rescale(const std::vector<double>& full, double cap_scale, double dual_scale) {
        for (int64_t i = 0; i < n_; ++i) cap_[i] = full[i] * cap_scale;
        for (double& a : a_) a *= dual_scale;
        for (double& v : V_) v *= dual_scale;
    }

    // Exact block ascent from a_ with b penalised: a start that is roughly right.
    void block_passes(uint64_t seed) {
        DenseRows<double> rows(X_.data(), n_, D_, D_, k_);
        Buffer<double> W(rows.weights_size());
        std::vector<int64_t> order(n_);
        std::vector<int32_t> all(k_);
        std::vector<double> norm(n_);
        for (int32_t l = 0; l < k_; ++l)
            for (int32_t j = 0; j < D_; ++j) rows.weight(W.data(), l, j) = V_[l * D_ + j];
        for (int64_t i = 0; i < n_; ++i) order[i] = i, norm[i] = rows.squared_norm(i);
        for (int32_t l = 0; l < k_; ++l) all[l] = l;
        Random random(seed);
        double *f = &scratch_[0], *d = &scratch_[k_], *a = &scratch_[2 * k_], *c = &scratch_[3 * k_];
        for (int pass = 0; pass < start_passes; ++pass) {
            random.shuffle(order.begin(), static_cast<uint32_t>(n_));
            for (const int64_t i : order) {
                if (norm[i] <= 0) continue;
                rows.scores_all(W.data(), i, f);
                differences(i, f, d);
                double* old = &a_[i * m_];
                loss_.block(i, norm[i], d, old, m_, a);
                poll_.count_work(2.0 * k_ * D_);
                if (std::equal(a, a + m_, old)) continue;
                std::fill(c, c + k_, 0.0);
                add_coefficients(i, a, 1, c);
                add_coefficients(i, old, -1, c);
                rows.add(W.data(), i, all.data(), k_, c);
                std::copy(a, a + m_, old);
            }
        }
        recompute_V();
        W_ = V_;
        scores(X_.data(), n_, W_, F_.data());
    }
    static constexpr int start_passes = 8;

    // ---- one value of C ----

    bool solve_stage(double sigma, double tol) {
        const double stage_cap = 1 / sigma;  // C
        sigma_ = sigma;
        double move = 1, width_factor = 1;
        int since_centre = 0;
        int64_t last_gain = steps;
        double best = infinity, best_gap_at_W = infinity;
        bool centred = false;
        target_fraction_ = 1;
        remember_zero();
        for (;;) {
            if (!centred) {
                abar_ = a_;
                if (intercept_) {
                    for (int32_t l = 0; l < k_; ++l) centre_[l] = W_[l * D_ + d_];
                    penalty_[d_] = std::max(1e-6, 0.1 * std::min(1.0, sigma_ * stage_cap));
                }
                centred = true;
                since_centre = 0;
            }
            const double theta = width_factor * std::max(3 * sigma_ * stage_cap, std::min(1.0, 3 * move));
            const double before = apply_prox(theta);
            const std::vector<double> start = W_;
            bool finished = false;
            const int inner = inner_newton(tol, finished);
            steps += inner;
            since_centre += inner;
            previous_.swap(F_);
            F_.resize(n_ * k_);
            scores(X_.data(), n_, W_, F_.data());
            move = mean_score_change();
            width_factor = 1;
            if (apply_prox(0) > before + 1e-12 * std::abs(before)) {
                search_on_all(start);
                finished = false;
                width_factor = 5;
            }
            certify();
            poll_.report_gap(gap / objective, tol);
            if (gap <= target_gap(tol)) {
                recompute_V();  // V_ without the rounding of many small changes
                certify();
                if (gap <= target_gap(tol)) return true;
            }
            const bool close_at_W = gap_at_W_ <= target_gap(tol, primal_at_W_);  // but `W_of_duals_` is not
            if (close_at_W) target_fraction_ = std::max(1e-6, 0.1 * target_fraction_);
            remember();
            // Where the gap does not fall any more rounding is all that is left.
            if (gap <= 0.7 * best || (!close_at_W && gap_at_W_ <= 0.7 * best_gap_at_W)) {
                best = std::min(best, gap);
                best_gap_at_W = std::min(best_gap_at_W, gap_at_W_);
                last_gain = steps;
            }
            const int patience = gap <= 1e-9 * objective ? 10 : gap_at_W_ <= 1e-9 * primal_at_W_ ? 50 : 300;
            if (steps >= max_steps_ || steps > last_gain + patience) {
                restore();
                return gap <= target_gap(tol);
            }
            if (finished && close_at_W) {  // rounding of the scores is 1/sigma as large in the duals
                sigma_ = std::min(sigma, 10 * sigma_);
                centred = false;
            } else if (finished) {
                sigma_ *= since_centre <= 5 ? 0.09 : since_centre <= 14 ? 0.3 : since_centre <= 25 ? 0.55 : 1.0;
                centred = false;
            } else if (since_centre >= 40) {  // from kink to kink: a smoother problem with the duals found so far
                sigma_ = std::min(sigma, 10 * sigma_);
                centred = false;
            }
        }
    }

    // The lowest objective and the highest bound so far, which need not belong to one point; zero is known beforehand.
    void remember_zero() {
        best_W_.assign(k_ * D_, 0.0);
        best_a_.assign(n_ * m_, 0.0);
        buffer_.assign(n_ * k_, 0.0);
        best_primal_ = primal(best_W_, buffer_);
        best_dual_ = 0;
    }
    void remember() {
        best_dual_ =
            std::max(best_dual_, dual_);  // not objective - gap: that has the rounding of an objective far too large
        if (!(objective < best_primal_)) return;
        best_primal_ = objective;
        best_W_ = publish_duals_ ? W_of_duals_ : W_;
        best_a_ = publish_duals_ ? feasible() : a_;
    }
    // Back to the best point: the way beyond it was spoilt by rounding, or not yet done.
    void restore() {
        W_.swap(best_W_);
        a_.swap(best_a_);
        recompute_V();
        scores(X_.data(), n_, W_, F_.data());
        certify();
        gap = std::min(gap, objective - best_dual_);
    }

    double mean_score_change() const {
        double sum = 0;
        for (int64_t q = 0; q < n_ * k_; ++q) sum += std::abs(F_[q] - previous_[q]);
        return sum / static_cast<double>(n_ * k_);
    }

    // The working set was too small and phi rose from `start` (scores previous_) to W_.  The way there goes downhill at
    // first, so a line search over all samples finds a better point on it.
    void search_on_all(const std::vector<double>& start) {
        std::vector<double> step = W_, gradient(W_.size());
        for (size_t q = 0; q < step.size(); ++q) step[q] -= start[q];
        W_ = start;
        dF_ = F_;
        for (int64_t q = 0; q < n_ * k_; ++q) dF_[q] -= previous_[q];
        F_.swap(previous_);
        apply_prox(infinity);
        Fw_ = F_;
        set_gradient(gradient);
        const double t = line_search(gradient, step);
        for (size_t q = 0; q < step.size(); ++q) W_[q] += t * step[q];
        F_ = Fw_;
    }

    // Newton on the working set: W_, a_ and V_ move, F_ stays behind.  Returns the number of steps.
    int inner_newton(double tol, bool& finished) {
        const int64_t rows = static_cast<int64_t>(working_.size());
        const size_t size = W_.size();
        Xw_.resize(rows * D_);
        Fw_.resize(rows * k_);
        dF_.resize(rows * k_);
        for (int64_t s = 0; s < rows; ++s) {
            std::copy_n(&X_[working_[s] * D_], D_, &Xw_[s * D_]);
            std::copy_n(&F_[working_[s] * k_], k_, &Fw_[s * k_]);
        }
        std::vector<double> gradient(size), step(size);
        for (int done = 0;; ++done) {
            set_gradient(gradient);
            if (done > 0) {
                double inner_gap = 0, moved_here = moved_outside_;
                for (size_t q = 0; q < size; ++q) inner_gap += square(gradient[q]) / penalty_[q % D_];
                for (const int64_t i : working_) moved_here += distance_from_centre(i, &a_[i * m_]);
                double proximal_terms = sigma_ * moved_here;
                if (intercept_)
                    for (int32_t l = 0; l < k_; ++l)
                        proximal_terms += penalty_[d_] * square(W_[l * D_ + d_] - centre_[l]);
                finished = inner_gap <=
                           target_fraction_ * std::max(0.1 * proximal_terms, 0.05 * target_gap(tol, primal_at_W_));
                if (finished || done >= 20 || steps + done >= max_steps_) return done;
            }
            system_.clear();
            for (int64_t s = 0; s < rows; ++s) {
                if (stability_radius_[s] > 0) continue;
                const int64_t i = working_[s];
                loss_.pairs(i, sigma(i), &a_[i * m_], m_, [&](int32_t j, int32_t l, double w) {
                    system_.add(static_cast<int32_t>(s), j < 0 ? y_[i] : rival(i, j), rival(i, l), w);
                });
            }
            system_.factor(Xw_.data(), penalty_.data());
            for (size_t q = 0; q < size; ++q) step[q] = -gradient[q];
            system_.solve(step.data());
            scores(Xw_.data(), rows, step, dF_.data());
            const double t = line_search(gradient, step);
            for (size_t q = 0; q < size; ++q) W_[q] += t * step[q];
        }
    }

    // gradient of phi = penalty'(W) - X'c
    void set_gradient(std::vector<double>& gradient) const {
        for (size_t q = 0; q < gradient.size(); ++q) gradient[q] = W_[q] - V_[q];
        if (intercept_)
            for (int32_t l = 0; l < k_; ++l)
                gradient[l * D_ + d_] = penalty_[d_] * (W_[l * D_ + d_] - centre_[l]) - V_[l * D_ + d_];
    }

    // phi'(t) rises: look for |phi'(t)| <= 1/2 |phi'(0)| where phi itself has fallen.  Moves Fw_, a_, V_ and
    // stability_radius_ to that t and returns it.
    double line_search(const std::vector<double>& gradient, const std::vector<double>& step) {
        const int64_t rows = static_cast<int64_t>(working_.size());
        double slope = 0, curvature = 0;
        for (size_t q = 0; q < step.size(); ++q) {
            slope += gradient[q] * step[q];
            curvature += penalty_[q % D_] * step[q] * step[q];
        }
        old_.resize(rows * m_);
        max_change_.resize(rows);
        for (int64_t s = 0; s < rows; ++s) {
            const int64_t i = working_[s];
            std::copy_n(&a_[i * m_], m_, &old_[s * m_]);
            double* e = &scratch_[0];
            differences(i, &dF_[s * k_], e);
            max_change_[s] = 0;
            for (int32_t j = 0; j < m_; ++j) max_change_[s] = std::max(max_change_[s], std::abs(e[j]));
        }
        double t = 1, lo = 0, at_lo = slope, hi = 0, at_hi = 0, largest_t = 0;
        for (int trial = 0;; ++trial) {
            largest_t = std::max(largest_t, t);
            const double now = slope + t * curvature - prox_along(t, largest_t);
            // As long as it falls it has fallen; where it rises again it may have risen more.
            if (now <= 0.1 * std::abs(slope)
                    ? now >= 0.5 * slope
                    : now <= 0.5 * std::abs(slope) &&
                          t * (slope + 0.5 * t * curvature) + nonlinear_change(t, largest_t) <= 0)
                break;
            if (trial >= 30) {
                if (!(now <= 0)) prox_along(t = lo, largest_t);
                break;
            }
            if (!(now <= 0)) {                               // or no number: far too far
                if (hi > 0 && trial % 3 == 2) at_lo *= 0.5;  // regula falsi must not creep
                hi = t, at_hi = now > 0 ? now : -slope;
            } else {
                if (hi > 0 && trial % 3 == 2) at_hi *= 0.5;
                lo = t, at_lo = now;
            }
            t = hi > 0 ? lo + std::clamp(at_lo / (at_lo - at_hi), 0.05, 0.95) * (hi - lo) : 3 * t;
        }
        accept(t);
        return t;
    }
    // a_ at t; returns <c(t) - c(0), dF>.  Samples that cannot have moved for any trial so far are left alone.
    double prox_along(double t, double largest_t) {
        double *f = &scratch_[0], *d = &scratch_[k_], *e = &scratch_[2 * k_], sum = 0;
        for (int64_t s = 0; s < static_cast<int64_t>(working_.size()); ++s) {
            if (largest_t * max_change_[s] < stability_radius_[s]) continue;
            const int64_t i = working_[s];
            for (int32_t l = 0; l < k_; ++l) f[l] = Fw_[s * k_ + l] + t * dF_[s * k_ + l];
            differences(i, f, d);
            differences(i, &dF_[s * k_], e);
            double *a = &a_[i * m_], *old = &old_[s * m_];
            loss_.prox(i, sigma(i), d, &abar_[i * m_], m_, a);
            for (int32_t j = 0; j < m_; ++j) sum += (a[j] - old[j]) * e[j];
            poll_.count_work(20.0 * m_);
        }
        return sum;
    }
    // How much all theta have changed at t, where a_ is, beyond what is linear in t.
    double nonlinear_change(double t, double largest_t) {
        double *d = &scratch_[0], *e = &scratch_[k_], sum = 0;
        for (int64_t s = 0; s < static_cast<int64_t>(working_.size()); ++s) {
            if (largest_t * max_change_[s] < stability_radius_[s]) continue;
            const int64_t i = working_[s];
            const double *a = &a_[i * m_], *old = &old_[s * m_];
            differences(i, &Fw_[s * k_], d);
            differences(i, &dF_[s * k_], e);
            sum += loss_.dual(i, a, m_) - loss_.dual(i, old, m_) -
                   0.5 * sigma_ * (distance_from_centre(i, a) - distance_from_centre(i, old));
            for (int32_t j = 0; j < m_; ++j) sum -= (a[j] - old[j]) * (d[j] + t * e[j]);
            poll_.count_work(10.0 * m_);
        }
        return sum;
    }
    void accept(double t) {
        double* d = &scratch_[0];
        for (int64_t s = 0; s < static_cast<int64_t>(working_.size()); ++s) {
            const int64_t i = working_[s];
            for (int32_t l = 0; l < k_; ++l) Fw_[s * k_ + l] += t * dF_[s * k_ + l];
            stability_radius_[s] -= t * max_change_[s];
            if (stability_radius_[s] > 0) continue;
            double* a = &a_[i * m_];
            differences(i, &Fw_[s * k_], d);
            stability_radius_[s] = loss_.stability_radius(i, sigma(i), d, &abar_[i * m_], a, m_);
            if (!std::equal(a, a + m_, &old_[s * m_])) note_change(i, &old_[s * m_], a);
        }
        apply_changes();
    }

    const int64_t n_, d_;
    const int D_;
    const int32_t k_, m_;
    const int32_t* y_;
    const Loss& loss_;
    double* cap_;
    const bool intercept_;
    InterruptPoll& poll_;
    PairLaplacian system_;
    std::vector<double> X_, mean_,
        penalty_;                         // penalty_: the weight of each feature's square; 1, and r for the constant
    std::vector<double> W_, V_, centre_;  // k x D; V = X'c
    std::vector<double> F_, a_, abar_, previous_;  // n x k, n x (k - 1)
    std::vector<int64_t> working_, changed_;
    std::vector<double> change_, buffer_, Xw_, Fw_, dF_, old_, stability_radius_, max_change_;
    std::vector<double> feasible_duals_, feasible_V_, W_of_duals_;  // of the last certificate
    std::vector<double> scratch_, best_W_, best_a_, rho_;
    double curvature_ = 0, constant_ = 1, sigma_ = 1, moved_outside_ = 0, majorizer_share_ = 0, majorizer_value_ = 0;
    double best_primal_ = infinity, best_dual_ = 0, dual_ = 0, primal_at_W_ = 0, gap_at_W_ = 0;  // here_: P at W_
    double target_fraction_ =
        1;  // how well the inner problems are solved: better where P at the duals alone is too large
    bool publish_duals_ = false;
    int64_t max_steps_ = 0;
};

}  // namespace skm

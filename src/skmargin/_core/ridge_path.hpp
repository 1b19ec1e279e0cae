// Least squares with a ridge for many strengths s, from one condensed form of the matrix (solvers/tridiagonal.py).
//
//   problem   min over (a, b)  ||A a + q b - y||^2 + s (||a||^2 + beta b^2)   for m vectors y and every s
//   forms     squared   T = H'MH tridiagonal, A = M symmetric:   (M^2 + s I)^{-1}, by the complex shift T - i sqrt(s) I
//             shifted   T = H'MH tridiagonal, M = A A':          (M + s I)^{-1}
//             normal    T = H'MH tridiagonal, M = A'A:           (M + s I)^{-1}, x = A'y given instead of y
//             bidiagonal A = V B'U' with B bidiagonal: the squared form of (0 B'; B 0), which is tridiagonal when
//                        left and right coordinates alternate
//   products  <i, j> = x_i' s (A A' + s I)^{-1} x_j, from which b_j = <q, y_j> / (beta s + <q, q>) and the residual
//             <y_j, y_j> - <q, y_j> b_j;  `rest` holds the part of <i, j> that lies outside of T
//   returned  a, b, the residual, and whether the strength could be solved
//
// A tridiagonal form costs a third of the eigenvectors, and a system with T next to nothing.
#pragma once
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <vector>

#include "blas.hpp"

namespace skm {

constexpr double smallest_shift = 1e-12;  // strength / largest eigenvalue from which M + s I keeps its digits
constexpr int reflector_block = 64;       // columns that LAPACK handles together
constexpr int few_vectors = 16;           // for which that does not pay

enum class Form { squared, shifted, normal };

struct RidgeTask {
    std::vector<double> strengths;
    int m;  // vectors y; q is the one behind them
    bool intercept;
    double beta;               // 1: the intercept is penalised, 0: it is free
    std::vector<double> rest;  // (m + 1, m + 1)

    int vectors() const { return m + 1; }
    int systems() const { return static_cast<int>(strengths.size()) * m; }
};

struct RidgePaths {
    std::vector<double> coef;  // (strengths, m, unknowns)
    std::vector<double> b, residual;
    std::vector<uint8_t> solved;

    RidgePaths(const RidgeTask& task, int unknowns)
        : coef(static_cast<size_t>(task.systems()) * unknowns), b(task.systems()), residual(task.systems()),
          solved(task.strengths.size()) {}
};

inline double inner_product(const double* a, const double* b, int n) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

// Every strength on the tridiagonal matrix (d beside e); x is (m + 1, n).  `coef` is in the coordinates of T.
inline RidgePaths solve_shifts(const RidgeTask& task, Form form, const std::vector<double>& d,
                               const std::vector<double>& e, const std::vector<double>& x) {
    const int n = static_cast<int>(d.size()), m = task.m, vectors = task.vectors();
    const size_t size = x.size();
    RidgePaths out(task, n);
    double largest = 0;
    for (int i = 0; i < n; ++i)
        largest = std::max(largest, std::abs(d[i]) + (i ? std::abs(e[i - 1]) : 0) + (i < n - 1 ? std::abs(e[i]) : 0));
    std::vector<std::complex<double>> complex_d, below, above, z;
    std::vector<double> shrunk(size), gained(size), real_d, beside;
    const double sign = form == Form::normal ? -1 : 1;
    for (size_t number = 0; number < task.strengths.size(); ++number) {
        const double s = task.strengths[number], root = std::sqrt(s);
        int info = 0;
        if (form == Form::squared) {
            complex_d.assign(n, {});
            for (int i = 0; i < n; ++i) complex_d[i] = {d[i], -root};
            below.assign(e.begin(), e.end());
            above = below;
            z.assign(x.begin(), x.end());
            blas.zgtsv(&n, &vectors, below.data(), complex_d.data(), above.data(), z.data(), &n, &info);
            for (size_t i = 0; i < size; ++i) shrunk[i] = root * z[i].imag(), gained[i] = z[i].real();
            out.solved[number] = info == 0;
        } else {
            real_d = d;
            for (double& value : real_d) value += s;
            beside = e;
            gained = x;
            blas.ptsv(&n, &vectors, real_d.data(), beside.data(), gained.data(), &n, &info);
            for (size_t i = 0; i < size; ++i) shrunk[i] = form == Form::normal ? gained[i] : s * gained[i];
            out.solved[number] = info == 0 && s >= smallest_shift * largest;
        }
        const auto product = [&](int i, int j) {
            return task.rest[i * vectors + j] +
                   sign * inner_product(x.data() + static_cast<size_t>(i) * n, &shrunk[static_cast<size_t>(j) * n], n);
        };
        const double own = task.beta * s + (task.intercept ? product(m, m) : 1);
        for (int j = 0; j < m; ++j) {
            const size_t system = number * m + j;
            const double qy = task.intercept ? product(m, j) : 0, b = qy / own;
            out.b[system] = b;
            out.residual[system] = product(j, j) - qy * b;
            const double *a = &gained[static_cast<size_t>(j) * n], *of_q = &gained[static_cast<size_t>(m) * n];
            double* to = &out.coef[system * n];
            for (int i = 0; i < n; ++i) to[i] = a[i] - b * of_q[i];
        }
    }
    return out;
}

// Room for applying reflectors to some vectors.
inline std::vector<double> reflector_room(int vectors) {
    return std::vector<double>(vectors < few_vectors
                                   ? std::max(1, vectors)
                                   : static_cast<size_t>(reflector_block) * (vectors + reflector_block + 1));
}

// M is symmetric (n, n), its rows from the diagonal on; it is overwritten.  x is (m + 1, n), M becomes shrink M.
inline RidgePaths symmetric_paths(const RidgeTask& task, Form form, double* M, int n, double shrink,
                                  std::vector<double> x) {
    std::vector<double> d(n), e(std::max(0, n - 1)), tau(std::max(1, n - 1));
    std::vector<double> work(static_cast<size_t>(reflector_block) * n);
    int room = static_cast<int>(work.size()), info = 0;
    blas.sytrd("L", &n, M, &n, d.data(), e.data(), tau.data(), work.data(), &room, &info);
    for (double& value : d) value *= shrink;
    for (double& value : e) value *= shrink;
    const auto apply = [&](const char* transposed, std::vector<double>& vectors, int count) {
        work = reflector_room(count);
        room = static_cast<int>(work.size());
        blas.ormtr("L", "L", transposed, &n, &count, M, &n, tau.data(), vectors.data(), &n, work.data(), &room, &info);
    };
    apply("T", x, task.vectors());
    RidgePaths out = solve_shifts(task, form, d, e, x);
    apply("N", out.coef, task.systems());
    return out;
}

// A is (n, N), overwritten; x is (m + 1, n).  Row order of A is the column order of A': LAPACK sees the transposed one.
inline RidgePaths bidiagonal_paths(RidgeTask task, double* A, int n, int N, std::vector<double> x) {
    const int r = std::min(n, N), vectors = task.vectors(), systems = task.systems();
    std::vector<double> tau(r), square(static_cast<size_t>(r) * r), work;
    int room, info = 0;
    const auto sized = [&](size_t numbers) {
        work.assign(numbers, 0);
        room = static_cast<int>(numbers);
    };
    sized(static_cast<size_t>(reflector_block) * std::max(n, N));
    const bool tall = n >= N;  // A' = L Q, otherwise A' = Q R
    (tall ? blas.gelqf : blas.geqrf)(&N, &n, A, &N, tau.data(), work.data(), &room, &info);
    for (int column = 0; column < r; ++column)
        for (int row = 0; row < r; ++row)
            if (tall ? row >= column : row <= column)
                square[static_cast<size_t>(column) * r + row] = A[static_cast<size_t>(column) * N + row];
    std::vector<double> inside(static_cast<size_t>(vectors) * r);
    if (tall) {
        work = reflector_room(vectors);
        room = static_cast<int>(work.size());
        blas.ormlq("L", "N", &n, &vectors, &r, A, &N, tau.data(), x.data(), &n, work.data(), &room, &info);
        for (int i = 0; i < vectors; ++i)
            for (int j = 0; j < vectors; ++j)
                task.rest[i * vectors + j] +=
                    inner_product(&x[static_cast<size_t>(i) * n + r], &x[static_cast<size_t>(j) * n + r], n - r);
    }
    for (int i = 0; i < vectors; ++i)
        std::copy_n(&x[static_cast<size_t>(i) * n], r, &inside[static_cast<size_t>(i) * r]);

    std::vector<double> d(r), e(r), tau_left(r), tau_right(r);
    sized(static_cast<size_t>(reflector_block) * 2 * r);
    blas.gebrd(&r, &r, square.data(), &r, d.data(), e.data(), tau_left.data(), tau_right.data(), work.data(), &room,
               &info);
    const auto apply = [&](const char* which, const char* transposed, const std::vector<double>& tau_of,
                           std::vector<double>& to, int count) {
        work = reflector_room(count);
        room = static_cast<int>(work.size());
        blas.ormbr(which, "L", transposed, &r, &count, &r, square.data(), &r, tau_of.data(), to.data(), &r, work.data(),
                   &room, &info);
    };
    apply("P", "T", tau_right, inside, vectors);
    std::vector<double> zeros(2 * r), beside(2 * r - 1), alternating(static_cast<size_t>(vectors) * 2 * r);
    for (int i = 0; i < r; ++i) {
        beside[2 * i] = d[i];
        if (i < r - 1) beside[2 * i + 1] = e[i];
        for (int v = 0; v < vectors; ++v)
            alternating[static_cast<size_t>(v) * 2 * r + 2 * i] = inside[static_cast<size_t>(v) * r + i];
    }
    RidgePaths found = solve_shifts(task, Form::squared, zeros, beside, alternating);
    std::vector<double> right(static_cast<size_t>(systems) * r);
    for (int v = 0; v < systems; ++v)
        for (int i = 0; i < r; ++i)
            right[static_cast<size_t>(v) * r + i] = found.coef[static_cast<size_t>(v) * 2 * r + 2 * i + 1];
    apply("Q", "N", tau_left, right, systems);
    if (tall) {
        found.coef = std::move(right);
        return found;
    }
    found.coef.assign(static_cast<size_t>(systems) * N, 0);
    for (int v = 0; v < systems; ++v)
        std::copy_n(&right[static_cast<size_t>(v) * r], r, &found.coef[static_cast<size_t>(v) * N]);
    work = reflector_room(systems);
    room = static_cast<int>(work.size());
    blas.ormqr("L", "N", &N, &systems, &r, A, &N, tau.data(), found.coef.data(), &N, work.data(), &room, &info);
    return found;
}

}  // namespace skm

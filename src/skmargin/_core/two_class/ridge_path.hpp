// Least squares with a ridge for many strengths s, from one condensed form of the matrix
// (solvers/two_class/condensed.py).
//
//   problem   min over (a, b)  ||A a + q b - y||^2 + s (||a||^2 + beta b^2)   for m vectors y and every s
//   forms     squared   T = H'MH a band, A = M symmetric:   (M^2 + s I)^{-1}, by the complex shift T - i sqrt(s) I
//             shifted   T = H'MH a band, M = A A':          (M + s I)^{-1}
//             normal    T = H'MH a band, M = A'A:           (M + s I)^{-1}, x = A'y given instead of y
//             bidiagonal A = V B'U' with B bidiagonal: the squared form of (0 B'; B 0), which is tridiagonal when
//                        left and right coordinates alternate
//   products  <i, j> = x_i' s (A A' + s I)^{-1} x_j, from which b_j = <q, y_j> / (beta s + <q, q>) and the residual
//             <y_j, y_j> - <q, y_j> b_j;  `rest` holds the part of <i, j> that lies outside of T
//   returned  a, b, the residual, and whether the strength could be solved
//
// A band form (two_class/banded_form.hpp) costs a fraction of the eigenvectors, and a system with T next to nothing.
// Without pivots that is stable where M has no negative eigenvalues (both parts of T - i sqrt(s) I are then
// semi-definite); for other kernels the residual tells.
#pragma once
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <vector>

#include "base/blas.hpp"
#include "two_class/banded_form.hpp"

namespace skm {

constexpr double smallest_shift = 1e-12;    // strength / largest eigenvalue from which M + s I keeps its digits
constexpr double largest_residual = 1e-13;  // times |T| |z|, from which on a system does not count as solved

enum class Form { squared, shifted, normal };

struct RidgeProblem {
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

    RidgePaths(const RidgeProblem& problem, int unknowns)
        : coef(static_cast<size_t>(problem.systems()) * unknowns), b(problem.systems()), residual(problem.systems()),
          solved(problem.strengths.size()) {}
};

inline double inner_product(const double* a, const double* b, int n) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

// What follows from (A A' + s I)^{-1} x for one strength: `shrunk` is that times s ("normal": without s), `gained` is
// A' times that ("shifted": without A').  `coef` is in the coordinates of T.
inline void finish_strength(const RidgeProblem& problem, Form form, size_t number, const std::vector<double>& x,
                            const std::vector<double>& gained, const std::vector<double>& shrunk, RidgePaths& out) {
    const int m = problem.m, vectors = problem.vectors();
    const size_t n = x.size() / vectors;
    const double s = problem.strengths[number], sign = form == Form::normal ? -1 : 1;
    const auto product = [&](int i, int j) {
        return problem.rest[i * vectors + j] + sign * inner_product(&x[i * n], &shrunk[j * n], static_cast<int>(n));
    };
    const double own = problem.beta * s + (problem.intercept ? product(m, m) : 1);
    for (int j = 0; j < m; ++j) {
        const size_t system = number * m + j;
        const double qy = problem.intercept ? product(m, j) : 0, b = qy / own;
        out.b[system] = b;
        out.residual[system] = product(j, j) - qy * b;
        const double *a = &gained[j * n], *of_q = &gained[m * n];
        double* to = &out.coef[system * n];
        for (size_t i = 0; i < n; ++i) to[i] = a[i] - b * of_q[i];
    }
}

// Every strength on the band matrix; x is (m + 1, n).
inline RidgePaths solve_banded(const RidgeProblem& problem, Form form, const std::vector<double>& band, int width,
                               const std::vector<double>& x) {
    const auto& simd = skm::simd<double>();
    const int64_t lanes = simd.lanes, vectors = problem.vectors(), n = static_cast<int64_t>(x.size()) / vectors;
    RidgePaths out(problem, static_cast<int>(n));
    std::vector<double> sums(n);  // of absolute values, row by row: the largest one is at least the largest eigenvalue
    for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i <= width && j + i < n; ++i) {
            const double size = std::abs(band[j * (width + 1) + i]);
            sums[j] += size;
            if (i) sums[j + i] += size;
        }
    const double largest = *std::max_element(sums.begin(), sums.end());
    std::vector<double> work((n * (width + 8) + 3 * width + 16) * 2 * lanes), z(x.size() * 2 * lanes);
    std::vector<double> real(lanes), imaginary(lanes), residual(lanes), pivot(lanes), gained(x.size()),
        shrunk(x.size());
    const int64_t S = static_cast<int64_t>(problem.strengths.size());
    for (int64_t first = 0; first < S; first += lanes) {
        for (int64_t l = 0; l < lanes; ++l) {
            const double s = problem.strengths[std::min(first + l, S - 1)];
            (form == Form::squared ? imaginary : real)[l] = form == Form::squared ? -std::sqrt(s) : s;
        }
        simd.banded_shifts(band.data(), n, width, real.data(), imaginary.data(), x.data(), vectors, work.data(),
                           z.data(), residual.data(), pivot.data());
        for (int64_t l = 0; l < std::min(lanes, S - first); ++l) {
            const double s = problem.strengths[first + l], root = std::sqrt(s);
            double size = 0;
            for (size_t i = 0; i < x.size(); ++i) {
                const double a = z[(2 * i) * lanes + l], b = z[(2 * i + 1) * lanes + l];
                gained[i] = a;
                shrunk[i] = form == Form::squared ? root * b : form == Form::normal ? a : s * a;
                size = std::max({size, std::abs(a), std::abs(b)});
            }
            const bool exact = residual[l] <= largest_residual * largest * size;
            out.solved[first + l] = exact && (form == Form::squared || (pivot[l] > 0 && s >= smallest_shift * largest));
            finish_strength(problem, form, first + l, x, gained, shrunk, out);
        }
    }
    return out;
}

// Every strength on the tridiagonal matrix with zeros on its diagonal and e beside it, squared; x is (m + 1, n).  Its
// systems need pivots.
inline RidgePaths solve_alternating(const RidgeProblem& problem, const std::vector<double>& e,
                                    const std::vector<double>& x) {
    const int vectors = problem.vectors(), n = static_cast<int>(x.size()) / vectors;
    RidgePaths out(problem, n);
    std::vector<std::complex<double>> diagonal, below, above, z;
    std::vector<double> shrunk(x.size()), gained(x.size());
    for (size_t number = 0; number < problem.strengths.size(); ++number) {
        const double root = std::sqrt(problem.strengths[number]);
        int info = 0;
        diagonal.assign(n, {0, -root});
        below.assign(e.begin(), e.end());
        above = below;
        z.assign(x.begin(), x.end());
        blas.zgtsv(&n, &vectors, below.data(), diagonal.data(), above.data(), z.data(), &n, &info);
        for (size_t i = 0; i < x.size(); ++i) shrunk[i] = root * z[i].imag(), gained[i] = z[i].real();
        out.solved[number] = info == 0;
        finish_strength(problem, Form::squared, number, x, gained, shrunk, out);
    }
    return out;
}

// Calls LAPACK with the memory that it asks for: call(memory, its size), where the size -1 is the question.
template <class Call>
void with_work(Call call) {
    double wanted = 0;
    int size = -1;
    call(&wanted, &size);
    size = std::max(1, static_cast<int>(wanted));
    std::vector<double> work(static_cast<size_t>(size));
    call(work.data(), &size);
}

// M is symmetric (n, n), its rows from the diagonal on; it is overwritten.  x is (m + 1, n), M becomes shrink M.
inline RidgePaths symmetric_paths(const RidgeProblem& problem, Form form, double* M, int n, double shrink,
                                  std::vector<double> x, const RidgeTuning& tuning) {
    BandedForm condensed(M, n, tuning);
    for (double& value : condensed.values()) value *= shrink;
    condensed.apply("T", x.data(), problem.vectors());
    RidgePaths out = solve_banded(problem, form, condensed.values(), condensed.width(), x);
    condensed.apply("N", out.coef.data(), problem.systems());
    return out;
}

// A is (n, N), n <= N, overwritten; x is (m + 1, n).  Row order of A is the column order of A': LAPACK sees the
// transposed one.
inline RidgePaths bidiagonal_paths(const RidgeProblem& problem, double* A, int n, int N, std::vector<double> inside) {
    const int r = n, vectors = problem.vectors(), systems = problem.systems();
    std::vector<double> tau(r), square(static_cast<size_t>(r) * r);
    int info = 0;
    const bool wide = n < N;
    if (wide)  // A' = Q R
        with_work([&](double* work, int* size) { blas.geqrf(&N, &n, A, &N, tau.data(), work, size, &info); });
    for (int column = 0; column < r; ++column)
        std::copy_n(A + static_cast<size_t>(column) * N, wide ? column + 1 : r,
                    &square[static_cast<size_t>(column) * r]);

    std::vector<double> d(r), e(r), tau_left(r), tau_right(r);
    with_work([&](double* work, int* size) {
        blas.gebrd(&r, &r, square.data(), &r, d.data(), e.data(), tau_left.data(), tau_right.data(), work, size, &info);
    });
    const auto apply = [&](const char* which, const char* transposed, const std::vector<double>& tau_of,
                           std::vector<double>& to, int count) {
        with_work([&](double* work, int* size) {
            blas.ormbr(which, "L", transposed, &r, &count, &r, square.data(), &r, tau_of.data(), to.data(), &r, work,
                       size, &info);
        });
    };
    apply("P", "T", tau_right, inside, vectors);
    std::vector<double> beside(2 * r - 1), alternating(static_cast<size_t>(vectors) * 2 * r);
    for (int i = 0; i < r; ++i) {
        beside[2 * i] = d[i];
        if (i < r - 1) beside[2 * i + 1] = e[i];
        for (int v = 0; v < vectors; ++v)
            alternating[static_cast<size_t>(v) * 2 * r + 2 * i] = inside[static_cast<size_t>(v) * r + i];
    }
    RidgePaths found = solve_alternating(problem, beside, alternating);
    std::vector<double> right(static_cast<size_t>(systems) * r);
    for (int v = 0; v < systems; ++v)
        for (int i = 0; i < r; ++i)
            right[static_cast<size_t>(v) * r + i] = found.coef[static_cast<size_t>(v) * 2 * r + 2 * i + 1];
    apply("Q", "N", tau_left, right, systems);
    if (!wide) {
        found.coef = std::move(right);
        return found;
    }
    found.coef.assign(static_cast<size_t>(systems) * N, 0);
    for (int v = 0; v < systems; ++v)
        std::copy_n(&right[static_cast<size_t>(v) * r], r, &found.coef[static_cast<size_t>(v) * N]);
    with_work([&](double* work, int* size) {
        blas.ormqr("L", "N", &N, &systems, &r, A, &N, tau.data(), found.coef.data(), &N, work, size, &info);
    });
    return found;
}

}  // namespace skm

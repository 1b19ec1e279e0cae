// Python face of the Newton gear.
#include "newton/newton.hpp"
#include "base/arrays.hpp"
#include "losses/hinge.hpp"
#include "losses/odm.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <string>
#include <tuple>

namespace nb = nanobind;
using namespace skm;

namespace {

using DualArrays = std::tuple<Vector<int64_t>, Vector<int32_t>, Vector<double>>;  // row starts, rivals, numbers

struct Problem {
    Matrix<double> X;
    Vector<int32_t> y;
    Vector<double> cap;
    int32_t k;
    bool intercept;
    double tol, majorizer_share, majorizer_value;
    int64_t max_newton;
    std::optional<DualArrays> duals;
    std::optional<Vector<double>> b;
    uint64_t seed;
    bool publish_duals = false;
};

// `make(cap)` is the loss that reads these weights.
template <class Make>
nb::dict solve(const Problem& problem, Make make) {
    const int64_t n = static_cast<int64_t>(problem.X.shape(0)), d = static_cast<int64_t>(problem.X.shape(1));
    const int32_t k = problem.k, m = k - 1;
    const int32_t* y = problem.y.data();
    std::vector<double> cap(problem.cap.data(), problem.cap.data() + n), W(static_cast<size_t>(k * d)), b(k), alpha;
    std::vector<int64_t> start(n + 1);
    std::vector<int32_t> cls;
    nb::dict result;
    {
        nb::gil_scoped_release unlocked;
        InterruptPoll poll(poll_python);
        const auto loss = make(cap.data());
        Newton newton(problem.X.data(), n, d, y, k, loss, cap.data(), problem.intercept, poll);
        std::vector<double>& a = newton.duals();
        if (problem.duals) {
            const auto& [first, rivals, numbers] = *problem.duals;
            for (int64_t i = 0; i < n; ++i)
                for (int64_t p = first.data()[i]; p < first.data()[i + 1]; ++p) {
                    const int32_t l = rivals.data()[p];
                    if (l != y[i]) a[i * m + l - (l > y[i])] = numbers.data()[p];
                }
        }
        if (problem.b) std::copy_n(problem.b->data(), k, b.begin());
        const bool converged =
            newton.solve(problem.duals.has_value(), b.data(), problem.tol, problem.max_newton, problem.seed,
                         problem.majorizer_share, problem.majorizer_value, problem.publish_duals);
        newton.publish(W.data(), b.data());
        for (int64_t i = 0; i < n; ++i) {
            for (int32_t j = 0; j < m; ++j)
                if (a[i * m + j] != 0) {
                    cls.push_back(j + (j >= y[i]));
                    alpha.push_back(a[i * m + j]);
                }
            start[i + 1] = static_cast<int64_t>(cls.size());
        }
        nb::gil_scoped_acquire locked;
        result["objective"] = newton.objective;
        result["gap"] = newton.gap;
        result["n_newton"] = newton.steps;
        result["converged"] = converged;
    }
    const size_t stored = cls.size();
    result["W"] = to_numpy(std::move(W), {static_cast<size_t>(k), static_cast<size_t>(d)});
    result["b"] = to_numpy(std::move(b), {static_cast<size_t>(k)});
    result["indptr"] = to_numpy(std::move(start), {static_cast<size_t>(n + 1)});
    result["classes"] = to_numpy(std::move(cls), {stored});
    result["alpha"] = to_numpy(std::move(alpha), {stored});
    return result;
}

void check(const Problem& t) {
    const size_t n = t.X.shape(0);
    if (t.k < 2 || n == 0 || t.X.shape(1) == 0) throw nb::value_error("two classes, a sample and a feature are needed");
    if (t.y.size() != n || t.cap.size() != n || (t.b && t.b->size() != static_cast<size_t>(t.k)))
        throw nb::value_error("the arrays given to the core do not fit each other");
    for (size_t i = 0; i < n; ++i) {
        if (t.y.data()[i] < 0 || t.y.data()[i] >= t.k) throw nb::value_error("a class code lies outside 0..k-1");
        if (!(t.cap.data()[i] > 0)) throw nb::value_error("cap must be positive");
    }
    if (!t.duals) return;
    const auto& [first, rivals, numbers] = *t.duals;
    if (first.size() != n + 1 || rivals.size() != numbers.size() || first.data()[0] != 0 ||
        first.data()[n] != static_cast<int64_t>(rivals.size()))
        throw nb::value_error("the starts of the dual rows do not fit their numbers");
    for (size_t i = 0; i < n; ++i)
        if (first.data()[i + 1] < first.data()[i]) throw nb::value_error("the starts of the dual rows must not fall");
    for (size_t p = 0; p < rivals.size(); ++p)
        if (rivals.data()[p] < 0 || rivals.data()[p] >= t.k) throw nb::value_error("a rival lies outside 0..k-1");
}

nb::dict newton(Matrix<double> X, Vector<int32_t> y, Vector<double> cap, int32_t n_classes, const std::string& loss,
                int32_t top_k, bool fit_intercept, double tol, int64_t max_newton, std::optional<DualArrays> duals,
                std::optional<Vector<double>> b, uint64_t seed) {
    const Problem problem{X, y, cap,        n_classes,        fit_intercept, tol,
                          0, 0, max_newton, std::move(duals), std::move(b),  seed};
    check(problem);
    if (loss == "max") return solve(problem, [&](double* cap) { return HingeLoss<Hinge::max>(cap, top_k); });
    if (loss == "sum") return solve(problem, [&](double* cap) { return HingeLoss<Hinge::sum>(cap, top_k); });
    if (loss == "top") return solve(problem, [&](double* cap) { return HingeLoss<Hinge::top>(cap, top_k); });
    throw nb::value_error("loss must be 'max', 'sum' or 'top'");
}

// The optimal margin distribution machine with fixed rivals; the driver is solvers/odm/outer.py.
nb::dict newton_odm(Matrix<double> X, Vector<int32_t> y, Vector<double> cap, int32_t n_classes, double mu, double theta,
                    Vector<int32_t> rival, bool fit_intercept, double tol, double majorizer_share,
                    double majorizer_value, int64_t max_newton, std::optional<DualArrays> duals,
                    std::optional<Vector<double>> b, uint64_t seed, bool publish_duals) {
    const Problem problem{X,
                          y,
                          cap,
                          n_classes,
                          fit_intercept,
                          tol,
                          majorizer_share,
                          majorizer_value,
                          max_newton,
                          std::move(duals),
                          std::move(b),
                          seed,
                          publish_duals};
    check(problem);
    check_fixed_rivals(mu, rival, y, n_classes);
    return solve(problem, [&](double* cap) { return OdmLoss(cap, mu, theta, rival.data(), y.data()); });
}

}  // namespace

void bind_newton(nb::module_& m) {
    load(blas.gemm, "scipy.linalg.cython_blas", "dgemm");
    load(blas.syrk, "scipy.linalg.cython_blas", "dsyrk");
    load(blas.trsm, "scipy.linalg.cython_blas", "dtrsm");
    load(blas.potrf, "scipy.linalg.cython_lapack", "dpotrf");
    load(blas.potrs, "scipy.linalg.cython_lapack", "dpotrs");
    m.def("newton", &newton, nb::arg("X"), nb::arg("y"), nb::arg("cap"), nb::arg("n_classes"), nb::arg("loss"),
          nb::arg("K"), nb::arg("fit_intercept"), nb::arg("tol"), nb::arg("max_newton"), nb::arg("state").none(),
          nb::arg("b").none(), nb::arg("seed"));
    m.def("newton_band", &newton_odm, nb::arg("X"), nb::arg("y"), nb::arg("cap"), nb::arg("n_classes"), nb::arg("mu"),
          nb::arg("theta"), nb::arg("rival"), nb::arg("fit_intercept"), nb::arg("tol"), nb::arg("share"),
          nb::arg("reference"), nb::arg("max_newton"), nb::arg("state").none(), nb::arg("b").none(), nb::arg("seed"),
          nb::arg("of_duals"));
}

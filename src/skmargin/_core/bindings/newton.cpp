// Python face of the Newton method (solvers/dual/linear.py, solvers/odm/inner_linear.py).
#include "newton/newton.hpp"
#include "bindings/contract.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace skm;

namespace {

// The duals of the Newton method: a table of n x (k - 1) numbers, rivals in increasing order without the own class.
void read_table(const DualArrays& duals, const int32_t* y, int32_t m, std::vector<double>& table) {
    const auto& [indptr, rivals, alpha] = duals;
    for (size_t i = 0; i + 1 < indptr.size(); ++i)
        for (int64_t p = indptr.data()[i]; p < indptr.data()[i + 1]; ++p) {
            const int32_t l = rivals.data()[p];
            if (l != y[i]) table[i * m + l - (l > y[i])] = alpha.data()[p];
        }
}

nb::tuple write_table(const std::vector<double>& table, const int32_t* y, size_t n, int32_t m) {
    std::vector<int64_t> indptr(n + 1);
    std::vector<int32_t> rivals;
    std::vector<double> alpha;
    for (size_t i = 0; i < n; ++i) {
        for (int32_t j = 0; j < m; ++j)
            if (table[i * m + j] != 0) {
                rivals.push_back(j + (j >= y[i]));
                alpha.push_back(table[i * m + j]);
            }
        indptr[i + 1] = static_cast<int64_t>(rivals.size());
    }
    const size_t stored = rivals.size();
    return nb::make_tuple(to_numpy(std::move(indptr), {n + 1}), to_numpy(std::move(rivals), {stored}),
                          to_numpy(std::move(alpha), {stored}));
}

Result newton(Matrix<double> X, const Problem& problem, const Options& options, std::optional<Vector<double>> b,
              std::optional<DualArrays> duals, bool fit_intercept, bool publish_duals, const NewtonTuning& tuning) {
    const size_t n = X.shape(0), d = X.shape(1);
    const int32_t k = problem.n_classes;
    const int32_t* y = problem.y.data();
    require(k >= 2 && n > 0 && d > 0, "two classes, a sample and a feature are needed");
    check_labels(problem.y, n, k);
    require(!b || b->size() == static_cast<size_t>(k), "one intercept is needed for each class");
    for (size_t i = 0; i < n; ++i) require(problem.cap.data()[i] > 0, "cap must be positive");
    if (duals) check_duals(*duals, n, k);
    std::vector<double> cap(problem.cap.data(), problem.cap.data() + n), W(static_cast<size_t>(k) * d), intercepts(k);
    std::vector<double> table;
    Outcome out;
    {
        nb::gil_scoped_release unlocked;
        InterruptPoll poll(poll_python);
        if (b) std::copy_n(b->data(), k, intercepts.begin());
        with_loss(problem, cap.data(), true, [&](const auto& loss) {
            Newton method(X.data(), static_cast<int64_t>(n), static_cast<int64_t>(d), y, k, loss, cap.data(),
                          fit_intercept, poll, tuning);
            if (duals) read_table(*duals, y, k - 1, method.duals());
            out.converged = method.solve(duals.has_value(), intercepts.data(), options, publish_duals);
            method.publish(W.data(), intercepts.data());
            table = std::move(method.duals());
            out.objective = method.objective;
            out.gap = method.gap;
            out.n_iter = method.steps;
        });
    }
    std::vector<double> multipliers = intercepts;
    return make_result(std::move(W), std::move(intercepts), std::move(multipliers), write_table(table, y, n, k - 1),
                       out);
}

}  // namespace

void bind_newton(nb::module_& m) {
    load(blas.gemm, "scipy.linalg.cython_blas", "dgemm");
    load(blas.syrk, "scipy.linalg.cython_blas", "dsyrk");
    load(blas.trsm, "scipy.linalg.cython_blas", "dtrsm");
    load(blas.potrf, "scipy.linalg.cython_lapack", "dpotrf");
    load(blas.potrs, "scipy.linalg.cython_lapack", "dpotrs");
    m.def("newton", &newton, "X"_a, "problem"_a, "options"_a, nb::kw_only(), "b"_a.none(), "duals"_a.none(),
          "fit_intercept"_a, "publish_duals"_a = false, "tuning"_a = NewtonTuning());
}

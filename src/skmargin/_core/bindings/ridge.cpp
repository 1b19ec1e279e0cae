// Python face of two_class/ridge_path.hpp, and blocks of kernel matrices from the matrix that all widths share.
#include "base/arrays.hpp"
#include "simd/simd.hpp"
#include "two_class/ridge_path.hpp"

#include <nanobind/stl/string.h>

#include <string>

namespace nb = nanobind;
using namespace skm;

namespace {

RidgeProblem problem_of(const Matrix<double>& x, const Matrix<double>& rest, const Vector<double>& strengths,
                        bool intercept, double beta) {
    if (x.shape(0) < 2 || rest.shape(0) != x.shape(0) || rest.shape(1) != x.shape(0))
        throw nb::value_error("the vectors and their products do not fit each other");
    for (size_t i = 0; i < strengths.size(); ++i)
        if (!(strengths.data()[i] > 0)) throw nb::value_error("the strengths must be positive");
    return {{strengths.data(), strengths.data() + strengths.size()},
            static_cast<int>(x.shape(0)) - 1,
            intercept,
            beta,
            {rest.data(), rest.data() + rest.size()}};
}

nb::tuple as_tuple(RidgePaths&& found, const RidgeProblem& problem) {
    const size_t S = problem.strengths.size(), m = static_cast<size_t>(problem.m),
                 unknowns = found.coef.size() / (S * m);
    return nb::make_tuple(to_numpy(std::move(found.coef), {S, m, unknowns}), to_numpy(std::move(found.b), {S, m}),
                          to_numpy(std::move(found.residual), {S, m}), to_numpy(std::move(found.solved), {S}));
}

nb::tuple ridge_symmetric(WritableMatrix<double> M, Matrix<double> x, Matrix<double> rest, Vector<double> strengths,
                          const std::string& form, double shrink, bool intercept, double beta,
                          const RidgeTuning& tuning) {
    const RidgeProblem problem = problem_of(x, rest, strengths, intercept, beta);
    if (M.shape(0) != M.shape(1) || x.shape(1) != M.shape(0) || strengths.size() == 0)
        throw nb::value_error("the matrix and the vectors do not fit each other");
    const Form kind = form == "squared" ? Form::squared : form == "shifted" ? Form::shifted : Form::normal;
    nb::gil_scoped_release unlocked;
    RidgePaths found = symmetric_paths(problem, kind, M.data(), static_cast<int>(M.shape(0)), shrink,
                                       {x.data(), x.data() + x.size()}, tuning);
    nb::gil_scoped_acquire locked;
    return as_tuple(std::move(found), problem);
}

nb::tuple ridge_bidiagonal(WritableMatrix<double> A, Matrix<double> x, Matrix<double> rest, Vector<double> strengths,
                           bool intercept, double beta) {
    const RidgeProblem problem = problem_of(x, rest, strengths, intercept, beta);
    if (A.size() == 0 || A.shape(0) > A.shape(1) || x.shape(1) != A.shape(0) || strengths.size() == 0)
        throw nb::value_error("the matrix and the vectors do not fit each other");
    nb::gil_scoped_release unlocked;
    RidgePaths found = bidiagonal_paths(problem, A.data(), static_cast<int>(A.shape(0)), static_cast<int>(A.shape(1)),
                                        {x.data(), x.data() + x.size()});
    nb::gil_scoped_acquire locked;
    return as_tuple(std::move(found), problem);
}

// out[i, j] = exp(-gamma base[rows[i], columns[j]]); with `triangle` only for j >= i.
void exponential_block(Matrix<double> base, Vector<int64_t> rows, Vector<int64_t> columns, double gamma,
                       WritableMatrix<double> out, bool triangle) {
    const int64_t n = static_cast<int64_t>(rows.size()), m = static_cast<int64_t>(columns.size());
    if (out.shape(0) != rows.size() || out.shape(1) != columns.size())
        throw nb::value_error("the block does not fit its rows and columns");
    for (int64_t i = 0; i < n; ++i)
        if (rows.data()[i] < 0 || rows.data()[i] >= static_cast<int64_t>(base.shape(0)))
            throw nb::value_error("a row lies outside of the matrix");
    for (int64_t j = 0; j < m; ++j)
        if (columns.data()[j] < 0 || columns.data()[j] >= static_cast<int64_t>(base.shape(1)))
            throw nb::value_error("a column lies outside of the matrix");
    nb::gil_scoped_release unlocked;
    InterruptPoll poll(poll_python);
    std::vector<double> gathered(m);
    for (int64_t i = 0; i < n; ++i) {
        const double* from = base.data() + rows.data()[i] * static_cast<int64_t>(base.shape(1));
        double* to = out.data() + i * m;
        const int64_t first = triangle ? i : 0;
        for (int64_t j = first; j < m; ++j) gathered[j] = from[columns.data()[j]];
        std::fill(to + first, to + m, 0.0);
        simd<double>().rbf(to + first, m - first, gathered.data() + first, 0.0, gamma);
        poll.count_work(8.0 * static_cast<double>(m - first));
    }
}

}  // namespace

void bind_ridge(nb::module_& m) {
    load(blas.symm, "scipy.linalg.cython_blas", "dsymm");
    load(blas.syr2k, "scipy.linalg.cython_blas", "dsyr2k");
    load(blas.geqrf, "scipy.linalg.cython_lapack", "dgeqrf");
    load(blas.ormqr, "scipy.linalg.cython_lapack", "dormqr");
    load(blas.gebrd, "scipy.linalg.cython_lapack", "dgebrd");
    load(blas.ormbr, "scipy.linalg.cython_lapack", "dormbr");
    load(blas.zgtsv, "scipy.linalg.cython_lapack", "zgtsv");
    m.def("ridge_symmetric", &ridge_symmetric, nb::arg("M").noconvert(), nb::arg("x"), nb::arg("rest"),
          nb::arg("strengths"), nb::arg("form"), nb::arg("shrink"), nb::arg("intercept"), nb::arg("beta"),
          nb::kw_only(), nb::arg("tuning") = RidgeTuning(),
          nb::sig("def ridge_symmetric(M: numpy.typing.NDArray, x: numpy.typing.NDArray, rest: numpy.typing.NDArray, "
                  "strengths: numpy.typing.NDArray, form: str, shrink: float, intercept: bool, beta: float, *, tuning: "
                  "RidgeTuning = ...) -> "
                  "tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64], "
                  "numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.uint8]]"));
    m.def("ridge_bidiagonal", &ridge_bidiagonal, nb::arg("A").noconvert(), nb::arg("x"), nb::arg("rest"),
          nb::arg("strengths"), nb::arg("intercept"), nb::arg("beta"),
          nb::sig("def ridge_bidiagonal(A: numpy.typing.NDArray, x: numpy.typing.NDArray, rest: numpy.typing.NDArray, "
                  "strengths: numpy.typing.NDArray, intercept: bool, beta: float) -> "
                  "tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64], "
                  "numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.uint8]]"));
    m.def("exponential_block", &exponential_block, nb::arg("base").noconvert(), nb::arg("rows"), nb::arg("columns"),
          nb::arg("gamma"), nb::arg("out").noconvert(), nb::arg("triangle"));
}

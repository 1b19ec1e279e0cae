// Python face of the linear block ascent.
#include "linear/problem.hpp"

namespace nb = nanobind;
using namespace skm;

namespace {

template <class Rows>
nb::dict choose_loss(const Rows& rows, const Problem& problem) {
    if (problem.loss == "max") return solve(rows, HingeLoss<Hinge::max>(problem.cap.data(), 1), problem);
    if (problem.loss == "sum") return solve(rows, HingeLoss<Hinge::sum>(problem.cap.data(), problem.k - 1), problem);
    if (problem.loss == "top") return solve(rows, HingeLoss<Hinge::top>(problem.cap.data(), problem.top_k), problem);
    throw nb::value_error("loss must be 'max', 'sum' or 'top'");
}

Problem make_problem(Vector<int32_t> y, Vector<double> cap, int32_t k, std::string loss, int32_t top_k,
                     Vector<double> mean, bool intercept, Vector<double> b, Vector<int64_t> start, Vector<int32_t> cls,
                     Vector<double> alpha, double tol, int64_t passes, double work, double work_when_near,
                     bool stop_on_stall, bool face, bool near_optimum, uint64_t seed, int32_t threads) {
    return Problem{y,
                   cap,
                   k,
                   std::move(loss),
                   top_k,
                   mean,
                   b,
                   start,
                   cls,
                   alpha,
                   Limits{tol, passes, work, stop_on_stall, 0, 0, work_when_near},
                   face,
                   seed,
                   threads,
                   intercept,
                   near_optimum};
}

template <class T>
nb::dict dense(Exact<Matrix<T>> X, Vector<int32_t> y, Vector<double> cap, int32_t k, std::string loss, int32_t top_k,
               Vector<double> mean, bool intercept, Vector<double> b, Vector<int64_t> start, Vector<int32_t> cls,
               Vector<double> alpha, double tol, int64_t passes, double work, double work_when_near, bool stop_on_stall,
               bool face, bool near_optimum, uint64_t seed, int32_t threads) {
    const Problem problem =
        make_problem(y, cap, k, std::move(loss), top_k, mean, intercept, b, start, cls, alpha, tol, passes, work,
                     work_when_near, stop_on_stall, face, near_optimum, seed, threads);
    check_lengths(problem, X.shape(0), X.shape(1));
    const int64_t n = static_cast<int64_t>(X.shape(0)), d = static_cast<int64_t>(X.shape(1));
    return choose_loss(DenseRows<T>(X.data(), n, d, d, k), problem);
}

template <class T, class I>
nb::dict csr(Vector<I> indptr, Vector<I> indices, Exact<Vector<T>> values, int64_t d, Vector<int32_t> y,
             Vector<double> cap, int32_t k, std::string loss, int32_t top_k, Vector<double> mean, bool intercept,
             Vector<double> b, Vector<int64_t> start, Vector<int32_t> cls, Vector<double> alpha, double tol,
             int64_t passes, double work, double work_when_near, bool stop_on_stall, bool face, bool near_optimum,
             uint64_t seed, int32_t threads) {
    const Problem problem =
        make_problem(y, cap, k, std::move(loss), top_k, mean, intercept, b, start, cls, alpha, tol, passes, work,
                     work_when_near, stop_on_stall, face, near_optimum, seed, threads);
    check_csr(indptr, indices, values.size(), d);
    const size_t n = indptr.size() - 1;
    check_lengths(problem, n, static_cast<size_t>(d));
    return choose_loss(SparseRows<T, I>(indptr.data(), indices.data(), values.data(), static_cast<int64_t>(n), d, k),
                       problem);
}

// The numbers of dense rows that are not zero, `stored` of them, as CSR arrays (values, columns, row starts).
template <class T>
nb::tuple to_csr(Matrix<T> X, int64_t stored) {
    const size_t n = X.shape(0), d = X.shape(1), capacity = static_cast<size_t>(stored) + 1;  // one more: see below
    std::vector<int32_t> start(n + 1, 0), columns(capacity);
    std::vector<T> values(capacity);
    size_t at = 0;
    {
        nb::gil_scoped_release unlocked;
        for (size_t i = 0; i < n; ++i) {
            const T* row = X.data() + i * d;
            for (size_t j = 0; j < d; ++j) {  // written in any case, kept if it is not zero: no branch to guess
                values[at] = row[j];
                columns[at] = static_cast<int32_t>(j);
                at += row[j] != 0 && at + 1 < capacity;
            }
            start[i + 1] = static_cast<int32_t>(at);
        }
    }
    return nb::make_tuple(to_numpy(std::move(values), {at}), to_numpy(std::move(columns), {at}),
                          to_numpy(std::move(start), {n + 1}));
}

// The mean of dense rows and the mean of their squares, in double precision.
template <class T>
nb::tuple moments(Matrix<T> X) {
    const size_t n = X.shape(0), d = X.shape(1);
    std::vector<double> mean(d, 0.0);
    double square = 0;
    {
        nb::gil_scoped_release unlocked;
        InterruptPoll poll(poll_python);
        for (size_t i = 0; i < n; ++i) {
            const T* x = X.data() + i * d;
            for (size_t j = 0; j < d; ++j) mean[j] += x[j];
            square += summed(static_cast<int64_t>(d), [=](int64_t j) { return static_cast<double>(x[j]) * x[j]; });
            poll.count_work(3.0 * static_cast<double>(d));
        }
        for (double& m : mean) m /= static_cast<double>(n);
    }
    return nb::make_tuple(to_numpy(std::move(mean), {d}), square / static_cast<double>(n));
}

}  // namespace

void bind_linear(nb::module_& m) {
    // One name, overloaded over number and index types; the driver is solvers/dual/linear.py.
    m.def("dense_blocks", &dense<float>);
    m.def("dense_blocks", &dense<double>);
    m.def("csr_blocks", &csr<float, int64_t>);
    m.def("csr_blocks", &csr<double, int64_t>);
    m.def("csr_blocks", &csr<float, int32_t>);
    m.def("csr_blocks", &csr<double, int32_t>);
    m.def("moments", &moments<float>, nb::arg("X").noconvert());
    m.def("moments", &moments<double>, nb::arg("X").noconvert());
    m.def("to_csr", &to_csr<float>, nb::arg("X").noconvert(), nb::arg("stored"));
    m.def("to_csr", &to_csr<double>, nb::arg("X").noconvert(), nb::arg("stored"));
}

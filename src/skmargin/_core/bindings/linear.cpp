// Python face of the linear block ascent.
#include "linear/problem.hpp"

namespace nb = nanobind;
using namespace skm;

namespace {

template <class Rows>
nb::dict choose_loss(const Rows& rows, const Task& task) {
    if (task.loss == "max") return solve(rows, HingeLoss<Hinge::max>(task.cap.data(), 1), task);
    if (task.loss == "sum") return solve(rows, HingeLoss<Hinge::sum>(task.cap.data(), task.k - 1), task);
    if (task.loss == "top") return solve(rows, HingeLoss<Hinge::top>(task.cap.data(), task.K), task);
    throw nb::value_error("loss must be 'max', 'sum' or 'top'");
}

Task make_task(Vector<int32_t> y, Vector<double> cap, int32_t k, std::string loss, int32_t K, Vector<double> mean,
               bool intercept, Vector<double> b, Vector<int64_t> start, Vector<int32_t> cls, Vector<double> alpha,
               double tol, int64_t passes, double work, double near_work, bool stop_on_stall, bool face, bool settled,
               uint64_t seed, int32_t threads) {
    return Task{y,
                cap,
                k,
                std::move(loss),
                K,
                mean,
                b,
                start,
                cls,
                alpha,
                Limits{tol, passes, work, stop_on_stall, 0, 0, near_work},
                face,
                seed,
                threads,
                intercept,
                settled};
}

template <class T>
nb::dict dense(Exact<Matrix<T>> X, Vector<int32_t> y, Vector<double> cap, int32_t k, std::string loss, int32_t K,
               Vector<double> mean, bool intercept, Vector<double> b, Vector<int64_t> start, Vector<int32_t> cls,
               Vector<double> alpha, double tol, int64_t passes, double work, double near_work, bool stop_on_stall,
               bool face, bool settled, uint64_t seed, int32_t threads) {
    const Task task = make_task(y, cap, k, std::move(loss), K, mean, intercept, b, start, cls, alpha, tol, passes, work,
                                near_work, stop_on_stall, face, settled, seed, threads);
    check_lengths(task, X.shape(0), X.shape(1));
    const int64_t n = static_cast<int64_t>(X.shape(0)), d = static_cast<int64_t>(X.shape(1));
    return choose_loss(DenseRows<T>(X.data(), n, d, d, k), task);
}

template <class T, class I>
nb::dict csr(Vector<I> indptr, Vector<I> indices, Exact<Vector<T>> values, int64_t d, Vector<int32_t> y,
             Vector<double> cap, int32_t k, std::string loss, int32_t K, Vector<double> mean, bool intercept,
             Vector<double> b, Vector<int64_t> start, Vector<int32_t> cls, Vector<double> alpha, double tol,
             int64_t passes, double work, double near_work, bool stop_on_stall, bool face, bool settled, uint64_t seed,
             int32_t threads) {
    const Task task = make_task(y, cap, k, std::move(loss), K, mean, intercept, b, start, cls, alpha, tol, passes, work,
                                near_work, stop_on_stall, face, settled, seed, threads);
    check_csr(indptr, indices, values.size(), d);
    const size_t n = indptr.size() - 1;
    check_lengths(task, n, static_cast<size_t>(d));
    return choose_loss(SparseRows<T, I>(indptr.data(), indices.data(), values.data(), static_cast<int64_t>(n), d, k),
                       task);
}

// The numbers of dense rows that are not zero, `stored` of them, as CSR arrays (values, columns, row starts).
template <class T>
nb::tuple to_csr(Matrix<T> X, int64_t stored) {
    const size_t n = X.shape(0), d = X.shape(1), room = static_cast<size_t>(stored) + 1;  // one more: see below
    std::vector<int32_t> start(n + 1, 0), columns(room);
    std::vector<T> values(room);
    size_t at = 0;
    {
        nb::gil_scoped_release unlocked;
        for (size_t i = 0; i < n; ++i) {
            const T* row = X.data() + i * d;
            for (size_t j = 0; j < d; ++j) {  // written in any case, kept if it is not zero: no branch to guess
                values[at] = row[j];
                columns[at] = static_cast<int32_t>(j);
                at += row[j] != 0 && at + 1 < room;
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
        Poll poll(ask_python);
        for (size_t i = 0; i < n; ++i) {
            const T* x = X.data() + i * d;
            for (size_t j = 0; j < d; ++j) mean[j] += x[j];
            square += summed(static_cast<int64_t>(d), [=](int64_t j) { return static_cast<double>(x[j]) * x[j]; });
            poll.work(3.0 * static_cast<double>(d));
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

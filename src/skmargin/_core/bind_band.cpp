// Python face of the linear block ascent with the loss of the optimal margin distribution machine.
#include "band_loss.hpp"
#include "linear_task.hpp"

namespace nb = nanobind;
using namespace skm;

namespace {

template <class Rows>
nb::dict run(const Rows& rows, const Task& task, double mu, double theta, const Vector<int32_t>& rival) {
    check_rivals(mu, rival, task.y, task.k);
    return solve(rows, BandLoss(task.cap.data(), mu, theta, rival.data()), task);
}

template <class T>
nb::dict dense(Matrix<T> X, Vector<int32_t> y, Vector<double> cap, int32_t k, double mu, double theta,
               Vector<int32_t> rival, std::optional<Vector<double>> mean, Vector<double> b, Vector<int64_t> start,
               Vector<int32_t> cls, Vector<double> alpha, double tol, int64_t passes, double work, bool stop_on_stall,
               double share, double reference, uint64_t seed) {
    const Limits limits{tol, passes, work, stop_on_stall, share, reference};
    const Task task{y, cap, k, "band", 1, mean, b, start, cls, alpha, limits, false, seed};
    check_lengths(task, X.shape(0), X.shape(1));
    const int64_t n = static_cast<int64_t>(X.shape(0)), d = static_cast<int64_t>(X.shape(1));
    return run(DenseRows<T>(X.data(), n, d, d, k), task, mu, theta, rival);
}

template <class T, class I>
nb::dict csr(Vector<I> indptr, Vector<I> indices, Vector<T> values, int64_t d, Vector<int32_t> y, Vector<double> cap,
             int32_t k, double mu, double theta, Vector<int32_t> rival, std::optional<Vector<double>> mean,
             Vector<double> b, Vector<int64_t> start, Vector<int32_t> cls, Vector<double> alpha, double tol,
             int64_t passes, double work, bool stop_on_stall, double share, double reference, uint64_t seed) {
    const Limits limits{tol, passes, work, stop_on_stall, share, reference};
    const Task task{y, cap, k, "band", 1, mean, b, start, cls, alpha, limits, false, seed};
    const size_t n = indptr.size() - 1;
    check_lengths(task, n, static_cast<size_t>(d));
    check_csr(indptr, indices, values.size(), d);
    return run(SparseRows<T, I>(indptr.data(), indices.data(), values.data(), static_cast<int64_t>(n), d, k), task, mu,
               theta, rival);
}

// One block, for tests: the first rival of the list is the fixed one.
nb::object block(double cap, double mu, double theta, double A, Vector<double> d, Vector<double> alpha) {
    const int32_t rival = 0, m = static_cast<int32_t>(d.size());
    if (alpha.size() != d.size()) throw nb::value_error("d and alpha must have one length");
    std::vector<double> out(d.size());
    BandLoss(&cap, mu, theta, &rival).block(0, A, d.data(), alpha.data(), m, out.data());
    return to_numpy(std::move(out), {d.size()});
}

}  // namespace

void bind_band(nb::module_& m) {
    // The driver is solvers/odm.py.  Wider numbers come first: if an argument needs a conversion, X must not lose
    // digits.
    m.def("dense_band", &dense<double>);
    m.def("dense_band", &dense<float>);
    m.def("csr_band", &csr<double, int32_t>);
    m.def("csr_band", &csr<float, int32_t>);
    m.def("csr_band", &csr<double, int64_t>);
    m.def("csr_band", &csr<float, int64_t>);
    m.def("band_block", &block);
}

// Python face of the stochastic epochs; the driver is solvers/multi_margin/svrg.py.
#include "linear/svrg.hpp"
#include "base/arrays.hpp"

namespace nb = nanobind;
using namespace skm;

namespace {

struct Step {
    double eta, decay;
    int64_t first;
    bool reduce;
    uint64_t seed;
};

// One epoch from W, b; returns the new W, b and the objective there.
template <class Rows>
nb::tuple epoch(const Rows& rows, const Vector<int32_t>& y, const Vector<double>& cap, const Matrix<double>& W,
                const Vector<double>& b, bool intercept, const Step& step) {
    const size_t n = static_cast<size_t>(rows.n), d = static_cast<size_t>(rows.d), k = static_cast<size_t>(rows.k);
    if (y.size() != n || cap.size() != n || W.shape(0) != k || W.shape(1) != d || b.size() != k)
        throw nb::value_error("the arrays given to the core do not fit each other");
    for (size_t i = 0; i < n; ++i)
        if (y.data()[i] < 0 || y.data()[i] >= rows.k) throw nb::value_error("a class code lies outside 0..k-1");
    std::vector<double> new_W(W.data(), W.data() + k * d), new_b(b.data(), b.data() + k);
    double objective;
    {
        nb::gil_scoped_release unlocked;
        InterruptPoll poll(poll_python);
        StochasticEpoch<Rows> run(rows, y.data(), cap.data(), intercept, poll);
        if (step.eta > 0) run.run(new_W.data(), new_b.data(), step.eta, step.decay, step.first, step.reduce, step.seed);
        objective = run.objective(new_W.data(), new_b.data());
    }
    return nb::make_tuple(to_numpy(std::move(new_W), {k, d}), to_numpy(std::move(new_b), {k}), objective);
}

nb::tuple dense(Matrix<double> X, Vector<int32_t> y, Vector<double> cap, Matrix<double> W, Vector<double> b,
                bool intercept, double eta, double decay, int64_t first, bool reduce, uint64_t seed) {
    const int64_t n = static_cast<int64_t>(X.shape(0)), d = static_cast<int64_t>(X.shape(1));
    return epoch(DenseRows<double>(X.data(), n, d, d, static_cast<int32_t>(W.shape(0))), y, cap, W, b, intercept,
                 Step{eta, decay, first, reduce, seed});
}

template <class I>
nb::tuple csr(Vector<I> indptr, Vector<I> indices, Vector<double> values, int64_t d, Vector<int32_t> y,
              Vector<double> cap, Matrix<double> W, Vector<double> b, bool intercept, double eta, double decay,
              int64_t first, bool reduce, uint64_t seed) {
    check_csr(indptr, indices, values.size(), d);
    const size_t n = indptr.size() - 1;
    return epoch(SparseRows<double, I>(indptr.data(), indices.data(), values.data(), static_cast<int64_t>(n), d,
                                       static_cast<int32_t>(W.shape(0))),
                 y, cap, W, b, intercept, Step{eta, decay, first, reduce, seed});
}

}  // namespace

void bind_svrg(nb::module_& m) {
    m.def("dense_epoch", &dense);
    m.def("csr_epoch", &csr<int64_t>);
    m.def("csr_epoch", &csr<int32_t>);
}

// Python face of the two-class dual coordinate ascent (two_class/box_ascent.hpp); the driver is
// solvers/two_class/ldm.py.
#include "base/arrays.hpp"
#include "two_class/box_ascent.hpp"

namespace nb = nanobind;
using namespace skm;

namespace {

struct Task {
    Vector<double> y, cap, lin, kappa, start;
    double tol;
    int64_t passes;
    uint64_t seed;
};

void check_lengths(const Task& t, size_t n) {
    for (const auto* v : {&t.y, &t.cap, &t.lin, &t.kappa, &t.start})
        if (v->size() != n) throw nb::value_error("the arrays given to the core do not fit each other");
}

template <class View>
nb::tuple solve(View& view, const Task& task) {
    std::vector<double> g(task.start.data(), task.start.data() + view.n), state;
    BoxOutcome out;
    {
        nb::gil_scoped_release unlocked;
        Poll poll(ask_python);
        const BoxProblem problem{task.y.data(), task.cap.data(), task.lin.data(), task.kappa.data()};
        BoxAscent<View, Poll> ascent(view, problem, g, poll, task.seed);
        out = ascent.run(task.tol, task.passes);
        state.assign(view.state(), view.state() + view.state_size());
    }
    const size_t n = g.size(), size = state.size();
    return nb::make_tuple(to_numpy(std::move(g), {n}), to_numpy(std::move(state), {size}), out.primal, out.gap,
                          out.relative, out.passes);
}

nb::tuple gram(Matrix<double> K, Vector<double> y, Vector<double> cap, Vector<double> lin, Vector<double> kappa,
               Vector<double> start, double tol, int64_t passes, uint64_t seed) {
    const Task task{y, cap, lin, kappa, start, tol, passes, seed};
    check_lengths(task, K.shape(0));
    if (K.shape(0) != K.shape(1)) throw nb::value_error("the kernel matrix must be square");
    GramView view(K.data(), static_cast<int64_t>(K.shape(0)));
    return solve(view, task);
}

template <class T>
nb::tuple dense(Exact<Matrix<T>> X, Vector<double> y, Vector<double> cap, Vector<double> lin, Vector<double> kappa,
                Vector<double> start, double tol, int64_t passes, uint64_t seed) {
    const Task task{y, cap, lin, kappa, start, tol, passes, seed};
    check_lengths(task, X.shape(0));
    const int64_t n = static_cast<int64_t>(X.shape(0)), d = static_cast<int64_t>(X.shape(1));
    const DenseRows<T> rows(X.data(), n, d, d, 1);
    RowView<DenseRows<T>> view(rows);
    return solve(view, task);
}

template <class T, class I>
nb::tuple csr(Vector<I> indptr, Vector<I> indices, Exact<Vector<T>> values, int64_t d, Vector<double> y,
              Vector<double> cap, Vector<double> lin, Vector<double> kappa, Vector<double> start, double tol,
              int64_t passes, uint64_t seed) {
    const Task task{y, cap, lin, kappa, start, tol, passes, seed};
    check_csr(indptr, indices, values.size(), d);
    const size_t n = indptr.size() - 1;
    check_lengths(task, n);
    const SparseRows<T, I> rows(indptr.data(), indices.data(), values.data(), static_cast<int64_t>(n), d, 1);
    RowView<SparseRows<T, I>> view(rows);
    return solve(view, task);
}

}  // namespace

void bind_box(nb::module_& m) {
    m.def("gram_box", &gram);
    m.def("dense_box", &dense<float>);
    m.def("dense_box", &dense<double>);
    m.def("csr_box", &csr<float, int64_t>);
    m.def("csr_box", &csr<double, int64_t>);
    m.def("csr_box", &csr<float, int32_t>);
    m.def("csr_box", &csr<double, int32_t>);
}

// Python face of the two-class dual coordinate ascent (two_class/box_ascent.hpp); the driver is
// solvers/two_class/ldm.py.
#include "base/arrays.hpp"
#include "two_class/box_ascent.hpp"

namespace nb = nanobind;
using namespace skm;

namespace {

struct Problem {
    Vector<double> y, cap, lin, kappa, start;
    double tol;
    int64_t passes;
    uint64_t seed;
};

void check_lengths(const Problem& t, size_t n) {
    for (const auto* v : {&t.y, &t.cap, &t.lin, &t.kappa, &t.start})
        if (v->size() != n) throw nb::value_error("the arrays given to the core do not fit each other");
}

template <class View>
nb::tuple solve(View& view, const Problem& problem) {
    std::vector<double> g(problem.start.data(), problem.start.data() + view.n), state;
    BoxOutcome out;
    {
        nb::gil_scoped_release unlocked;
        InterruptPoll poll(poll_python);
        const BoxProblem box{problem.y.data(), problem.cap.data(), problem.lin.data(), problem.kappa.data()};
        BoxAscent<View, InterruptPoll> ascent(view, box, g, poll, problem.seed);
        out = ascent.run(problem.tol, problem.passes);
        state.assign(view.state(), view.state() + view.state_size());
    }
    const size_t n = g.size(), size = state.size();
    return nb::make_tuple(to_numpy(std::move(g), {n}), to_numpy(std::move(state), {size}), out.primal, out.gap,
                          out.relative, out.passes);
}

nb::tuple gram(Matrix<double> top_k, Vector<double> y, Vector<double> cap, Vector<double> lin, Vector<double> kappa,
               Vector<double> start, double tol, int64_t passes, uint64_t seed) {
    const Problem problem{y, cap, lin, kappa, start, tol, passes, seed};
    check_lengths(problem, top_k.shape(0));
    if (top_k.shape(0) != top_k.shape(1)) throw nb::value_error("the kernel matrix must be square");
    GramView view(top_k.data(), static_cast<int64_t>(top_k.shape(0)));
    return solve(view, problem);
}

template <class T>
nb::tuple dense(Exact<Matrix<T>> X, Vector<double> y, Vector<double> cap, Vector<double> lin, Vector<double> kappa,
                Vector<double> start, double tol, int64_t passes, uint64_t seed) {
    const Problem problem{y, cap, lin, kappa, start, tol, passes, seed};
    check_lengths(problem, X.shape(0));
    const int64_t n = static_cast<int64_t>(X.shape(0)), d = static_cast<int64_t>(X.shape(1));
    const DenseRows<T> rows(X.data(), n, d, d, 1);
    RowView<DenseRows<T>> view(rows);
    return solve(view, problem);
}

template <class T, class I>
nb::tuple csr(Vector<I> indptr, Vector<I> indices, Exact<Vector<T>> values, int64_t d, Vector<double> y,
              Vector<double> cap, Vector<double> lin, Vector<double> kappa, Vector<double> start, double tol,
              int64_t passes, uint64_t seed) {
    const Problem problem{y, cap, lin, kappa, start, tol, passes, seed};
    check_csr(indptr, indices, values.size(), d);
    const size_t n = indptr.size() - 1;
    check_lengths(problem, n);
    const SparseRows<T, I> rows(indptr.data(), indices.data(), values.data(), static_cast<int64_t>(n), d, 1);
    RowView<SparseRows<T, I>> view(rows);
    return solve(view, problem);
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

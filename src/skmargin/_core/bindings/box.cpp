// Python face of the two-class dual coordinate ascent (two_class/box_ascent.hpp; solvers/two_class/ldm.py).
#include "bindings/contract.hpp"
#include "two_class/box_ascent.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace skm;

namespace {

// Margins, caps, linear and quadratic terms of n samples (two_class/box_ascent.hpp), and the duals to start from.
struct BoxArrays {
    Vector<double> y, cap, lin, kappa, g;
};

struct BoxResult {
    nb::object g, state;  // duals; class vector, or scores of the samples
    double objective, gap, relative_gap;
    int64_t n_iter;
};

template <class View>
BoxOutcome ascend(View& view, const BoxArrays& arrays, const Options& options, const BoxTuning& tuning,
                  std::vector<double>& g, std::vector<double>& state) {
    InterruptPoll poll(poll_python);
    const BoxProblem problem{arrays.y.data(), arrays.cap.data(), arrays.lin.data(), arrays.kappa.data()};
    BoxAscent<View> ascent(view, problem, g, poll, options.seed, tuning);
    const BoxOutcome out = ascent.run(options.tol, options.max_iter);
    state.assign(view.state(), view.state() + view.state_size());
    return out;
}

// `visit(f)` calls f(view).
template <class Visit>
BoxResult solve(Visit visit, size_t n, const BoxArrays& arrays, const Options& options, const BoxTuning& tuning) {
    for (const auto* v : {&arrays.y, &arrays.cap, &arrays.lin, &arrays.kappa, &arrays.g})
        require(v->size() == n, "one number is needed for each row");
    std::vector<double> g(arrays.g.data(), arrays.g.data() + n), state;
    BoxOutcome out;
    {
        nb::gil_scoped_release unlocked;
        visit([&](auto& view) { out = ascend(view, arrays, options, tuning, g, state); });
    }
    const size_t size = state.size();
    return {
        to_numpy(std::move(g), {n}), to_numpy(std::move(state), {size}), out.primal, out.gap, out.relative, out.passes};
}

BoxResult kernel(Matrix<double> K, Vector<double> y, Vector<double> cap, Vector<double> lin, Vector<double> kappa,
                 Vector<double> g, const Options& options, const BoxTuning& tuning) {
    require(K.shape(0) == K.shape(1), "the kernel matrix must be square");
    const auto visit = [&](auto f) {
        GramView view(K.data(), static_cast<int64_t>(K.shape(0)));
        f(view);
    };
    return solve(visit, K.shape(0), {y, cap, lin, kappa, g}, options, tuning);
}

BoxResult rows(const Rows& rows, Vector<double> y, Vector<double> cap, Vector<double> lin, Vector<double> kappa,
               Vector<double> g, const Options& options, const BoxTuning& tuning) {
    const auto visit = [&](auto f) {
        with_rows(rows, 1, [&](const auto& given) {
            WeightView view(given);
            f(view);
        });
    };
    return solve(visit, rows.n, {y, cap, lin, kappa, g}, options, tuning);
}

}  // namespace

void bind_box(nb::module_& m) {
    nb::class_<BoxResult>(m, "BoxResult", "Duals of two classes, their class vector or scores, and the certificate.")
        .def_prop_ro(
            "g", [](const BoxResult& r) { return r.g; },
            nb::sig("def g(self, /) -> numpy.typing.NDArray[numpy.float64]"))
        .def_prop_ro(
            "state", [](const BoxResult& r) { return r.state; },
            nb::sig("def state(self, /) -> numpy.typing.NDArray[numpy.float64]"))
        .def_ro("objective", &BoxResult::objective)
        .def_ro("gap", &BoxResult::gap)
        .def_ro("relative_gap", &BoxResult::relative_gap)
        .def_ro("n_iter", &BoxResult::n_iter);
    m.def("box_ascent", &rows, "rows"_a, "y"_a, "cap"_a, "lin"_a, "kappa"_a, "g"_a, "options"_a, nb::kw_only(),
          "tuning"_a = BoxTuning());
    m.def("box_ascent", &kernel, "K"_a, "y"_a, "cap"_a, "lin"_a, "kappa"_a, "g"_a, "options"_a, nb::kw_only(),
          "tuning"_a = BoxTuning());
}

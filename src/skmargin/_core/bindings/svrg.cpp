// Python face of the stochastic epochs (solvers/multi_margin/svrg.py).
#include "linear/svrg.hpp"
#include "bindings/contract.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace skm;

namespace {

// One epoch from W, b; returns the new W, b and the objective there.
nb::tuple svrg_epoch(const Rows& rows, Vector<int32_t> y, Vector<double> cap, Matrix<double> W, Vector<double> b,
                     bool fit_intercept, double eta, double decay, int64_t first, bool reduce, uint64_t seed) {
    const size_t n = rows.n, d = rows.d, k = W.shape(0);
    check_labels(y, n, static_cast<int32_t>(k));
    require(cap.size() == n && W.shape(1) == d && b.size() == k, "W and b do not fit the rows");
    std::vector<double> new_W(W.data(), W.data() + k * d), new_b(b.data(), b.data() + k);
    double objective = 0;
    {
        nb::gil_scoped_release unlocked;
        InterruptPoll poll(poll_python);
        with_rows(rows, static_cast<int32_t>(k), [&]<class View>(const View& view) {
            if constexpr (std::is_same_v<typename View::T, double>) {
                StochasticEpoch<View> run(view, y.data(), cap.data(), fit_intercept, poll);
                if (eta > 0) run.run(new_W.data(), new_b.data(), eta, decay, first, reduce, seed);
                objective = run.objective(new_W.data(), new_b.data());
            } else {
                require(false, "stochastic epochs need rows in double precision");
            }
        });
    }
    return nb::make_tuple(to_numpy(std::move(new_W), {k, d}), to_numpy(std::move(new_b), {k}), objective);
}

}  // namespace

void bind_svrg(nb::module_& m) {
    m.def("svrg_epoch", &svrg_epoch, "rows"_a, "y"_a, "cap"_a, "W"_a, "b"_a, nb::kw_only(), "fit_intercept"_a, "eta"_a,
          "decay"_a, "first"_a, "reduce"_a, "seed"_a,
          nb::sig("def svrg_epoch(rows: Rows, y: numpy.typing.NDArray, cap: numpy.typing.NDArray, "
                  "W: numpy.typing.NDArray, b: numpy.typing.NDArray, *, fit_intercept: bool, eta: float, "
                  "decay: float, first: int, reduce: bool, seed: int) -> "
                  "tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64], float]"));
}

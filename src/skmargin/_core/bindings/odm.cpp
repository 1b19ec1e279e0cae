// Python face of the optimal margin distribution machine as published (solvers/odm/published.py), and of one block.
#include "bindings/contract.hpp"
#include "losses/odm_published.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace skm;

namespace {

// Duals as zeta (n x k) and beta (n); the scores of the rivals in the upper part are frozen.
nb::dict published_odm(const Rows& rows, const Problem& problem, const Options& options, Vector<double> frozen_scores,
                       Matrix<double> zeta, Vector<double> beta) {
    const size_t n = rows.n, d = rows.d, k = static_cast<size_t>(problem.n_classes);
    check_labels(problem.y, n, problem.n_classes);
    require(frozen_scores.size() == n && beta.size() == n && zeta.shape(0) == n && zeta.shape(1) == k,
            "the duals do not fit the rows");
    std::vector<double> new_zeta(zeta.data(), zeta.data() + n * k), new_beta(beta.data(), beta.data() + n), W(k * d);
    Outcome out;
    {
        nb::gil_scoped_release unlocked;
        InterruptPoll poll(poll_python);
        with_rows(rows, problem.n_classes, [&]<class View>(const View& view) {
            if constexpr (std::is_same_v<typename View::T, double>) {
                Buffer<double> weights(view.weights_size());
                PublishedOdmAscent<View> ascent(view, problem.y.data(), problem.cap.data(), problem.mu, problem.theta,
                                                frozen_scores.data(), new_zeta.data(), new_beta.data(), weights.data(),
                                                poll);
                ascent.start();
                ascent.run(options.tol, options.max_iter, options.seed);
                for (size_t l = 0; l < k; ++l)
                    for (size_t j = 0; j < d; ++j)
                        W[l * d + j] = view.weight(weights.data(), static_cast<int32_t>(l), static_cast<int64_t>(j));
                out = {ascent.primal, ascent.gap, ascent.passes};
            } else {
                require(false, "the published method needs rows in double precision");
            }
        });
    }
    nb::dict result;
    result["objective"] = out.objective;
    result["gap"] = out.gap;
    result["n_iter"] = out.n_iter;
    result["W"] = to_numpy(std::move(W), {k, d});
    result["zeta"] = to_numpy(std::move(new_zeta), {n, k});
    result["beta"] = to_numpy(std::move(new_beta), {n});
    return result;
}

// One pass over the samples whose rows of the kernel matrix are given, in this order; F, zeta and beta are changed.
// Returns the primal objective and the gap of all samples.
std::tuple<double, double> kernel_published_odm(Matrix<double> matrix, Vector<int64_t> samples, Vector<int64_t> slot,
                                                Vector<double> diagonal, WritableMatrix<double> F,
                                                const Problem& problem, Vector<double> frozen_scores,
                                                WritableMatrix<double> zeta, WritableVector<double> beta) {
    const size_t n = problem.n(), k = static_cast<size_t>(problem.n_classes);
    require(zeta.shape(0) == n && zeta.shape(1) == k && F.shape(0) == k && F.shape(1) == n && beta.size() == n &&
                frozen_scores.size() == n && slot.size() == n && diagonal.size() == n && matrix.shape(1) == n,
            "the duals do not fit the kernel matrix");
    const std::vector<int64_t> order(samples.data(), samples.data() + samples.size());
    for (const int64_t i : order)
        require(i >= 0 && i < static_cast<int64_t>(n) && slot.data()[i] >= 0 &&
                    slot.data()[i] < static_cast<int64_t>(matrix.shape(0)),
                "a sample has no row");
    nb::gil_scoped_release unlocked;
    InterruptPoll poll(poll_python);
    const KernelMatrixRows rows(matrix.data(), slot.data(), diagonal.data(), static_cast<int64_t>(n),
                                problem.n_classes);
    PublishedOdmAscent<KernelMatrixRows> ascent(rows, problem.y.data(), problem.cap.data(), problem.mu, problem.theta,
                                                frozen_scores.data(), zeta.data(), beta.data(), F.data(), poll);
    ascent.sweep(order);
    ascent.certify();
    return {ascent.primal, ascent.gap};
}

// One block, for tests: the first rival of the list is the fixed one.
nb::object odm_block(double cap, double mu, double theta, double A, Vector<double> d, Vector<double> alpha) {
    const int32_t rival = 0, m = static_cast<int32_t>(d.size());
    require(alpha.size() == d.size(), "d and alpha must have one length");
    std::vector<double> out(d.size());
    OdmLoss(&cap, mu, theta, &rival).block(0, A, d.data(), alpha.data(), m, out.data());
    return to_numpy(std::move(out), {d.size()});
}

}  // namespace

void bind_odm(nb::module_& m) {
    m.def("published_odm", &published_odm, "rows"_a, "problem"_a, "options"_a, nb::kw_only(), "frozen_scores"_a,
          "zeta"_a, "beta"_a,
          nb::sig("def published_odm(rows: Rows, problem: Problem, options: Options, *, "
                  "frozen_scores: numpy.typing.NDArray, zeta: numpy.typing.NDArray, beta: numpy.typing.NDArray"
                  ") -> dict[str, typing.Any]"));
    m.def("kernel_published_odm", &kernel_published_odm, "matrix"_a.noconvert(), "samples"_a, "slot"_a, "diagonal"_a,
          "F"_a.noconvert(), "problem"_a, nb::kw_only(), "frozen_scores"_a, "zeta"_a.noconvert(), "beta"_a.noconvert());
    m.def("odm_block", &odm_block, "cap"_a, "mu"_a, "theta"_a, "A"_a, "d"_a, "alpha"_a,
          nb::sig("def odm_block(cap: float, mu: float, theta: float, A: float, d: numpy.typing.NDArray, "
                  "alpha: numpy.typing.NDArray) -> numpy.typing.NDArray[numpy.float64]"));
}

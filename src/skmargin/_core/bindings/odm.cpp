// Python face of the linear block ascent with the loss of the optimal margin distribution machine.
#include "losses/odm.hpp"
#include "linear/problem.hpp"
#include "losses/odm_published.hpp"

#include <nanobind/stl/pair.h>

namespace nb = nanobind;
using namespace skm;

namespace {

template <class Rows>
nb::dict run(const Rows& rows, const Problem& problem, double mu, double theta, const Vector<int32_t>& rival) {
    check_fixed_rivals(mu, rival, problem.y, problem.k);
    return solve(rows, OdmLoss(problem.cap.data(), mu, theta, rival.data()), problem);
}

template <class T>
nb::dict dense(Exact<Matrix<T>> X, Vector<int32_t> y, Vector<double> cap, int32_t k, double mu, double theta,
               Vector<int32_t> rival, std::optional<Vector<double>> mean, Vector<double> b, Vector<int64_t> start,
               Vector<int32_t> cls, Vector<double> alpha, double tol, int64_t passes, double work, bool stop_on_stall,
               double majorizer_share, double majorizer_value, uint64_t seed) {
    const Limits limits{tol, passes, work, stop_on_stall, majorizer_share, majorizer_value};
    const Problem problem{y, cap, k, "band", 1, mean, b, start, cls, alpha, limits, false, seed};
    check_lengths(problem, X.shape(0), X.shape(1));
    const int64_t n = static_cast<int64_t>(X.shape(0)), d = static_cast<int64_t>(X.shape(1));
    return run(DenseRows<T>(X.data(), n, d, d, k), problem, mu, theta, rival);
}

template <class T, class I>
nb::dict csr(Vector<I> indptr, Vector<I> indices, Exact<Vector<T>> values, int64_t d, Vector<int32_t> y,
             Vector<double> cap, int32_t k, double mu, double theta, Vector<int32_t> rival,
             std::optional<Vector<double>> mean, Vector<double> b, Vector<int64_t> start, Vector<int32_t> cls,
             Vector<double> alpha, double tol, int64_t passes, double work, bool stop_on_stall, double majorizer_share,
             double majorizer_value, uint64_t seed) {
    const Limits limits{tol, passes, work, stop_on_stall, majorizer_share, majorizer_value};
    const Problem problem{y, cap, k, "band", 1, mean, b, start, cls, alpha, limits, false, seed};
    check_csr(indptr, indices, values.size(), d);
    const size_t n = indptr.size() - 1;
    check_lengths(problem, n, static_cast<size_t>(d));
    return run(SparseRows<T, I>(indptr.data(), indices.data(), values.data(), static_cast<int64_t>(n), d, k), problem,
               mu, theta, rival);
}

// The published inner problem; duals as zeta (n x k) and beta (n).
struct PublishedOdmProblem {
    Vector<int32_t> y;
    Vector<double> cap;
    int32_t k;
    double mu, theta;
    Vector<double> frozen_scores;
    Matrix<double> zeta;
    Vector<double> beta;
    double tol;
    int64_t passes;
    uint64_t seed;
};

template <class Rows>
nb::dict published_odm(const Rows& rows, const PublishedOdmProblem& problem) {
    const size_t n = static_cast<size_t>(rows.n), d = static_cast<size_t>(rows.d), k = static_cast<size_t>(problem.k);
    if (problem.y.size() != n || problem.cap.size() != n || problem.frozen_scores.size() != n ||
        problem.beta.size() != n || problem.zeta.shape(0) != n || problem.zeta.shape(1) != k)
        throw nb::value_error("the arrays given to the core do not fit each other");
    for (size_t i = 0; i < n; ++i)
        if (problem.y.data()[i] < 0 || problem.y.data()[i] >= problem.k)
            throw nb::value_error("a class code lies outside 0..k-1");
    std::vector<double> zeta(problem.zeta.data(), problem.zeta.data() + n * k),
        beta(problem.beta.data(), problem.beta.data() + n);
    std::vector<double> W(k * d);
    nb::dict result;
    {
        nb::gil_scoped_release unlocked;
        InterruptPoll poll(poll_python);
        Buffer<double> weights(rows.weights_size());
        PublishedOdmAscent<Rows> blocks(rows, problem.y.data(), problem.cap.data(), problem.mu, problem.theta,
                                        problem.frozen_scores.data(), zeta.data(), beta.data(), weights.data(), poll);
        blocks.start();
        blocks.run(problem.tol, problem.passes, problem.seed);
        for (size_t l = 0; l < k; ++l)
            for (size_t j = 0; j < d; ++j)
                W[l * d + j] = rows.weight(weights.data(), static_cast<int32_t>(l), static_cast<int64_t>(j));
        nb::gil_scoped_acquire locked;
        result["primal"] = blocks.primal;
        result["gap"] = blocks.gap;
        result["passes"] = blocks.passes;
    }
    result["W"] = to_numpy(std::move(W), {k, d});
    result["zeta"] = to_numpy(std::move(zeta), {n, k});
    result["beta"] = to_numpy(std::move(beta), {n});
    return result;
}

nb::dict dense_published_odm(Matrix<double> X, Vector<int32_t> y, Vector<double> cap, int32_t k, double mu,
                             double theta, Vector<double> frozen_scores, Matrix<double> zeta, Vector<double> beta,
                             double tol, int64_t passes, uint64_t seed) {
    const int64_t n = static_cast<int64_t>(X.shape(0)), d = static_cast<int64_t>(X.shape(1));
    return published_odm(DenseRows<double>(X.data(), n, d, d, k),
                         {y, cap, k, mu, theta, frozen_scores, zeta, beta, tol, passes, seed});
}

template <class I>
nb::dict csr_published_odm(Vector<I> indptr, Vector<I> indices, Vector<double> values, int64_t d, Vector<int32_t> y,
                           Vector<double> cap, int32_t k, double mu, double theta, Vector<double> frozen_scores,
                           Matrix<double> zeta, Vector<double> beta, double tol, int64_t passes, uint64_t seed) {
    check_csr(indptr, indices, values.size(), d);
    const SparseRows<double, I> rows(indptr.data(), indices.data(), values.data(),
                                     static_cast<int64_t>(indptr.size()) - 1, d, k);
    return published_odm(rows, {y, cap, k, mu, theta, frozen_scores, zeta, beta, tol, passes, seed});
}

// One pass over the samples whose rows of the kernel matrix are given, in this order; F, zeta and beta are changed.
// Returns the primal objective and the gap of all samples.
template <class T> using Changed = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

std::pair<double, double> kernel_published_odm(Matrix<double> matrix, Vector<int64_t> samples, Vector<int64_t> slot,
                                               Vector<double> diagonal, Changed<double> F, Vector<int32_t> y,
                                               Vector<double> cap, double mu, double theta,
                                               Vector<double> frozen_scores, Changed<double> zeta,
                                               Changed<double> beta) {
    const size_t n = y.size();
    if (zeta.ndim() != 2 || F.ndim() != 2 || beta.ndim() != 1 || zeta.shape(0) != n || F.shape(0) != zeta.shape(1) ||
        F.shape(1) != n || beta.shape(0) != n || cap.size() != n || frozen_scores.size() != n || slot.size() != n ||
        diagonal.size() != n || matrix.shape(1) != n)
        throw nb::value_error("the arrays given to the core do not fit each other");
    const int32_t k = static_cast<int32_t>(zeta.shape(1));
    for (size_t i = 0; i < n; ++i)
        if (y.data()[i] < 0 || y.data()[i] >= k) throw nb::value_error("a class code lies outside 0..k-1");
    const std::vector<int64_t> order(samples.data(), samples.data() + samples.size());
    for (const int64_t i : order)
        if (i < 0 || i >= static_cast<int64_t>(n) || slot.data()[i] < 0 ||
            slot.data()[i] >= static_cast<int64_t>(matrix.shape(0)))
            throw nb::value_error("a sample has no row");
    nb::gil_scoped_release unlocked;
    InterruptPoll poll(poll_python);
    const KernelMatrixRows rows(matrix.data(), slot.data(), diagonal.data(), static_cast<int64_t>(n), k);
    PublishedOdmAscent<KernelMatrixRows> blocks(rows, y.data(), cap.data(), mu, theta, frozen_scores.data(),
                                                zeta.data(), beta.data(), F.data(), poll);
    blocks.sweep(order);
    blocks.certify();
    return {blocks.primal, blocks.gap};
}

// One block, for tests: the first rival of the list is the fixed one.
nb::object block(double cap, double mu, double theta, double A, Vector<double> d, Vector<double> alpha) {
    const int32_t rival = 0, m = static_cast<int32_t>(d.size());
    if (alpha.size() != d.size()) throw nb::value_error("d and alpha must have one length");
    std::vector<double> out(d.size());
    OdmLoss(&cap, mu, theta, &rival).block(0, A, d.data(), alpha.data(), m, out.data());
    return to_numpy(std::move(out), {d.size()});
}

}  // namespace

void bind_odm(nb::module_& m) {
    // The driver is solvers/odm/outer.py.
    m.def("dense_band", &dense<double>);
    m.def("dense_band", &dense<float>);
    m.def("csr_band", &csr<double, int64_t>);
    m.def("csr_band", &csr<float, int64_t>);
    m.def("csr_band", &csr<double, int32_t>);
    m.def("csr_band", &csr<float, int32_t>);
    m.def("band_block", &block);
    m.def("dense_paper", &dense_published_odm);  // solvers/odm/published.py
    m.def("csr_paper", &csr_published_odm<int64_t>);
    m.def("csr_paper", &csr_published_odm<int32_t>);
    m.def("kernel_paper", &kernel_published_odm, nb::arg("matrix").noconvert(), nb::arg("samples"), nb::arg("slot"),
          nb::arg("diagonal"), nb::arg("F").noconvert(), nb::arg("y"), nb::arg("cap"), nb::arg("mu"), nb::arg("theta"),
          nb::arg("frozen"), nb::arg("zeta").noconvert(), nb::arg("beta").noconvert());
}

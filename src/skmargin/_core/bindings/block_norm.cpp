// Python face of the block ascent with the norm of Lei et al.: dense and sparse rows, and kernel matrices.
#include "base/arrays.hpp"
#include "block_norm/face_newton.hpp"

#include <nanobind/stl/optional.h>

#include <optional>
#include <type_traits>

namespace nb = nanobind;
using namespace skm;

namespace {

struct BlockNormProblem {
    Vector<int32_t> y;
    Vector<double> cap;
    int32_t k;
    double q;
    std::optional<Vector<double>> mean;  // of the features
    bool intercept;                      // a free one, with features centred; else only the direction is set apart
    Vector<double> b;
    Vector<int64_t> start;
    Vector<int32_t> cls;
    Vector<double> alpha;
    double tol;
    int64_t passes;
    bool stop_on_stall, face;
    uint64_t seed;

    void check(size_t n, size_t d) const {
        if (y.size() != n || cap.size() != n || b.size() != static_cast<size_t>(k) || start.size() != n + 1 ||
            cls.size() != alpha.size() || (mean && mean->size() != d) || start.data()[0] != 0 ||
            start.data()[n] != static_cast<int64_t>(cls.size()) || !(q > 1))
            throw nb::value_error("the arrays given to the core do not fit each other");
        for (size_t i = 0; i < n; ++i)
            if (y.data()[i] < 0 || y.data()[i] >= k || start.data()[i + 1] < start.data()[i])
                throw nb::value_error("a class code lies outside 0..k-1, or the starts of the dual rows fall");
        for (size_t j = 0; j < cls.size(); ++j)
            if (cls.data()[j] < 0 || cls.data()[j] >= k) throw nb::value_error("a rival lies outside 0..k-1");
    }
};

template <class Rows>
struct is_gram : std::false_type {};
template <class T>
struct is_gram<GramRows<T>> : std::true_type {};

template <class Rows>
nb::dict solve(const Rows& rows, const BlockNormProblem& problem) {
    constexpr bool gram = is_gram<Rows>::value;
    const int32_t k = rows.k;
    const size_t width = gram ? 1 : static_cast<size_t>(rows.d);
    std::vector<double> W(k * width), b(problem.b.data(), problem.b.data() + k), multipliers;
    DualLists duals(rows.n);
    Outcome out;
    {
        nb::gil_scoped_release unlocked;
        InterruptPoll poll(poll_python);
        ThreadTeam team(poll, 1);
        RowGeometry<Rows> geo(rows);
        geo.q = problem.q;
        using Loss = HingeLoss<Hinge::max>;
        const Loss loss(problem.cap.data(), 1);
        double total_cap = 0;
        for (int64_t i = 0; i < rows.n; ++i) total_cap += loss.dual_scale(i);
        if (problem.mean && problem.intercept) geo.centre(problem.mean->data(), total_cap);
        else if (problem.mean && problem.q < 2) geo.deflate(problem.mean->data());
        read_duals(duals, problem.start, problem.cls, problem.alpha);
        BlockAscent<Rows, Loss, BlockNormVectors<Rows>> ascent(geo, loss, problem.y.data(), duals, b.data(), team,
                                                               problem.seed);
        ascent.enable_skipping();
        const Limits limits{problem.tol, problem.passes, infinity, problem.stop_on_stall};
        if (problem.face) {
            BlockNormFaceSteps<Rows, Loss> face(ascent, problem.q);
            out = ascent.run(limits, face);
        } else {
            out = ascent.run(limits, [] {});
        }
        multipliers = b;
        if constexpr (gram) ascent.model.publish_weights(W.data(), b.data());
        else ascent.model.publish(W.data(), b.data());
        for (double& w : W) w *= ascent.stretch();
        for (double& v : b) v *= ascent.stretch();
    }
    nb::dict result;
    result["W"] = to_numpy(std::move(W), {static_cast<size_t>(k), width});
    result["b"] = to_numpy(std::move(b), {static_cast<size_t>(k)});
    result["multipliers"] = to_numpy(std::move(multipliers), {static_cast<size_t>(k)});
    result["duals"] = write_duals(duals);
    result["primal"] = out.primal;
    result["gap"] = out.gap;
    result["passes"] = out.passes;
    return result;
}

template <class T>
nb::dict dense_block_norm(Exact<Matrix<T>> X, Vector<int32_t> y, Vector<double> cap, int32_t k, double q,
                          std::optional<Vector<double>> mean, bool intercept, Vector<double> b, Vector<int64_t> start,
                          Vector<int32_t> cls, Vector<double> alpha, double tol, int64_t passes, bool stop_on_stall,
                          bool face, uint64_t seed) {
    const BlockNormProblem problem{y,   cap,   k,   q,      mean,          intercept, b,   start,
                                   cls, alpha, tol, passes, stop_on_stall, face,      seed};
    problem.check(X.shape(0), X.shape(1));
    const int64_t n = static_cast<int64_t>(X.shape(0)), d = static_cast<int64_t>(X.shape(1));
    return solve(DenseRows<T>(X.data(), n, d, d, k), problem);
}

template <class T>
nb::dict gram_block_norm(Exact<Matrix<T>> K, Vector<int32_t> y, Vector<double> cap, int32_t k, double q,
                         std::optional<Vector<double>> mean, bool intercept, Vector<double> b, Vector<int64_t> start,
                         Vector<int32_t> cls, Vector<double> alpha, double tol, int64_t passes, bool stop_on_stall,
                         bool face, uint64_t seed) {
    const BlockNormProblem problem{y,   cap,   k,   q,      mean,          intercept, b,   start,
                                   cls, alpha, tol, passes, stop_on_stall, face,      seed};
    problem.check(K.shape(0), K.shape(1));
    if (K.shape(0) != K.shape(1)) throw nb::value_error("the kernel matrix must be square");
    const size_t n = K.shape(0);
    std::vector<T> diagonal(n);
    for (size_t i = 0; i < n; ++i) diagonal[i] = K.data()[i * n + i];
    const auto row = [&](int64_t i) { return K.data() + i * static_cast<int64_t>(n); };
    return solve(GramRows<T>(row, std::move(diagonal), k), problem);
}

// As gram_block_norm, but a row of the matrix is asked for where it is needed: rows(i) is an array of n numbers, which
// `rows` itself keeps until the next call.
template <class T>
nb::dict kernel_rows_block_norm(nb::callable rows, Exact<Vector<T>> diagonal, Vector<int32_t> y, Vector<double> cap,
                                int32_t k, double q, std::optional<Vector<double>> mean, bool intercept,
                                Vector<double> b, Vector<int64_t> start, Vector<int32_t> cls, Vector<double> alpha,
                                double tol, int64_t passes, bool stop_on_stall, bool face, uint64_t seed) {
    const BlockNormProblem problem{y,   cap,   k,   q,      mean,          intercept, b,   start,
                                   cls, alpha, tol, passes, stop_on_stall, face,      seed};
    const size_t n = diagonal.size();
    problem.check(n, n);
    const auto row = [&](int64_t i) {
        nb::gil_scoped_acquire lock;
        const auto numbers = nb::cast<Vector<T>>(rows(i), false);  // a converted copy would end here
        if (numbers.size() != n) throw nb::value_error("a row of the kernel matrix has the wrong length");
        return numbers.data();
    };
    return solve(GramRows<T>(row, std::vector<T>(diagonal.data(), diagonal.data() + n), k), problem);
}

template <class T, class I>
nb::dict csr_block_norm(Vector<I> indptr, Vector<I> indices, Exact<Vector<T>> values, int64_t d, Vector<int32_t> y,
                        Vector<double> cap, int32_t k, double q, std::optional<Vector<double>> mean, bool intercept,
                        Vector<double> b, Vector<int64_t> start, Vector<int32_t> cls, Vector<double> alpha, double tol,
                        int64_t passes, bool stop_on_stall, bool face, uint64_t seed) {
    const BlockNormProblem problem{y,   cap,   k,   q,      mean,          intercept, b,   start,
                                   cls, alpha, tol, passes, stop_on_stall, face,      seed};
    check_csr(indptr, indices, values.size(), d);
    const size_t n = indptr.size() - 1;
    problem.check(n, static_cast<size_t>(d));
    return solve(SparseRows<T, I>(indptr.data(), indices.data(), values.data(), static_cast<int64_t>(n), d, k),
                 problem);
}

}  // namespace

void bind_block_norm(nb::module_& m) {
    // The driver is solvers/block_norm/ascent.py.
    m.def("lp_dense", &dense_block_norm<float>);
    m.def("lp_dense", &dense_block_norm<double>);
    m.def("lp_gram", &gram_block_norm<float>);
    m.def("lp_gram", &gram_block_norm<double>);
    m.def("lp_rows", &kernel_rows_block_norm<float>);
    m.def("lp_rows", &kernel_rows_block_norm<double>);
    m.def("lp_csr", &csr_block_norm<float, int64_t>);
    m.def("lp_csr", &csr_block_norm<double, int64_t>);
    m.def("lp_csr", &csr_block_norm<float, int32_t>);
    m.def("lp_csr", &csr_block_norm<double, int32_t>);
}

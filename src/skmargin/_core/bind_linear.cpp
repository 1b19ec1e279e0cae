// Python face of the linear block ascent.
#include "arrays.hpp"
#include "face.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>

namespace nb = nanobind;
using namespace skm;

namespace {

struct Task {
    Vector<int32_t> y;
    Vector<double> cap;
    int32_t k;
    std::string loss;
    int32_t K;
    std::optional<Vector<double>> mean;  // centre of the features: asks for a free intercept
    Vector<double> b;
    Vector<int64_t> start;
    Vector<int32_t> cls;
    Vector<double> alpha;
    Limits limits;
    bool face;
    uint64_t seed;
};

template <class Rows, class Loss>
nb::dict solve(const Rows& rows, const Loss& loss, const Task& task) {
    const int64_t n = rows.n, d = rows.d;
    const int32_t k = rows.k;
    std::vector<double> W(static_cast<size_t>(k * d)), b(task.b.data(), task.b.data() + k), multipliers;
    Duals duals(n);
    Outcome out;
    {
        nb::gil_scoped_release unlocked;
        Poll poll(ask_python);
        Geometry<Rows> geo(rows, task.mean.has_value());
        if (task.mean) geo.centre(task.mean->data());
        read_duals(duals, task.start, task.cls, task.alpha);
        BlockAscent<Rows, Loss> ascent(geo, loss, task.y.data(), duals, b.data(), poll, task.seed);
        if (task.face) {
            FaceSteps<Rows, Loss> face(ascent);
            out = ascent.run(task.limits, face);
        } else {
            out = ascent.run(task.limits, [] {});
        }
        multipliers = b;
        ascent.model.publish(task.mean ? task.mean->data() : nullptr, W.data(), b.data());
    }
    nb::dict result;
    result["W"] = to_numpy(std::move(W), {static_cast<size_t>(k), static_cast<size_t>(d)});
    result["b"] = to_numpy(std::move(b), {static_cast<size_t>(k)});
    result["multipliers"] = to_numpy(std::move(multipliers), {static_cast<size_t>(k)});
    result["duals"] = write_duals(duals);
    result["primal"] = out.primal;
    result["gap"] = out.gap;
    result["passes"] = out.passes;
    result["work"] = out.work;
    result["converged"] = out.converged;
    return result;
}

template <class Rows>
nb::dict choose_loss(const Rows& rows, const Task& task) {
    if (task.loss == "max") return solve(rows, HingeLoss<Hinge::max>(task.cap.data(), 1), task);
    if (task.loss == "sum") return solve(rows, HingeLoss<Hinge::sum>(task.cap.data(), task.k - 1), task);
    if (task.loss == "top") return solve(rows, HingeLoss<Hinge::top>(task.cap.data(), task.K), task);
    throw nb::value_error("loss must be 'max', 'sum' or 'top'");
}

void check_lengths(const Task& t, size_t n, size_t d) {
    const size_t k = static_cast<size_t>(t.k);
    if (t.y.size() != n || t.cap.size() != n || t.b.size() != k || t.start.size() != n + 1 ||
        t.cls.size() != t.alpha.size() || (t.mean && t.mean->size() != d))
        throw nb::value_error("the arrays given to the core do not fit each other");
    for (size_t i = 0; i < n; ++i)
        if (t.y.data()[i] < 0 || t.y.data()[i] >= t.k) throw nb::value_error("a class code lies outside 0..k-1");
    if (t.start.data()[0] != 0 || t.start.data()[n] != static_cast<int64_t>(t.cls.size()))
        throw nb::value_error("the starts of the dual rows do not fit their numbers");
    for (size_t i = 0; i < n; ++i)
        if (t.start.data()[i + 1] < t.start.data()[i]) throw nb::value_error("the starts of the dual rows must not fall");
    for (size_t j = 0; j < t.cls.size(); ++j)
        if (t.cls.data()[j] < 0 || t.cls.data()[j] >= t.k) throw nb::value_error("a rival lies outside 0..k-1");
}

Task make_task(Vector<int32_t> y, Vector<double> cap, int32_t k, std::string loss, int32_t K,
               std::optional<Vector<double>> mean, Vector<double> b, Vector<int64_t> start, Vector<int32_t> cls,
               Vector<double> alpha, double tol, int64_t passes, double work, bool stop_on_stall, bool face, uint64_t seed) {
    return Task{y, cap, k, std::move(loss), K, mean, b, start, cls, alpha, Limits{tol, passes, work, stop_on_stall}, face, seed};
}

template <class T>
nb::dict dense(Matrix<T> X, Vector<int32_t> y, Vector<double> cap, int32_t k, std::string loss, int32_t K,
               std::optional<Vector<double>> mean, Vector<double> b, Vector<int64_t> start, Vector<int32_t> cls,
               Vector<double> alpha, double tol, int64_t passes, double work, bool stop_on_stall, bool face, uint64_t seed) {
    const Task task = make_task(y, cap, k, std::move(loss), K, mean, b, start, cls, alpha, tol, passes, work, stop_on_stall, face, seed);
    check_lengths(task, X.shape(0), X.shape(1));
    const int64_t n = static_cast<int64_t>(X.shape(0)), d = static_cast<int64_t>(X.shape(1));
    return choose_loss(DenseRows<T>(X.data(), n, d, d, k), task);
}

template <class T, class I>
nb::dict csr(Vector<I> indptr, Vector<I> indices, Vector<T> values, int64_t d, Vector<int32_t> y, Vector<double> cap,
             int32_t k, std::string loss, int32_t K, std::optional<Vector<double>> mean, Vector<double> b,
             Vector<int64_t> start, Vector<int32_t> cls, Vector<double> alpha, double tol, int64_t passes, double work,
             bool stop_on_stall, bool face, uint64_t seed) {
    const Task task = make_task(y, cap, k, std::move(loss), K, mean, b, start, cls, alpha, tol, passes, work, stop_on_stall, face, seed);
    const size_t n = indptr.size() - 1;
    check_lengths(task, n, static_cast<size_t>(d));
    if (indptr.data()[0] != 0 || indptr.data()[n] > static_cast<I>(indices.size()) || indices.size() != values.size())
        throw nb::value_error("the CSR arrays do not fit each other");
    for (size_t i = 0; i < n; ++i)
        if (indptr.data()[i + 1] < indptr.data()[i]) throw nb::value_error("CSR indptr must not fall");
    for (size_t p = 0; p < indices.size(); ++p)
        if (indices.data()[p] < 0 || indices.data()[p] >= d) throw nb::value_error("a CSR column lies outside 0..d-1");
    return choose_loss(SparseRows<T, I>(indptr.data(), indices.data(), values.data(), static_cast<int64_t>(n), d, k), task);
}

}  // namespace

void bind_linear(nb::module_& m) {
    // One name, overloaded over number and index types; the driver is solvers/dual_blocks.py.
    m.def("dense_blocks", &dense<float>);
    m.def("dense_blocks", &dense<double>);
    m.def("csr_blocks", &csr<float, int32_t>);
    m.def("csr_blocks", &csr<double, int32_t>);
    m.def("csr_blocks", &csr<float, int64_t>);
    m.def("csr_blocks", &csr<double, int64_t>);
}

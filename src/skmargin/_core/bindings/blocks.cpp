// Python face of the passes over blocks of rows (blocks/block_pass.hpp).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <optional>
#include <string>

#include "base/arrays.hpp"
#include "blocks/block_pass.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace skm;

namespace {

using Sums = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Cube = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// A point, widths and number type: all of a pass but its rows.  Holds copies, so that threads may share it.
struct Task {
    PassSettings settings;
    std::vector<double> W, mean, scale;
    double constant;
    bool single, reaches;

    int64_t d() const { return static_cast<int64_t>(mean.size()); }
    int64_t D() const { return d() + (constant != 0); }
    Centring centring() const { return {mean.data(), scale.data(), constant, reaches}; }
};

SmoothLoss::Kind kind_of(const std::string& loss) {
    if (loss == "max") return SmoothLoss::Kind::max;
    if (loss == "sum") return SmoothLoss::Kind::sum;
    if (loss == "top") return SmoothLoss::Kind::top;
    if (loss == "odm") return SmoothLoss::Kind::odm;
    throw nb::value_error("loss must be 'max', 'sum', 'top' or 'odm'");
}

Task make_task(Matrix<double> W, Vector<double> mean, Vector<double> scale, double constant, const std::string& loss,
               int32_t top_k, double mu, double theta, double width, double hessian, bool single, bool reaches) {
    const int32_t k = static_cast<int32_t>(W.shape(0));
    Task task{{{kind_of(loss), top_k, mu, theta}, k, width, hessian},
              {W.data(), W.data() + W.size()},
              {mean.data(), mean.data() + mean.size()},
              {scale.data(), scale.data() + scale.size()},
              constant,
              single,
              reaches};
    if (k < 2 || static_cast<int64_t>(W.shape(1)) != task.D() || scale.size() != mean.size() || task.D() == 0)
        throw nb::value_error("the point, the mean and the scale of a pass do not fit each other");
    if (!(width > 0) || !(hessian >= 0) || top_k < 1 || top_k > k - 1)
        throw nb::value_error("widths must be positive, top_k in 1..k-1");
    return task;
}

// Labels and caps of a block of n rows.
void check_block(const Task& task, size_t n, size_t d, const Vector<int32_t>& y, const Vector<double>& cap) {
    if (static_cast<int64_t>(d) != task.d() || y.size() != n || cap.size() != n)
        throw nb::value_error("the rows of a block do not fit its labels, its weights or the point");
    for (size_t i = 0; i < n; ++i)
        if (y.data()[i] < 0 || y.data()[i] >= task.settings.k) throw nb::value_error("a class lies outside 0..k-1");
}

template <class T, class Rows>
void add_rows(const Task& task, const Rows& rows, const Vector<int32_t>& y, const Vector<double>& cap,
              const double* base, double* values, double* gradient, double* laplacian) {
    nb::gil_scoped_release unlocked;
    InterruptPoll poll(poll_python);
    BlockPass<T> pass(task.settings, task.W.data(), task.D());
    pass.add(rows, y.data(), cap.data(), base, values, gradient, laplacian, poll);
}

// `make` gives the rows in a number type: make(float()) or make(double()).
template <class Make>
void add(const Task& task, size_t n, size_t d, const Vector<int32_t>& y, const Vector<double>& cap,
         const std::optional<Matrix<double>>& base, const Sums& values, const Table& gradient,
         const std::optional<Cube>& laplacian, Make make) {
    check_block(task, n, d, y, cap);
    const size_t k = static_cast<size_t>(task.settings.k), D = static_cast<size_t>(task.D());
    if (values.size() != n_values || gradient.shape(0) != k || gradient.shape(1) != D ||
        (base && (base->shape(0) != n || base->shape(1) != k)) ||
        (task.settings.hessian > 0) != laplacian.has_value() ||
        (laplacian && (laplacian->shape(0) != k * (k - 1) / 2 || laplacian->shape(1) != D || laplacian->shape(2) != D)))
        throw nb::value_error("the sums of a pass do not fit its point");
    const double* offset = base ? base->data() : nullptr;
    double* pairs = laplacian ? laplacian->data() : nullptr;
    if (task.single) add_rows<float>(task, make(float()), y, cap, offset, values.data(), gradient.data(), pairs);
    else add_rows<double>(task, make(double()), y, cap, offset, values.data(), gradient.data(), pairs);
}

template <class Given>
void add_dense(const Task& task, Matrix<Given> X, Vector<int32_t> y, Vector<double> cap,
               std::optional<Matrix<double>> base, Sums values, Table gradient, std::optional<Cube> laplacian) {
    const int64_t n = static_cast<int64_t>(X.shape(0)), d = static_cast<int64_t>(X.shape(1));
    add(task, X.shape(0), X.shape(1), y, cap, base, values, gradient, laplacian,
        [&](auto number) { return DenseBlock<decltype(number), Given>(X.data(), n, d, task.centring()); });
}

template <class Given, class I>
void add_csr(const Task& task, Vector<I> indptr, Vector<I> indices, Vector<Given> data, Vector<int32_t> y,
             Vector<double> cap, std::optional<Matrix<double>> base, Sums values, Table gradient,
             std::optional<Cube> laplacian) {
    check_csr(indptr, indices, data.size(), task.d());
    const int64_t n = static_cast<int64_t>(indptr.size()) - 1, d = task.d();
    add(task, static_cast<size_t>(n), static_cast<size_t>(d), y, cap, base, values, gradient, laplacian,
        [&](auto number) {
            return SparseBlock<decltype(number), Given, I>(indptr.data(), indices.data(), data.data(), n, d,
                                                           task.centring());
        });
}

// The duals of a point as lists (row starts, rivals, numbers), in double precision.  Duals of ODM may be negative.
template <class Rows>
nb::tuple duals_of(const Task& task, const Rows& rows, const Vector<int32_t>& y, const Vector<double>& cap) {
    check_block(task, static_cast<size_t>(rows.n), static_cast<size_t>(rows.d), y, cap);
    std::vector<int64_t> start(static_cast<size_t>(rows.n) + 1);
    std::vector<int32_t> rivals;
    std::vector<double> alpha;
    {
        nb::gil_scoped_release unlocked;
        InterruptPoll poll(poll_python);
        BlockPass<double> pass(task.settings, task.W.data(), task.D());
        pass.visit(rows, y.data(), cap.data(), poll, [&](int64_t i, const double* c) {
            for (int32_t l = 0; l < task.settings.k; ++l)
                if (l != y.data()[i] && c[l] != 0) rivals.push_back(l), alpha.push_back(-c[l]);
            start[i + 1] = static_cast<int64_t>(rivals.size());
        });
    }
    const size_t stored = rivals.size(), rows_and_end = start.size();
    return nb::make_tuple(to_numpy(std::move(start), {rows_and_end}), to_numpy(std::move(rivals), {stored}),
                          to_numpy(std::move(alpha), {stored}));
}

template <class Given>
nb::tuple duals_dense(const Task& task, Matrix<Given> X, Vector<int32_t> y, Vector<double> cap) {
    const int64_t n = static_cast<int64_t>(X.shape(0)), d = static_cast<int64_t>(X.shape(1));
    return duals_of(task, DenseBlock<double, Given>(X.data(), n, d, task.centring()), y, cap);
}

template <class Given, class I>
nb::tuple duals_csr(const Task& task, Vector<I> indptr, Vector<I> indices, Vector<Given> data, Vector<int32_t> y,
                    Vector<double> cap) {
    check_csr(indptr, indices, data.size(), task.d());
    const int64_t n = static_cast<int64_t>(indptr.size()) - 1;
    return duals_of(
        task, SparseBlock<double, Given, I>(indptr.data(), indices.data(), data.data(), n, task.d(), task.centring()),
        y, cap);
}

// The matrix ((k - 1) D)^2 of the Laplacian of class pairs, of which one triangle is given: of the result the upper one
// is filled.  The last class is fixed.
void pair_matrix(Cube laplacian, int64_t k, Table matrix) {
    const int64_t D = static_cast<int64_t>(laplacian.shape(1)), size = (k - 1) * D;
    if (k < 2 || static_cast<int64_t>(laplacian.shape(0)) != k * (k - 1) / 2 ||
        laplacian.shape(2) != laplacian.shape(1) || static_cast<int64_t>(matrix.shape(0)) != size ||
        static_cast<int64_t>(matrix.shape(1)) != size)
        throw nb::value_error("the matrix does not fit the Laplacian");
    nb::gil_scoped_release unlocked;
    double* H = matrix.data();
    std::fill_n(H, size * size, 0.0);
    const double* G = laplacian.data();
    for (int64_t m = 1; m < k; ++m)
        for (int64_t l = 0; l < m; ++l, G += D * D)
            for (int64_t q = 0; q < D; ++q)
                for (int64_t p = q; p < D; ++p) {
                    const double g = G[q * D + p];
                    H[(l * D + q) * size + l * D + p] += g;
                    if (m == k - 1) continue;
                    H[(m * D + q) * size + m * D + p] += g;
                    H[(l * D + q) * size + m * D + p] = H[(l * D + p) * size + m * D + q] = -g;
                }
}

template <class Given, class I>
void bind_csr(nb::class_<Task>& task) {
    task.def("add", add_csr<Given, I>, "indptr"_a, "indices"_a, "data"_a.noconvert(), "y"_a, "cap"_a, "base"_a.none(),
             "values"_a.noconvert(), "gradient"_a.noconvert(), "laplacian"_a.noconvert().none());
    task.def("duals", duals_csr<Given, I>, "indptr"_a, "indices"_a, "data"_a.noconvert(), "y"_a, "cap"_a);
}

template <class Given>
void bind_type(nb::class_<Task>& task) {
    task.def("add", add_dense<Given>, "X"_a.noconvert(), "y"_a, "cap"_a, "base"_a.none(), "values"_a.noconvert(),
             "gradient"_a.noconvert(), "laplacian"_a.noconvert().none());
    task.def("duals", duals_dense<Given>, "X"_a.noconvert(), "y"_a, "cap"_a);
    bind_csr<Given, int64_t>(task);  // the wider type first: indices may be converted
    bind_csr<Given, int32_t>(task);
}

}  // namespace

void bind_blocks(nb::module_& m) {
    load(block_blas<float>.gemm, "scipy.linalg.cython_blas", "sgemm");
    load(block_blas<float>.syrk, "scipy.linalg.cython_blas", "ssyrk");
    load(block_blas<double>.gemm, "scipy.linalg.cython_blas", "dgemm");
    load(block_blas<double>.syrk, "scipy.linalg.cython_blas", "dsyrk");
    nb::class_<Task> task(m, "BlockPass");
    task.def(
        "__init__",
        [](Task* self, Matrix<double> W, Vector<double> mean, Vector<double> scale, double constant,
           const std::string& loss, int32_t top_k, double mu, double theta, double width, double hessian, bool single,
           bool reaches) {
            new (self)
                Task(make_task(W, mean, scale, constant, loss, top_k, mu, theta, width, hessian, single, reaches));
        },
        "W"_a, "mean"_a, "scale"_a, nb::kw_only(), "constant"_a, "loss"_a, "top_k"_a, "mu"_a, "theta"_a, "width"_a,
        "hessian"_a, "single"_a, "reaches"_a);
    m.def("pair_matrix", pair_matrix, "laplacian"_a, "k"_a, "matrix"_a.noconvert());
    bind_type<double>(task);
    bind_type<float>(task);
}

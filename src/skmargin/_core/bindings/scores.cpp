// Python sees the scores of linear machines (rows/batch_scores.hpp).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>

#include "base/arrays.hpp"
#include "rows/batch_scores.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace skm;

namespace {

// `coef_`: one row a score, one feature after the other in memory.
template <class T> using Coef = nb::ndarray<const T, nb::ndim<2>, nb::f_contig, nb::device::cpu>;
// Numbers of eight bytes of any type: they are copied only.
using Names = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Found = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
DenseScores<T> machine(const Matrix<T>& X, const Coef<T>& W, const Vector<T>& b) {
    if (X.size() == 0 || X.shape(1) != W.shape(1) || W.shape(0) != b.shape(0) || b.shape(0) == 0)
        throw std::invalid_argument("scores: X, W and b do not fit");
    return {X.data(), static_cast<int64_t>(X.shape(0)), W.data(),
            b.data(), static_cast<int64_t>(X.shape(1)), static_cast<int64_t>(b.shape(0))};
}

// Columns need no look: there is no harm in those that W has not, whose scores are NaN.
template <class T, class I>
SparseScores<T, I> machine(const Vector<I>& indptr, const Vector<I>& indices, const Vector<T>& values, const Coef<T>& W,
                           const Vector<T>& b) {
    check_starts(indptr, indices.size(), values.size());
    if (W.shape(1) == 0 || W.shape(0) != b.shape(0) || b.shape(0) == 0)
        throw std::invalid_argument("scores: W and b do not fit");
    return {indptr.data(),
            indices.data(),
            values.data(),
            static_cast<int64_t>(indptr.size()) - 1,
            W.data(),
            b.data(),
            static_cast<int64_t>(W.shape(1)),
            static_cast<int64_t>(b.shape(0))};
}

template <class T> using ScoreMatrix = nb::ndarray<nb::numpy, T, nb::ndim<2>>;

template <class T, class Scores>
ScoreMatrix<T> scores(Scores of, size_t n, size_t k) {
    std::unique_ptr<T[]> out(new T[n * k + static_cast<size_t>(simd<T>().few)]);
    {
        nb::gil_scoped_release unlocked;
        InterruptPoll poll(poll_python);
        of.scores(poll, out.get());
    }
    T* data = out.get();
    nb::capsule owner(out.release(), [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return ScoreMatrix<T>(data, {n, k}, owner);
}

template <class Scores>
bool labels(Scores of, size_t n, size_t k, const Names& names, const Found& out) {
    if (names.itemsize() != 8 || names.size() != std::max<size_t>(k, 2))
        throw std::invalid_argument("labels: one of eight bytes is needed for each class");
    if (out.itemsize() != 8 || out.size() != n)
        throw std::invalid_argument("labels: out needs one place of eight bytes for each row");
    nb::gil_scoped_release unlocked;
    InterruptPoll poll(poll_python);
    return of.labels(static_cast<const int64_t*>(names.data()), poll, static_cast<int64_t*>(out.data()));
}

template <class T>
ScoreMatrix<T> dense_scores(Matrix<T> X, Coef<T> W, Vector<T> b) {
    return scores<T>(machine(X, W, b), X.shape(0), b.size());
}

template <class T>
bool dense_labels(Matrix<T> X, Coef<T> W, Vector<T> b, Names names, Found out) {
    return labels(machine(X, W, b), X.shape(0), b.size(), names, out);
}

template <class T, class I>
ScoreMatrix<T> csr_scores(Vector<I> indptr, Vector<I> indices, Vector<T> values, Coef<T> W, Vector<T> b) {
    return scores<T>(machine(indptr, indices, values, W, b), indptr.size() - 1, b.size());
}

template <class T, class I>
bool csr_labels(Vector<I> indptr, Vector<I> indices, Vector<T> values, Coef<T> W, Vector<T> b, Names names, Found out) {
    return labels(machine(indptr, indices, values, W, b), indptr.size() - 1, b.size(), names, out);
}

template <class T, class I>
void bind_csr(nb::module_& m) {
    m.def("linear_scores", csr_scores<T, I>, "indptr"_a, "indices"_a, "data"_a.noconvert(), "W"_a.noconvert(),
          "b"_a.noconvert());
    m.def("linear_labels", csr_labels<T, I>, "indptr"_a, "indices"_a, "data"_a.noconvert(), "W"_a.noconvert(),
          "b"_a.noconvert(), "names"_a.noconvert(), "out"_a.noconvert());
}

template <class T>
void bind_type(nb::module_& m) {
    m.def("linear_scores", dense_scores<T>, "X"_a.noconvert(), "W"_a.noconvert(), "b"_a.noconvert());
    m.def("linear_labels", dense_labels<T>, "X"_a.noconvert(), "W"_a.noconvert(), "b"_a.noconvert(),
          "names"_a.noconvert(), "out"_a.noconvert());
    bind_csr<T, int64_t>(m);  // the wider type first: indices may be converted
    bind_csr<T, int32_t>(m);
}

}  // namespace

void bind_scores(nb::module_& m) {
    bind_type<double>(m);  // the first that fits is called
    bind_type<float>(m);
}

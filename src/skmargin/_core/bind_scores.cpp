// Python sees the scores of linear machines (linear_scores.hpp).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "arrays.hpp"
#include "linear_scores.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using skm::Matrix, skm::Vector;

namespace {

template <class T>
void require(const Matrix<T>& X, const Matrix<T>& W, const Vector<T>& b) {
    if (X.shape(1) != W.shape(0) || W.shape(1) != b.shape(0) || b.shape(0) == 0)
        throw std::invalid_argument("scores: X, W and b do not fit");
}

template <class T>
nb::object scores(Matrix<T> X, Matrix<T> W, Vector<T> b) {
    require(X, W, b);
    const int64_t n = static_cast<int64_t>(X.shape(0)), d = static_cast<int64_t>(X.shape(1));
    const int32_t k = static_cast<int32_t>(W.shape(1));
    std::unique_ptr<T[]> out(new T[n * k + skm::simd<T>().few]);
    {
        nb::gil_scoped_release unlocked;
        skm::Poll poll(skm::ask_python);
        skm::linear_scores(X.data(), n, d, W.data(), b.data(), k, poll, out.get());
    }
    return skm::to_numpy(std::move(out), {X.shape(0), W.shape(1)});
}

template <class T>
nb::tuple labels(Matrix<T> X, Matrix<T> W, Vector<T> b, Vector<int64_t> labels) {
    require(X, W, b);
    if (labels.size() != std::max<size_t>(b.size(), 2))
        throw std::invalid_argument("labels: one is needed for each class");
    const int64_t n = static_cast<int64_t>(X.shape(0)), d = static_cast<int64_t>(X.shape(1));
    const int32_t k = static_cast<int32_t>(W.shape(1));
    std::unique_ptr<int64_t[]> out(new int64_t[n]);
    bool finite = true;
    {
        nb::gil_scoped_release unlocked;
        skm::Poll poll(skm::ask_python);
        finite = skm::linear_labels(X.data(), n, d, W.data(), b.data(), k, labels.data(), poll, out.get());
    }
    return nb::make_tuple(skm::to_numpy(std::move(out), {X.shape(0)}), finite);
}

template <class T>
void bind_type(nb::module_& m) {
    m.def("linear_scores", scores<T>, "X"_a.noconvert(), "W"_a.noconvert(), "b"_a.noconvert());
    m.def("linear_labels", labels<T>, "X"_a.noconvert(), "W"_a.noconvert(), "b"_a.noconvert(), "labels"_a.noconvert());
}

}  // namespace

void bind_scores(nb::module_& m) {
    bind_type<float>(m);
    bind_type<double>(m);
}

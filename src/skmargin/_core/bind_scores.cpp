// Python sees the scores of linear machines (linear_scores.hpp).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "arrays.hpp"
#include "linear_scores.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using skm::Matrix, skm::Vector;

namespace {

// `coef_`: one row a score, one feature after the other in memory.
template <class T> using Coef = nb::ndarray<const T, nb::ndim<2>, nb::f_contig, nb::device::cpu>;
// Numbers of eight bytes of any type: they are copied only.
using Names = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Found = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
skm::LinearScores<T> machine(const Matrix<T>& X, const Coef<T>& W, const Vector<T>& b) {
    if (X.size() == 0 || X.shape(1) != W.shape(1) || W.shape(0) != b.shape(0) || b.shape(0) == 0)
        throw std::invalid_argument("scores: X, W and b do not fit");
    return {W.data(), b.data(), static_cast<int64_t>(X.shape(1)), static_cast<int32_t>(b.shape(0))};
}

template <class T>
nb::object scores(Matrix<T> X, Coef<T> W, Vector<T> b) {
    skm::LinearScores<T> of = machine(X, W, b);
    std::unique_ptr<T[]> out(new T[X.shape(0) * b.shape(0) + static_cast<size_t>(skm::simd<T>().few)]);
    {
        nb::gil_scoped_release unlocked;
        skm::Poll poll(skm::ask_python);
        of.scores(X.data(), static_cast<int64_t>(X.shape(0)), poll, out.get());
    }
    return skm::to_numpy(std::move(out), {X.shape(0), b.shape(0)});
}

template <class T>
bool labels(Matrix<T> X, Coef<T> W, Vector<T> b, Names names, Found out) {
    skm::LinearScores<T> of = machine(X, W, b);
    if (names.itemsize() != 8 || names.size() != std::max<size_t>(b.size(), 2))
        throw std::invalid_argument("labels: one of eight bytes is needed for each class");
    if (out.itemsize() != 8 || out.size() != X.shape(0))
        throw std::invalid_argument("labels: there is no room for one of each row");
    nb::gil_scoped_release unlocked;
    skm::Poll poll(skm::ask_python);
    return of.labels(X.data(), static_cast<int64_t>(X.shape(0)), static_cast<const int64_t*>(names.data()), poll,
                     static_cast<int64_t*>(out.data()));
}

template <class T>
void bind_type(nb::module_& m) {
    m.def("linear_scores", scores<T>, "X"_a.noconvert(), "W"_a.noconvert(), "b"_a.noconvert());
    m.def("linear_labels", labels<T>, "X"_a.noconvert(), "W"_a.noconvert(), "b"_a.noconvert(), "names"_a.noconvert(),
          "out"_a.noconvert());
}

}  // namespace

void bind_scores(nb::module_& m) {
    bind_type<double>(m);  // the first that fits is called
    bind_type<float>(m);
}

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
    const int64_t n = static_cast<int64_t>(X.shape(0)), k = static_cast<int64_t>(W.shape(1));
    std::vector<T> out(static_cast<size_t>(n * k));
    {
        nb::gil_scoped_release unlocked;
        skm::Poll poll(skm::ask_python);
        skm::linear_scores(X.data(), n, static_cast<int64_t>(X.shape(1)), W.data(), b.data(), static_cast<int32_t>(k),
                           poll, [&](int64_t first, int64_t rows, const T* f, int64_t ld) {
                               for (int64_t i = 0; i < rows; ++i)
                                   std::copy(f + i * ld, f + i * ld + k, out.data() + (first + i) * k);
                           });
    }
    return skm::to_numpy(std::move(out), {X.shape(0), W.shape(1)});
}

// The winners, and whether all rows are finite: numbers that are not show in the score of every class.
template <class T>
nb::tuple winners(Matrix<T> X, Matrix<T> W, Vector<T> b) {
    require(X, W, b);
    const int64_t n = static_cast<int64_t>(X.shape(0));
    const int32_t k = static_cast<int32_t>(W.shape(1));
    std::vector<int64_t> out(static_cast<size_t>(n));
    bool finite = true;
    {
        nb::gil_scoped_release unlocked;
        skm::Poll poll(skm::ask_python);
        skm::linear_scores(X.data(), n, static_cast<int64_t>(X.shape(1)), W.data(), b.data(), k, poll,
                           [&](int64_t first, int64_t rows, const T* f, int64_t ld) {
                               for (int64_t i = 0; i < rows; ++i) {
                                   out[first + i] = skm::winner(f + i * ld, k);
                                   finite = finite && f[i * ld] - f[i * ld] == 0;
                               }
                           });
    }
    return nb::make_tuple(skm::to_numpy(std::move(out), {X.shape(0)}), finite);
}

template <class T>
void bind_type(nb::module_& m) {
    m.def("linear_scores", scores<T>, "X"_a.noconvert(), "W"_a.noconvert(), "b"_a.noconvert());
    m.def("linear_winners", winners<T>, "X"_a.noconvert(), "W"_a.noconvert(), "b"_a.noconvert());
}

}  // namespace

void bind_scores(nb::module_& m) {
    bind_type<float>(m);
    bind_type<double>(m);
}

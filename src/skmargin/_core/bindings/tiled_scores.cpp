// Python face of the scores for very many classes (many_classes/tiled_scores.hpp).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>

#include "bindings/owned_array.hpp"
#include "many_classes/tiled_scores.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace skm;

namespace {

template <class Number> using Columns = nb::ndarray<const Number, nb::ndim<2>, nb::f_contig, nb::device::cpu>;

// Class vectors: (matrix with one feature after the other,) or the CSR arrays (values, features, starts).
template <class T>
class Machine {
  public:
    Machine(const nb::tuple& W, int64_t k, int64_t d) : held_(W) {
        const bool found = W.size() == 1 ? dense<float>(k, d) || dense<double>(k, d)
                                         : csr<float, int32_t>(k, d) || csr<double, int32_t>(k, d) ||
                                               csr<float, int64_t>(k, d) || csr<double, int64_t>(k, d);
        if (!found) throw nb::value_error("class vectors must be a matrix of floats, or its CSR arrays");
    }
    TileSource<T>& source() const { return *source_; }

  private:
    template <class Number>
    bool dense(int64_t k, int64_t d) {
        Columns<Number> W;
        if (!nb::try_cast<Columns<Number>>(held_[0], W, false)) return false;
        if (static_cast<int64_t>(W.shape(0)) != k || static_cast<int64_t>(W.shape(1)) != d)
            throw nb::value_error("the class vectors do not fit the rows or the intercepts");
        source_ = std::make_unique<DenseVectors<T, Number>>(W.data(), k, d);
        return true;
    }
    template <class Number, class I>
    bool csr(int64_t k, int64_t d) {
        Vector<Number> values;
        Vector<I> features, start;
        if (!nb::try_cast(held_[0], values, false) || !nb::try_cast(held_[1], features, false) ||
            !nb::try_cast(held_[2], start, false))
            return false;
        check_csr(start, features, values.size(), d);
        if (static_cast<int64_t>(start.size()) != k + 1)
            throw nb::value_error("the class vectors do not fit the intercepts");
        source_ = std::make_unique<SparseClassVectors<T, Number, I>>(start.data(), features.data(), values.data(), d);
        return true;
    }

    nb::tuple held_;
    std::unique_ptr<TileSource<T>> source_;
};

// The `top` largest scores of each row and their classes; with top = 0 all scores.
template <class T, class Rows>
nb::object scores(const Rows& rows, const nb::tuple& W, const Vector<T>& b, int32_t top, int32_t threads) {
    const int32_t k = static_cast<int32_t>(b.size());
    if (top < 0 || top > k) throw nb::value_error("so many classes cannot be the best");
    const Machine<T> machine(W, k, rows.d);
    const size_t n = static_cast<size_t>(rows.n), width = static_cast<size_t>(top > 0 ? top : k);
    std::unique_ptr<T[]> out(new T[n * width]);
    std::unique_ptr<int32_t[]> classes(new int32_t[top > 0 ? n * width : 0]);
    {
        nb::gil_scoped_release unlocked;
        InterruptPoll poll(poll_python);
        ThreadTeam team(poll, threads);
        if (top > 0) top_scores<T>(rows, machine.source(), b.data(), k, top, team, out.get(), classes.get());
        else
            each_score<T>(rows, machine.source(), b.data(), k, team,
                          [&](int64_t i, int32_t from, int32_t size, const T* f) {
                              std::copy(f, f + size, out.get() + i * k + from);
                          });
    }
    nb::object found = owned_array(std::move(out), {n, width});
    if (top == 0) return found;
    return nb::make_tuple(owned_array(std::move(classes), {n, width}), found);
}

template <class T>
nb::object dense(Matrix<T> X, nb::tuple W, Vector<T> b, int32_t top, int32_t threads) {
    const DenseRowScores<T> rows{X.data(), static_cast<int64_t>(X.shape(0)), static_cast<int64_t>(X.shape(1))};
    return scores<T>(rows, W, b, top, threads);
}

template <class T, class I>
nb::object csr(Vector<I> indptr, Vector<I> indices, Vector<T> values, int64_t d, nb::tuple W, Vector<T> b, int32_t top,
               int32_t threads) {
    check_csr(indptr, indices, values.size(), d);
    const SparseRowScores<T, I> rows{indptr.data(), indices.data(), values.data(),
                                     static_cast<int64_t>(indptr.size()) - 1, d};
    return scores<T>(rows, W, b, top, threads);
}

template <class T>
void bind_type(nb::module_& m) {
    m.def("tiled_scores", &dense<T>, "X"_a.noconvert(), "W"_a, "b"_a.noconvert(), "top"_a, "threads"_a);
    m.def("tiled_scores", &csr<T, int64_t>, "indptr"_a, "indices"_a, "data"_a.noconvert(), "d"_a, "W"_a,
          "b"_a.noconvert(), "top"_a, "threads"_a);
    m.def("tiled_scores", &csr<T, int32_t>, "indptr"_a, "indices"_a, "data"_a.noconvert(), "d"_a, "W"_a,
          "b"_a.noconvert(), "top"_a, "threads"_a);
}

}  // namespace

void bind_tiled_scores(nb::module_& m) {
    bind_type<float>(m);
    bind_type<double>(m);
}

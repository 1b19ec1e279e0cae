// Python face of the loops over rows of a kernel matrix (kernel/rows.hpp; rows/kernel_rows.py).  Every function takes
// float32 or float64 arrays and releases the interpreter lock.
#include "base/arrays.hpp"
#include "kernel/rows.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// Unlike those of base/arrays.hpp, these may be written where T is not const.
template <class T> using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using skm::require;

void require_places(Vector<const int64_t> place, size_t size, const char* what) {
    for (size_t i = 0; i < place.shape(0); ++i) require(place(i) >= 0 && static_cast<size_t>(place(i)) < size, what);
}

template <class T>
void add(Matrix<T> F, Matrix<const T> store, Vector<const int64_t> slot, Matrix<const double> coef, bool careful) {
    require(store.shape(1) == F.shape(1), "store does not fit F");
    require(coef.shape(0) == slot.shape(0) && coef.shape(1) == F.shape(0), "coef does not fit slot and F");
    nb::gil_scoped_release unlocked;
    skm::InterruptPoll poll(skm::poll_python);
    skm::kernel_add(F.data(), static_cast<int64_t>(F.shape(1)), static_cast<int32_t>(F.shape(0)), store.data(),
                    slot.data(), static_cast<int64_t>(slot.shape(0)), coef.data(), careful, poll);
}

template <class T>
void gather(Matrix<const T> store, Vector<const int64_t> slot, Vector<const int64_t> column, Matrix<T> out) {
    require(out.shape(0) == slot.shape(0) && out.shape(1) >= column.shape(0), "out does not fit slot and column");
    nb::gil_scoped_release unlocked;
    skm::InterruptPoll poll(skm::poll_python);
    skm::kernel_gather(store.data(), static_cast<int64_t>(store.shape(1)), slot.data(), column.data(),
                       static_cast<int64_t>(slot.shape(0)), static_cast<int64_t>(column.shape(0)), out.data(),
                       static_cast<int64_t>(out.shape(1)), poll);
}

template <class T>
void scatter(Matrix<const T> values, Vector<const int64_t> column, Matrix<T> out) {
    require(values.shape(0) == out.shape(0) && values.shape(1) == column.shape(0), "values do not fit column and out");
    require_places(column, out.shape(1), "column is not in out");
    nb::gil_scoped_release unlocked;
    skm::InterruptPoll poll(skm::poll_python);
    skm::kernel_scatter(values.data(), column.data(), static_cast<int64_t>(out.shape(0)),
                        static_cast<int64_t>(column.shape(0)), out.data(), static_cast<int64_t>(out.shape(1)), poll);
}

template <class T>
void mirror(Matrix<const T> store, Vector<const int64_t> slot, Vector<const int64_t> kept, Vector<const int64_t> sample,
            Matrix<T> out) {
    require(slot.shape(0) == kept.shape(0), "slot does not fit kept");
    require(out.shape(0) == sample.shape(0) && out.shape(1) == store.shape(1), "out does not fit sample and store");
    require_places(slot, store.shape(0), "slot is not in store");
    require_places(kept, store.shape(1), "kept is not in store");
    require_places(sample, store.shape(1), "sample is not in store");
    nb::gil_scoped_release unlocked;
    skm::InterruptPoll poll(skm::poll_python);
    skm::kernel_mirror(store.data(), static_cast<int64_t>(store.shape(1)), slot.data(), kept.data(),
                       static_cast<int64_t>(kept.shape(0)), sample.data(), static_cast<int64_t>(sample.shape(0)),
                       out.data(), poll);
}

template <class S, class T>
void centre(Matrix<const S> X, Vector<const int64_t> row, Vector<const double> centre, Matrix<T> out, Vector<T> norms) {
    require(X.shape(1) == out.shape(1) && X.shape(1) == centre.shape(0), "out or centre does not fit X");
    require(row.shape(0) == out.shape(0) && row.shape(0) == norms.shape(0), "row or norms does not fit out");
    require_places(row, X.shape(0), "row is not in X");
    nb::gil_scoped_release unlocked;
    skm::InterruptPoll poll(skm::poll_python);
    skm::kernel_centre(X.data(), static_cast<int64_t>(X.shape(1)), row.data(), static_cast<int64_t>(row.shape(0)),
                       centre.data(), out.data(), norms.data(), poll);
}

// Inner products to values of the RBF kernel, in place; the rows may be part of longer ones.
template <class T>
void rbf(nb::ndarray<T, nb::ndim<2>, nb::device::cpu> rows, Vector<const T> row_norms, Vector<const T> column_norms,
         double gamma) {
    require(row_norms.shape(0) == rows.shape(0) && column_norms.shape(0) == rows.shape(1), "norms do not fit rows");
    require(rows.stride(1) == 1, "the numbers of a row are not beside each other");
    nb::gil_scoped_release unlocked;
    skm::InterruptPoll poll(skm::poll_python);
    const int64_t n = static_cast<int64_t>(rows.shape(1));
    for (size_t i = 0; i < rows.shape(0); ++i) {
        skm::simd<T>().rbf(rows.data() + static_cast<int64_t>(i) * rows.stride(0), n, column_norms.data(),
                           row_norms.data()[i], static_cast<T>(gamma));
        poll.count_work(4.0 * static_cast<double>(n));
    }
}

template <class T>
void bind_type(nb::module_& m) {
    m.def("kernel_add", add<T>, "F"_a.noconvert(), "store"_a.noconvert(), "slot"_a, "coef"_a, "careful"_a);
    m.def("kernel_gather", gather<T>, "store"_a.noconvert(), "slot"_a, "column"_a, "out"_a.noconvert());
    m.def("kernel_scatter", scatter<T>, "values"_a.noconvert(), "column"_a, "out"_a.noconvert());
    m.def("kernel_mirror", mirror<T>, "store"_a.noconvert(), "slot"_a, "kept"_a, "sample"_a, "out"_a.noconvert());
    m.def("kernel_centre", centre<float, T>, "X"_a.noconvert(), "row"_a, "centre"_a, "out"_a.noconvert(),
          "norms"_a.noconvert());
    m.def("kernel_centre", centre<double, T>, "X"_a.noconvert(), "row"_a, "centre"_a, "out"_a.noconvert(),
          "norms"_a.noconvert());
    m.def("kernel_rbf", rbf<T>, "rows"_a.noconvert(), "row_norms"_a.noconvert(), "column_norms"_a.noconvert(),
          "gamma"_a);
}

}  // namespace

void bind_kernel_rows(nb::module_& m) {
    bind_type<float>(m);
    bind_type<double>(m);
}

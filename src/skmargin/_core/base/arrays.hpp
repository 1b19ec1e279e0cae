// Arrays between NumPy and the core: inputs are read-only views, outputs own their memory.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/interrupt.hpp"
#include "linear/dual_lists.hpp"

namespace skm {

namespace nb = nanobind;

template <class T> using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// An array that is taken as it is, or not at all: its number type chooses the overload.  Where another argument has to
// be converted (a number of NumPy to one of C++), all may be, and the first overload would get the rows rounded to its
// own type, or a copy that ends with the call.  Indices of sparse rows may be converted: the wider type is bound first.
template <class Array>
struct Exact : Array {
    Exact() = default;
    explicit Exact(Array array) : Array(std::move(array)) {}
};

// A new NumPy array over the memory of a vector.
template <class T>
nb::object to_numpy(std::vector<T>&& values, std::initializer_list<size_t> shape) {
    auto* owned = new std::vector<T>(std::move(values));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T>(owned->data(), shape, owner));
}

// The same over plain memory, which may be longer than the array and need not have been cleared.
template <class T>
nb::object to_numpy(std::unique_ptr<T[]> values, std::initializer_list<size_t> shape) {
    T* data = values.get();
    nb::capsule owner(values.release(), [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T>(data, shape, owner));
}

// The address of a routine that SciPy publishes (base/blas.hpp).
template <class F>
void load(F& function, const char* module, const char* name) {
    nb::object capsule = nb::module_::import_(module).attr("__pyx_capi__")[name];
    void* address = PyCapsule_GetPointer(capsule.ptr(), PyCapsule_GetName(capsule.ptr()));
    if (address == nullptr) throw nb::python_error();
    function = reinterpret_cast<F>(address);
}

// Ctrl-C: signal handlers only run when the interpreter lock is held, and only in the main thread.  Other threads are
// stopped by an exception sent to them (PyThreadState_SetAsyncExc), which is raised where Python code runs.
inline void poll_python(double progress) {
    nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    nb::module_::import_("skmargin._runtime.progress").attr("report")(progress);
}

// The fixed rivals of the ODM loss (losses/odm.hpp), one for each sample; none with mu = 0.
inline void check_fixed_rivals(double mu, const Vector<int32_t>& rival, const Vector<int32_t>& y, int32_t k) {
    if (!(mu > 0)) return;
    if (rival.size() != y.size()) throw nb::value_error("one rival is needed for each sample");
    for (size_t i = 0; i < rival.size(); ++i)
        if (rival.data()[i] < 0 || rival.data()[i] >= k || rival.data()[i] == y.data()[i])
            throw nb::value_error("a rival must be another class of 0..k-1");
}

// DualLists as the driver keeps them: CSR arrays (row starts, rivals, numbers).
inline void read_duals(DualLists& duals, const Vector<int64_t>& start, const Vector<int32_t>& cls,
                       const Vector<double>& alpha) {
    for (int64_t i = 0; i < duals.size(); ++i) {
        const int64_t s = start.data()[i];
        const int32_t m = static_cast<int32_t>(start.data()[i + 1] - s);
        duals.assign(i, cls.data() + s, alpha.data() + s, m, m);
    }
}

inline nb::tuple write_duals(const DualLists& duals) {
    const int64_t n = duals.size();
    std::vector<int64_t> start(n + 1, 0);
    std::vector<int32_t> cls;
    std::vector<double> alpha;
    for (int64_t i = 0; i < n; ++i) {
        for (int32_t j = 0; j < duals[i].size; ++j)
            if (duals[i].alpha[j] != 0) {
                cls.push_back(duals[i].cls[j]);
                alpha.push_back(duals[i].alpha[j]);
            }
        start[i + 1] = static_cast<int64_t>(cls.size());
    }
    const size_t size = cls.size();
    return nb::make_tuple(to_numpy(std::move(start), {static_cast<size_t>(n + 1)}), to_numpy(std::move(cls), {size}),
                          to_numpy(std::move(alpha), {size}));
}

// The row starts of CSR arrays.
template <class I>
void check_starts(const Vector<I>& indptr, size_t indices, size_t values) {
    if (indptr.size() == 0 || indptr.data()[0] != 0 || indices != values ||
        static_cast<size_t>(indptr.data()[indptr.size() - 1]) > values)
        throw nb::value_error("the CSR arrays do not fit each other");
    for (size_t i = 0; i + 1 < indptr.size(); ++i)
        if (indptr.data()[i + 1] < indptr.data()[i]) throw nb::value_error("CSR indptr must not fall");
}

// CSR arrays of rows with d columns.
template <class I>
void check_csr(const Vector<I>& indptr, const Vector<I>& indices, size_t values, int64_t d) {
    check_starts(indptr, indices.size(), values);
    for (size_t p = 0; p < indices.size(); ++p)
        if (indices.data()[p] < 0 || indices.data()[p] >= d) throw nb::value_error("a CSR column lies outside 0..d-1");
}

}  // namespace skm

template <class Array>
struct nanobind::detail::type_caster<skm::Exact<Array>> {
    NB_TYPE_CASTER(skm::Exact<Array>, make_caster<Array>::Name)

    template <class Flags>
    bool from_python(handle source, Flags flags, cleanup_list* cleanup) noexcept {
        make_caster<Array> array;
        if (!array.from_python(source, flags & ~static_cast<Flags>(cast_flags::convert), cleanup)) return false;
        value = skm::Exact<Array>(std::move(array.value));
        return true;
    }
};

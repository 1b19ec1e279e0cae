// Arrays between NumPy and the core: inputs are read-only views, outputs own their memory.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/interrupt.hpp"

namespace skm {

namespace nb = nanobind;

template <class T> using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T> using WritableVector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using WritableMatrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Every error of an argument: the core's caller is skmargin itself, so these say what does not fit, not what to do.
inline void require(bool holds, const char* what) {
    if (!holds) throw nb::value_error(what);
}

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

// A NumPy array over plain memory that need not have been cleared: for results too large to be written twice.
#pragma once
#include <memory>

#include "base/arrays.hpp"

namespace skm {

template <class T>
nb::object owned_array(std::unique_ptr<T[]> values, std::initializer_list<size_t> shape) {
    T* data = values.get();
    nb::capsule owner(values.release(), [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T>(data, shape, owner));
}

}  // namespace skm

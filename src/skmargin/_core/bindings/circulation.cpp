// Python face of intercept/table_circulation.hpp; the interpreter lock is released.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "bindings/contract.hpp"
#include "intercept/table_circulation.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// Rows or columns may be contiguous: a row is copied to where the core works, and back.
void table_circulation(nb::ndarray<double, nb::ndim<2>, nb::device::cpu> alpha, skm::Vector<int32_t> y,
                       skm::Vector<double> cap, bool shared_cap) {
    const int64_t n = static_cast<int64_t>(alpha.shape(0));
    const int32_t k = static_cast<int32_t>(alpha.shape(1));
    skm::check_labels(y, alpha.shape(0), k);
    skm::require(cap.size() == alpha.shape(0), "one cap is needed for each row of alpha");
    nb::gil_scoped_release unlocked;
    skm::InterruptPoll poll(skm::poll_python);
    std::vector<int32_t> all(k);
    std::iota(all.begin(), all.end(), 0);
    std::vector<double> row(k);
    const int64_t down = alpha.stride(0), right = alpha.stride(1);
    const auto with = [&](int64_t i, auto visit) {
        double* const first = alpha.data() + i * down;
        for (int32_t l = 0; l < k; ++l) row[l] = first[l * right];
        visit(y(i), all.data(), row.data(), k);
        for (int32_t l = 0; l < k; ++l) first[l * right] = row[l];
        poll.count_work(8.0 * k);
    };
    skm::make_table_circulation(k, n, {cap.data(), shared_cap}, with, poll);
}

}  // namespace

void bind_circulation(nb::module_& m) {
    m.def("table_circulation", table_circulation, "alpha"_a.noconvert(), "y"_a, "cap"_a, "shared_cap"_a);
}

// Python sees the losses of a published machine (losses/published.hpp); the driver is solvers/certificate.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <string>

#include "base/arrays.hpp"
#include "losses/published.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace skm;

namespace {

MarginLoss named(const std::string& loss, int32_t K, double mu, double theta) {
    using Kind = MarginLoss::Kind;
    if (loss == "max") return {Kind::max, 1, 0, 0};
    if (loss == "sum") return {Kind::sum, 1, 0, 0};
    if (loss == "top" && K >= 1) return {Kind::top, K, 0, 0};
    if (loss == "odm") return {Kind::odm, 1, mu, theta};
    if (loss == "logistic") return {Kind::logistic, 1, 0, 0};
    throw nb::value_error("loss must be 'max', 'sum', 'top' with K >= 1, 'odm' or 'logistic'");
}

nb::tuple losses(Matrix<double> F, Vector<double> error, Vector<int32_t> y, Vector<double> cap, std::string loss,
                 int32_t K, double mu, double theta) {
    const size_t n = F.shape(0), k = F.shape(1);
    if (error.size() != n || y.size() != n || cap.size() != n || k < 2)
        throw nb::value_error("the arrays given to the core do not fit each other");
    for (size_t i = 0; i < n; ++i)
        if (y.data()[i] < 0 || static_cast<size_t>(y.data()[i]) >= k)
            throw nb::value_error("a class code lies outside 0..k-1");
    LossSum sum;
    {
        nb::gil_scoped_release unlocked;
        sum = published_losses(F.data(), error.data(), y.data(), cap.data(), static_cast<int64_t>(n),
                               static_cast<int32_t>(k), named(loss, K, mu, theta));
    }
    return nb::make_tuple(sum.value, sum.largest);
}

}  // namespace

void bind_certificate(nb::module_& m) {
    m.def(
        "published_losses", &losses, "F"_a.noconvert(), "error"_a, "y"_a.noconvert(), "cap"_a, "loss"_a, "K"_a = 1,
        "mu"_a = 0.0, "theta"_a = 0.0,
        "The sum of the losses of these scores, and the largest that it can be where each score is wrong by `error`.");
}

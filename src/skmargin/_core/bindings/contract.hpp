// What Python gives to the solvers and what it gets back: rows, problem, duals, options, result.
//
// One structure for each, validated where it is made, and one place that chooses the types a solver is compiled for
// (`with_rows`, `with_loss`).  All solvers use the same names: objective, gap, n_iter, converged, W, b, duals.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "base/arrays.hpp"
#include "linear/dual_lists.hpp"
#include "linear/options.hpp"
#include "losses/hinge.hpp"
#include "losses/odm.hpp"
#include "rows/any_rows.hpp"

namespace skm {

// ---- rows ----

template <class T>
struct CsrArrays {
    CsrIndices indices;
    nb::object kept[2];  // the index arrays
    Vector<T> values;
};

// Dense or CSR rows, in single or double precision, 32- or 64-bit indices: views of the arrays given.
struct Rows {
    std::variant<Matrix<float>, Matrix<double>, CsrArrays<float>, CsrArrays<double>> data;
    size_t n, d;
};

// Calls f(view of the rows for k classes).
template <class F>
auto with_rows(const Rows& rows, int32_t k, F f) {
    const int64_t n = static_cast<int64_t>(rows.n), d = static_cast<int64_t>(rows.d);
    return std::visit(
        [&]<class Data>(const Data& data) {
            if constexpr (requires { data.indices; }) return f(SparseRows(data.indices, data.values.data(), n, d, k));
            else return f(DenseRows(data.data(), n, d, d, k));
        },
        rows.data);
}

// The same behind one interface: what runs on it is compiled once.
std::unique_ptr<AnyRows> any_rows(const Rows& rows, int32_t k);

// ---- problem ----

enum class LossKind { max, sum, top, odm, logistic };

// Labels, caps (C times the weight of the sample) and the loss: "max" the largest hinge, "sum" all hinges, "top" the
// top_k largest, "odm" the optimal margin distribution (mu, theta, and with mu > 0, but for the published method, one
// fixed rival for each sample), "logistic" that of the smallest margin, which block norms alone know.
struct Problem {
    Problem(Vector<int32_t> y, Vector<double> cap, int32_t n_classes, const std::string& loss, int32_t top_k, double mu,
            double theta, std::optional<Vector<int32_t>> fixed_rivals);

    size_t n() const { return y.size(); }

    Vector<int32_t> y;
    Vector<double> cap;
    int32_t n_classes;
    LossKind loss;
    int32_t top_k;
    double mu, theta;
    std::optional<Vector<int32_t>> fixed_rivals;
};

// Class codes of n samples.
void check_labels(const Vector<int32_t>& y, size_t n, int32_t n_classes);

// Calls f(loss of the problem), which reads `cap`.  `ordered`: rivals come in increasing order, not the fixed one
// first.
template <class F>
auto with_loss(const Problem& p, const double* cap, bool ordered, F f) {
    switch (p.loss) {
        case LossKind::max: return f(HingeLoss<Hinge::max>(cap));
        case LossKind::sum: return f(HingeLoss<Hinge::many>(cap, 0));
        case LossKind::top: return f(HingeLoss<Hinge::many>(cap, p.top_k));
        default: break;
    }
    require(p.loss == LossKind::odm, "the loss 'logistic' is solved with block norms only");
    require(!(p.mu > 0) || p.fixed_rivals, "one rival is needed for each sample");
    const int32_t* rivals = p.fixed_rivals ? p.fixed_rivals->data() : nullptr;
    return f(OdmLoss(cap, p.mu, p.theta, rivals, ordered ? p.y.data() : nullptr));
}

// ---- duals ----

// Dual numbers as Python keeps them: CSR arrays (row starts, rivals, numbers).
using DualArrays = std::tuple<Vector<int64_t>, Vector<int32_t>, Vector<double>>;

void check_duals(const DualArrays& duals, size_t n, int32_t n_classes);
void read_duals(const DualArrays& duals, DualLists& lists);
nb::tuple write_duals(const DualLists& lists);

// ---- result ----

struct Result {
    nb::object W, b;         // class vectors (k, d), or class weights of kernel rows (k, 1); intercepts
    nb::object multipliers;  // of the intercept, where a later run may start
    nb::object duals;        // CSR arrays
    double objective, gap;
    int64_t n_iter;
    double work;  // flops
    bool converged;
    double score_size;  // what the terms of a score add up to at most, in double precision
};

Result make_result(std::vector<double>&& W, std::vector<double>&& b, std::vector<double>&& multipliers, nb::tuple duals,
                   const Outcome& outcome);

}  // namespace skm

// Rows, Problem, Options and Result as Python classes, and the one validator of what they hold.
#include "bindings/contract.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace skm {

namespace {

Rows dense(auto X) { return {X, X.shape(0), X.shape(1)}; }

template <class T, class I>
Rows csr(Vector<I> indptr, Vector<I> indices, Vector<T> values, int64_t d) {
    check_csr(indptr, indices, values.size(), d);
    const size_t n = indptr.size() - 1;
    return {CsrArrays<T>{CsrIndices(indptr.data(), indices.data()), {nb::cast(indptr), nb::cast(indices)}, values}, n,
            static_cast<size_t>(d)};
}

template <class T>
void bind_rows(nb::class_<Rows>& rows) {
    rows.def("__init__", [](Rows* self, Matrix<T> X) { new (self) Rows(dense(X)); }, "X"_a.noconvert());
}
// The wider index type is bound first: where indices have to be converted none is lost.
template <class T, class I>
void bind_csr(nb::class_<Rows>& rows) {
    rows.def(
        "__init__",
        [](Rows* self, Vector<I> indptr, Vector<I> indices, Vector<T> values, int64_t n_features) {
            new (self) Rows(csr<T, I>(indptr, indices, values, n_features));
        },
        "indptr"_a, "indices"_a, "values"_a.noconvert(), "n_features"_a);
}

LossKind kind_of(const std::string& loss) {
    if (loss == "max") return LossKind::max;
    if (loss == "sum") return LossKind::sum;
    if (loss == "top") return LossKind::top;
    if (loss == "logistic") return LossKind::logistic;
    require(loss == "odm", "loss must be 'max', 'sum', 'top', 'odm' or 'logistic'");
    return LossKind::odm;
}

#define SKMARGIN_ARRAY "numpy.typing.NDArray[numpy.float64]"
#define SKMARGIN_DUALS "tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int32], " SKMARGIN_ARRAY "]"

// A field that Python may read and replace, with a type that the stub knows.
#define SKMARGIN_FIELD(name, type)                                                                          \
    def_prop_rw(                                                                                            \
        #name, [](const Result& r) { return r.name; }, [](Result& r, nb::object value) { r.name = value; }, \
        nb::for_getter(nb::sig("def " #name "(self, /) -> " type)),                                         \
        nb::for_setter(nb::sig("def " #name "(self, value: " type ", /) -> None")))

}  // namespace

Problem::Problem(Vector<int32_t> y, Vector<double> cap, int32_t n_classes, const std::string& loss, int32_t top_k,
                 double mu, double theta, std::optional<Vector<int32_t>> fixed_rivals)
    : y(y), cap(cap), n_classes(n_classes), loss(kind_of(loss)), top_k(top_k), mu(mu), theta(theta),
      fixed_rivals(fixed_rivals) {
    require(cap.size() == y.size(), "one cap is needed for each label");
    require(this->loss != LossKind::top || top_k >= 1, "top_k must be at least 1");
    check_labels(y, y.size(), n_classes);
    if (!(mu > 0) || !fixed_rivals) return;
    require(fixed_rivals->size() == y.size(), "one rival is needed for each sample");
    for (size_t i = 0; i < y.size(); ++i) {
        const int32_t rival = fixed_rivals->data()[i];
        require(rival >= 0 && rival < n_classes && rival != y.data()[i], "a rival must be another class of 0..k-1");
    }
}

std::unique_ptr<AnyRows> any_rows(const Rows& rows, int32_t k) {
    return with_rows(
        rows, k, [](auto view) -> std::unique_ptr<AnyRows> { return std::make_unique<RowsOf<decltype(view)>>(view); });
}

void check_labels(const Vector<int32_t>& y, size_t n, int32_t n_classes) {
    require(y.size() == n, "one label is needed for each row");
    for (size_t i = 0; i < n; ++i)
        require(y.data()[i] >= 0 && y.data()[i] < n_classes, "a class code lies outside 0..k-1");
}

void check_duals(const DualArrays& duals, size_t n, int32_t n_classes) {
    const auto& [indptr, rivals, alpha] = duals;
    require(indptr.size() == n + 1 && rivals.size() == alpha.size() && indptr.data()[0] == 0 &&
                indptr.data()[n] == static_cast<int64_t>(rivals.size()),
            "the starts of the dual rows do not fit their numbers");
    for (size_t i = 0; i < n; ++i)
        require(indptr.data()[i + 1] >= indptr.data()[i], "the starts of the dual rows must not fall");
    for (size_t j = 0; j < rivals.size(); ++j)
        require(rivals.data()[j] >= 0 && rivals.data()[j] < n_classes, "a rival lies outside 0..k-1");
}

void read_duals(const DualArrays& duals, DualLists& lists) {
    const auto& [indptr, rivals, alpha] = duals;
    for (int64_t i = 0; i < lists.size(); ++i) {
        const int64_t s = indptr.data()[i];
        const int32_t m = static_cast<int32_t>(indptr.data()[i + 1] - s);
        lists.assign(i, rivals.data() + s, alpha.data() + s, m, m);
    }
}

nb::tuple write_duals(const DualLists& lists) {
    const int64_t n = lists.size();
    std::vector<int64_t> indptr(n + 1, 0);
    std::vector<int32_t> rivals;
    std::vector<double> alpha;
    for (int64_t i = 0; i < n; ++i) {
        for (int32_t j = 0; j < lists[i].size; ++j)
            if (lists[i].alpha[j] != 0) {
                rivals.push_back(lists[i].cls[j]);
                alpha.push_back(lists[i].alpha[j]);
            }
        indptr[i + 1] = static_cast<int64_t>(rivals.size());
    }
    const size_t size = rivals.size();
    return nb::make_tuple(to_numpy(std::move(indptr), {static_cast<size_t>(n + 1)}),
                          to_numpy(std::move(rivals), {size}), to_numpy(std::move(alpha), {size}));
}

Result make_result(std::vector<double>&& W, std::vector<double>&& b, std::vector<double>&& multipliers, nb::tuple duals,
                   const Outcome& outcome) {
    const size_t k = b.size(), width = W.size() / k;
    return {to_numpy(std::move(W), {k, width}),
            to_numpy(std::move(b), {k}),
            to_numpy(std::move(multipliers), {k}),
            std::move(duals),
            outcome.objective,
            outcome.gap,
            outcome.n_iter,
            outcome.work,
            outcome.converged,
            outcome.score_size};
}

}  // namespace skm

using namespace skm;

void bind_contract(nb::module_& m) {
    auto rows = nb::class_<Rows>(m, "Rows", "Dense rows, or CSR arrays, as a view without a copy.");
    bind_rows<float>(rows);
    bind_rows<double>(rows);
    bind_csr<float, int64_t>(rows);
    bind_csr<double, int64_t>(rows);
    bind_csr<float, int32_t>(rows);
    bind_csr<double, int32_t>(rows);

    nb::class_<Problem>(m, "Problem", "Labels, caps of the losses, and which loss.")
        .def(nb::init<Vector<int32_t>, Vector<double>, int32_t, const std::string&, int32_t, double, double,
                      std::optional<Vector<int32_t>>>(),
             "y"_a, "cap"_a, "n_classes"_a, "loss"_a, "top_k"_a = 1, "mu"_a = 0.0, "theta"_a = 0.0,
             "fixed_rivals"_a = nb::none());

    nb::class_<Options>(m, "Options", "When a solver stops, and how it may go about it.")
        .def(
            "__init__",
            [](Options* self, double tol, int64_t max_iter, double max_work, bool stop_on_stall, bool face_steps,
               double majorizer_share, double majorizer_value, uint64_t seed, int32_t threads) {
                new (self)
                    Options{tol,  max_iter, max_work, stop_on_stall, face_steps, majorizer_share, majorizer_value,
                            seed, threads};
            },
            nb::kw_only(), "tol"_a, "max_iter"_a, "max_work"_a = infinity, "stop_on_stall"_a = false,
            "face_steps"_a = false, "majorizer_share"_a = 0.0, "majorizer_value"_a = 0.0, "seed"_a = 0,
            "threads"_a = 1);

    nb::class_<Result>(m, "Result", "A point with its certificate; the fields may be replaced.")
        .SKMARGIN_FIELD(W, SKMARGIN_ARRAY)
        .SKMARGIN_FIELD(b, SKMARGIN_ARRAY)
        .SKMARGIN_FIELD(multipliers, SKMARGIN_ARRAY)
        .SKMARGIN_FIELD(duals, SKMARGIN_DUALS)
        .def_rw("objective", &Result::objective)
        .def_rw("gap", &Result::gap)
        .def_rw("n_iter", &Result::n_iter)
        .def_rw("work", &Result::work)
        .def_rw("converged", &Result::converged)
        .def_rw("score_size", &Result::score_size);
}

// Python face of the solver for very many classes (solvers/many_classes/rows.py).
#include "bindings/contract.hpp"
#include "bindings/owned_array.hpp"
#include "block_norm/class_vectors.hpp"
#include "intercept/circulation.hpp"
#include "linear/block_ascent.hpp"
#include "many_classes/class_pattern.hpp"
#include "many_classes/class_scan.hpp"
#include "many_classes/publish.hpp"

namespace skm {

// Compiled with the other solvers that use them (bindings/linear.cpp, bindings/block_norm.cpp).
extern template class BlockAscent<HingeLoss<Hinge::max>>;
extern template class BlockAscent<HingeLoss<Hinge::many>>;
extern template class BlockAscent<HingeLoss<Hinge::max>, BlockNormVectors>;

}  // namespace skm

namespace nb = nanobind;
using namespace nb::literals;
using namespace skm;

namespace {

// Rows with features by frequency: starts, features, values, starts of the features, their rows, their old numbers.
template <class T>
using FrequencyRows =
    std::tuple<Vector<int64_t>, Vector<int32_t>, Vector<T>, Vector<int64_t>, Vector<int32_t>, Vector<int32_t>>;

template <class T>
RowsByFrequency<T> view(const FrequencyRows<T>& rows) {
    const auto& [start, features, values, feature_start, feature_rows, original] = rows;
    require(start.size() > 0 && feature_start.size() == original.size() + 1 && features.size() == values.size() &&
                feature_rows.size() == values.size(),
            "the arrays of the rows do not fit each other");
    return {start.data(),
            features.data(),
            values.data(),
            feature_start.data(),
            feature_rows.data(),
            static_cast<int64_t>(start.size()) - 1,
            static_cast<int64_t>(original.size())};
}

RivalLists lists_of(const DualArrays& duals) {
    return {std::get<0>(duals).data(), std::get<1>(duals).data(), std::get<2>(duals).data()};
}

void check(const Problem& problem, const DualArrays& duals, int64_t n) {
    check_labels(problem.y, static_cast<size_t>(n), problem.n_classes);
    check_duals(duals, static_cast<size_t>(n), problem.n_classes);
}

template <class F>
auto with_hinge(const Problem& p, F f) {
    require(p.loss != LossKind::odm && p.loss != LossKind::logistic, "very many classes need a hinge loss");
    if (p.loss == LossKind::max) return f(HingeLoss<Hinge::max>(p.cap.data()));
    return f(HingeLoss<Hinge::many>(p.cap.data(), p.loss == LossKind::sum ? 0 : p.top_k));
}

// CSR rows as the solver reads them.
template <class T, class U, class I>
nb::tuple by_frequency(Vector<I> indptr, Vector<I> indices, Vector<U> values, int64_t d) {
    check_csr(indptr, indices, values.size(), d);
    const int64_t n = static_cast<int64_t>(indptr.size()) - 1;
    std::optional<RowArrays<T>> rows;
    {
        nb::gil_scoped_release unlocked;
        InterruptPoll poll(poll_python);
        rows.emplace(indptr.data(), indices.data(), values.data(), n, d, poll);
    }
    const size_t stored = rows->values.size(), size = static_cast<size_t>(d);
    return nb::make_tuple(
        to_numpy(std::move(rows->start), {static_cast<size_t>(n) + 1}), to_numpy(std::move(rows->features), {stored}),
        to_numpy(std::move(rows->values), {stored}), to_numpy(std::move(rows->feature_start), {size + 1}),
        to_numpy(std::move(rows->feature_rows), {stored}), to_numpy(std::move(rows->original), {size}));
}

// A scan of all classes (many_classes/class_scan.hpp).  `first`: coefficients of the own classes before there are
// duals.
template <class T>
nb::dict scan(const FrequencyRows<T>& arrays, const Problem& problem, const DualArrays& duals, Vector<double> b,
              std::optional<Vector<double>> first, int32_t most, bool intercept, double q, double floor,
              std::optional<Vector<double>> weight, bool single, int32_t threads) {
    const RowsByFrequency<T> rows = view(arrays);
    check(problem, duals, rows.n);
    const size_t k = static_cast<size_t>(problem.n_classes);
    require(b.size() == k && (!weight || weight->size() == k) && (!first || first->size() == problem.n()),
            "one intercept and weight is needed for each class");
    const RivalLists lists = lists_of(duals);
    const ScanTask asked{b.data(), most, intercept ? near_margin : 0.0, q, floor, weight ? weight->data() : nullptr,
                         single};
    ScanResult out;
    {
        nb::gil_scoped_release unlocked;
        InterruptPoll poll(poll_python);
        ThreadTeam team(poll, threads);
        const Coefficients coefficients(lists, problem.y.data(), first ? first->data() : nullptr, rows.n,
                                        problem.n_classes);
        out = with_hinge(problem, [&](const auto& loss) {
            return ClassScan(rows, loss, problem.y.data(), lists, coefficients, asked, team).run(first.has_value());
        });
    }
    const size_t size = out.cls.size();
    nb::dict result;
    result["losses"] = out.losses;
    result["unlisted"] = out.unlisted;
    result["gap"] = out.gap;
    result["duals"] = out.duals;
    result["squares"] = to_numpy(std::move(out.squares), {k});
    result["published"] = to_numpy(std::move(out.published), {k});
    result["weight"] = to_numpy(std::move(out.weight), {k});
    result["total"] = to_numpy(std::move(out.total), {k});
    result["start"] = to_numpy(std::move(out.start), {problem.n() + 1});
    result["cls"] = to_numpy(std::move(out.cls), {size});
    result["alpha"] = to_numpy(std::move(out.alpha), {size});
    result["slope"] = to_numpy(std::move(out.slope), {size});
    return result;
}

struct PassTask {
    bool intercept;
    double q, goal;
    int64_t max_passes;
    double max_work, floor, max_drift;
    uint64_t seed;
    int32_t threads;
};

// What passes leave: duals, multipliers, the sum of the gaps.
struct PassResult {
    DualLists lists;
    std::vector<double> b;
    double gap = 0, t = 0, drift = 0;
    int64_t passes = 0;
};

template <class Vectors, class Loss>
void run_passes(const AnyRows& rows, const Loss& loss, const Problem& problem, const PassTask& task, ThreadTeam& team,
                PassResult& out) {
    RowGeometry geo(rows, ProximalWeightTuning());
    geo.q = task.q;
    double total_cap = 0;
    for (int64_t i = 0; i < rows.n; ++i) total_cap += loss.dual_scale(i);
    if (task.intercept) geo.centre(std::vector<double>(rows.d, 0.0).data(), total_cap);
    const BlockAscentTuning tuning;
    BlockAscent<Loss, Vectors> ascent(geo, loss, problem.y.data(), out.lists, out.b.data(), team, task.seed, tuning);
    ascent.enable_skipping();
    out.gap = ascent.run_on_lists({task.goal, task.max_passes, task.max_work, task.floor, task.max_drift});
    out.t = geo.t;
    out.drift = ascent.drift();
    out.passes = ascent.state.passes;
}

// Visits of the samples over their lists; `b` are the multipliers of the intercept.
template <class T>
nb::dict passes(const FrequencyRows<T>& arrays, const Problem& problem, const DualArrays& duals, Vector<double> b,
                bool intercept, double q, double goal, int64_t max_passes, double max_work, double floor,
                double max_drift, uint64_t seed, int32_t threads) {
    const RowsByFrequency<T> rows = view(arrays);
    check(problem, duals, rows.n);
    require(b.size() == static_cast<size_t>(problem.n_classes), "one multiplier is needed for each class");
    require(q == 2 || problem.loss == LossKind::max, "a block norm needs the largest hinge");
    const PassTask task{intercept, q, goal, max_passes, max_work, floor, max_drift, seed, threads};
    PassResult out{DualLists(rows.n), {b.data(), b.data() + b.size()}};
    {
        nb::gil_scoped_release unlocked;
        InterruptPoll poll(poll_python);
        ThreadTeam team(poll, task.threads);
        const ClassPattern pattern(rows, problem.y.data(), lists_of(duals), problem.n_classes, team);
        const RowsOf pattern_rows(PatternRows<T>(rows, pattern, problem.n_classes));
        read_duals(duals, out.lists);
        if (q != 2) {
            const HingeLoss<Hinge::max> loss(problem.cap.data());
            run_passes<BlockNormVectors>(pattern_rows, loss, problem, task, team, out);
        } else {
            with_hinge(problem, [&](const auto& loss) {
                run_passes<ClassVectors>(pattern_rows, loss, problem, task, team, out);
            });
        }
    }
    const size_t k = out.b.size();
    nb::dict result;
    result["duals"] = write_duals(out.lists);
    result["b"] = to_numpy(std::move(out.b), {k});
    result["gap"] = out.gap;
    result["passes"] = out.passes;
    result["t"] = out.t;
    result["drift"] = out.drift;
    return result;
}

// Squared norms of v_l = sum_i c_il x_i.
template <class T>
nb::object norms(const FrequencyRows<T>& arrays, const Problem& problem, const DualArrays& duals, int32_t threads) {
    const RowsByFrequency<T> rows = view(arrays);
    check(problem, duals, rows.n);
    std::vector<double> squares(problem.n_classes);
    {
        nb::gil_scoped_release unlocked;
        InterruptPoll poll(poll_python);
        ThreadTeam team(poll, threads);
        const Coefficients coefficients(lists_of(duals), problem.y.data(), nullptr, rows.n, problem.n_classes);
        const std::vector<int32_t> cut = coefficients.ranges(64);
        team.for_each_part(static_cast<int>(cut.size()) - 1, [&](int part) {
            ClassVector<T> v(rows, coefficients, team);
            for (int32_t l = cut[part]; l < cut[part + 1]; ++l) {
                v.make(l);
                squares[l] = v.square();
            }
        });
    }
    const size_t k = squares.size();
    return to_numpy(std::move(squares), {k});
}

// Class vectors times their weights, as CSR arrays (values, features, starts), in single or double precision.
template <class Number, class T>
nb::tuple vectors_of(const FrequencyRows<T>& arrays, const Problem& problem, const DualArrays& duals,
                     const Vector<double>& weight, int32_t threads) {
    const RowsByFrequency<T> rows = view(arrays);
    SparseVectors<Number> out;
    {
        nb::gil_scoped_release unlocked;
        InterruptPoll poll(poll_python);
        ThreadTeam team(poll, threads);
        const Coefficients coefficients(lists_of(duals), problem.y.data(), nullptr, rows.n, problem.n_classes);
        out = sparse_vectors<Number>(rows, coefficients, weight.data(), std::get<5>(arrays).data(), team);
    }
    const size_t k = weight.size(), stored = static_cast<size_t>(out.start[k]);
    return nb::make_tuple(owned_array(std::move(out.values), {stored}), owned_array(std::move(out.features), {stored}),
                          to_numpy(std::move(out.start), {k + 1}));
}

template <class T>
nb::tuple vectors(const FrequencyRows<T>& arrays, const Problem& problem, const DualArrays& duals,
                  Vector<double> weight, bool single, int32_t threads) {
    check(problem, duals, static_cast<int64_t>(problem.n()));
    require(weight.size() == static_cast<size_t>(problem.n_classes), "one weight is needed for each class");
    if (single) return vectors_of<float>(arrays, problem, duals, weight, threads);
    return vectors_of<double>(arrays, problem, duals, weight, threads);
}

// Duals near the given ones with sum_i c_il = 0 for every class; `slope` is that of the dual objective.
nb::object circulation(const Problem& problem, const DualArrays& duals, Vector<double> slope) {
    check(problem, duals, static_cast<int64_t>(problem.n()));
    const auto& [start, cls, alpha] = duals;
    require(slope.size() == alpha.size(), "one slope is needed for each dual");
    std::vector<double> found(alpha.data(), alpha.data() + alpha.size());
    {
        nb::gil_scoped_release unlocked;
        InterruptPoll poll(poll_python);
        const int64_t* from = start.data();
        const int32_t* rivals = cls.data();
        const auto with = [&](int64_t i, auto visit) {
            if (const int32_t m = static_cast<int32_t>(from[i + 1] - from[i]); m > 0)
                visit(problem.y.data()[i], rivals + from[i], found.data() + from[i], m);
        };
        const auto slope_of = [&](int64_t i, int32_t j) { return slope.data()[from[i] + j]; };
        with_hinge(problem, [&](const auto& loss) {
            make_circulation(problem.n_classes, static_cast<int64_t>(problem.n()), loss, with, slope_of, poll);
            return 0;
        });
    }
    const size_t size = found.size();
    return to_numpy(std::move(found), {size});
}

template <class T, class I>
void bind_rows(nb::module_& m) {
    m.def("rows_by_frequency32", &by_frequency<float, T, I>, "indptr"_a, "indices"_a, "values"_a.noconvert(), "d"_a);
    m.def("rows_by_frequency64", &by_frequency<double, T, I>, "indptr"_a, "indices"_a, "values"_a.noconvert(), "d"_a);
}

template <class T>
void bind_type(nb::module_& m) {
    bind_rows<T, int64_t>(m);  // the wider type first: indices may be converted
    bind_rows<T, int32_t>(m);
    m.def("class_scan", &scan<T>, "rows"_a.noconvert(), "problem"_a, "duals"_a, "b"_a, nb::kw_only(), "first"_a.none(),
          "most"_a, "fit_intercept"_a, "q"_a, "floor"_a, "weight"_a.none(), "single"_a, "threads"_a);
    m.def("list_passes", &passes<T>, "rows"_a.noconvert(), "problem"_a, "duals"_a, "b"_a, nb::kw_only(),
          "fit_intercept"_a, "q"_a, "goal"_a, "max_passes"_a, "max_work"_a, "floor"_a, "max_drift"_a, "seed"_a,
          "threads"_a);
    m.def("class_norms", &norms<T>, "rows"_a.noconvert(), "problem"_a, "duals"_a, nb::kw_only(), "threads"_a);
    m.def("class_vectors", &vectors<T>, "rows"_a.noconvert(), "problem"_a, "duals"_a, "weight"_a, nb::kw_only(),
          "single"_a, "threads"_a);
}

}  // namespace

void bind_many_classes(nb::module_& m) {
    bind_type<float>(m);
    bind_type<double>(m);
    m.def("list_circulation", &circulation, "problem"_a, "duals"_a, "slope"_a);
}

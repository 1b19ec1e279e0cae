// Python face of the linear block ascent (solvers/dual/linear.py, solvers/odm/inner_linear.py), and of passes over
// rows.
#include <algorithm>
#include <cmath>
#include "bindings/contract.hpp"
#include "linear/face_cg.hpp"

namespace skm {

// For the solver for very many classes as well (bindings/many_classes.cpp).
template class BlockAscent<HingeLoss<Hinge::max>>;
template class BlockAscent<HingeLoss<Hinge::many>>;

}  // namespace skm

namespace nb = nanobind;
using namespace nb::literals;
using namespace skm;

namespace {

// `mean` of the features: with a free intercept they are centred there, else only its direction is set apart.
struct Start {
    const std::optional<Vector<double>>& mean;
    bool fit_intercept;
    std::vector<double> b;  // multipliers of the intercept
    DualLists duals;
};

template <class Loss>
Outcome ascend(const AnyRows& rows, const Loss& loss, const Problem& problem, const Options& options, Start& start,
               const BlockAscentTuning& tuning, const ProximalWeightTuning& weight, std::vector<double>& W,
               std::vector<double>& b) {
    InterruptPoll poll(poll_python);
    ThreadTeam team(poll, options.threads);
    RowGeometry geo(rows, weight);
    double total_cap = 0;
    for (int64_t i = 0; i < rows.n; ++i) total_cap += loss.dual_scale(i);
    if (start.mean && start.fit_intercept) geo.centre(start.mean->data(), total_cap);
    else if (start.mean) geo.deflate(start.mean->data());
    BlockAscent<Loss> ascent(geo, loss, problem.y.data(), start.duals, start.b.data(), team, options.seed, tuning);
    Outcome out;
    if constexpr (Loss::has_faces) {
        FaceSteps<Loss> face(ascent.state);
        if (options.face_steps) ascent.enable_screening();
        else ascent.enable_skipping();
        out = ascent.run(options, options.face_steps ? &face : nullptr);
    } else {
        out = ascent.run(options);
    }
    b = start.b;
    W = std::move(ascent.state.buffer);
    W.resize(static_cast<size_t>(rows.k * rows.d));
    ascent.state.model.publish(W.data(), b.data());
    out.score_size = ascent.stretch() * ascent.state.model.score_size();
    for (double& w : W) w *= ascent.stretch();
    for (double& v : b) v *= ascent.stretch();
    // A hinge takes a score that is no number for one beyond its margin: the losses may have missed it.
    if (!std::all_of(b.begin(), b.end(), [](double v) { return std::isfinite(v); })) {
        out.gap = infinity;
        out.converged = false;
    }
    return out;
}

Result block_ascent(const Rows& rows, const Problem& problem, const Options& options, Vector<double> b,
                    const DualArrays& duals, std::optional<Vector<double>> mean, bool fit_intercept,
                    const BlockAscentTuning& tuning, const ProximalWeightTuning& weight) {
    const int32_t k = problem.n_classes;
    check_labels(problem.y, rows.n, k);
    check_duals(duals, rows.n, k);
    require(b.size() == static_cast<size_t>(k), "one multiplier is needed for each class");
    require(!mean || mean->size() == rows.d, "the mean does not fit the rows");
    std::vector<double> W, intercepts;
    Start start{mean, fit_intercept, {b.data(), b.data() + k}, DualLists(static_cast<int64_t>(rows.n))};
    Outcome out;
    {
        nb::gil_scoped_release unlocked;
        read_duals(duals, start.duals);
        const auto view = any_rows(rows, k);
        out = with_loss(problem, problem.cap.data(), false, [&](const auto& loss) {
            return ascend(*view, loss, problem, options, start, tuning, weight, W, intercepts);
        });
    }
    return make_result(std::move(W), std::move(intercepts), std::move(start.b), write_duals(start.duals), out);
}

// Passes over rows that are a part of a problem's (BlockAscent::visit_all), centred at `mean` where their intercept is
// free: class vectors W and intercepts b are given; returned are those after the steps, and the new duals.  `proximal`
// is the weight of the intercept's square in the curvature of a block.
nb::tuple ascend_part(const Rows& rows, const Problem& problem, const Options& options, Matrix<double> W,
                      Vector<double> b, const DualArrays& duals, std::optional<Vector<double>> mean, double proximal,
                      const BlockAscentTuning& tuning) {
    const int32_t k = problem.n_classes;
    check_labels(problem.y, rows.n, k);
    check_duals(duals, rows.n, k);
    require(W.shape(0) == static_cast<size_t>(k) && W.shape(1) == rows.d && b.size() == static_cast<size_t>(k),
            "class vectors do not fit the rows");
    require(!mean || mean->size() == rows.d, "the mean does not fit the rows");
    DualLists lists(static_cast<int64_t>(rows.n));
    std::vector<double> V(static_cast<size_t>(k) * rows.d), intercepts(k);
    {
        nb::gil_scoped_release unlocked;
        read_duals(duals, lists);
        const auto view = any_rows(rows, k);
        with_loss(problem, problem.cap.data(), false, [&]<class Loss>(const Loss& loss) {
            InterruptPoll poll(poll_python);
            ThreadTeam team(poll, 1);
            RowGeometry geo(*view);
            if (mean) geo.centre_with({mean->data(), mean->data() + rows.d}, proximal);
            std::vector<double> multipliers(b.data(), b.data() + k);
            BlockAscent<Loss> ascent(geo, loss, problem.y.data(), lists, multipliers.data(), team, options.seed,
                                     tuning);
            ascent.state.model.start_at(W.data(), b.data());
            ascent.visit_all(options.max_iter);
            ascent.state.model.publish(V.data(), intercepts.data());
        });
    }
    const size_t classes = static_cast<size_t>(k);
    return nb::make_tuple(to_numpy(std::move(V), {classes, rows.d}), to_numpy(std::move(intercepts), {classes}),
                          write_duals(lists));
}

// The numbers of dense rows that are not zero, `stored` of them, as CSR arrays (values, columns, row starts).
template <class T>
nb::tuple to_csr(Matrix<T> X, int64_t stored) {
    const size_t n = X.shape(0), d = X.shape(1), capacity = static_cast<size_t>(stored) + 1;  // one more: see below
    std::vector<int32_t> start(n + 1, 0), columns(capacity);
    std::vector<T> values(capacity);
    size_t at = 0;
    {
        nb::gil_scoped_release unlocked;
        for (size_t i = 0; i < n; ++i) {
            const T* row = X.data() + i * d;
            for (size_t j = 0; j < d; ++j) {  // written in any case, kept if it is not zero: no branch to mispredict
                values[at] = row[j];
                columns[at] = static_cast<int32_t>(j);
                at += row[j] != 0 && at + 1 < capacity;
            }
            start[i + 1] = static_cast<int32_t>(at);
        }
    }
    return nb::make_tuple(to_numpy(std::move(values), {at}), to_numpy(std::move(columns), {at}),
                          to_numpy(std::move(start), {n + 1}));
}

// The mean of dense rows and the mean of their squares, in double precision.
template <class T>
nb::tuple moments(Matrix<T> X) {
    const size_t n = X.shape(0), d = X.shape(1);
    std::vector<double> mean(d, 0.0);
    double square = 0;
    {
        nb::gil_scoped_release unlocked;
        InterruptPoll poll(poll_python);
        for (size_t i = 0; i < n; ++i) {
            const T* x = X.data() + i * d;
            for (size_t j = 0; j < d; ++j) mean[j] += x[j];
            square += summed(static_cast<int64_t>(d), [=](int64_t j) { return static_cast<double>(x[j]) * x[j]; });
            poll.count_work(3.0 * static_cast<double>(d));
        }
        for (double& m : mean) m /= static_cast<double>(n);
    }
    return nb::make_tuple(to_numpy(std::move(mean), {d}), square / static_cast<double>(n));
}

}  // namespace

void bind_linear(nb::module_& m) {
    m.def("block_ascent", &block_ascent, "rows"_a, "problem"_a, "options"_a, nb::kw_only(), "b"_a, "duals"_a,
          "mean"_a.none(), "fit_intercept"_a, "tuning"_a = BlockAscentTuning(), "weight"_a = ProximalWeightTuning());
    m.def("ascend_part", &ascend_part, "rows"_a, "problem"_a, "options"_a, nb::kw_only(), "W"_a, "b"_a, "duals"_a,
          "mean"_a.none(), "proximal"_a, "tuning"_a = BlockAscentTuning());
    const auto array = [](const char* of) { return "numpy.typing.NDArray[numpy." + std::string(of) + "]"; };
    const auto bind_dense = [&]<class T>(T, const char* type) {
        const std::string csr = "tuple[" + array(type) + ", " + array("int32") + ", " + array("int32") + "]";
        const std::string mean = "def moments(X: " + array(type) + ") -> tuple[" + array("float64") + ", float]";
        m.def("moments", &moments<T>, "X"_a.noconvert(), nb::sig(mean.c_str()));
        m.def("to_csr", &to_csr<T>, "X"_a.noconvert(), "stored"_a,
              nb::sig(("def to_csr(X: " + array(type) + ", stored: int) -> " + csr).c_str()));
    };
    bind_dense(0.0f, "float32");
    bind_dense(0.0, "float64");
}

// Python face of the block ascent with the norm of Lei et al. (solvers/block_norm/ascent.py): rows, and kernel
// matrices.
#include "bindings/contract.hpp"
#include "block_norm/face_newton.hpp"
#include "block_norm/gram_rows.hpp"
#include "linear/block_ascent.hpp"
#include "losses/logistic.hpp"

namespace skm {

// For the solver for very many classes as well (bindings/many_classes.cpp).
template class BlockAscent<HingeLoss<Hinge::max>, BlockNormVectors>;

}  // namespace skm

namespace nb = nanobind;
using namespace nb::literals;
using namespace skm;

namespace {

// A kernel matrix in memory, or rows of it that are asked for where they are needed: rows(i) is an array of n numbers,
// which `rows` itself keeps until the next call.
struct KernelMatrix {
    std::variant<Matrix<float>, Matrix<double>, std::pair<nb::callable, Vector<float>>,
                 std::pair<nb::callable, Vector<double>>>
        data;
    size_t n;
};

template <class T>
GramRows<T> view_of(const Matrix<T>& K, int32_t k) {
    const T* numbers = K.data();
    const int64_t n = static_cast<int64_t>(K.shape(0));
    std::vector<T> diagonal(K.shape(0));
    for (int64_t i = 0; i < n; ++i) diagonal[i] = numbers[i * n + i];
    return {[=](int64_t i) { return numbers + i * n; }, std::move(diagonal), k};
}

template <class T>
GramRows<T> view_of(const std::pair<nb::callable, Vector<T>>& rows, int32_t k) {
    const Vector<T>& diagonal = rows.second;
    const auto row = [&](int64_t i) {
        nb::gil_scoped_acquire lock;
        const auto numbers = nb::cast<Vector<T>>(rows.first(i), false);  // a converted copy would end here
        require(numbers.size() == rows.second.size(), "a row of the kernel matrix has the wrong length");
        return numbers.data();
    };
    return {row, std::vector<T>(diagonal.data(), diagonal.data() + diagonal.size()), k};
}

// The norm of the dual is ||V||_{2,q}.  `mean` of the features: with a free intercept they are centred there, else only
// its direction is set apart.  `class_weights` may take the place of the norm.
struct Start {
    double q;
    const std::optional<Vector<double>>& class_weights;
    const std::optional<Vector<double>>& mean;
    bool fit_intercept;
    std::vector<double> b;  // multipliers of the intercept
    DualLists duals;
};

template <SumLoss Loss>
Outcome ascend(const AnyRows& rows, const Loss& loss, const Problem& problem, const Options& options, Start& start,
               const BlockAscentTuning& tuning, const ProximalWeightTuning& weight, std::vector<double>& W,
               std::vector<double>& b) {
    InterruptPoll poll(poll_python);
    ThreadTeam team(poll, 1);
    RowGeometry geo(rows, weight);
    geo.q = start.q;
    if (start.class_weights)
        geo.class_weights.assign(start.class_weights->data(), start.class_weights->data() + rows.k);
    double total_cap = 0;
    for (int64_t i = 0; i < rows.n; ++i) total_cap += loss.dual_scale(i);
    if (start.mean && start.fit_intercept) geo.centre(start.mean->data(), total_cap);
    else if (start.mean && start.q <= 2 && !start.class_weights) geo.deflate(start.mean->data());
    BlockAscent<Loss, BlockNormVectors> ascent(geo, loss, problem.y.data(), start.duals, start.b.data(), team,
                                               options.seed, tuning);
    ascent.enable_skipping();
    std::optional<BlockNormFaceSteps<Loss>> face;
    if (options.face_steps && !start.class_weights) face.emplace(ascent.state, start.q);
    const Outcome out = ascent.run(options, face ? &*face : nullptr);
    b = start.b;
    const bool kernel = !rows.has_sums();
    W.resize(static_cast<size_t>(rows.k) * (kernel ? 1 : rows.d));
    if (kernel) ascent.state.model.publish_weights(W.data(), b.data());
    else ascent.state.model.publish(W.data(), b.data());
    for (double& w : W) w *= ascent.stretch();
    for (double& v : b) v *= ascent.stretch();
    return out;
}

// Calls f(loss of the problem): the largest hinge, its square or the logistic loss.
template <class F>
auto with_sum_loss(const Problem& p, F f) {
    if (p.loss == LossKind::max) return f(HingeLoss<Hinge::max>(p.cap.data()));
    if (p.loss == LossKind::logistic) return f(LogisticLoss(p.cap.data()));
    return f(OdmLoss(p.cap.data(), 0.0, p.theta, nullptr));
}

Result solve(const AnyRows& rows, const Problem& problem, const Options& options, double q,
             const std::optional<Vector<double>>& class_weights, const Vector<double>& b, const DualArrays& duals,
             const std::optional<Vector<double>>& mean, bool fit_intercept, const BlockAscentTuning& tuning,
             const ProximalWeightTuning& weight) {
    const int32_t k = problem.n_classes;
    const size_t n = static_cast<size_t>(rows.n);
    check_labels(problem.y, n, k);
    check_duals(duals, n, k);
    require(problem.loss == LossKind::max || problem.loss == LossKind::logistic ||
                (problem.loss == LossKind::odm && problem.mu == 0),
            "block norms are solved for the losses 'max', 'logistic' and 'odm' with mu = 0");
    require(b.size() == static_cast<size_t>(k), "one multiplier is needed for each class");
    require(!mean || mean->size() == static_cast<size_t>(rows.d), "the mean does not fit the rows");
    require(q > 1, "q must be larger than 1");
    if (class_weights) {
        require(class_weights->size() == static_cast<size_t>(k) && q == 2,
                "class weights need q = 2, and one for each class");
        for (int32_t l = 0; l < k; ++l) require(class_weights->data()[l] > 0, "class weights must be positive");
    }
    std::vector<double> W, intercepts;
    Start start{q, class_weights, mean, fit_intercept, {b.data(), b.data() + k}, DualLists(rows.n)};
    Outcome out;
    {
        nb::gil_scoped_release unlocked;
        read_duals(duals, start.duals);
        out = with_sum_loss(problem, [&](const auto& loss) {
            return ascend(rows, loss, problem, options, start, tuning, weight, W, intercepts);
        });
    }
    return make_result(std::move(W), std::move(intercepts), std::move(start.b), write_duals(start.duals), out);
}

Result rows_ascent(const Rows& rows, const Problem& problem, const Options& options, double q, Vector<double> b,
                   const DualArrays& duals, std::optional<Vector<double>> mean, bool fit_intercept,
                   std::optional<Vector<double>> class_weights, const BlockAscentTuning& tuning,
                   const ProximalWeightTuning& weight) {
    return solve(*any_rows(rows, problem.n_classes), problem, options, q, class_weights, b, duals, mean, fit_intercept,
                 tuning, weight);
}

Result kernel_ascent(const KernelMatrix& matrix, const Problem& problem, const Options& options, double q,
                     Vector<double> b, const DualArrays& duals, std::optional<Vector<double>> mean, bool fit_intercept,
                     std::optional<Vector<double>> class_weights, const BlockAscentTuning& tuning,
                     const ProximalWeightTuning& weight) {
    return std::visit(
        [&](const auto& data) {
            return solve(RowsOf(view_of(data, problem.n_classes)), problem, options, q, class_weights, b, duals, mean,
                         fit_intercept, tuning, weight);
        },
        matrix.data);
}

template <class T>
void bind_matrix(nb::class_<KernelMatrix>& matrix) {
    matrix.def(
        "__init__",
        [](KernelMatrix* self, Matrix<T> K) {
            require(K.shape(0) == K.shape(1), "the kernel matrix must be square");
            new (self) KernelMatrix{K, K.shape(0)};
        },
        "K"_a.noconvert());
    matrix.def(
        "__init__",
        [](KernelMatrix* self, nb::callable rows, Vector<T> diagonal) {
            new (self) KernelMatrix{std::make_pair(std::move(rows), diagonal), diagonal.size()};
        },
        "rows"_a, "diagonal"_a.noconvert());
}

}  // namespace

void bind_block_norm(nb::module_& m) {
    auto matrix = nb::class_<KernelMatrix>(m, "KernelMatrix", "A kernel matrix, or a callable that gives its rows.");
    bind_matrix<float>(matrix);
    bind_matrix<double>(matrix);
    const auto bind = [&](auto function) {
        m.def("block_norm_ascent", function, "rows"_a, "problem"_a, "options"_a, nb::kw_only(), "q"_a, "b"_a, "duals"_a,
              "mean"_a.none(), "fit_intercept"_a, "class_weights"_a = nb::none(), "tuning"_a = BlockAscentTuning(),
              "weight"_a = ProximalWeightTuning());
    };
    bind(&rows_ascent);
    bind(&kernel_ascent);
}

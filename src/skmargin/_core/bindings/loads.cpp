// Python face of block ascent over rows in loads (solvers/blocks/loads.py).
#include <memory>

#include "bindings/contract.hpp"
#include "linear/load_ascent.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace skm;

namespace {

template <class T>
DenseRows<T> without_rows(const DenseRows<T>& rows) {
    return DenseRows<T>(nullptr, 0, rows.d, rows.d, rows.k);
}
template <class T>
SparseRows<T> without_rows(const SparseRows<T>& rows) {
    static constexpr int32_t start[1] = {0};
    return SparseRows<T>(CsrIndices(start, start), nullptr, 0, rows.d, rows.k);
}

std::unique_ptr<AnyRows> none_of(const Rows& rows, int32_t k) {
    return with_rows(rows, k, [](const auto& view) -> std::unique_ptr<AnyRows> {
        auto none = without_rows(view);
        return std::make_unique<RowsOf<decltype(none)>>(none);
    });
}

class Loads {
  public:
    Loads(int64_t n_rows, int32_t n_classes, double total_cap, std::optional<Vector<double>> mean, double tol,
          int32_t threads, const BlockAscentTuning& tuning, const ProximalWeightTuning& weight)
        : settings_{n_rows, total_cap, {}, tol, tuning, weight}, n_classes_(n_classes), threads_(threads) {
        require(n_rows > 0 && n_classes > 1 && total_cap > 0, "rows, classes and caps must be positive");
        if (mean) settings_.mean.emplace(mean->data(), mean->data() + mean->size());
    }

    void start(Matrix<double> W, Vector<double> b) {
        require(!ascent_ && W.shape(0) == static_cast<size_t>(n_classes_) && b.size() == W.shape(0),
                "a start comes before the first load, with one row and intercept for each class");
        W_.assign(W.data(), W.data() + W.size());
        start_b_.assign(b.data(), b.data() + b.size());
    }

    void begin_pass(bool scored) {
        begins_ = true;
        scored_ = scored;
    }

    nb::tuple visit(const Rows& rows, const Problem& problem, const DualArrays& duals, int passes, bool last,
                    uint64_t seed) {
        check_labels(problem.y, rows.n, n_classes_);
        check_duals(duals, rows.n, n_classes_);
        require(problem.n_classes == n_classes_, "the number of classes has changed");
        require(!settings_.mean || settings_.mean->size() == rows.d, "the mean does not fit the rows");
        DualLists lists(static_cast<int64_t>(rows.n));
        {
            nb::gil_scoped_release unlocked;
            read_duals(duals, lists);
            InterruptPoll poll(poll_python);
            ThreadTeam team(poll, threads_);
            if (!ascent_) {
                ascent_.emplace(none_of(rows, n_classes_), settings_);
                kind_ = rows.data.index();
                d_ = rows.d;
                if (W_.size() == d_ * static_cast<size_t>(n_classes_)) ascent_->start(W_.data(), start_b_.data());
                else require(W_.empty(), "the start does not fit the rows");
            }
            require(kind_ == rows.data.index() && d_ == rows.d, "all loads must hold rows of one kind");
            if (std::exchange(begins_, false)) ascent_->begin_pass(scored_);
            const auto view = any_rows(rows, n_classes_);
            with_loss(problem, problem.cap.data(), false, [&](const auto& loss) {
                ascent_->visit(*view, loss, problem.y.data(), lists, passes, last, seed, team);
            });
            found_ = ascent_->found();
        }
        return write_duals(lists);
    }

    nb::tuple found() const { return nb::make_tuple(found_.gap, found_.primal, found_.dual, found_.balanced); }

    nb::tuple publish(bool fixed) {
        require(ascent_.has_value(), "there is no point yet");
        const size_t k = static_cast<size_t>(n_classes_), d = d_;
        std::vector<double> W(k * d), b(k);
        ascent_->publish(fixed, W.data(), b.data());
        return nb::make_tuple(to_numpy(std::move(W), {k, d}), to_numpy(std::move(b), {k}));
    }

  private:
    LoadSettings settings_;
    int32_t n_classes_, threads_;
    size_t kind_ = 0, d_ = 0;  // of the rows
    bool begins_ = false, scored_ = false;
    LoadOutcome found_;
    std::vector<double> W_, start_b_;  // where to start, if not at zero
    std::optional<LoadAscent> ascent_;
};

}  // namespace

void bind_loads(nb::module_& m) {
    nb::class_<Loads>(m, "Loads")
        .def(nb::init<int64_t, int32_t, double, std::optional<Vector<double>>, double, int32_t,
                      const BlockAscentTuning&, const ProximalWeightTuning&>(),
             "n_rows"_a, "n_classes"_a, "total_cap"_a, nb::kw_only(), "mean"_a.none(), "tol"_a, "threads"_a = 1,
             "tuning"_a = BlockAscentTuning(), "weight"_a = ProximalWeightTuning())
        .def("start", &Loads::start, "W"_a, "b"_a)
        .def("begin_pass", &Loads::begin_pass, "scored"_a)
        .def("visit", &Loads::visit, "rows"_a, "problem"_a, "duals"_a, nb::kw_only(), "passes"_a, "last"_a, "seed"_a,
             nb::sig("def visit(self, rows: Rows, problem: Problem, duals: tuple[numpy.typing.NDArray[numpy.int64], "
                     "numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.float64]], *, passes: int, last: "
                     "bool, seed: int) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int32], "
                     "numpy.typing.NDArray[numpy.float64]]"))
        .def("found", &Loads::found, nb::sig("def found(self) -> tuple[float, float, float, bool]"))
        .def("publish", &Loads::publish, "fixed"_a,
             nb::sig("def publish(self, fixed: bool) -> tuple[numpy.typing.NDArray[numpy.float64], "
                     "numpy.typing.NDArray[numpy.float64]]"));
}

// Python face of block ascent on the working set of a kernel machine (kernel/; solvers/dual/, solvers/odm/).  Every
// function takes float32 or float64 arrays and releases the interpreter lock.
#include "bindings/contract.hpp"
#include "kernel/block_ascent.hpp"
#include "kernel/samples.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace skm;

namespace {

// Scores F (k rows), duals (n x k, zero at the own class) of the samples of a problem.
template <class T>
KernelSamples<T> view(WritableMatrix<T>& F, WritableMatrix<double>& alpha, const Problem& problem,
                      const int64_t* column = nullptr) {
    const int32_t k = problem.n_classes;
    require(alpha.shape(0) == problem.n() && alpha.shape(1) == static_cast<size_t>(k),
            "alpha does not fit the problem");
    require(F.shape(0) == alpha.shape(1) && F.shape(1) >= alpha.shape(0), "F does not fit alpha");
    return {F.data(),
            static_cast<int64_t>(F.shape(1)),
            alpha.data(),
            problem.y.data(),
            static_cast<int64_t>(alpha.shape(0)),
            k,
            column};
}

void require_places(const Vector<int64_t>& place, size_t size, const char* what) {
    for (size_t i = 0; i < place.shape(0); ++i) require(place(i) >= 0 && static_cast<size_t>(place(i)) < size, what);
}

// Gaps of all samples, which of them are free (strictly inside their bounds), and what class vectors longer by the
// factors 1 + stretches save in losses; returns the sums.
template <class T>
GapSums gaps(WritableMatrix<T> F, WritableMatrix<double> alpha, const Problem& problem, Vector<double> shift,
             WritableVector<double> gap_of, WritableVector<uint8_t> free, Vector<double> stretches,
             WritableVector<double> savings) {
    const auto samples = view(F, alpha, problem);
    const size_t n = problem.n();
    require(shift.size() == F.shape(0) && gap_of.size() == n && free.size() == n,
            "shift, gap_of or free does not fit F");
    require(stretches.size() == savings.size(), "savings does not fit stretches");
    nb::gil_scoped_release unlocked;
    InterruptPoll poll(poll_python);
    return with_loss(problem, problem.cap.data(), false, [&](const auto& loss) {
        StretchSavings lengths(stretches.data(), static_cast<int32_t>(stretches.size()));
        const auto sums = kernel_gaps(samples, loss, shift.data(), gap_of.data(), free.data(), lengths, poll);
        std::copy(lengths.saved.begin(), lengths.saved.end(), savings.data());
        return sums;
    });
}

template <class T>
AscentStats ascend(Matrix<T> gram, Vector<int64_t> row, Vector<int64_t> column, WritableMatrix<T> F,
                   WritableMatrix<double> alpha, const Problem& problem, Vector<double> curvature,
                   WritableVector<double> b, WritableVector<double> tot, double t, Vector<double> stretches,
                   Vector<double> savings, double norm, double target, int64_t max_iter, uint64_t seed,
                   const KernelAscentTuning& tuning) {
    const bool own = row.shape(0) == 0 && gram.shape(0) == alpha.shape(0);  // in the order of the samples
    const auto samples = view(F, alpha, problem, own ? nullptr : column.data());
    require(gram.shape(1) == F.shape(1), "gram does not fit F");
    require(own || row.shape(0) == alpha.shape(0), "row does not fit alpha");
    require(column.shape(0) == row.shape(0), "column does not fit row");
    require_places(row, gram.shape(0), "row is not in gram");
    require_places(column, gram.shape(1), "column is not in gram");
    require(curvature.shape(0) == alpha.shape(0), "curvature does not fit alpha");
    require(b.shape(0) == F.shape(0) && tot.shape(0) == F.shape(0), "b or tot does not fit F");
    require(stretches.size() == savings.size(), "savings does not fit stretches");
    nb::gil_scoped_release unlocked;
    InterruptPoll poll(poll_python);
    return with_loss(problem, problem.cap.data(), false, [&](const auto& loss) {
        StretchSavings lengths(stretches.data(), static_cast<int32_t>(stretches.size()));
        lengths.saved.assign(savings.data(), savings.data() + savings.size());
        KernelAscent ascent(samples, loss, gram.data(), own ? nullptr : row.data(), curvature.data(), b.data(),
                            tot.data(), t, lengths, norm, seed, poll, tuning);
        return ascent.run(target, max_iter);
    });
}

template <class T>
void circulation(WritableMatrix<T> F, WritableMatrix<double> alpha, const Problem& problem, Vector<double> shift) {
    const auto samples = view(F, alpha, problem);
    require(shift.shape(0) == F.shape(0), "shift does not fit F");
    nb::gil_scoped_release unlocked;
    InterruptPoll poll(poll_python);
    with_loss(problem, problem.cap.data(), false,
              [&](const auto& loss) { kernel_circulation(samples, loss, shift.data(), poll); });
}

template <class T>
void bind_type(nb::module_& m) {
    m.def("kernel_gaps", gaps<T>, "F"_a.noconvert(), "alpha"_a.noconvert(), "problem"_a, nb::kw_only(), "shift"_a,
          "gap_of"_a.noconvert(), "free"_a.noconvert(), "stretches"_a, "savings"_a.noconvert());
    m.def("kernel_ascent", ascend<T>, "gram"_a.noconvert(), "row"_a, "column"_a, "F"_a.noconvert(),
          "alpha"_a.noconvert(), "problem"_a, nb::kw_only(), "curvature"_a, "b"_a.noconvert(), "tot"_a.noconvert(),
          "t"_a, "stretches"_a, "savings"_a, "norm"_a, "target"_a, "max_iter"_a, "seed"_a,
          "tuning"_a = KernelAscentTuning());
    m.def("kernel_circulation", circulation<T>, "F"_a.noconvert(), "alpha"_a.noconvert(), "problem"_a, "shift"_a);
}

}  // namespace

void bind_kernel(nb::module_& m) {
    nb::class_<GapSums>(m, "GapSums", "Sums over samples: P = product/2 + value, D = dual - product/2.")
        .def_ro("gap", &GapSums::gap)
        .def_ro("value", &GapSums::value)
        .def_ro("dual", &GapSums::dual)
        .def_ro("product", &GapSums::product);
    nb::class_<AscentStats>(m, "AscentStats", "What a run on a working set did.")
        .def_ro("gap", &AscentStats::gap)
        .def_ro("n_iter", &AscentStats::passes)
        .def_ro("n_updates", &AscentStats::updates);
    bind_type<float>(m);
    bind_type<double>(m);
}

// Python face of kernel/samples.hpp; every function takes float32 or float64 arrays and releases the interpreter lock.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <stdexcept>
#include <string>
#include <tuple>

#include "base/arrays.hpp"
#include "kernel/block_ascent.hpp"
#include "kernel/samples.hpp"
#include "losses/hinge.hpp"
#include "losses/odm.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// Unlike those of base/arrays.hpp, these may be written where T is not const.
template <class T> using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void require(bool fits, const char* what) {
    if (!fits) throw std::invalid_argument(std::string("kernel core: ") + what);
}

// Which loss: "max" Crammer-Singer, "sum" Weston-Watkins, "top" the K largest hinges, "band" the optimal margin
// distribution machine (mu, theta, the rivals of its upper part).
using LossName = std::tuple<std::string, int32_t, double, double, Vector<const int32_t>>;

// Calls f with the loss of that name.
template <class F>
auto with_loss(const LossName& named, const Vector<const int32_t>& y, int32_t k, const double* cap, F f) {
    const auto& [name, top_k, mu, theta, rival] = named;
    using skm::Hinge, skm::HingeLoss;
    if (name == "max") return f(HingeLoss<Hinge::max>(cap, top_k));
    if (name == "sum") return f(HingeLoss<Hinge::sum>(cap, top_k));
    if (name == "top") return f(HingeLoss<Hinge::top>(cap, top_k));
    if (name == "band") {
        require(mu == 0 || rival.shape(0) == y.shape(0), "one rival is needed for each sample");
        for (size_t i = 0; i < rival.shape(0); ++i)
            require(rival(i) >= 0 && rival(i) < k && rival(i) != y(i), "a rival must be another class of 0..k-1");
        return f(skm::OdmLoss(cap, mu, theta, rival.data()));
    }
    throw std::invalid_argument("kernel core: unknown loss " + name);
}

template <class T>
skm::KernelSamples<T> view(Matrix<T> F, Matrix<double> alpha, Vector<const int32_t> y, Vector<const double> cap,
                           const int64_t* column = nullptr) {
    const int64_t n = static_cast<int64_t>(alpha.shape(0));
    const int32_t k = static_cast<int32_t>(alpha.shape(1));
    require(F.shape(0) == alpha.shape(1) && F.shape(1) >= alpha.shape(0), "F does not fit alpha");
    require(y.shape(0) == alpha.shape(0) && cap.shape(0) == alpha.shape(0), "y or cap does not fit alpha");
    return {F.data(), static_cast<int64_t>(F.shape(1)), alpha.data(), y.data(), n, k, column};
}

void require_places(Vector<const int64_t> place, size_t size, const char* what) {
    for (size_t i = 0; i < place.shape(0); ++i) require(place(i) >= 0 && static_cast<size_t>(place(i)) < size, what);
}

template <class T>
std::tuple<double, double, double, double> gaps(Matrix<T> F, Matrix<double> alpha, Vector<const int32_t> y,
                                                Vector<const double> cap, Vector<const double> shift, Vector<double> g,
                                                Vector<uint8_t> free, Vector<const double> longer, Vector<double> saved,
                                                const LossName& loss) {
    const auto samples = view(F, alpha, y, cap);
    require(shift.shape(0) == F.shape(0) && g.shape(0) == y.shape(0) && free.shape(0) == y.shape(0), "shapes of g");
    require(longer.shape(0) == saved.shape(0), "saved does not fit longer");
    nb::gil_scoped_release unlocked;
    skm::InterruptPoll poll(skm::poll_python);
    return with_loss(loss, y, static_cast<int32_t>(alpha.shape(1)), cap.data(), [&](const auto& l) {
        skm::StretchedLosses lengths(longer.data(), static_cast<int32_t>(longer.shape(0)));
        const auto sums = skm::kernel_gaps(samples, l, shift.data(), g.data(), free.data(), lengths, poll);
        std::copy(lengths.saved.begin(), lengths.saved.end(), saved.data());
        return std::make_tuple(sums.gap, sums.value, sums.dual, sums.product);
    });
}

template <class T>
std::tuple<double, int64_t, int64_t> ascend(Matrix<const T> gram, Vector<const int64_t> row,
                                            Vector<const int64_t> column, Matrix<T> F, Matrix<double> alpha,
                                            Vector<const int32_t> y, Vector<const double> cap,
                                            Vector<const double> curvature, Vector<double> b, Vector<double> tot,
                                            double t, Vector<const double> longer, Vector<const double> saved,
                                            double norm, double target, int64_t max_passes, uint64_t seed,
                                            const LossName& loss) {
    const bool own = row.shape(0) == 0 && gram.shape(0) == alpha.shape(0);  // in the order of the samples
    const auto samples = view(F, alpha, y, cap, own ? nullptr : column.data());
    require(gram.shape(1) == F.shape(1), "gram does not fit F");
    require(own || row.shape(0) == alpha.shape(0), "row does not fit alpha");
    require(column.shape(0) == row.shape(0), "column does not fit row");
    require_places(row, gram.shape(0), "row is not in gram");
    require_places(column, gram.shape(1), "column is not in gram");
    require(curvature.shape(0) == alpha.shape(0), "curvature does not fit alpha");
    require(b.shape(0) == F.shape(0) && tot.shape(0) == F.shape(0), "b or tot does not fit F");
    require(longer.shape(0) == saved.shape(0), "saved does not fit longer");
    nb::gil_scoped_release unlocked;
    skm::InterruptPoll poll(skm::poll_python);
    return with_loss(loss, y, static_cast<int32_t>(alpha.shape(1)), cap.data(), [&](const auto& l) {
        skm::StretchedLosses lengths(longer.data(), static_cast<int32_t>(longer.shape(0)));
        lengths.saved.assign(saved.data(), saved.data() + saved.shape(0));
        skm::KernelAscent ascent(samples, l, gram.data(), own ? nullptr : row.data(), curvature.data(), b.data(),
                                 tot.data(), t, lengths, norm, seed, poll);
        const auto r = ascent.run(target, max_passes);
        return std::make_tuple(r.gap, r.passes, r.updates);
    });
}

template <class T>
void add(Matrix<T> F, Matrix<const T> store, Vector<const int64_t> slot, Matrix<const double> coef, bool careful) {
    require(store.shape(1) == F.shape(1), "store does not fit F");
    require(coef.shape(0) == slot.shape(0) && coef.shape(1) == F.shape(0), "coef does not fit slot and F");
    nb::gil_scoped_release unlocked;
    skm::InterruptPoll poll(skm::poll_python);
    skm::kernel_add(F.data(), static_cast<int64_t>(F.shape(1)), static_cast<int32_t>(F.shape(0)), store.data(),
                    slot.data(), static_cast<int64_t>(slot.shape(0)), coef.data(), careful, poll);
}

template <class T>
void gather(Matrix<const T> store, Vector<const int64_t> slot, Vector<const int64_t> column, Matrix<T> out) {
    require(out.shape(0) == slot.shape(0) && out.shape(1) >= column.shape(0), "out does not fit slot and column");
    nb::gil_scoped_release unlocked;
    skm::InterruptPoll poll(skm::poll_python);
    skm::kernel_gather(store.data(), static_cast<int64_t>(store.shape(1)), slot.data(), column.data(),
                       static_cast<int64_t>(slot.shape(0)), static_cast<int64_t>(column.shape(0)), out.data(),
                       static_cast<int64_t>(out.shape(1)), poll);
}

template <class T>
void scatter(Matrix<const T> values, Vector<const int64_t> column, Matrix<T> out) {
    require(values.shape(0) == out.shape(0) && values.shape(1) == column.shape(0), "values do not fit column and out");
    require_places(column, out.shape(1), "column is not in out");
    nb::gil_scoped_release unlocked;
    skm::InterruptPoll poll(skm::poll_python);
    skm::kernel_scatter(values.data(), column.data(), static_cast<int64_t>(out.shape(0)),
                        static_cast<int64_t>(column.shape(0)), out.data(), static_cast<int64_t>(out.shape(1)), poll);
}

template <class T>
void mirror(Matrix<const T> store, Vector<const int64_t> slot, Vector<const int64_t> kept, Vector<const int64_t> sample,
            Matrix<T> out) {
    require(slot.shape(0) == kept.shape(0), "slot does not fit kept");
    require(out.shape(0) == sample.shape(0) && out.shape(1) == store.shape(1), "out does not fit sample and store");
    require_places(slot, store.shape(0), "slot is not in store");
    require_places(kept, store.shape(1), "kept is not in store");
    require_places(sample, store.shape(1), "sample is not in store");
    nb::gil_scoped_release unlocked;
    skm::InterruptPoll poll(skm::poll_python);
    skm::kernel_mirror(store.data(), static_cast<int64_t>(store.shape(1)), slot.data(), kept.data(),
                       static_cast<int64_t>(kept.shape(0)), sample.data(), static_cast<int64_t>(sample.shape(0)),
                       out.data(), poll);
}

template <class S, class T>
void centre(Matrix<const S> X, Vector<const int64_t> row, Vector<const double> centre, Matrix<T> out, Vector<T> norms) {
    require(X.shape(1) == out.shape(1) && X.shape(1) == centre.shape(0), "out or centre does not fit X");
    require(row.shape(0) == out.shape(0) && row.shape(0) == norms.shape(0), "row or norms does not fit out");
    require_places(row, X.shape(0), "row is not in X");
    nb::gil_scoped_release unlocked;
    skm::InterruptPoll poll(skm::poll_python);
    skm::kernel_centre(X.data(), static_cast<int64_t>(X.shape(1)), row.data(), static_cast<int64_t>(row.shape(0)),
                       centre.data(), out.data(), norms.data(), poll);
}

template <class T>
void make_circulation(Matrix<T> F, Matrix<double> alpha, Vector<const int32_t> y, Vector<const double> cap,
                      Vector<const double> shift, const LossName& loss) {
    const auto samples = view(F, alpha, y, cap);
    require(shift.shape(0) == F.shape(0), "shift does not fit F");
    nb::gil_scoped_release unlocked;
    skm::InterruptPoll poll(skm::poll_python);
    with_loss(loss, y, static_cast<int32_t>(alpha.shape(1)), cap.data(),
              [&](const auto& l) { skm::kernel_circulation(samples, l, shift.data(), poll); });
}

// Inner products to values of the RBF kernel, in place; the rows may be part of longer ones.
template <class T>
void rbf(nb::ndarray<T, nb::ndim<2>, nb::device::cpu> rows, Vector<const T> row_norms, Vector<const T> column_norms,
         double gamma) {
    require(row_norms.shape(0) == rows.shape(0) && column_norms.shape(0) == rows.shape(1), "norms do not fit rows");
    require(rows.stride(1) == 1, "the numbers of a row are not beside each other");
    nb::gil_scoped_release unlocked;
    skm::InterruptPoll poll(skm::poll_python);
    const int64_t n = static_cast<int64_t>(rows.shape(1));
    for (size_t i = 0; i < rows.shape(0); ++i) {
        skm::simd<T>().rbf(rows.data() + static_cast<int64_t>(i) * rows.stride(0), n, column_norms.data(),
                           row_norms.data()[i], static_cast<T>(gamma));
        poll.count_work(4.0 * static_cast<double>(n));
    }
}

template <class T>
void bind_type(nb::module_& m) {
    m.def("kernel_gaps", gaps<T>, "F"_a.noconvert(), "alpha"_a.noconvert(), "y"_a, "cap"_a, "shift"_a,
          "g"_a.noconvert(), "free"_a.noconvert(), "longer"_a, "saved"_a.noconvert(), "loss"_a);
    m.def("kernel_ascent", ascend<T>, "gram"_a.noconvert(), "row"_a, "column"_a, "F"_a.noconvert(),
          "alpha"_a.noconvert(), "y"_a, "cap"_a, "curvature"_a, "b"_a.noconvert(), "tot"_a.noconvert(), "t"_a,
          "longer"_a, "saved"_a, "norm"_a, "target"_a, "max_passes"_a, "seed"_a, "loss"_a);
    m.def("kernel_balance", make_circulation<T>, "F"_a.noconvert(), "alpha"_a.noconvert(), "y"_a, "cap"_a, "shift"_a,
          "loss"_a);
    m.def("kernel_add", add<T>, "F"_a.noconvert(), "store"_a.noconvert(), "slot"_a, "coef"_a, "careful"_a);
    m.def("kernel_gather", gather<T>, "store"_a.noconvert(), "slot"_a, "column"_a, "out"_a.noconvert());
    m.def("kernel_scatter", scatter<T>, "values"_a.noconvert(), "column"_a, "out"_a.noconvert());
    m.def("kernel_mirror", mirror<T>, "store"_a.noconvert(), "slot"_a, "kept"_a, "sample"_a, "out"_a.noconvert());
    m.def("kernel_centre", centre<float, T>, "X"_a.noconvert(), "row"_a, "centre"_a, "out"_a.noconvert(),
          "norms"_a.noconvert());
    m.def("kernel_centre", centre<double, T>, "X"_a.noconvert(), "row"_a, "centre"_a, "out"_a.noconvert(),
          "norms"_a.noconvert());
    m.def("kernel_rbf", rbf<T>, "rows"_a.noconvert(), "row_norms"_a.noconvert(), "column_norms"_a.noconvert(),
          "gamma"_a);
}

}  // namespace

void bind_kernel(nb::module_& m) {
    bind_type<float>(m);
    bind_type<double>(m);
}

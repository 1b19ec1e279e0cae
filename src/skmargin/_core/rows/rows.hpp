// Views of the rows of X, dense or CSR, and the layout of W that suits each.
//
// What a view must have is the concept RowView below; views of rows in memory also have product(i, j) = x_i'x_j.
// Dense rows want W class-major (a visit needs two or three classes: as many contiguous inner products), unless they
// are so short that the sum over a vector takes longer than the products in it; sparse rows want it feature-major (a
// stored number touches one short contiguous run).
#pragma once
#include <algorithm>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "simd/simd.hpp"

namespace skm {

// A view of n rows for k classes.  W is memory of weights_size() numbers of type T, in a layout that only the view
// knows.
template <class Rows>
concept RowView = requires(const Rows rows, typename Rows::T* W, int64_t i, const int32_t* cls, int32_t m, double* out,
                           const double* in) {
    { rows.n } -> std::convertible_to<int64_t>;
    { rows.k } -> std::convertible_to<int32_t>;
    { rows.cost(i) } -> std::convertible_to<double>;          // multiply-adds of row i with one class
    { rows.squared_norm(i) } -> std::convertible_to<double>;  // ||x_i||^2
    rows.scores_all(W, i, out);                               // out[l] = w_l'x_i for all classes
    rows.add(W, i, cls, m, in);                               // w_l += in[j] x_i for l = cls[j], j < m
};

// What block ascent asks of a view besides.
template <class Rows>
concept BlockRows = RowView<Rows> && requires(const Rows rows, typename Rows::T* W, int64_t i, const int32_t* cls,
                                              int32_t m, double* out, const double* v) {
    { rows.d } -> std::convertible_to<int64_t>;
    { rows.weights_size() } -> std::convertible_to<int64_t>;
    rows.scores(W, i, cls, m, out);                       // the same for some classes
    { rows.inner(i, v) } -> std::convertible_to<double>;  // x_i'v
    rows.prefetch(i);                                     // row i is needed soon
};

// Zeroed memory aligned to a cache line.
template <class T>
class Buffer {
  public:
    explicit Buffer(int64_t size)
        : size_(size), data_(static_cast<T*>(::operator new(sizeof(T) * (size + 1), std::align_val_t(64)))) {
        clear();
    }
    Buffer(Buffer&& other) noexcept
        : size_(std::exchange(other.size_, 0)), data_(std::exchange(other.data_, nullptr)) {}
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(size_, other.size_);
        std::swap(data_, other.data_);
        return *this;
    }
    ~Buffer() { ::operator delete(data_, std::align_val_t(64)); }
    void clear() { std::memset(data_, 0, sizeof(T) * size_); }
    T* data() { return data_; }
    const T* data() const { return data_; }
    int64_t size() const { return size_; }

  private:
    int64_t size_;
    T* data_;
};

inline int64_t rounded_up(int64_t size, int64_t multiple) { return (size + multiple - 1) / multiple * multiple; }

constexpr double visit_overhead = 128;  // multiply-adds that a visit costs besides its products (measured)

// The sum of term(0), .., term(size - 1), eight sums at a time: one alone would wait for each addition.
template <class Term>
double summed(int64_t size, Term term) {
    double s[8] = {};
    int64_t j = 0;
    for (; j + 8 <= size; j += 8)
        for (int r = 0; r < 8; ++r) s[r] += term(j + r);
    for (; j < size; ++j) s[0] += term(j);
    return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

template <class Number>
class DenseRows {
  public:
    using T = Number;
    // Rows of d numbers, `stride` apart.
    DenseRows(const T* X, int64_t n, int64_t d, int64_t stride, int32_t k)
        : n(n), d(d), k(k), X_(X), stride_(stride), simd_(simd<T>()) {
        const int64_t padded = rounded_up(k, simd_.lanes);
        by_feature_ = padded <= on_stack && padded * d <= std::min(k, 3) * (d + sum_of_lanes * simd_.lanes);
        ld_ = by_feature_ ? padded : rounded_up(d, 64 / sizeof(T));
    }

    int64_t weights_size() const { return ld_ * (by_feature_ ? d : k); }
    // Multiply-adds of one class, with the overhead of a visit.
    double cost(int64_t) const { return static_cast<double>(d) + visit_overhead; }

    void scores(const T* W, int64_t i, const int32_t* cls, int32_t m, double* f) const {
        if (!by_feature_) return simd_.dots(row(i), d, W, ld_, cls, m, f);
        T all[on_stack];
        simd_.scores_all(row(i), d, W, ld_, all);
        for (int32_t j = 0; j < m; ++j) f[j] = all[cls[j]];
    }
    void scores_all(const T* W, int64_t i, double* f) const {
        if (!by_feature_) return simd_.dots_all(row(i), d, W, ld_, k, f);
        T all[on_stack];
        simd_.scores_all(row(i), d, W, ld_, all);
        for (int32_t l = 0; l < k; ++l) f[l] = all[l];
    }
    void add(T* W, int64_t i, const int32_t* cls, int32_t m, const double* coef) const {
        if (!by_feature_) return simd_.axpys(row(i), d, W, ld_, cls, m, coef);
        T all[on_stack];
        std::memset(all, 0, sizeof(T) * ld_);
        for (int32_t j = 0; j < m; ++j) all[cls[j]] = static_cast<T>(coef[j]);
        simd_.add_all(row(i), d, W, ld_, all);
    }
    void prefetch(int64_t i) const {
#if defined(__GNUC__) || defined(__clang__)
        const char* p = reinterpret_cast<const char*>(row(i));
        const int64_t bytes = d * static_cast<int64_t>(sizeof(T));
        for (int64_t b = 0; b < bytes && b < 2048; b += 64) __builtin_prefetch(p + b);
#else
        (void)i;
#endif
    }
    double squared_norm(int64_t i) const { return product(i, i); }
    double inner(int64_t i, const double* v) const {
        const T* x = row(i);
        return summed(d, [=](int64_t j) { return x[j] * v[j]; });
    }
    double product(int64_t i, int64_t other) const {
        const T *x = row(i), *z = row(other);
        return summed(d, [=](int64_t j) { return static_cast<double>(x[j]) * z[j]; });
    }
    T& weight(T* W, int32_t l, int64_t j) const { return by_feature_ ? W[j * ld_ + l] : W[l * ld_ + j]; }
    T weight(const T* W, int32_t l, int64_t j) const { return by_feature_ ? W[j * ld_ + l] : W[l * ld_ + j]; }
    // V += x_i coef' in double precision, whatever the rows': k vectors of d numbers, of which `place` says where.
    void accumulate(double* V, int64_t i, const int32_t* cls, int32_t m, const double* coef) const {
        const T* x = row(i);
        for (int32_t c = 0; c < m; ++c) {
            double* v = V + cls[c] * d;
            for (int64_t j = 0; j < d; ++j) v[j] += coef[c] * static_cast<double>(x[j]);
        }
    }
    int64_t place(int32_t l, int64_t j) const { return l * d + j; }
    // Whether it costs little beside the rows to add up all of V now and then.
    static constexpr bool batches() { return true; }

    const int64_t n, d;
    const int32_t k;

  private:
    const T* row(int64_t i) const { return X_ + i * stride_; }
    static constexpr int64_t on_stack = 64, sum_of_lanes = 12;  // the latter in multiply-adds of a vector (measured)
    const T* X_;
    int64_t stride_, ld_;
    const Simd<T>& simd_;
    bool by_feature_;
};

// The index arrays of CSR rows, of 32 or 64 bits: the pair that is not used is null.  The type is chosen at each row,
// not by a template: the solvers are compiled half as often, and one branch a row costs nothing beside its loop.
class CsrIndices {
  public:
    CsrIndices(const int32_t* indptr, const int32_t* indices) : indptr32_(indptr), indices32_(indices) {}
    CsrIndices(const int64_t* indptr, const int64_t* indices) : indptr64_(indptr), indices64_(indices) {}

    int64_t begin(int64_t i) const { return indptr64_ ? indptr64_[i] : indptr32_[i]; }
    int64_t size(int64_t i) const { return begin(i + 1) - begin(i); }
    bool wide() const { return indptr64_ != nullptr; }
    // The columns of row i.
    const int32_t* narrow_columns(int64_t i) const { return indices32_ + indptr32_[i]; }
    const int64_t* wide_columns(int64_t i) const { return indices64_ + indptr64_[i]; }

  private:
    const int32_t *indptr32_ = nullptr, *indices32_ = nullptr;
    const int64_t *indptr64_ = nullptr, *indices64_ = nullptr;
};

template <class Number>
class SparseRows {
  public:
    using T = Number;
    SparseRows(const CsrIndices& indices, const T* values, int64_t n, int64_t d, int32_t k)
        : n(n), d(d), k(k), at_(indices), values_(values), narrow_(sparse_simd<T, int32_t>()),
          wide_(sparse_simd<T, int64_t>()), ld_(rounded_up(k, narrow_.lanes)) {
        const int64_t vectors = ld_ / narrow_.lanes;
        if (vectors <= 2) few_read_ = vectors == 1 ? 1 : 3, few_written_ = vectors == 1 ? 1 : 4;
    }

    int64_t weights_size() const { return ld_ * d; }
    double cost(int64_t i) const { return 2.0 * static_cast<double>(nnz(i)) + visit_overhead; }

    void scores(const T* W, int64_t i, const int32_t* cls, int32_t m, double* f) const {
        if (m <= few_read_) {
            with_columns(i, [&](const auto& simd, const auto* columns) {
                simd.scores(columns, val(i), nnz(i), W, ld_, cls, m, f);
            });
        } else {
            T small[on_stack], *all = buffer(small);
            all_scores(W, i, all);
            for (int32_t j = 0; j < m; ++j) f[j] = all[cls[j]];
        }
    }
    void scores_all(const T* W, int64_t i, double* f) const {
        T small[on_stack], *all = buffer(small);
        all_scores(W, i, all);
        for (int32_t l = 0; l < k; ++l) f[l] = all[l];
    }
    void add(T* W, int64_t i, const int32_t* cls, int32_t m, const double* coef) const {
        if (m <= few_written_) {
            with_columns(i, [&](const auto& simd, const auto* columns) {
                simd.add(columns, val(i), nnz(i), W, ld_, cls, m, coef);
            });
        } else {
            T small[on_stack], *all = buffer(small);
            std::memset(all, 0, sizeof(T) * ld_);
            for (int32_t j = 0; j < m; ++j) all[cls[j]] = static_cast<T>(coef[j]);
            with_columns(
                i, [&](const auto& simd, const auto* columns) { simd.add_all(columns, val(i), nnz(i), W, ld_, all); });
        }
    }
    void prefetch(int64_t i) const {
#if defined(__GNUC__) || defined(__clang__)
        const int64_t stored = nnz(i);
        with_columns(i, [&](const auto&, const auto* columns) {
            for (int64_t p = 0; p < stored && p < 128; p += 64 / static_cast<int64_t>(sizeof(*columns)))
                __builtin_prefetch(columns + p);
        });
        for (int64_t p = 0; p < stored && p < 128; p += 64 / static_cast<int64_t>(sizeof(T)))
            __builtin_prefetch(val(i) + p);
#else
        (void)i;
#endif
    }
    double squared_norm(int64_t i) const {
        const T* x = val(i);
        return summed(nnz(i), [=](int64_t p) { return static_cast<double>(x[p]) * x[p]; });
    }
    double inner(int64_t i, const double* v) const {
        const T* x = val(i);
        return with_columns(
            i, [&](const auto&, const auto* at) { return summed(nnz(i), [=](int64_t p) { return x[p] * v[at[p]]; }); });
    }
    double product(int64_t i, int64_t j) const {
        double s = 0;
        with_columns(i, [&](const auto&, const auto* at) {
            const auto* other = at - at_.begin(i) + at_.begin(j);
            for (int64_t p = 0, q = 0; p < nnz(i) && q < nnz(j);) {
                const auto a = at[p], b = other[q];
                if (a == b) s += static_cast<double>(val(i)[p]) * val(j)[q];
                p += a <= b;
                q += b <= a;
            }
        });
        return s;
    }
    T& weight(T* W, int32_t l, int64_t j) const { return W[j * ld_ + l]; }
    T weight(const T* W, int32_t l, int64_t j) const { return W[j * ld_ + l]; }
    void accumulate(double* V, int64_t i, const int32_t* cls, int32_t m, const double* coef) const {
        with_columns(i, [&](const auto&, const auto* columns) {
            for (int64_t p = 0; p < nnz(i); ++p) {
                double* v = V + static_cast<int64_t>(columns[p]) * k;
                const double x = static_cast<double>(val(i)[p]);
                for (int32_t c = 0; c < m; ++c) v[cls[c]] += coef[c] * x;
            }
        });
    }
    int64_t place(int32_t l, int64_t j) const { return j * k + l; }
    static constexpr bool batches() { return false; }

    const int64_t n, d;
    const int32_t k;

  private:
    // Calls f(vector loops, columns of row i) for the type of the indices.
    template <class F>
    auto with_columns(int64_t i, F f) const {
        return at_.wide() ? f(wide_, at_.wide_columns(i)) : f(narrow_, at_.narrow_columns(i));
    }
    void all_scores(const T* W, int64_t i, T* all) const {
        with_columns(
            i, [&](const auto& simd, const auto* columns) { simd.scores_all(columns, val(i), nnz(i), W, ld_, all); });
    }
    const T* val(int64_t i) const { return values_ + at_.begin(i); }
    int64_t nnz(int64_t i) const { return at_.size(i); }
    // A buffer of one number a class: `small` where it is large enough.
    T* buffer(T* small) const {
        if (ld_ <= on_stack) return small;
        thread_local std::vector<T> large;
        if (static_cast<int64_t>(large.size()) < ld_) large.resize(ld_);
        return large.data();
    }
    static constexpr int64_t on_stack = 64;
    const CsrIndices at_;
    const T* values_;
    const SparseSimd<T, int32_t>& narrow_;
    const SparseSimd<T, int64_t>& wide_;
    int64_t ld_;
    // Up to so many classes single numbers of W are read or written faster than whole vectors of classes.
    int32_t few_read_ = 5, few_written_ = 8;
};

static_assert(RowView<DenseRows<double>> && RowView<SparseRows<float>>);

}  // namespace skm

// Rows of any kind behind one interface.
//
// A solver that is written against AnyRows is compiled once, not once for each kind of rows and each number type.  A
// virtual call takes a nanosecond or two, a visit of a row a hundred times as long.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "rows/rows.hpp"

namespace skm {

class AnyRows {
  public:
    using Weights = Buffer<std::byte>;  // W in the number type and the layout of the rows

    AnyRows(int64_t n, int64_t d, int32_t k, bool by_feature) : n(n), d(d), k(k), by_feature_(by_feature) {}
    virtual ~AnyRows() = default;

    // See RowView and BlockRows.
    virtual double cost(int64_t i) const = 0;
    virtual double squared_norm(int64_t i) const = 0;
    virtual double inner(int64_t i, const double* v) const = 0;
    virtual void scores(const Weights& W, int64_t i, const int32_t* cls, int32_t m, double* out) const = 0;
    virtual void scores_all(const Weights& W, int64_t i, double* out) const = 0;
    virtual void add(Weights& W, int64_t i, const int32_t* cls, int32_t m, const double* coef) const = 0;
    virtual void prefetch(int64_t i) const = 0;

    // Weights as a whole.
    virtual int64_t weights_size() const = 0;  // numbers
    virtual int64_t weights_bytes() const = 0;
    virtual void add_scaled(Weights& W, const Weights& other, double s) const = 0;  // W += s other
    virtual double weights_square(const Weights& W) const = 0;                      // the sum of all squares
    virtual void read(const Weights& W, double* out) const = 0;  // k vectors of d numbers; rows in memory only
    virtual bool double_precision() const = 0;

    // Rows in memory: x_i'x_j.  The inner products of kernel rows cost too much to be sampled.
    virtual bool has_products() const = 0;
    virtual double product(int64_t i, int64_t j) const = 0;

    // Rows in memory that can be summed in double precision: V += x_i coef', with number j of class l at place(l, j).
    virtual bool has_sums() const = 0;
    virtual void accumulate(double* V, int64_t i, const int32_t* cls, int32_t m, const double* coef) const = 0;
    int64_t place(int32_t l, int64_t j) const { return by_feature_ ? j * k + l : l * d + j; }
    virtual void assign(Weights& W, const double* V) const = 0;  // W = V
    virtual bool batches() const = 0;  // whether it costs little beside the rows to add up all of V now and then

    const int64_t n, d;
    const int32_t k;

  private:
    const bool by_feature_;  // sums
};

template <BlockRows View>
class RowsOf final : public AnyRows {
  public:
    explicit RowsOf(View view) : AnyRows(view.n, view.d, view.k, by_feature(view)), view_(std::move(view)) {}

    double cost(int64_t i) const override { return view_.cost(i); }
    double squared_norm(int64_t i) const override { return view_.squared_norm(i); }
    double inner(int64_t i, const double* v) const override { return view_.inner(i, v); }
    void scores(const Weights& W, int64_t i, const int32_t* cls, int32_t m, double* out) const override {
        view_.scores(numbers(W), i, cls, m, out);
    }
    void scores_all(const Weights& W, int64_t i, double* out) const override { view_.scores_all(numbers(W), i, out); }
    void add(Weights& W, int64_t i, const int32_t* cls, int32_t m, const double* coef) const override {
        view_.add(numbers(W), i, cls, m, coef);
    }
    void prefetch(int64_t i) const override { view_.prefetch(i); }

    int64_t weights_size() const override { return view_.weights_size(); }
    int64_t weights_bytes() const override { return weights_size() * static_cast<int64_t>(sizeof(T)); }
    void add_scaled(Weights& W, const Weights& other, double s) const override {
        const int64_t size = weights_size();
        T* w = numbers(W);
        const T *o = numbers(other), scale = static_cast<T>(s);
        for (int64_t j = 0; j < size; ++j) w[j] += scale * o[j];
    }
    double weights_square(const Weights& W) const override {
        const int64_t size = weights_size();
        const T* w = numbers(W);
        double s = 0;
        for (int64_t j = 0; j < size; ++j) s += static_cast<double>(w[j]) * w[j];
        return s;
    }
    void read(const Weights& W, double* out) const override {
        if constexpr (requires { view_.weight(numbers(W), 0, 0); })
            for (int32_t l = 0; l < k; ++l)
                for (int64_t j = 0; j < d; ++j) out[l * d + j] = view_.weight(numbers(W), l, j);
    }
    bool double_precision() const override { return sizeof(T) == sizeof(double); }

    bool has_products() const override {
        return requires { view_.product(0, 0); };
    }
    double product(int64_t i, int64_t j) const override {
        if constexpr (requires { view_.product(i, j); }) return view_.product(i, j);
        else return 0;
    }

    bool has_sums() const override { return sums; }
    void accumulate(double* V, int64_t i, const int32_t* cls, int32_t m, const double* coef) const override {
        if constexpr (sums) view_.accumulate(V, i, cls, m, coef);
    }
    void assign(Weights& W, const double* V) const override {
        if constexpr (sums) {
            T* w = numbers(W);
            if (by_feature(view_)) {
                for (int64_t j = 0; j < d; ++j)
                    for (int32_t l = 0; l < k; ++l) view_.weight(w, l, j) = static_cast<T>(V[place(l, j)]);
            } else {
                for (int32_t l = 0; l < k; ++l)
                    for (int64_t j = 0; j < d; ++j) view_.weight(w, l, j) = static_cast<T>(V[place(l, j)]);
            }
        }
    }
    bool batches() const override {
        if constexpr (sums) return View::batches();
        else return false;
    }

  private:
    using T = typename View::T;
    static constexpr bool sums = requires(const View view) { view.place(0, 0); };

    static bool by_feature(const View& view) {
        if constexpr (sums) return view.place(0, 1) != 1;
        else return false;
    }

    static T* numbers(Weights& W) { return reinterpret_cast<T*>(W.data()); }
    static const T* numbers(const Weights& W) { return reinterpret_cast<const T*>(W.data()); }

    const View view_;
};

}  // namespace skm

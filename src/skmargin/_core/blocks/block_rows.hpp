// Rows of a block as the pass over it reads them: a few at a time, centred, of one number type, with the constant
// feature behind the others.
//
// Whatever the user gave (float32 or float64, dense or CSR) is turned into rows of D numbers in the cache; there is
// never a copy of X.  Sparse rows are written out: this method is for few columns.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace skm {

// What is done to each row: x - mean, then the constant (none where it is zero).
struct Centring {
    const double* mean;   // d numbers
    const double* scale;  // d numbers: |(x - mean) scale| is the reach of a row, 1 for a typical one
    double constant;
    bool reaches;  // whether the reach of each row is asked for
};

template <class T>
class BlockReader {
  public:
    BlockReader(int64_t n, int64_t d, const Centring& centring)
        : n(n), d(d), D(d + (centring.constant != 0)), centring_(centring) {}
    virtual ~BlockReader() = default;

    // Rows at[0], .., at[count - 1] to `out`, D numbers each, and max(1, reach) of each.
    virtual void read(const int64_t* at, int64_t count, T* out, double* reach) const = 0;

    const int64_t n, d, D;

  protected:
    void finish(T* x, double square, double* reach) const {
        if (centring_.constant != 0) x[d] = static_cast<T>(centring_.constant);
        *reach = centring_.reaches ? std::max(1.0, std::sqrt(square)) : 1.0;
    }
    const Centring centring_;
};

template <class T, class Given>
class DenseBlock final : public BlockReader<T> {
  public:
    DenseBlock(const Given* X, int64_t n, int64_t d, const Centring& centring)
        : BlockReader<T>(n, d, centring), X_(X) {}

    void read(const int64_t* at, int64_t count, T* out, double* reach) const override {
        const auto& [mean, scale, constant, reaches] = this->centring_;
        const int64_t d = this->d;
        for (int64_t r = 0; r < count; ++r, out += this->D) {
            const Given* x = X_ + at[r] * d;
            for (int64_t j = 0; j < d; ++j)
                out[j] = static_cast<T>(static_cast<Wide>(x[j]) - static_cast<Wide>(mean[j]));
            double square = 0;
            if (reaches) {
                T parts[4] = {};
                int64_t j = 0;
                for (; j + 4 <= d; j += 4)
                    for (int s = 0; s < 4; ++s) {
                        const T v = out[j + s] * static_cast<T>(scale[j + s]);
                        parts[s] += v * v;
                    }
                for (; j < d; ++j) {
                    const T v = out[j] * static_cast<T>(scale[j]);
                    parts[0] += v * v;
                }
                square = static_cast<double>((parts[0] + parts[1]) + (parts[2] + parts[3]));
            }
            this->finish(out, square, reach + r);
        }
    }

  private:
    // In float32 alone the mean, which is such a number, makes no error of its own.
    using Wide = std::conditional_t<(sizeof(Given) > sizeof(T)), Given, T>;
    const Given* X_;
};

template <class T, class Given, class I>
class SparseBlock final : public BlockReader<T> {
  public:
    SparseBlock(const I* indptr, const I* indices, const Given* values, int64_t n, int64_t d, const Centring& centring)
        : BlockReader<T>(n, d, centring), indptr_(indptr), indices_(indices), values_(values) {
        const double* m = centring.mean;
        for (int64_t j = 0; j < d; ++j) empty_ += m[j] * centring.scale[j] * m[j] * centring.scale[j];
    }

    void read(const int64_t* at, int64_t count, T* out, double* reach) const override {
        const auto& [mean, scale, constant, reaches] = this->centring_;
        const int64_t d = this->d;
        for (int64_t r = 0; r < count; ++r, out += this->D) {
            for (int64_t j = 0; j < d; ++j) out[j] = static_cast<T>(-mean[j]);
            double square = empty_;
            for (I p = indptr_[at[r]]; p < indptr_[at[r] + 1]; ++p) {
                const int64_t j = static_cast<int64_t>(indices_[p]);
                const double x = values_[p], s = scale[j] * scale[j];
                square += s * x * (x - 2 * mean[j]);
                out[j] = static_cast<T>(x - mean[j]);
            }
            this->finish(out, std::max(0.0, square), reach + r);
        }
    }

  private:
    const I *indptr_, *indices_;
    const Given* values_;
    double empty_ = 0;
};

}  // namespace skm

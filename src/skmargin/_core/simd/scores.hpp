// Scores of many rows at once, and which class has the largest (products, labels, single of Simd); a part of
// simd/simd.cpp.
#pragma once
#include <limits>

#include "simd/vectors.hpp"

namespace skm {
namespace {

// Rows at once, each with an accumulator of its own, so that the latency is hidden; more would drive each other out of
// the cache where d is a power of two.
constexpr int strip = 8;
// Rows in a tile: enough for `fold`.
template <class T> constexpr int tile = lanes<T> > strip ? lanes<T> : strip;

// One vector of classes for each of R rows.
template <int R, class T, int Bytes>
SKMARGIN_INLINE void scores_of(const T* X, int64_t d, const T* W, int64_t ld, const T* b, Vec<T, Bytes>* f) {
    for (int r = 0; r < R; ++r) f[r] = Vec<T, Bytes>::load(b);
    for (int64_t j = 0; j < d; ++j) {
        const Vec<T, Bytes> w = Vec<T, Bytes>::load(W + j * ld);
        for (int r = 0; r < R; ++r) f[r].fma(Vec<T, Bytes>::all(X[r * d + j]), w);
    }
}

template <class T, int Bytes>
SKMARGIN_INLINE void tile_scores(const T* X, int64_t d, const T* W, int64_t ld, const T* b, Vec<T, Bytes>* f) {
    static_assert(tile<T> <= 2 * strip);
    scores_of<strip>(X, d, W, ld, b, f);
    if constexpr (tile<T> > strip) scores_of<strip>(X + strip * d, d, W, ld, b, f + strip);
}

template <int Bytes, class T>
void products_of(const T* X, int64_t rows, int64_t d, const T* W, int64_t ld, const T* b, T* out, int64_t stride) {
    int64_t i = 0;
    for (; i + strip <= rows; i += strip) {
        Vec<T, Bytes> f[strip];
        scores_of<strip>(X + i * d, d, W, ld, b, f);
        for (int r = 0; r < strip; ++r) f[r].store(out + (i + r) * stride);
    }
    for (; i < rows; ++i) {
        Vec<T, Bytes> f;
        scores_of<1>(X + i * d, d, W, ld, b, &f);
        f.store(out + i * stride);
    }
}

// The last classes first: what they write too much into the next row is written again.
template <class T>
void products(const T* X, int64_t rows, int64_t d, const T* W, int64_t ld, const T* b, T* out, int64_t stride) {
    int64_t l = ld / lanes<T> * lanes<T>;
    if (l < ld) products_of<narrow>(X, rows, d, W + l, ld, b + l, out + l, stride);
    for (l -= lanes<T>; l >= 0; l -= lanes<T>) products_of<bytes>(X, rows, d, W + l, ld, b + l, out + l, stride);
}

// N rows of N numbers are folded into one with a number a row: each step brings neighbours in two rows together, of
// which `meet` leaves one in the first.  Of longer rows each group of N numbers is folded for itself.
template <int N, int S = 1, class Row, class Meet>
SKMARGIN_INLINE void fold(Row* a, Meet meet) {
    for (int j = 0; j < N; j += 2 * S) {
        a[j].template exchange<S>(a[j + S]);
        meet(a[j], a[j + S]);
    }
    if constexpr (2 * S < N) fold<N, 2 * S>(a, meet);
}

// A single score: the features lie along the vectors, and those of a tile are summed up together.
template <class T>
SKMARGIN_INLINE void single_of(const T* X, int64_t d, const T* w, Vec<T>* f) {
    for (int r = 0; r < strip; ++r) f[r] = Vec<T>::all(0);
    for (int64_t j = 0; j < d; j += lanes<T>) {
        const Vec<T> part = Vec<T>::load(w + j);
        for (int r = 0; r < strip; ++r) f[r].fma(Vec<T>::load(X + r * d + j), part);
    }
}

template <class T>
void single(const T* X, int64_t rows, int64_t d, const T* w, T b, T* out) {
    constexpr int L = lanes<T>;
    for (int64_t i = 0; i < rows; i += tile<T>) {
        Vec<T> f[tile<T>];
        single_of(X + i * d, d, w, f);
        if constexpr (tile<T> > strip) single_of(X + (i + strip) * d, d, w, f + strip);
        for (int g = 0; g < tile<T>; g += L) {
            fold<L>(f + g, [](Vec<T>& first, Vec<T> second) { first.fma(second, Vec<T>::all(1)); });
            f[g].fma(Vec<T>::all(b), Vec<T>::all(1));
            f[g].store(out + i + g);
        }
    }
}

// Whether all numbers that it saw are finite: others leave NaN in a sum of zeros.  The factor is read from memory,
// since the compiler would take the sum for zero.
template <class T>
class Finite {
  public:
    void see(Vec<T> f) { sum_.fma(f, nothing_); }
    bool all() const {
        bool zero = true;
        for (int j = 0; j < lanes<T>; ++j) zero = zero && sum_[j] == 0;
        return zero;
    }

  private:
    const volatile T read_ = 0;
    Vec<T> nothing_ = Vec<T>::all(read_), sum_ = nothing_;
};

// Scores, and the names of their classes.
template <class T>
struct Named {
    Vec<T> score;
    typename Vec<T>::Places name;

    template <int S>
    void exchange(Named& b) {
        score.template exchange<S>(b.score);
        name.template exchange<S>(b.name);
    }
    void keep_larger(Named b) { score.keep_larger(b.score, b.name, name); }
};

// `Rest`: whether half a vector of classes is left beside the whole ones.  (As one function with both, the loop over
// the whole ones is a tenth slower.)
template <class T, bool Rest>
bool labels_of(const T* X, int64_t rows, int64_t d, const T* W, int64_t ld, const T* b, const Place<T>* names,
               Place<T>* out) {
    using Places = typename Vec<T>::Places;
    constexpr int L = lanes<T>, H = lanes<T, narrow>, groups = tile<T> / L;
    const auto meet = [](Named<T>& first, Named<T> second) { first.keep_larger(second); };
    Finite<T> finite;
    for (int64_t i = 0; i < rows; i += tile<T>) {
        Named<T> largest[groups];
        int64_t l = 0;
        for (; l + L <= ld; l += L) {
            Vec<T> f[tile<T>];
            tile_scores(X + i * d, d, W + l, ld, b + l, f);
            const Places of = Places::load(names + l);
            for (int g = 0; g < groups; ++g) {
                Named<T> row[L];
                for (int j = 0; j < L; ++j) row[j] = {f[g * L + j], of};
                fold<L>(row, meet);
                if (l == 0) largest[g] = row[0];
                else largest[g].keep_larger(row[0]);
            }
        }
        if constexpr (Rest) {
            Vec<T, narrow> f[tile<T>];
            tile_scores(X + i * d, d, W + l, ld, b + l, f);
            const auto half = Places::Half::load(names + l);
            const Places of = Places::join(half, half);
            for (int g = 0; g < groups; ++g) {
                Named<T> row[H];
                for (int j = 0; j < H; ++j) row[j] = {Vec<T>::join(f[g * L + j], f[g * L + H + j]), of};
                fold<H>(row, meet);
                if (l == 0) largest[g] = row[0];
                else largest[g].keep_larger(row[0]);
            }
        }
        for (int g = 0; g < groups; ++g) {
            finite.see(largest[g].score);
            largest[g].name.store(out + i + g * L);
        }
    }
    return finite.all();
}

template <class T>
bool labels(const T* X, int64_t rows, int64_t d, const T* W, int64_t ld, const T* b, const Place<T>* names,
            Place<T>* out) {
    if constexpr (narrow < bytes)
        if (ld % lanes<T> > 0) return labels_of<T, true>(X, rows, d, W, ld, b, names, out);
    return labels_of<T, false>(X, rows, d, W, ld, b, names, out);
}

}  // namespace
}  // namespace skm

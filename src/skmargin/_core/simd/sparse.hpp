// Loops over sparse rows and a feature-major W (SparseSimd), which serve short dense rows too; a part of simd/simd.cpp.
#pragma once
#include <limits>

#include "simd/vectors.hpp"

namespace skm {
namespace {

// The places of a row's numbers: an array of them, or for dense rows this.
struct Every {
    int64_t operator[](int64_t p) const { return p; }
};

template <class T>
struct PaddedRows {
    const T* W;
    int64_t ld;
    const T* at(int64_t j) const { return W + j * ld; }
};

template <class T>
struct PackedRows : Packed<T> {
    const T* at(int64_t j) const {
        if (static_cast<uint64_t>(j) < static_cast<uint64_t>(this->safe)) return this->W + j * this->k;
        const bool known = static_cast<uint64_t>(j) < static_cast<uint64_t>(this->d);
        return this->last + ((known ? j : this->d) - this->safe) * this->k;
    }
};

// Scores of V vectors of classes, from class l on: one sweep over the stored numbers of the row, accumulators in
// registers.  Where the vectors are few, U numbers of the row at once hide the latency.
template <class T, int V, class Places, class Weights>
void sparse_columns(Places idx, const T* val, int64_t nnz, const Weights& W, int64_t l, T* out) {
    constexpr int L = lanes<T>, U = V == 1 ? 4 : V <= 3 ? 2 : 1;
    constexpr int64_t ahead = 8;
    Vec<T> acc[U][V];
    for (int u = 0; u < U; ++u)
        for (int v = 0; v < V; ++v) acc[u][v] = Vec<T>::all(0);
    int64_t p = 0;
    for (; p + U <= nnz; p += U)
        for (int u = 0; u < U; ++u) {
            if (U == 1 && p + u + ahead < nnz) {
                const T* next = W.at(idx[p + u + ahead]) + l;
                for (int b = 0; b < V * bytes; b += 64) SKMARGIN_PREFETCH(reinterpret_cast<const char*>(next) + b);
            }
            const T* row = W.at(idx[p + u]) + l;
            const Vec<T> a = Vec<T>::all(val[p + u]);
            for (int v = 0; v < V; ++v) acc[u][v].fma(a, Vec<T>::load(row + v * L));
        }
    for (; p < nnz; ++p) {
        const T* row = W.at(idx[p]) + l;
        const Vec<T> a = Vec<T>::all(val[p]);
        for (int v = 0; v < V; ++v) acc[0][v].fma(a, Vec<T>::load(row + v * L));
    }
    for (int v = 0; v < V; ++v) {
        for (int u = 1; u < U; ++u) acc[0][v].fma(acc[u][v], Vec<T>::all(1));
        acc[0][v].store(out + l + v * L);
    }
}

template <class T, class Places, class Weights>
void all_columns(Places idx, const T* val, int64_t nnz, const Weights& W, int64_t vectors, T* out) {
    const int64_t blocks = (vectors + 11) / 12;
    for (int64_t b = 0, v = 0; b < blocks; ++b) {
        const int64_t V = (vectors - v + blocks - b - 1) / (blocks - b);  // blocks of nearly equal width
        const int64_t l = v * lanes<T>;
        switch (V) {
            case 1: sparse_columns<T, 1>(idx, val, nnz, W, l, out); break;
            case 2: sparse_columns<T, 2>(idx, val, nnz, W, l, out); break;
            case 3: sparse_columns<T, 3>(idx, val, nnz, W, l, out); break;
            case 4: sparse_columns<T, 4>(idx, val, nnz, W, l, out); break;
            case 5: sparse_columns<T, 5>(idx, val, nnz, W, l, out); break;
            case 6: sparse_columns<T, 6>(idx, val, nnz, W, l, out); break;
            case 7: sparse_columns<T, 7>(idx, val, nnz, W, l, out); break;
            case 8: sparse_columns<T, 8>(idx, val, nnz, W, l, out); break;
            case 9: sparse_columns<T, 9>(idx, val, nnz, W, l, out); break;
            case 10: sparse_columns<T, 10>(idx, val, nnz, W, l, out); break;
            case 11: sparse_columns<T, 11>(idx, val, nnz, W, l, out); break;
            default: sparse_columns<T, 12>(idx, val, nnz, W, l, out); break;
        }
        v += V;
    }
}

template <class T, class Places>
void scores_all(Places idx, const T* val, int64_t nnz, const T* W, int64_t ld, T* out) {
    all_columns(idx, val, nnz, PaddedRows<T>{W, ld}, ld / lanes<T>, out);
}

// A single score reads single numbers, with as many sums as hide the latency.
template <class T, class I>
T packed_single(const I* idx, const T* val, int64_t nnz, const T* w, int64_t d) {
    constexpr int U = 4;
    T sum[U] = {};
    const auto known = [=](int64_t p) { return static_cast<uint64_t>(idx[p]) < static_cast<uint64_t>(d); };
    int64_t p = 0;
    for (; p + U <= nnz; p += U) {
        if (!(known(p) && known(p + 1) && known(p + 2) && known(p + 3))) return std::numeric_limits<T>::quiet_NaN();
        for (int u = 0; u < U; ++u) sum[u] += val[p + u] * w[idx[p + u]];
    }
    for (; p < nnz; ++p) sum[0] += known(p) ? val[p] * w[idx[p]] : std::numeric_limits<T>::quiet_NaN();
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

template <class T, class I>
void packed_scores(const I* idx, const T* val, int64_t nnz, const Packed<T>& W, T* out) {
    if (W.k == 1) {
        *out = packed_single(idx, val, nnz, W.W, W.d);
        return;
    }
    all_columns(idx, val, nnz, PackedRows<T>{W}, (W.k + lanes<T> - 1) / lanes<T>, out);
}

// Scores of M single classes; two accumulators a class break the chain of dependent additions.
template <class T, class I, int M>
void sparse_gather(const I* idx, const T* val, int64_t nnz, const T* W, int64_t ld, const int32_t* cls, double* out) {
    T a[M] = {}, b[M] = {};
    int64_t p = 0;
    for (; p + 2 <= nnz; p += 2) {
        if (p + 12 < nnz) SKMARGIN_PREFETCH(W + static_cast<int64_t>(idx[p + 12]) * ld + cls[0]);
        const T* r = W + static_cast<int64_t>(idx[p]) * ld;
        const T* s = W + static_cast<int64_t>(idx[p + 1]) * ld;
        for (int j = 0; j < M; ++j) {
            a[j] += val[p] * r[cls[j]];
            b[j] += val[p + 1] * s[cls[j]];
        }
    }
    if (p < nnz)
        for (int j = 0; j < M; ++j) a[j] += val[p] * W[static_cast<int64_t>(idx[p]) * ld + cls[j]];
    for (int j = 0; j < M; ++j) out[j] = static_cast<double>(a[j]) + static_cast<double>(b[j]);
}

template <class T, class I>
void sparse_scores(const I* idx, const T* val, int64_t nnz, const T* W, int64_t ld, const int32_t* cls, int32_t m,
                   double* out) {
    int32_t j = 0;
    for (; j + 4 <= m; j += 4) sparse_gather<T, I, 4>(idx, val, nnz, W, ld, cls + j, out + j);
    if (m - j == 3) sparse_gather<T, I, 3>(idx, val, nnz, W, ld, cls + j, out + j);
    if (m - j == 2) sparse_gather<T, I, 2>(idx, val, nnz, W, ld, cls + j, out + j);
    if (m - j == 1) sparse_gather<T, I, 1>(idx, val, nnz, W, ld, cls + j, out + j);
}

template <class T, class I, int M>
void sparse_scatter(const I* idx, const T* val, int64_t nnz, T* W, int64_t ld, const int32_t* cls, const double* coef) {
    T c[M];
    for (int j = 0; j < M; ++j) c[j] = static_cast<T>(coef[j]);
    for (int64_t p = 0; p < nnz; ++p) {
        T* r = W + static_cast<int64_t>(idx[p]) * ld;
        for (int j = 0; j < M; ++j) r[cls[j]] += val[p] * c[j];
    }
}

template <class T, class I>
void sparse_add(const I* idx, const T* val, int64_t nnz, T* W, int64_t ld, const int32_t* cls, int32_t m,
                const double* coef) {
    int32_t j = 0;
    for (; j + 4 <= m; j += 4) sparse_scatter<T, I, 4>(idx, val, nnz, W, ld, cls + j, coef + j);
    if (m - j == 3) sparse_scatter<T, I, 3>(idx, val, nnz, W, ld, cls + j, coef + j);
    if (m - j == 2) sparse_scatter<T, I, 2>(idx, val, nnz, W, ld, cls + j, coef + j);
    if (m - j == 1) sparse_scatter<T, I, 1>(idx, val, nnz, W, ld, cls + j, coef + j);
}

template <class T, class Places>
void add_all(Places idx, const T* val, int64_t nnz, T* W, int64_t ld, const T* coef) {
    constexpr int L = lanes<T>;
    if (ld == L) {
        const Vec<T> c = Vec<T>::load(coef);
        for (int64_t p = 0; p < nnz; ++p) {
            T* r = W + static_cast<int64_t>(idx[p]) * ld;
            Vec<T> s = Vec<T>::load(r);
            s.fma(Vec<T>::all(val[p]), c);
            s.store(r);
        }
        return;
    }
    for (int64_t p = 0; p < nnz; ++p) {
        T* r = W + static_cast<int64_t>(idx[p]) * ld;
        const Vec<T> a = Vec<T>::all(val[p]);
        for (int64_t l = 0; l < ld; l += L) {
            Vec<T> s = Vec<T>::load(r + l);
            s.fma(a, Vec<T>::load(coef + l));
            s.store(r + l);
        }
    }
}

template <class T>
void dense_scores_all(const T* x, int64_t d, const T* W, int64_t ld, T* out) {
    scores_all(Every(), x, d, W, ld, out);
}

template <class T>
void dense_add_all(const T* x, int64_t d, T* W, int64_t ld, const T* coef) {
    add_all(Every(), x, d, W, ld, coef);
}

}  // namespace
}  // namespace skm

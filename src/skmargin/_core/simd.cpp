// The loops of simd.hpp for one instruction set (SKMARGIN_SIMD, set by the build together with the compiler flags).
// Nothing here may use a function template of the standard library: the linker could hand a copy compiled for
// AVX-512 to code that runs on an older machine.
#include "simd.hpp"

#include <limits>
#include <utility>

#if defined(__AVX512F__)
#define SKMARGIN_BYTES 64
#elif defined(__AVX__)
#define SKMARGIN_BYTES 32
#else
#define SKMARGIN_BYTES 16
#endif

#if defined(__GNUC__) || defined(__clang__)
#define SKMARGIN_PREFETCH(p) __builtin_prefetch(p)
#else
#define SKMARGIN_PREFETCH(p) ((void)(p))
#endif

namespace skm {
namespace {

constexpr int bytes = SKMARGIN_BYTES;
// Vectors for few classes, which would leave half of a wide one empty.
constexpr int narrow = bytes > 16 ? bytes / 2 : bytes;
template <class T, int Bytes = bytes> constexpr int lanes = Bytes / static_cast<int>(sizeof(T));

// One vector register.  GCC and Clang have it as a type; elsewhere a small array that the compiler unrolls.
#if defined(__GNUC__) || defined(__clang__)
template <class T, int Bytes = bytes>
struct Vec {
    typedef T reg __attribute__((vector_size(Bytes)));
    typedef T mem __attribute__((vector_size(Bytes), aligned(sizeof(T)), may_alias));
    reg v;
    static Vec load(const T* p) { return {*reinterpret_cast<const mem*>(p)}; }
    static Vec all(T s) { return {s - reg{}}; }
    void store(T* p) const { *reinterpret_cast<mem*>(p) = v; }
    void fma(Vec a, Vec b) { v += a.v * b.v; }
    void fms(Vec a, Vec b) { v -= a.v * b.v; }
    T operator[](int j) const { return v[j]; }

    // Half of the numbers, from `From` on, in turns with those of b.
    template <int From>
    Vec turns(Vec b) const {
        return turns<From>(b, std::make_integer_sequence<int, lanes<T, Bytes>>());
    }
    template <int From, int... J>
    Vec turns(Vec b, std::integer_sequence<int, J...>) const {
#if defined(__clang__) || __GNUC__ >= 12
        return {__builtin_shufflevector(v, b.v, (From + J / 2 + J % 2 * lanes<T, Bytes>)...)};
#else
        return {reg{(J % 2 ? b.v : v)[From + J / 2]...}};
#endif
    }
    // An integer for each number, as comparisons give it.
    using Places = decltype(reg{} < reg{});
    Places within(T size) const { return (v <= size) & (v >= -size); }
    // Where a is larger it comes here, and l to its place.
    void keep_larger(Vec a, int l, Places& at) {
        const Places larger = a.v > v;
        at = larger ? l - Places{} : at;
        v = larger ? a.v : v;
    }
};
#else
template <class T, int Bytes = bytes>
struct Vec {
    T v[lanes<T, Bytes>];
    static Vec load(const T* p) {
        Vec r;
        for (int j = 0; j < lanes<T, Bytes>; ++j) r.v[j] = p[j];
        return r;
    }
    static Vec all(T s) {
        Vec r;
        for (int j = 0; j < lanes<T, Bytes>; ++j) r.v[j] = s;
        return r;
    }
    void store(T* p) const {
        for (int j = 0; j < lanes<T, Bytes>; ++j) p[j] = v[j];
    }
    void fma(Vec a, Vec b) {
        for (int j = 0; j < lanes<T, Bytes>; ++j) v[j] += a.v[j] * b.v[j];
    }
    void fms(Vec a, Vec b) {
        for (int j = 0; j < lanes<T, Bytes>; ++j) v[j] -= a.v[j] * b.v[j];
    }
    T operator[](int j) const { return v[j]; }
    template <int From>
    Vec turns(Vec b) const {
        Vec r;
        for (int j = 0; j < lanes<T, Bytes>; ++j) r.v[j] = (j % 2 ? b : *this).v[From + j / 2];
        return r;
    }
    struct Places {
        int64_t at[lanes<T, Bytes>];
        int64_t operator[](int j) const { return at[j]; }
        void operator&=(const Places& other) {
            for (int j = 0; j < lanes<T, Bytes>; ++j) at[j] &= other.at[j];
        }
    };
    Places within(T size) const {
        Places r;
        for (int j = 0; j < lanes<T, Bytes>; ++j) r.at[j] = v[j] <= size && v[j] >= -size;
        return r;
    }
    void keep_larger(Vec a, int l, Places& at) {
        for (int j = 0; j < lanes<T, Bytes>; ++j) {
            at.at[j] = a.v[j] > v[j] ? l : at.at[j];
            v[j] = a.v[j] > v[j] ? a.v[j] : v[j];
        }
    }
};
#endif

template <class T>
double sum(Vec<T> a) {
    double s = 0;
    for (int j = 0; j < lanes<T>; ++j) s += a[j];
    return s;
}

// ---- dense rows --------------------------------------------------------------------------------------------------

// Inner products of x with M rows at once: x is loaded once and the M * U accumulators hide the latency.
template <class T, int M>
void dot_group(const T* x, int64_t d, const T* const* w, double* out) {
    constexpr int L = lanes<T>, U = M == 1 ? 4 : M == 2 ? 2 : 1;
    Vec<T> acc[M][U];
    for (int j = 0; j < M; ++j)
        for (int u = 0; u < U; ++u) acc[j][u] = Vec<T>::all(0);
    int64_t i = 0;
    for (; i + U * L <= d; i += U * L)
        for (int u = 0; u < U; ++u) {
            const Vec<T> a = Vec<T>::load(x + i + u * L);
            for (int j = 0; j < M; ++j) acc[j][u].fma(a, Vec<T>::load(w[j] + i + u * L));
        }
    for (; i + L <= d; i += L) {
        const Vec<T> a = Vec<T>::load(x + i);
        for (int j = 0; j < M; ++j) acc[j][0].fma(a, Vec<T>::load(w[j] + i));
    }
    T tail[M] = {};
    for (; i < d; ++i)
        for (int j = 0; j < M; ++j) tail[j] += x[i] * w[j][i];
    for (int j = 0; j < M; ++j) {
        Vec<T> s = acc[j][0];
        for (int u = 1; u < U; ++u) s.fma(acc[j][u], Vec<T>::all(1));
        out[j] = sum(s) + tail[j];
    }
}

template <class T, class Row>
void dot_rows(const T* x, int64_t d, int32_t m, double* out, Row row) {
    int32_t j = 0;
    const T* w[4];
    for (; j + 4 <= m; j += 4) {
        for (int g = 0; g < 4; ++g) w[g] = row(j + g);
        dot_group<T, 4>(x, d, w, out + j);
    }
    for (int g = 0; j + g < m; ++g) w[g] = row(j + g);
    if (m - j == 3) dot_group<T, 3>(x, d, w, out + j);
    if (m - j == 2) dot_group<T, 2>(x, d, w, out + j);
    if (m - j == 1) dot_group<T, 1>(x, d, w, out + j);
}

template <class T>
void dots(const T* x, int64_t d, const T* W, int64_t ld, const int32_t* cls, int32_t m, double* out) {
    dot_rows(x, d, m, out, [=](int32_t j) { return W + cls[j] * ld; });
}

template <class T>
void dots_all(const T* x, int64_t d, const T* W, int64_t ld, int32_t k, double* out) {
    dot_rows(x, d, k, out, [=](int32_t j) { return W + j * ld; });
}

template <class T, int M>
void axpy_group(const T* x, int64_t d, T* const* w, const double* coef) {
    constexpr int L = lanes<T>;
    Vec<T> c[M];
    for (int j = 0; j < M; ++j) c[j] = Vec<T>::all(static_cast<T>(coef[j]));
    int64_t i = 0;
    for (; i + L <= d; i += L) {
        const Vec<T> a = Vec<T>::load(x + i);
        for (int j = 0; j < M; ++j) {
            Vec<T> r = Vec<T>::load(w[j] + i);
            r.fma(a, c[j]);
            r.store(w[j] + i);
        }
    }
    for (; i < d; ++i)
        for (int j = 0; j < M; ++j) w[j][i] += static_cast<T>(coef[j]) * x[i];
}

template <class T>
void axpys(const T* x, int64_t d, T* W, int64_t ld, const int32_t* cls, int32_t m, const double* coef) {
    int32_t j = 0;
    T* w[4];
    for (; j + 4 <= m; j += 4) {
        for (int g = 0; g < 4; ++g) w[g] = W + cls[j + g] * ld;
        axpy_group<T, 4>(x, d, w, coef + j);
    }
    for (int g = 0; j + g < m; ++g) w[g] = W + cls[j + g] * ld;
    if (m - j == 3) axpy_group<T, 3>(x, d, w, coef + j);
    if (m - j == 2) axpy_group<T, 2>(x, d, w, coef + j);
    if (m - j == 1) axpy_group<T, 1>(x, d, w, coef + j);
}

// R rows times V vectors of classes: the accumulators hide the latency.
template <class T, int R, int V, int Bytes>
void product_tile(const T* X, int64_t d, const T* W, int64_t ld, const T* b, T* out) {
    using Vector = Vec<T, Bytes>;
    constexpr int L = lanes<T, Bytes>;
    Vector acc[R][V];
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v) acc[r][v] = Vector::load(b + v * L);
    for (int64_t j = 0; j < d; ++j) {
        Vector w[V];
        for (int v = 0; v < V; ++v) w[v] = Vector::load(W + j * ld + v * L);
        for (int r = 0; r < R; ++r) {
            const Vector x = Vector::all(X[r * d + j]);
            for (int v = 0; v < V; ++v) acc[r][v].fma(x, w[v]);
        }
    }
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v) acc[r][v].store(out + r * ld + v * L);
}

template <class T, int R, int V, int Bytes = bytes>
void product_columns(const T* X, int64_t rows, int64_t d, const T* W, int64_t ld, const T* b, T* out) {
    int64_t i = 0;
    for (; i + R <= rows; i += R) product_tile<T, R, V, Bytes>(X + i * d, d, W, ld, b, out + i * ld);
    for (; i < rows; ++i) product_tile<T, 1, V, Bytes>(X + i * d, d, W, ld, b, out + i * ld);
}

template <class T>
void products(const T* X, int64_t rows, int64_t d, const T* W, int64_t ld, const T* b, T* out) {
    constexpr int L = lanes<T>;
    int64_t l = 0;
    for (; l + 2 * L <= ld; l += 2 * L) product_columns<T, 4, 2>(X, rows, d, W + l, ld, b + l, out + l);
    if (l + L <= ld) {
        product_columns<T, 4, 1>(X, rows, d, W + l, ld, b + l, out + l);
        l += L;
    }
    if (l < ld) product_columns<T, 8, 1, narrow>(X, rows, d, W + l, ld, b + l, out + l);
}

// ---- winners -----------------------------------------------------------------------------------------------------

// L vectors of L numbers become their columns: each round rotates the bits of (vector, place) by one.
template <class T, int Bytes>
void transpose(Vec<T, Bytes>* a) {
    constexpr int L = lanes<T, Bytes>;
    for (int round = 1; round < L; round *= 2) {
        Vec<T, Bytes> c[L];
        for (int j = 0; j < L / 2; ++j) {
            c[2 * j] = a[j].template turns<0>(a[j + L / 2]);
            c[2 * j + 1] = a[j].template turns<L / 2>(a[j + L / 2]);
        }
        for (int j = 0; j < L; ++j) a[j] = c[j];
    }
}

// As many rows at once as a vector has numbers, so that no row is searched alone.
template <class T, int Bytes>
bool winners_of(const T* f, int64_t rows, int64_t ld, int32_t k, int64_t* out) {
    using Vector = Vec<T, Bytes>;
    constexpr int L = lanes<T, Bytes>;
    typename Vector::Places finite = Vector::all(0).within(0);
    for (int64_t i = 0; i < rows; i += L) {
        Vector c[L];
        for (int r = 0; r < L; ++r) c[r] = Vector::load(f + (i + r) * ld);
        transpose<T, Bytes>(c);
        finite &= c[0].within(std::numeric_limits<T>::max());
        Vector best = c[0];
        typename Vector::Places at{};
        for (int j = 1; j < L && j < k; ++j) best.keep_larger(c[j], j, at);
        for (int32_t first = L; first < k; first += L) {
            for (int r = 0; r < L; ++r) c[r] = Vector::load(f + (i + r) * ld + first);
            transpose<T, Bytes>(c);
            for (int j = 0; j < L && first + j < k; ++j) best.keep_larger(c[j], first + j, at);
        }
        for (int r = 0; r < L; ++r) out[i + r] = at[r];
    }
    bool all = true;
    for (int r = 0; r < L; ++r) all = all && finite[r];
    return all;
}

template <class T>
bool winners(const T* f, int64_t rows, int64_t ld, int32_t k, int64_t* out) {
    return ld < lanes<T> ? winners_of<T, narrow>(f, rows, ld, k, out) : winners_of<T, bytes>(f, rows, ld, k, out);
}

// ---- exponentials ------------------------------------------------------------------------------------------------

// exp(x) for x <= 0: x = n log 2 + r, |r| <= log(2)/2, a polynomial in r and the exponent set by bits.  Written with
// plain operations only, so that the compiler can vectorise the loop over it.
inline float exp_nonpositive(float x) {
    x = x < -87.0f ? -87.0f : x;
    const float n = static_cast<float>(static_cast<int32_t>(x * 1.44269504088896341f - 0.5f));
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    union {
        int32_t i;
        float f;
    } scale;
    scale.i = (static_cast<int32_t>(n) + 127) << 23;
    return p * scale.f;
}

inline double exp_nonpositive(double x) {
    x = x < -708.0 ? -708.0 : x;
    const int32_t exponent = static_cast<int32_t>(x * 1.4426950408889634 - 0.5);  // AVX2 converts to 32 bits only
    const double n = static_cast<double>(exponent);
    const double r = (x - n * 0.693145751953125) - n * 1.42860682030941723212e-6;
    double p = 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r * r + r + 1.0;
    union {
        int64_t i;
        double f;
    } scale;
    scale.i = (static_cast<int64_t>(exponent) + 1023) << 52;
    return p * scale.f;
}

template <class T>
void rbf(T* row, int64_t n, const T* norms, T norm, T gamma) {
    for (int64_t j = 0; j < n; ++j) {
        T d2 = norm + norms[j] - 2 * row[j];
        d2 = d2 < 0 ? 0 : d2;
        row[j] = exp_nonpositive(-gamma * d2);
    }
}

// ---- sparse rows -------------------------------------------------------------------------------------------------

// The places of a row's numbers: an array of them, or for dense rows this.
struct Every {
    int64_t operator[](int64_t p) const { return p; }
};

// Scores of V vectors of classes: one sweep over the stored numbers of the row, accumulators in registers.  Where the
// vectors are few, U numbers of the row at once hide the latency.
template <class T, int V, class Places>
void sparse_columns(Places idx, const T* val, int64_t nnz, const T* W, int64_t ld, T* out) {
    constexpr int L = lanes<T>, U = V == 1 ? 4 : V <= 3 ? 2 : 1;
    constexpr int64_t ahead = 8;
    Vec<T> acc[U][V];
    for (int u = 0; u < U; ++u)
        for (int v = 0; v < V; ++v) acc[u][v] = Vec<T>::all(0);
    int64_t p = 0;
    for (; p + U <= nnz; p += U)
        for (int u = 0; u < U; ++u) {
            if (U == 1 && p + u + ahead < nnz) {
                const T* next = W + static_cast<int64_t>(idx[p + u + ahead]) * ld;
                for (int b = 0; b < V * bytes; b += 64) SKMARGIN_PREFETCH(reinterpret_cast<const char*>(next) + b);
            }
            const T* row = W + static_cast<int64_t>(idx[p + u]) * ld;
            const Vec<T> a = Vec<T>::all(val[p + u]);
            for (int v = 0; v < V; ++v) acc[u][v].fma(a, Vec<T>::load(row + v * L));
        }
    for (; p < nnz; ++p) {
        const T* row = W + static_cast<int64_t>(idx[p]) * ld;
        const Vec<T> a = Vec<T>::all(val[p]);
        for (int v = 0; v < V; ++v) acc[0][v].fma(a, Vec<T>::load(row + v * L));
    }
    for (int v = 0; v < V; ++v) {
        for (int u = 1; u < U; ++u) acc[0][v].fma(acc[u][v], Vec<T>::all(1));
        acc[0][v].store(out + v * L);
    }
}

template <class T, class Places>
void scores_all(Places idx, const T* val, int64_t nnz, const T* W, int64_t ld, T* out) {
    constexpr int L = lanes<T>;
    int64_t left = ld / L;
    const int64_t blocks = (left + 11) / 12;
    for (int64_t b = 0; b < blocks; ++b) {
        const int64_t V = (left + blocks - b - 1) / (blocks - b);  // blocks of nearly equal width
        switch (V) {
            case 1: sparse_columns<T, 1>(idx, val, nnz, W, ld, out); break;
            case 2: sparse_columns<T, 2>(idx, val, nnz, W, ld, out); break;
            case 3: sparse_columns<T, 3>(idx, val, nnz, W, ld, out); break;
            case 4: sparse_columns<T, 4>(idx, val, nnz, W, ld, out); break;
            case 5: sparse_columns<T, 5>(idx, val, nnz, W, ld, out); break;
            case 6: sparse_columns<T, 6>(idx, val, nnz, W, ld, out); break;
            case 7: sparse_columns<T, 7>(idx, val, nnz, W, ld, out); break;
            case 8: sparse_columns<T, 8>(idx, val, nnz, W, ld, out); break;
            case 9: sparse_columns<T, 9>(idx, val, nnz, W, ld, out); break;
            case 10: sparse_columns<T, 10>(idx, val, nnz, W, ld, out); break;
            case 11: sparse_columns<T, 11>(idx, val, nnz, W, ld, out); break;
            default: sparse_columns<T, 12>(idx, val, nnz, W, ld, out); break;
        }
        W += V * L;
        out += V * L;
        left -= V;
    }
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

// ---- band systems ------------------------------------------------------------------------------------------------

template <class T>
struct Complex {
    Vec<T> re, im;
    static Complex load(const T* p) { return {Vec<T>::load(p), Vec<T>::load(p + lanes<T>)}; }
    static Complex all(T s) { return {Vec<T>::all(s), Vec<T>::all(0)}; }
    void store(T* p) const {
        re.store(p);
        im.store(p + lanes<T>);
    }
    void add(Complex a, Complex b) {
        re.fma(a.re, b.re);
        re.fms(a.im, b.im);
        im.fma(a.re, b.im);
        im.fma(a.im, b.re);
    }
    void subtract(Complex a, Complex b) {
        re.fms(a.re, b.re);
        re.fma(a.im, b.im);
        im.fms(a.re, b.im);
        im.fms(a.im, b.re);
    }
    void add(Vec<T> a, Complex b) {
        re.fma(a, b.re);
        im.fma(a, b.im);
    }
};

// B + shift = L D L' by columns from the left; a column of L is kept with zeros behind its end, so that tiles of rows
// may run over it.  L is [j][i]: L[j + i, j] for i = 1 .. b; D is its reciprocal, at i = 0.
template <class T>
void band_shifts(const T* B, int64_t n, int64_t b, const T* real, const T* imaginary, const T* x, int64_t vectors,
                 T* room, T* z, T* residual, T* pivot) {
    constexpr int lane = lanes<T>, number = 2 * lane, tile = 4;
    const int64_t ld = (b + 2 * tile) * number;
    T *L = room, *column = L + n * ld, *scaled = column + (b + 2 * tile) * number, *D = scaled + (b + 1) * number;
    const Complex<T> shift{Vec<T>::load(real), Vec<T>::load(imaginary)};
    for (int64_t j = 0; j < n; ++j) {
        const int64_t before = j < b ? j : b;
        T* Lj = L + j * ld;
        for (int64_t p = 1; p <= before; ++p) {  // D[j - p] L[j, j - p]
            Complex<T> s = Complex<T>::all(0);
            s.add(Complex<T>::load(D + ((j - p) % (b + 1)) * number), Complex<T>::load(L + (j - p) * ld + p * number));
            s.store(scaled + p * number);
        }
        for (int64_t i0 = 0; i0 <= b; i0 += tile) {
            Complex<T> c[tile];
            for (int t = 0; t < tile; ++t)
                c[t] = Complex<T>::all(i0 + t <= b && j + i0 + t < n ? B[j * (b + 1) + i0 + t] : 0);
            if (i0 == 0) c[0].add(Vec<T>::all(1), shift);
            const int64_t reach = before < b - i0 ? before : b - i0;
            for (int64_t p = 1; p <= reach; ++p) {
                const Complex<T> s = Complex<T>::load(scaled + p * number);
                const T* l = L + (j - p) * ld + (p + i0) * number;
                for (int t = 0; t < tile; ++t) c[t].subtract(Complex<T>::load(l + t * number), s);
            }
            for (int t = 0; t < tile; ++t) c[t].store(column + (i0 + t) * number);
        }
        const Complex<T> d = Complex<T>::load(column);
        d.store(D + (j % (b + 1)) * number);
        T inverse[number];
        for (int v = 0; v < lane; ++v) {
            const T size = d.re[v] * d.re[v] + d.im[v] * d.im[v];
            inverse[v] = d.re[v] / size;
            inverse[lane + v] = -d.im[v] / size;
            if (j == 0 || !(d.re[v] > pivot[v])) pivot[v] = d.re[v];
        }
        const Complex<T> r = Complex<T>::load(inverse);
        r.store(Lj);
        for (int64_t i = 1; i < b + 2 * tile; ++i) {
            Complex<T> l = Complex<T>::all(0);
            if (i <= b && j + i < n) l.add(Complex<T>::load(column + i * number), r);
            l.store(Lj + i * number);
        }
    }
    for (int v = 0; v < lane; ++v) residual[v] = 0;
    for (int64_t vector = 0; vector < vectors; ++vector) {
        T* u = z + vector * n * number;
        const T* given = x + vector * n;
        for (int64_t j = 0; j < n; ++j) {
            Complex<T> s = Complex<T>::all(given[j]);
            for (int64_t p = 1; p <= (j < b ? j : b); ++p)
                s.subtract(Complex<T>::load(L + (j - p) * ld + p * number), Complex<T>::load(u + (j - p) * number));
            s.store(u + j * number);
        }
        for (int64_t j = n; j-- > 0;) {
            Complex<T> s = Complex<T>::all(0);
            s.add(Complex<T>::load(L + j * ld), Complex<T>::load(u + j * number));
            for (int64_t i = 1; i <= b && j + i < n; ++i)
                s.subtract(Complex<T>::load(L + j * ld + i * number), Complex<T>::load(u + (j + i) * number));
            s.store(u + j * number);
        }
        for (int64_t j = 0; j < n; ++j) {
            Complex<T> s = Complex<T>::all(-given[j]);
            const Complex<T> own = Complex<T>::load(u + j * number);
            s.add(shift, own);
            for (int64_t i = 0; i <= b && j + i < n; ++i)
                s.add(Vec<T>::all(B[j * (b + 1) + i]), Complex<T>::load(u + (j + i) * number));
            for (int64_t i = 1; i <= b && i <= j; ++i)
                s.add(Vec<T>::all(B[(j - i) * (b + 1) + i]), Complex<T>::load(u + (j - i) * number));
            for (int v = 0; v < lane; ++v) {
                const T real_part = s.re[v] < 0 ? -s.re[v] : s.re[v], other = s.im[v] < 0 ? -s.im[v] : s.im[v];
                const T size = real_part > other ? real_part : other;
                if (!(size <= residual[v])) residual[v] = size;
            }
        }
    }
}

}  // namespace

namespace SKMARGIN_SIMD {

#define SKMARGIN_TEXT_(x) #x
#define SKMARGIN_TEXT(x) SKMARGIN_TEXT_(x)

template <class T>
const Simd<T>& dense_table() {
    static const Simd<T> table{SKMARGIN_TEXT(SKMARGIN_SIMD),
                               dots<T>,
                               dots_all<T>,
                               axpys<T>,
                               dense_scores_all<T>,
                               dense_add_all<T>,
                               lanes<T, narrow>,
                               products<T>,
                               winners<T>,
                               rbf<T>,
                               lanes<T>,
                               band_shifts<T>};
    return table;
}

template <class T, class I>
const SparseSimd<T, I>& sparse_table() {
    static const SparseSimd<T, I> table{lanes<T>, scores_all<T, const I*>, sparse_scores<T, I>, sparse_add<T, I>,
                                        add_all<T, const I*>};
    return table;
}

template const Simd<float>& dense_table<float>();
template const Simd<double>& dense_table<double>();
template const SparseSimd<float, int32_t>& sparse_table<float, int32_t>();
template const SparseSimd<float, int64_t>& sparse_table<float, int64_t>();
template const SparseSimd<double, int32_t>& sparse_table<double, int32_t>();
template const SparseSimd<double, int64_t>& sparse_table<double, int64_t>();

}  // namespace SKMARGIN_SIMD
}  // namespace skm

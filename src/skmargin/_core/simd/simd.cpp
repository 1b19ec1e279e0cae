// The loops of simd/simd.hpp for one instruction set (SKMARGIN_SIMD, set by the build together with the compiler
// flags). Nothing here may use a function template of the standard library: the linker could hand a copy compiled for
// AVX-512 to code that runs on an older machine.
#include "simd/simd.hpp"

#include "simd/banded.hpp"
#include "simd/scores.hpp"
#include "simd/sparse.hpp"
#include "simd/vectors.hpp"

namespace skm {
namespace {

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
                               tile<T>,
                               labels<T>,
                               single<T>,
                               rbf<T>,
                               lanes<T>,
                               banded_shifts<T>};
    return table;
}

template <class T, class I>
const SparseSimd<T, I>& sparse_table() {
    static const SparseSimd<T, I> table{
        lanes<T>,         scores_all<T, const I*>, packed_scores<T, I>, sparse_scores<T, I>,
        sparse_add<T, I>, add_all<T, const I*>};
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

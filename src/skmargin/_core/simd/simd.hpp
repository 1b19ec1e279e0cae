// The vector loops of the core, behind one table of function pointers for each number type.
//
// simd/simd.cpp is compiled once for each instruction set (baseline, avx2, avx512) and `simd<T>()` returns the widest
// table that this machine can run, so that one portable wheel uses the vector units it finds.
#pragma once
#include <cstdint>
#include <type_traits>

namespace skm {

// An integer as wide as a number.
template <class T> using Place = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;

// Loops over dense rows; W is class-major: one contiguous row of `ld` numbers a class, or (where said) feature-major as
// below.
template <class T>
struct Simd {
    const char* name;
    // out[j] = x . W[cls[j]]
    void (*dots)(const T* x, int64_t d, const T* W, int64_t ld, const int32_t* cls, int32_t m, double* out);
    // out[l] = x . W[l], l < k
    void (*dots_all)(const T* x, int64_t d, const T* W, int64_t ld, int32_t k, double* out);
    // W[cls[j]] += coef[j] x
    void (*axpys)(const T* x, int64_t d, T* W, int64_t ld, const int32_t* cls, int32_t m, const double* coef);
    // out[l] = x . W[., l], l < ld, for a feature-major W
    void (*scores_all)(const T* x, int64_t d, const T* W, int64_t ld, T* out);
    // W[., l] += coef[l] x, l < ld, for a feature-major W
    void (*add_all)(const T* x, int64_t d, T* W, int64_t ld, const T* coef);
    // out[i] = x_i'W + b for so many contiguous rows of X; W is feature-major, d rows of `ld` numbers, a multiple of
    // `few`, as b.  The rows of out are `stride` apart, which may be less: the last one needs room for ld.
    int64_t few;
    void (*products)(const T* X, int64_t rows, int64_t d, const T* W, int64_t ld, const T* b, T* out, int64_t stride);
    // The name of the class with the largest of these scores, the first of equals, for a multiple of `tile` rows; says
    // whether the largest are finite.  b is minus infinity for classes that there are not.
    int64_t tile;
    bool (*labels)(const T* X, int64_t rows, int64_t d, const T* W, int64_t ld, const T* b, const Place<T>* names,
                   Place<T>* out);
    // out[i] = x_i'w + b for a multiple of `tile` rows.  Reads up to `lanes` numbers behind X, which w, filled up with
    // zeros, leaves out: no row is the other's business, as long as all numbers are finite.
    void (*single)(const T* X, int64_t rows, int64_t d, const T* w, T b, T* out);
    // row[j] = exp(-gamma max(0, norm + norms[j] - 2 row[j])): inner products to values of the RBF kernel
    void (*rbf)(T* row, int64_t n, const T* norms, T norm, T gamma);
    // (B + diag(shift)) z = x for `lanes` complex shifts at once.  B is symmetric with b numbers beside its diagonal,
    // at [j][i] = B[j + i, j]; x is (vectors, n).  z is (vectors, n, 2, lanes), the real parts before the imaginary
    // ones. There is no pivoting: `residual` (lanes) is the largest |x - (B + shift) z|, `pivot` the smallest real
    // pivot. `work` holds n (b + 8) + 3 b + 16 times 2 lanes numbers.
    int64_t lanes;  // also what ld is a multiple of in `scores_all` and `add_all`
    void (*banded_shifts)(const T* B, int64_t n, int64_t b, const T* real, const T* imaginary, const T* x,
                          int64_t vectors, T* work, T* z, T* residual, T* pivot);
};

// A feature-major W without padding, k numbers a feature.  Its vectors reach into the features that follow, so that the
// last ones, from `safe` on, lie in a longer copy, with one more for all features that there are not.
template <class T>
struct Packed {
    const T* W;
    int64_t k, safe, d;
    const T* last;
};

// Loops over sparse rows; W is feature-major: the classes of one feature are contiguous, `ld` is padded.
template <class T, class I>
struct SparseSimd {
    int64_t lanes;  // numbers in one vector: ld is a multiple of it
    // out[l] = sum_p val[p] W[idx[p], l], l < ld  (out has room for ld numbers)
    void (*scores_all)(const I* idx, const T* val, int64_t nnz, const T* W, int64_t ld, T* out);
    // The same for l < k rounded up to `lanes`, with anything from k on.
    void (*packed_scores)(const I* idx, const T* val, int64_t nnz, const Packed<T>& W, T* out);
    // out[j] = sum_p val[p] W[idx[p], cls[j]]
    void (*scores)(const I* idx, const T* val, int64_t nnz, const T* W, int64_t ld, const int32_t* cls, int32_t m,
                   double* out);
    // W[idx[p], cls[j]] += val[p] coef[j]
    void (*add)(const I* idx, const T* val, int64_t nnz, T* W, int64_t ld, const int32_t* cls, int32_t m,
                const double* coef);
    // W[idx[p], l] += val[p] coef[l], l < ld
    void (*add_all)(const I* idx, const T* val, int64_t nnz, T* W, int64_t ld, const T* coef);
};

enum class Level { baseline, avx2, avx512 };

namespace baseline {
template <class T> const Simd<T>& dense_table();
template <class T, class I> const SparseSimd<T, I>& sparse_table();
}
#ifdef SKMARGIN_X86
namespace avx2 {
template <class T> const Simd<T>& dense_table();
template <class T, class I> const SparseSimd<T, I>& sparse_table();
}
namespace avx512 {
template <class T> const Simd<T>& dense_table();
template <class T, class I> const SparseSimd<T, I>& sparse_table();
}
#endif

Level cpu_level();  // bindings/module.cpp: asks the processor and the environment once

template <class T>
const Simd<T>& simd() {
#ifdef SKMARGIN_X86
    if (cpu_level() == Level::avx512) return avx512::dense_table<T>();
    if (cpu_level() == Level::avx2) return avx2::dense_table<T>();
#endif
    return baseline::dense_table<T>();
}

template <class T, class I>
const SparseSimd<T, I>& sparse_simd() {
#ifdef SKMARGIN_X86
    if (cpu_level() == Level::avx512) return avx512::sparse_table<T, I>();
    if (cpu_level() == Level::avx2) return avx2::sparse_table<T, I>();
#endif
    return baseline::sparse_table<T, I>();
}

}  // namespace skm

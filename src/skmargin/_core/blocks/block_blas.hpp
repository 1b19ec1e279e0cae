// The three routines of BLAS that a pass needs, for both number types; borrowed from SciPy as in blas.hpp.
#pragma once
#include "base/blas.hpp"

namespace skm {

template <class T>
struct BlockBlas {
    void (*gemm)(const char* ta, const char* tb, const int* m, const int* n, const int* k, const T* alpha, const T* A,
                 const int* lda, const T* B, const int* ldb, const T* beta, T* C, const int* ldc) = nullptr;
    void (*syrk)(const char* uplo, const char* trans, const int* n, const int* k, const T* alpha, const T* A,
                 const int* lda, const T* beta, T* C, const int* ldc) = nullptr;
};

template <class T> inline BlockBlas<T> block_blas;  // read-only after the import

}  // namespace skm

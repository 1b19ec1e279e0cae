// BLAS and LAPACK, borrowed from SciPy at run time: nothing is linked, and the wheel carries no second BLAS.
//
// SciPy publishes the addresses in scipy.linalg.cython_blas and cython_lapack (`__pyx_capi__`); bind_newton.cpp fills
// the table once, when the module is imported.  Column-major, 32-bit sizes.  Callers pin BLAS to one thread
// (threadpoolctl): its threads spin on products as small as ours.
#pragma once

namespace skm {

struct Blas {
    void (*gemm)(const char* ta, const char* tb, const int* m, const int* n, const int* k, const double* alpha,
                 const double* A, const int* lda, const double* B, const int* ldb, const double* beta, double* C,
                 const int* ldc) = nullptr;
    void (*syrk)(const char* uplo, const char* trans, const int* n, const int* k, const double* alpha, const double* A,
                 const int* lda, const double* beta, double* C, const int* ldc) = nullptr;
    void (*trsm)(const char* side, const char* uplo, const char* trans, const char* diag, const int* m, const int* n,
                 const double* alpha, const double* A, const int* lda, double* B, const int* ldb) = nullptr;
    void (*potrf)(const char* uplo, const int* n, double* A, const int* lda, int* info) = nullptr;
    void (*potrs)(const char* uplo, const int* n, const int* nrhs, const double* A, const int* lda, double* B,
                  const int* ldb, int* info) = nullptr;
};

inline Blas blas;  // read-only after the import

}  // namespace skm

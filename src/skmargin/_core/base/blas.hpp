// BLAS and LAPACK, borrowed from SciPy at run time: nothing is linked, and the wheel carries no second BLAS.
//
// SciPy publishes the addresses in scipy.linalg.cython_blas and cython_lapack (`__pyx_capi__`); bindings/newton.cpp and
// bindings/ridge.cpp fill the table once, when the module is imported.  Column-major, 32-bit sizes.  Callers pin BLAS
// to one thread (threadpoolctl): its threads spin on products as small as ours.
#pragma once
#include <complex>

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
    // Condensed forms, their orthogonal factors, and systems with a tridiagonal matrix (two_class/banded_form.hpp,
    // two_class/ridge_path.hpp).
    void (*symm)(const char* side, const char* uplo, const int* m, const int* n, const double* alpha, const double* A,
                 const int* lda, const double* B, const int* ldb, const double* beta, double* C,
                 const int* ldc) = nullptr;
    void (*syr2k)(const char* uplo, const char* trans, const int* n, const int* k, const double* alpha, const double* A,
                  const int* lda, const double* B, const int* ldb, const double* beta, double* C,
                  const int* ldc) = nullptr;
    using Factor = void (*)(const int* m, const int* n, double* A, const int* lda, double* tau, double* work,
                            const int* lwork, int* info);
    using Apply = void (*)(const char* side, const char* trans, const int* m, const int* n, const int* k,
                           const double* A, const int* lda, const double* tau, double* C, const int* ldc, double* work,
                           const int* lwork, int* info);
    Factor geqrf = nullptr;
    Apply ormqr = nullptr;
    void (*gebrd)(const int* m, const int* n, double* A, const int* lda, double* d, double* e, double* tauq,
                  double* taup, double* work, const int* lwork, int* info) = nullptr;
    void (*ormbr)(const char* vect, const char* side, const char* trans, const int* m, const int* n, const int* k,
                  const double* A, const int* lda, const double* tau, double* C, const int* ldc, double* work,
                  const int* lwork, int* info) = nullptr;
    void (*zgtsv)(const int* n, const int* nrhs, std::complex<double>* dl, std::complex<double>* d,
                  std::complex<double>* du, std::complex<double>* B, const int* ldb, int* info) = nullptr;
};

inline Blas blas;  // read-only after the import

}  // namespace skm

// The module _ext: one `bind_*` function a solver.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "simd/simd.hpp"

#ifdef _MSC_VER
#define NOMINMAX
#include <windows.h>
#endif

namespace nb = nanobind;

void bind_contract(nb::module_& m);
void bind_tuning(nb::module_& m);
void bind_block_norm(nb::module_& m);
void bind_blocks(nb::module_& m);
void bind_box(nb::module_& m);
void bind_certificate(nb::module_& m);
void bind_circulation(nb::module_& m);
void bind_kernel(nb::module_& m);
void bind_kernel_rows(nb::module_& m);
void bind_linear(nb::module_& m);
void bind_loads(nb::module_& m);
void bind_many_classes(nb::module_& m);
void bind_newton(nb::module_& m);
void bind_odm(nb::module_& m);
void bind_ridge(nb::module_& m);
void bind_scores(nb::module_& m);
void bind_svrg(nb::module_& m);
void bind_tiled_scores(nb::module_& m);

namespace skm {

namespace {

Level widest() {
#if defined(SKMARGIN_X86) && defined(_MSC_VER)
    if (IsProcessorFeaturePresent(PF_AVX2_INSTRUCTIONS_AVAILABLE)) return Level::avx2;
#elif defined(SKMARGIN_X86)
    // GCC and Clang: the levels of the x86-64 psABI; x86-64-v3 is AVX2 with FMA, v4 adds AVX-512.
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd"))
        return Level::avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        return Level::avx2;
#endif
    return Level::baseline;
}

}  // namespace

// The environment variable SKMARGIN_SIMD may ask for less than the processor has, so that tests reach every loop.
Level cpu_level() {
    static const Level level = [] {
        const char* asked = std::getenv("SKMARGIN_SIMD");
        const std::string name = asked == nullptr ? "" : asked;
        const Level most = name == "baseline" ? Level::baseline : name == "avx2" ? Level::avx2 : Level::avx512;
        return std::min(most, widest());
    }();
    return level;
}

}  // namespace skm

NB_MODULE(_ext, m) {
    m.doc() = "The compiled core of skmargin.";
    m.def("simd_level", [] { return skm::simd<double>().name; }, "The instruction set that the vector loops use here.");
    bind_contract(m);  // first: the defaults of arguments are of its types
    bind_tuning(m);
    bind_block_norm(m);
    bind_blocks(m);
    bind_box(m);
    bind_certificate(m);
    bind_circulation(m);
    bind_kernel(m);
    bind_kernel_rows(m);
    bind_linear(m);
    bind_loads(m);
    bind_many_classes(m);
    bind_newton(m);
    bind_odm(m);
    bind_ridge(m);
    bind_scores(m);
    bind_svrg(m);
    bind_tiled_scores(m);
}

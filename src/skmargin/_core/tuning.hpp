// Every constant of the core that steers speed, one structure a part of the method.
//
// None of them decides what is returned: a certificate ends every solve, so a bad value only costs time (limits on work
// and memory apart).  Python sees the structures under the same names (bindings/tuning.cpp) and may pass changed ones.
// Each constant says its unit, and its origin where that is known:
//     measured    the history of the repository says on what
//     by hand     set while a method was written; no sweep over data sets is on record
// and its sensitivity, the cost with half and with twice of it beside the usual one: geometric mean (largest ratio).
// For the first group of structures it is the CPU time of one pair of runs of benchmarks/sensitivity.py on a busy
// machine, where ratios of single fits up to 1.5 are noise; for kernels, Newton and two classes the flops, or passes,
// of some 25 fits of its problems. Numbers that rounding or the mathematics fix (1e-12 beside a bound, 30 halvings of a
// bracket) stay beside their formulas. Constants of the vector loops are compile-time and stay in simd/ and
// rows/rows.hpp: they depend on registers and caches.
#pragma once
#include <cstdint>

namespace skm {

// When steps on the face of the dual are tried, and how far they go (linear/face_cg.hpp).
struct FaceTuning {
    // steps of conjugate gradients at first, after as many passes (by hand; half 1.04 (2.3), twice 0.99 (1.2))
    int first_steps = 10;
    // gained / predicted above which steps grow by half, else they shrink by a third (by hand; half 1.01 (1.2), twice
    // 1.10 (3.6))
    double more_steps_above = 0.6;
    // gain of a step of conjugate gradients / best gain so far that ends them (by hand; half 1.00 (1.8), twice 1.00
    // (1.2))
    double stop_cg_below = 0.02;
    // factor of a step that gained too little (by hand; not measured)
    double shorten = 0.4;
    // gained / predicted of a shortened step that is accepted (by hand; not measured)
    double min_gain = 0.1;
};

// Steps of the multipliers of the intercept (intercept/proximal_steps.hpp).
struct ProximalTuning {
    // gap, and change of r in a pass, squared, / ||r||^2 up to which blocks need no better solution (by hand; half
    // 1.00 (1.2), twice 1.00 (1.1))
    double stable = 0.05;
    // relative change of r below which a class may take steps of up to a margin (by hand; half 1.00 (1.2), twice 1.00
    // (1.2))
    double unresponsive = 0.1;
};

// A dual point that satisfies the constraint of the free intercept (intercept/).
struct CirculationTuning {
    // share of what the samples of a class may hold, above which it is one-sided (by hand; half 1.00 (1.1), twice
    // 1.01 (1.5))
    double one_sided = 0.5;
};

// Block ascent on a linear dual (linear/block_ascent.hpp).
struct BlockAscentTuning {
    // work between two full checks that make new lists, in checks (by hand; half 1.00 (1.3), twice 1.00 (1.2))
    double work_between_checks = 4;
    // gap of a pass / gap at the last check from which another one is due (by hand; half 1.00 (1.3), twice 1.00 (1.4))
    double check_after_fall = 0.1;
    // passes without progress after which float32 gives up (by hand; half 1.00 (1.0), twice 1.00 (1.0))
    int64_t stall_passes = 100;
    // rivals that enter a list at once: memory with many classes (by hand; half 1.01 (1.3), twice 0.99 (1.4))
    int32_t new_rivals = 16;
    // passes that skip a sample with a small gap, at most (by hand; half 1.01 (1.2), twice 1.00 (1.2))
    int32_t longest_skip = 6;
    FaceTuning face;
    ProximalTuning proximal;
    CirculationTuning circulation;
};

// The proximal weight t of an intercept, and the direction of the mean set apart (linear/class_vectors.hpp).
struct ProximalWeightTuning {
    // t, as a share of the typical inner product of two rows (by hand; half 0.98 (1.2), twice 1.03 (1.3))
    double small_share = 0.2;
};

// Block ascent on the working set of a kernel machine (kernel/block_ascent.hpp, kernel/momentum.hpp).
struct KernelAscentTuning {
    // omega: the dual rises for every omega < 2 (by hand; half 1.18 (1.6), twice 42.94 (292.9))
    double over_relaxation = 1.3;
    // passes without reaching the target, after which momentum begins (measured: quick fits have rounds of up to 100;
    // half 0.93 (1.0), twice 1.08 (1.3))
    int64_t momentum_after = 100;
    // plain passes after momentum, or a quarter of all passes (by hand; half 1.00 (1.0), twice 0.99 (1.0))
    int64_t settle_passes = 40;
    // gap / mean gap below which a sample is skipped (measured: a fifth fewer steps; half 1.08 (1.4), twice 0.99 (1.5))
    double skip_below = 0.5;
    // the same with momentum (by hand; half 1.00 (1.4), twice 1.07 (1.9))
    double skip_below_momentum = 0.3;
    // passes that skip such a sample (by hand; half 1.04 (1.4), twice 0.99 (1.1))
    int64_t skip_passes = 5;
    // margins: an intercept that moved so far resets the skips (by hand; half 1.02 (1.4), twice 0.99 (1.3))
    double intercept_news = 0.05;
    // points in a mean (by hand; half 1.06 (1.7), twice 1.03 (1.2))
    int mean_window = 5;
    // gap / target up to which a point enters a mean, which costs time (by hand; half 1.03 (1.2), twice 0.98 (1.2))
    double mean_max_targets = 4;
    // most passes between two checks (by hand; half 1.02 (1.3), twice 1.01 (1.3))
    int check_interval = 50;
    // passes without a tenth of progress that end a run (by hand; half 1.00 (1.0), twice 1.00 (1.0))
    int64_t stall_passes = 1000;
    // least n theta: 400 passes of memory (by hand; half 1.00 (1.0), twice 1.00 (1.0))
    double min_theta_share = 0.005;
    // passes before momentum may restart (by hand; half 1.00 (1.1), twice 1.00 (1.1))
    int64_t min_momentum_passes = 40;
    // gap / smallest gap that restarts momentum (by hand; half 1.03 (1.6), twice 1.00 (1.1))
    double restart_growth = 1.6;
};

// Semismooth Newton on the proximal dual (newton/newton.hpp).
struct NewtonTuning {
    // relative gap of the stages of the continuation before the last (by hand; not measured)
    double stage_tol = 3e-2;
    // passes of block ascent before the first step (by hand; not measured)
    int start_passes = 8;
    // first sigma times the cap for unbounded duals; from a start over `smoother` (by hand; not measured)
    double squared_sigma = 0.5;
    // width of the working set, in units of the last move of the scores (by hand; not measured)
    double working_set_width = 3;
    // factor of that width after it was too small (by hand; not measured)
    double widen = 5;
    // Newton steps for one working set; after twice as many the centre moves (by hand; not measured)
    int max_inner = 20;
    // inner gap / proximal terms at which an inner problem is solved; half of it / target (by hand; not measured)
    double inner_gap = 0.1;
    // factor of sigma after an inner problem that took up to 5 steps (by hand; not measured)
    double sharpen_fast = 0.09;
    // the same after up to 14 (by hand; not measured)
    double sharpen = 0.3;
    // the same after up to 25 (by hand; not measured)
    double sharpen_slow = 0.55;
    // by how much an easier problem is easier: sigma after steps from kink to kink, the caps of the first stage, the
    // proximal weight of the intercept; a relative gap below its inverse needs no continuation (by hand; not measured)
    double smoother = 10;
};

// Dual coordinate ascent for two classes (two_class/box_ascent.hpp).
struct BoxTuning {
    // passes between two checks (by hand; half 0.93 (1.1), twice 1.14 (1.5))
    int passes_between_checks = 5;
};

// Ridge paths by condensed forms (two_class/banded_form.hpp).
struct RidgeTuning {
    // columns of the band (by hand; not measured)
    int band = 32;
};

// Slope, in units of the margin, below which a dual counts as near its margin (intercept/circulation.hpp; by hand).
constexpr double near_margin = 0.1;

// Threads that share a loop (base/thread_team.hpp): flops of a part, many times what it takes to wake a thread
// (by hand). Compile-time: it also decides how sums are split, and so the bits.
constexpr double min_part_flops = 5e5;

}  // namespace skm

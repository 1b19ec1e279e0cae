// Every constant of the core that steers speed, one structure a part of the method.
//
// None of them decides what is returned: a certificate ends every solve, so a bad value only costs time (limits on work
// and memory apart).  Python sees the structures under the same names (bindings/tuning.cpp) and may pass changed ones.
// Each constant says its unit, and its origin where that is known:
//     measured    the history of the repository says on what
//     by hand     set while a method was written; no sweep over data sets is on record
// What halving or doubling one costs is printed by benchmarks/sensitivity.py.
// Numbers that rounding or the mathematics fix (1e-12 beside a bound, 30 halvings of a bracket) stay beside their
// formulas. Constants of the vector loops are compile-time and stay in simd/ and rows/rows.hpp: they depend on
// registers and caches.
#pragma once
#include <cstdint>

namespace skm {

// When steps on the face of the dual are tried, and how far they go (linear/face_cg.hpp).
struct FaceTuning {
    int64_t first_pass = 10;         // passes before the first one (by hand)
    int first_steps = 10;            // of conjugate gradients, at first (by hand)
    int max_steps = 200;             // of conjugate gradients (by hand)
    int min_steps = 4;               // of conjugate gradients (by hand)
    double more_steps_above = 0.75;  // gained / predicted above which steps grow by half (by hand)
    double fewer_steps_below = 0.4;  // gained / predicted below which steps shrink by a third (by hand)
    double failed_below = 0.02;      // gained / predicted below which the next one waits longer (by hand)
    int wait_after_failure = 40;     // passes (by hand)
    int min_wait = 5;                // passes between two of them; else half of the steps (by hand)
    double shorten = 0.4;            // factor of a step that gained too little (by hand)
    double min_gain = 0.1;           // gained / predicted of a shortened step that is accepted (by hand)
    double stop_cg_below = 0.02;     // gain of a CG step / best gain so far (by hand)
};

// Steps of the multipliers of the intercept (intercept/proximal_steps.hpp).
struct ProximalTuning {
    double stable_gap = 0.05;      // gap / ||r||^2 below which blocks need no better solution (by hand)
    double stable_change = 0.04;   // change of r in a pass, squared, relative: r counts as stable (by hand)
    double patience = 1.1;         // growth of the accepted gap / gain after a step that did not reverse r (by hand)
    double max_growth = 4;         // of a step from one to the next (by hand)
    double unresponsive = 0.5;     // relative change of r below which a class may take longer steps (by hand)
    double dead = 0.01;            // relative change of r below which it responds to nothing (by hand)
    double part_of_margin = 0.25;  // by which such a step may move b (by hand)
    double max_drift = 0.2;        // of b, in margins, after which the lists are stale (by hand)
    double drift_growth = 1.3;     // of the allowed drift after lists that were good (by hand)
};

// A dual point that satisfies the constraint of the free intercept (intercept/).
struct CirculationTuning {
    double one_sided = 0.5;     // share of what the samples of a class may hold, above which it is one-sided (by hand)
    double worth_more = 0.3;    // part of the missing dual value that a step must gain for another to follow (by hand)
    int widest_candidates = 2;  // index of the widest candidates that ascent moves (intercept/circulation.hpp; by hand)
};

// Block ascent on a linear dual (linear/block_ascent.hpp).
struct BlockAscentTuning {
    // A full check is due ...
    double check_below = 0.7;             // gap / target: it may end the run (by hand)
    double ends_soon_below = 0.5;         // the same for the gap expected after one more pass (by hand)
    double check_after_fall = 0.1;        // gap of a pass / gap at the last check (by hand)
    double min_work_after_fall = 0.3;     // .. and the work since, in checks (by hand)
    double work_between_checks = 4;       // in checks (by hand)
    int64_t passes_between_checks = 200;  // at most (by hand)
    int64_t max_wait = 32;                // passes to wait after checks that did not end the run (by hand)
    double record_slopes_below = 10;      // gap / target: prepare the feasible dual (by hand)
    // Lists of rivals.
    int32_t max_new_rivals = 64;  // that enter a list at once: memory with many classes (by hand)
    int32_t max_first_rivals =
        8;  // the same at the start, where only the largest hinge counts (by hand, for sparse rows and small C)
    // Passes.
    double face_if_slower = 0.5;  // gap of a pass / of the last one above which steps on the face are tried (by hand)
    double near_gap = 0.1;        // gap / primal from which `work_when_near` is counted (by hand)
    int64_t stall_passes = 100;   // without progress, after which float32 gives up (by hand)
    int screening_min_cost = 64;  // cost of a check / of reading W from which screening pays (by hand)
    // Samples below the mean gap are skipped (linear/skip_schedule.hpp).
    double skip_long_below = 0.1;  // gap / mean gap below which the skip is long (by hand, for text and many classes)
    int longest_skip = 6;          // passes (by hand, for text and many classes)
    FaceTuning face;
    ProximalTuning proximal;
    CirculationTuning circulation;
};

// The proximal weight t of an intercept, and the direction of the mean set apart (linear/class_vectors.hpp).
struct ProximalWeightTuning {
    double small_share = 0.2;      // of the typical inner product of two rows: t (by hand)
    uint32_t sampled_pairs = 500;  // of rows, whose products are typical (by hand)
    double near_optimum = 1.5;     // factor of t after another stage (by hand)
    double min_moves = 10;         // t times all caps: b can move by so many margins (by hand)
    double max_share = 0.1;        // of the mean square of a row: bound of the last rule (by hand)
    double faint_rows = 1e-4;      // mean square times all caps below which only the intercepts matter (by hand)
    double norm_exponent = 0.75;   // of the mean class weight k^(2/q - 1) (by hand)
    double direction_share = 0.1;  // of the squares across / along the mean: t without an intercept (by hand)
    double max_direction_t = 0.3;  // above it the direction is not set apart (by hand)
};

// Block ascent on the working set of a kernel machine (kernel/block_ascent.hpp, kernel/momentum.hpp).
struct KernelAscentTuning {
    double over_relaxation = 1.3;  // omega: the dual rises for every omega < 2 (by hand)
    int64_t momentum_after = 100;  // passes without reaching the target (measured: quick fits have rounds of up to 100)
    int64_t settle_passes = 40;    // plain passes after momentum, or a quarter of all passes (by hand)
    double skip_below = 0.5;       // gap / mean gap below which a sample is skipped (measured: a fifth fewer steps)
    double skip_below_momentum = 0.3;  // the same with momentum (by hand)
    int64_t skip_passes = 5;           // for so many passes (by hand)
    double intercept_news = 0.05;      // margins: an intercept that moved so far resets the skips (by hand)
    int mean_window = 5;               // points in a mean (by hand)
    double mean_max_targets = 4;       // gap / target up to which a point enters a mean, which costs time (by hand)
    int check_interval = 50;           // most passes between two checks (by hand)
    int64_t stall_passes = 1000;       // without a tenth of progress (by hand)
    double min_theta_share = 0.005;    // least n theta: 400 passes of memory (by hand)
    int64_t min_momentum_passes = 40;  // before momentum may restart (by hand)
    double restart_growth = 1.6;       // gap / smallest gap that restarts momentum (by hand)
};

// Semismooth Newton on the proximal dual (newton/newton.hpp).
struct NewtonTuning {
    double first_cap = 10;             // median curvature times the cap of the first stage (by hand)
    double good_start = 0.1;           // relative gap of a start that needs no continuation (by hand)
    double stage_tol = 3e-2;           // relative gap of the stages before the last (by hand)
    int start_passes = 8;              // of block ascent (by hand)
    double squared_sigma = 0.5;        // sigma times the cap for unbounded duals, cold (by hand)
    double squared_sigma_warm = 0.05;  // the same from a start (by hand)
    double intercept_weight = 0.1;     // r of the intercept at the start of a stage (by hand)
    double working_set_width = 3;      // in units of the last move of the scores (by hand)
    double widen = 5;                  // of the working set after it was too small (by hand)
    int max_inner = 20;                // Newton steps for one working set (by hand)
    double inner_gap = 0.1;            // inner gap / proximal terms at which an inner problem is solved (by hand)
    double inner_target = 0.05;        // or inner gap / target (by hand)
    double sharpen_fast = 0.09;        // factor of sigma after up to 5 Newton steps (by hand)
    double sharpen = 0.3;              // after up to 14 (by hand)
    double sharpen_slow = 0.55;        // after up to 25 (by hand)
    int max_since_centre = 40;         // Newton steps after which the centre moves in any case (by hand)
    double smoother = 10;              // factor of sigma then (by hand)
};

// Dual coordinate ascent for two classes (two_class/box_ascent.hpp).
struct BoxTuning {
    int passes_between_checks = 5;  // (by hand)
    int longest_skip = 16;          // passes that skip a sample that does not move (by hand)
};

// Ridge paths by condensed forms (two_class/banded_form.hpp, two_class/ridge_path.hpp).
struct RidgeTuning {
    int wide_band_from = 400;  // rows; below, systems with the wider band cost more than it saves (by hand)
    int narrow_band = 16;      // columns (by hand)
    int wide_band = 32;        // columns (by hand)
    int reflector_block = 64;  // columns that LAPACK handles together (by hand)
    int few_vectors = 16;      // for which that does not pay (by hand)
};

// Threads that share a loop (base/thread_team.hpp): flops of a part, many times what it takes to wake a thread
// (by hand). Compile-time: it also decides how sums are split, and so the bits.
constexpr double min_part_flops = 5e5;

}  // namespace skm

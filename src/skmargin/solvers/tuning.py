"""Every constant of the Python side that steers speed or memory: one frozen structure a solver.

A wrong value costs time, never the certificate: what steers accuracy, and limits that no run meets, stay beside the
code that needs them.  This file imports nothing of the package, so that every storey may read it.  Solvers take a
`Tuning` as an argument; estimators hand on their class attribute ``_tuning``.

Each constant says its unit, where its value came from, and its sensitivity: the CPU time with half of it, and with
twice of it, beside the usual one: geometric mean (and largest ratio) over the problems of
``benchmarks/sensitivity.py``, none of which was used to set it, cut to at most 2500 rows, one run each.  "same bits":
the results of all problems are the same (their times were not compared), be it that none of them reaches the constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

T = TypeVar("T")

BY_HAND = "set by hand"
MEASURED = "measured on digits, satimage, usps, MNIST and generated rows"
GENERATED_TEXT = "measured on generated text, 1,000 to 8,000 classes, d = 1,000 to 50,000"
FITTED = "fitted to times of generated rows"
HARDWARE = "sizes of common caches"


def constant(value: T, unit: str, origin: str = BY_HAND, sensitivity: str = "") -> T:
    """A field with its unit, its origin and what halving and doubling it cost."""
    found: T = field(default=value, metadata={"unit": unit, "origin": origin, "sensitivity": sensitivity})
    return found


@dataclass(frozen=True)
class StorageTuning:
    """How rows are stored and cut (rows/arrays.py, rows/gram.py)."""

    sparse_below: float = constant(
        0.25, "share of non-zeros from which dense rows are faster than CSR", MEASURED, sensitivity="same bits"
    )
    dense_features: int = constant(32, "features below which dense rows always stay dense", sensitivity="same bits")
    block_numbers: int = constant(
        1 << 17, "numbers of a block of rows that is processed in the cache", HARDWARE, sensitivity="same bits"
    )
    dense_numbers: int = constant(
        1 << 25, "numbers up to which sparse rows may be made dense: memory", sensitivity="same bits"
    )


@dataclass(frozen=True)
class KernelRowsTuning:
    """Rows of a kernel matrix (rows/kernel_rows.py)."""

    product_work: float = constant(
        2e8, "multiply-adds of one matrix product, between two checks for Ctrl-C", sensitivity="same bits"
    )
    block_numbers: int = constant(1 << 22, "numbers of a block of rows that is not kept", sensitivity="same bits")
    score_rows: int = constant(512, "rows scored at once", HARDWARE, sensitivity="same bits")
    prepared_numbers: int = constant(1 << 18, "numbers of the data centred at once", HARDWARE, sensitivity="same bits")
    prepared_share: float = constant(
        1 / 24, "the same, as a share of the numbers of the kernel matrix", sensitivity="1.00 (1.1), 1.03 (1.3)"
    )
    column_multiple: int = constant(
        64,
        "columns are prepared in multiples of it: BLAS is slower for others",
        MEASURED,
        sensitivity="1.01 (1.1), 1.02 (1.2)",
    )
    whole_rows: float = constant(
        0.6,
        "share of the samples in a working set that reads whole rows: least memory",
        sensitivity="1.00 (1.0), 1.00 (1.1)",
    )
    whole_rows_small: float = constant(
        0.375, "the same for matrices of at most `small_matrix` rows", sensitivity="1.00 (1.1), 0.98 (1.2)"
    )
    small_matrix: int = constant(2000, "rows", sensitivity="1.00 (1.1), 0.99 (1.0)")
    copy_cost: float = constant(
        96, "features whose product takes as long as the copy of a kernel value", MEASURED, sensitivity="same bits"
    )


@dataclass(frozen=True)
class LinearTuning:
    """Linear machines in the dual (solvers/dual/plan.py)."""

    float32_tol: float = constant(
        9e-4,
        "relative gap down to which float32 agrees with float64 to 1 %: below what the usual tol asks of a solver",
        MEASURED,
        sensitivity="1.00 (1.0), 1.05 (2.6)",
    )
    float32_numbers: float = constant(
        3e5, "numbers of dense rows below which float64 is as fast", MEASURED, sensitivity="same bits"
    )
    float32_goal: float = constant(
        0.9, "share of tol that a float32 stage must reach", sensitivity="1.01 (1.3), 1.02 (3.4)"
    )
    tiny_work: int = constant(
        20_000, "n d k up to which a solve to rounding costs no more than the call", MEASURED, sensitivity="same bits"
    )
    tiny_rows: int = constant(100, "rows, likewise", MEASURED, sensitivity="0.99 (1.5), 1.00 (1.0)")
    newton_steps: float = constant(
        40,
        "Newton steps of a cold solve, which block passes may cost first",
        MEASURED,
        sensitivity="1.01 (1.5), 1.02 (1.8)",
    )
    newton_steps_warm: float = constant(
        10, "the same from a relative gap below 0.1", MEASURED, sensitivity="1.02 (1.8), 0.99 (1.3)"
    )
    newton_flops_cubic: float = constant(
        0.13, "flops of a Newton step for each unknown cubed", FITTED, sensitivity="1.00 (1.3), 0.99 (1.1)"
    )
    newton_flops_scores: float = constant(
        390, "flops of a Newton step for each score (n k)", FITTED, sensitivity="1.01 (1.6), 1.01 (1.8)"
    )
    newton_flops_rows: float = constant(
        13, "flops of a Newton step for each n d k", FITTED, sensitivity="1.01 (1.6), 1.01 (1.8)"
    )
    newton_unknowns: int = constant(
        6000, "(k - 1)(d + 1) up to which its matrix is kept: memory", sensitivity="same bits"
    )
    newton_numbers: int = constant(
        10**8, "numbers up to which its other arrays are kept: memory", sensitivity="same bits"
    )
    block_passes: float = constant(
        15, "block passes to a gap of 1e-3, times strength ** block_power", FITTED, sensitivity="1.01 (1.5), 1.00 (1.5)"
    )
    block_power: float = constant(0.66, "exponent of the strength", FITTED, sensitivity="1.04 (1.9), 1.00 (1.3)")
    block_overhead: float = constant(
        128, "features whose work the other work of a block step equals", FITTED, sensitivity="1.01 (1.5), 0.99 (1.0)"
    )
    block_rows: float = constant(
        10, "rows for each k d below which rows count as separable", FITTED, sensitivity="1.03 (2.1), 1.02 (1.8)"
    )
    separable_errors: float = constant(
        0.01, "error rate after one pass up to which rows count as separable", sensitivity="same bits"
    )
    reserved_iterations: int = constant(500, "iterations kept for the second method", sensitivity="same bits")
    centre_from: float = constant(
        0.1,
        "squared mean over variance below which dense rows are not centred",
        MEASURED,
        sensitivity="1.00 (1.0), 1.02 (1.8)",
    )
    split_strength: float = constant(
        0.01, "C times the variance from which the mean is treated separately", FITTED, sensitivity="same bits"
    )
    split_mean: float = constant(
        0.3, "C times the squared mean, likewise, one hinge a sample", FITTED, sensitivity="same bits"
    )
    split_mean_sum: float = constant(3.0, "the same with several hinges a sample", FITTED, sensitivity="same bits")
    subsample_rows: float = constant(
        100, "rows for each number of W from which some give first intercepts", MEASURED, sensitivity="same bits"
    )
    subsample_step: int = constant(32, "one row of so many is taken", MEASURED, sensitivity="same bits")
    subsample_strength: float = constant(
        0.3, "C times the variance below which first intercepts pay", MEASURED, sensitivity="same bits"
    )
    threaded_work: int = constant(
        10**6, "n d k from which a loop is long enough for two threads", MEASURED, sensitivity="same bits"
    )
    face_share: float = constant(
        4, "numbers of W for each number of X up to which steps on a face pay", MEASURED, sensitivity="same bits"
    )


@dataclass(frozen=True)
class ManyClassesTuning:
    """Linear machines of very many classes (solvers/many_classes)."""

    many: int = constant(
        2000,
        "classes from which scans in tiles and visits over lists beat checks row by row",
        GENERATED_TEXT,
        sensitivity="1.18 (1.4), 1.46 (2.2) with 1,000 and 4,000 classes",
    )
    new_rivals: int = constant(
        16, "rivals that a scan gives a sample", GENERATED_TEXT, sensitivity="1.08 (1.3), 1.05 (1.1) with 3,000 classes"
    )
    drop: float = constant(
        0.2,
        "share of the full gap at which visits over the lists stop",
        GENERATED_TEXT,
        sensitivity="1.25 (1.5), 0.81 (1.1) with 3,000 classes",
    )
    patience: int = constant(
        8, "stages in which the gap did not fall by a tenth that end a run", sensitivity="same bits"
    )


@dataclass(frozen=True)
class KernelTuning:
    """Kernel machines in the dual (solvers/dual/kernel.py, working_set.py, kernel_factor.py)."""

    round_target: float = constant(
        0.85, "share of the final gap at which a round stops", sensitivity="1.10 (1.3), 1.11 (1.4)"
    )
    round_drop: float = constant(
        0.05, "or of the gap that it began with", MEASURED, sensitivity="1.05 (1.4), 1.04 (1.3)"
    )
    round_drop_odm: float = constant(
        0.03, "the same for ODM, whose steps are cheap beside rows", MEASURED, sensitivity="same bits"
    )
    round_drop_partial: float = constant(
        0.3, "the same where memory does not hold all samples that need work", sensitivity="same bits"
    )
    first_set: float = constant(
        1 / 32, "share of the samples in the first working set", MEASURED, sensitivity="same bits"
    )
    min_set: int = constant(
        200, "samples of the smallest first set and of the smallest growth", sensitivity="0.95 (1.2), 0.91 (1.2)"
    )
    set_growth: float = constant(
        0.5, "rows added in a round, as a share of those kept", MEASURED, sensitivity="1.01 (1.1), 0.96 (1.0)"
    )
    new_row_gap: float = constant(
        0.9, "mean gaps below which a sample gets no row yet", MEASURED, sensitivity="0.96 (1.1), 0.96 (1.3)"
    )
    gap_left_out: float = constant(
        0.02, "share of the gap outside the working set", MEASURED, sensitivity="0.95 (1.1), 0.94 (1.1)"
    )
    stretch: float = constant(
        0.5,
        "share of the final gap that the longest class vectors tried may cost",
        MEASURED,
        sensitivity="0.98 (1.1), 0.96 (1.2)",
    )
    incremental_steps: float = constant(
        32, "steps a sample up to which float32 scores need no new sum of rows", sensitivity="0.99 (1.0), 0.98 (1.0)"
    )
    proximal: float = constant(
        0.06, "mean curvatures: proximal step of the intercepts", MEASURED, sensitivity="0.85 (1.0), 0.93 (1.3)"
    )
    factor_rows: int = constant(2000, "rows of the largest matrix that is factored", sensitivity="same bits")
    factor_steps_linear: float = constant(
        100.0, "block steps for each row that a factored solve costs", FITTED, sensitivity="same bits"
    )
    factor_steps_cubic: float = constant(
        3e-4, "block steps for each row cubed that it costs", FITTED, sensitivity="same bits"
    )


@dataclass(frozen=True)
class OdmTuning:
    """The optimal margin distribution machine (solvers/odm)."""

    inner_gain: float = constant(
        0.3,
        "share of the possible gain at which an inner problem stops",
        MEASURED,
        sensitivity="1.00 (1.0), 0.99 (1.1)",
    )
    inner_tol: float = constant(0.8, "or of tol", sensitivity="1.11 (1.2), 1.06 (1.3)")
    start_tol: float = constant(
        1e-2, "relative gap of the convex problem that gives the first rivals", sensitivity="0.97 (1.1), 0.98 (1.1)"
    )
    newton_strength: float = constant(
        5.0,
        "mean of cap_i ||x_i||^2 from which Newton steps come first",
        MEASURED,
        sensitivity="1.04 (1.3), 1.00 (1.0)",
    )
    newton_parameters: int = constant(1000, "largest d k for Newton steps", sensitivity="same bits")
    factor_after: float = constant(
        100,
        "block steps a row after which a small kernel matrix is factored",
        MEASURED,
        sensitivity="1.02 (1.1), 1.00 (1.0)",
    )
    dual_newton_steps: int = constant(100, "Newton steps for duals that can be published", sensitivity="same bits")
    lbfgs_memory: int = constant(20, "pairs of L-BFGS", sensitivity="same bits")


@dataclass(frozen=True)
class BlockNormTuning:
    """The machine with a block norm (solvers/block_norm)."""

    polish_gap: float = constant(
        1e-12, "relative gap that interior-point steps reach for tiny problems", sensitivity="same bits"
    )
    interior_parameters: int = constant(
        1900, "largest min(n, d) k for interior-point steps", MEASURED, sensitivity="same bits"
    )
    interior_size: int = constant(10_000_000, "largest n d k for them", MEASURED, sensitivity="same bits")
    ascent_passes: int = constant(
        100, "passes of block ascent before them, at least", sensitivity="0.99 (1.0), 1.02 (1.1)"
    )
    ascent_passes_parameter: float = constant(
        5, "passes more for each d k: about the cost of the steps", FITTED, sensitivity="0.95 (1.0), 1.04 (1.4)"
    )
    retry_below: float = constant(
        0.1, "length of a step below which the other linearisation is tried", sensitivity="1.00 (1.0), 1.00 (1.0)"
    )
    patience: int = constant(20, "interior-point steps without progress that end them", sensitivity="same bits")
    product_work: float = constant(
        2e9, "multiply-adds of one call of BLAS, between two checks for Ctrl-C", sensitivity="same bits"
    )
    panel: int = constant(64, "columns of an orthogonal factor made at a time, likewise", sensitivity="same bits")
    float64_rows: int = constant(
        500,
        "rows up to which passes over a kernel matrix in float64 are as fast",
        MEASURED,
        sensitivity="1.01 (1.2), 1.01 (1.2)",
    )


@dataclass(frozen=True)
class MultiMarginTuning:
    """The machine of all margins (solvers/multi_margin)."""

    halvings: int = constant(
        8, "halvings of the SVRG step in a row that end a run", sensitivity="0.97 (1.0), 1.01 (1.1)"
    )
    shrink: float = constant(
        0.5, "factor of the step after an epoch that gained too little", sensitivity="0.94 (1.0), 0.81 (1.0)"
    )
    grow: float = constant(1.1, "factor of the step after one that gained", sensitivity="0.85 (1.0), 1.05 (1.3)")
    rounds: int = constant(20, "most relabellings of one stage of the semi-supervised machine", sensitivity="same bits")
    exact_rows: int = constant(2000, "rows up to which balanced labels are optimal", sensitivity="same bits")
    exact_work: int = constant(2 * 10**8, "n k^2, likewise", sensitivity="same bits")


@dataclass(frozen=True)
class PrimalTuning:
    """Smooth problems in the primal (solvers/primal)."""

    first_level: float = constant(
        0.5, "first level of smoothing, in margins", MEASURED, sensitivity="1.03 (1.6), 1.00 (1.7)"
    )
    level_factor: float = constant(
        0.2, "factor from one level to the next", MEASURED, sensitivity="1.09 (2.5), 1.07 (1.5)"
    )
    narrow: float = constant(
        0.1, "level below which pairs far from their margin have no curvature", sensitivity="1.00 (1.0), 1.11 (2.0)"
    )
    few_pairs: int = constant(
        10_000,
        "pairs with most of the curvature up to which Newton-CG is chosen",
        MEASURED,
        sensitivity="0.99 (1.0), 1.00 (1.0)",
    )
    warm_level: float = constant(1e-3, "level at which a good start is continued", sensitivity="same bits")
    warm_gap: float = constant(0.3, "relative gap up to which a start is good", sensitivity="same bits")
    solver_share: float = constant(
        0.6,
        "share of the gap that the solver may have when the level falls",
        MEASURED,
        sensitivity="1.04 (1.4), 1.18 (3.2)",
    )
    float32_work: int = constant(
        1_000_000,
        "multiply-adds of a product from which float32 comes first",
        MEASURED,
        sensitivity="0.99 (1.0), 1.00 (1.0)",
    )
    float32_gap: float = constant(1e-4, "relative gap that a float32 stage aims at", sensitivity="same bits")
    explicit_parameters: int = constant(
        1500, "parameters up to which a whole Hessian replaces a slow L-BFGS", sensitivity="same bits"
    )
    lbfgs_steps: int = constant(100, "L-BFGS steps before that, and", sensitivity="same bits")
    lbfgs_steps_parameter: float = constant(2, "more for each parameter", FITTED, sensitivity="same bits")
    lbfgs_memory: int = constant(10, "pairs of L-BFGS", sensitivity="1.02 (1.2), 1.03 (1.2)")
    lbfgs_check: int = constant(10, "L-BFGS steps between two certificates", sensitivity="0.99 (1.4), 1.06 (1.6)")
    patience: int = constant(
        4, "checks without progress that end a float32 stage", sensitivity="1.00 (1.1), 1.00 (1.0)"
    )
    explicit_work: float = constant(
        3e7,
        "multiply-adds below which a whole Hessian is cheaper than CG",
        MEASURED,
        sensitivity="0.98 (1.0), 1.02 (1.2)",
    )
    explicit_small: int = constant(400, "parameters up to which that is tried", MEASURED, sensitivity="same bits")
    forcing: float = constant(
        0.15, "share of the gradient that CG may leave", MEASURED, sensitivity="1.02 (1.4), 1.00 (1.1)"
    )
    pairs: int = constant(
        700, "pairs in the preconditioner of CG, at first", MEASURED, sensitivity="0.98 (1.2), 1.22 (2.5)"
    )
    most_pairs: int = constant(4000, "the same, at most", sensitivity="same bits")
    many_cg: int = constant(
        30, "CG iterations of a step after which the pairs are doubled", MEASURED, sensitivity="same bits"
    )
    strong_pair: float = constant(
        0.1,
        "curvature, in that of the penalty, from which a pair is kept exactly",
        MEASURED,
        sensitivity="1.04 (1.4), 0.99 (1.0)",
    )
    dropped: float = constant(
        0.03,
        "strength a feature that samples left out of a Hessian may have",
        MEASURED,
        sensitivity="1.00 (1.0), 1.00 (1.0)",
    )
    few_products: int = constant(
        100_000, "multiply-adds with the rows below which no sample is left out", sensitivity="1.01 (1.1), 1.00 (1.0)"
    )
    few_left_out: float = constant(
        0.1, "share of the samples below which none is left out", sensitivity="0.99 (1.0), 0.99 (1.0)"
    )
    precondition_rows: int = constant(
        200, "rows in the preconditioner of L-BFGS", MEASURED, sensitivity="0.92 (1.0), 1.27 (2.5)"
    )
    block_work: int = constant(
        16_000_000, "multiply-adds of one block of a threaded product", MEASURED, sensitivity="same bits"
    )
    chunk_bytes: int = constant(
        1 << 21, "bytes of the rows that a product gathers at once", HARDWARE, sensitivity="1.01 (1.2), 1.00 (1.0)"
    )
    copy_bytes: int = constant(
        1 << 22, "bytes up to which some rows are copied instead of gathered", sensitivity="same bits"
    )
    gram_columns: int = constant(128, "columns at least of a product of rows", MEASURED, sensitivity="same bits")
    adam_check: int = constant(10, "epochs of Adam between two certificates", sensitivity="same bits")


@dataclass(frozen=True)
class TwoClassTuning:
    """Two-class machines (solvers/two_class)."""

    direct_rows: int = constant(
        6000, "rows of a problem up to which it is factorised: documented for users", sensitivity="same bits"
    )
    exact_search_rows: int = constant(
        1000, "rows up to which a whole grid is evaluated in float64", sensitivity="same bits"
    )
    blas_rows: int = constant(
        1000, "rows of a square matrix from which several BLAS threads gain", MEASURED, sensitivity="same bits"
    )
    piece_numbers: int = constant(1 << 17, "numbers of one piece of the rows", HARDWARE, sensitivity="same bits")
    whole_numbers: int = constant(
        1 << 19, "numbers up to which all rows are one piece, which is kept", sensitivity="same bits"
    )
    piece_rows: int = constant(128, "rows or columns of a piece at least", MEASURED, sensitivity="same bits")
    polish_rows: int = constant(1000, "free duals up to which an active set is solved exactly", sensitivity="same bits")
    extra_work: int = constant(
        1 << 30, "multiply-adds of ascent beyond tol, towards the exact optimum", sensitivity="same bits"
    )
    ascent_passes: int = constant(
        50, "passes of ascent before another gear, at least", sensitivity="1.00 (1.0), 1.00 (1.1)"
    )
    few_features: int = constant(
        2000, "features up to which the variance is eliminated by a d x d matrix", sensitivity="same bits"
    )
    gram_rows: int = constant(
        4000, "rows up to which their inner products may be kept: memory", sensitivity="same bits"
    )
    product_speed: float = constant(
        8, "multiply-adds of a matrix product in the time of one of a pass", MEASURED, sensitivity="same bits"
    )


@dataclass(frozen=True)
class EstimatorTuning:
    """Prediction and search (estimators/_scores.py, model_selection)."""

    core_numbers: int = constant(
        4096, "numbers of coef_ up to which the core scores faster than BLAS", MEASURED, sensitivity="same bits"
    )
    core_vectors: int = constant(128, "rows of coef_, likewise", MEASURED, sensitivity="same bits")
    core_numbers_few: int = constant(
        16384, "numbers of coef_ for few rows, where threads of BLAS wait", MEASURED, sensitivity="same bits"
    )
    core_work: int = constant(10**8, "multiplications up to which rows are few", MEASURED, sensitivity="same bits")
    column_features: int = constant(
        64, "features from which rows stored by columns are not copied", MEASURED, sensitivity="same bits"
    )
    shared_gram_bytes: int = constant(
        2**30, "bytes of a kernel matrix that candidates of a search share: memory", sensitivity="same bits"
    )


GENERATED_ROWS = "measured on generated classes of 2e4 to 4e6 rows, covtype, connect-4 and shuttle"


@dataclass(frozen=True)
class BlocksTuning:
    """Rows in blocks (solvers/blocks, rows/blocks.py).

    Sensitivities are those of Crammer-Singer and Weston-Watkins machines on 1e5 generated rows (classes that overlap,
    imbalanced, of unlike scales, with heavy tails, 3 and 26 classes), covtype and connect-4, C from .01 to 100, one run
    each on a busy machine: 10 % is noise.
    """

    # When smoothed Newton steps are tried, and when they are given up.
    sure_rows: int = constant(
        100_000,
        "rows from which they are tried however small C is",
        GENERATED_ROWS,
        sensitivity="1.07 (1.8), 1.04 (1.1)",
    )
    rows_per_parameter: int = constant(
        60,
        "rows for each parameter below which they tell too little",
        GENERATED_ROWS,
        sensitivity="1.04 (1.1), 1.08 (2.1)",
    )
    most_parameters: int = constant(
        2_000, "(k - 1)(d + 1): each step solves a system of so many unknowns", sensitivity="same bits"
    )
    least_filled: float = constant(
        0.05, "share of non-zeros of sparse rows, which passes write out", sensitivity="same bits"
    )
    usual_passes: int = constant(
        6, "passes over all rows that are expected", GENERATED_ROWS, sensitivity="1.05 (1.2), 1.03 (1.1)"
    )
    pass_flops: float = constant(
        15.0, "flops of the block passes for each n k d of a pass", FITTED, sensitivity="1.08 (1.5), 1.15 (1.9)"
    )
    fixed_flops: float = constant(
        1e9, "flops of the block passes that everything else takes", FITTED, sensitivity="same bits"
    )
    underestimated: float = constant(
        2.0, "by how much block passes take longer than estimated", GENERATED_ROWS, sensitivity="0.95 (1.0), 0.94 (1.0)"
    )
    separable_loss: float = constant(
        5e-3, "loss of the sample beside that at zero of rows that can be separated", sensitivity="same bits"
    )
    least_pairs: float = constant(4.0, "pairs in the band for each parameter, likewise", sensitivity="same bits")
    most_passes: int = constant(40, "passes over all rows", GENERATED_ROWS, sensitivity="1.23 (2.3), 1.14 (2.0)")
    most_trials: int = constant(
        12, "steps in a row that fail, and passes over the sample from zero", sensitivity="0.96 (1.1), 1.07 (1.5)"
    )
    # The sample, and the way from zero to the first point.
    sample_rows: int = constant(20_000, "rows of a sample", GENERATED_ROWS, sensitivity="1.11 (2.7), 1.12 (1.3)")
    sample_rows_parameter: int = constant(
        40, "rows of a sample for each parameter, at least", GENERATED_ROWS, sensitivity="1.12 (1.5), 1.03 (1.4)"
    )
    sample_share: float = constant(
        1 / 3, "share of few rows that a sample may have", GENERATED_ROWS, sensitivity="1.15 (3.0), 1.01 (1.1)"
    )
    class_rows: int = constant(200, "rows of a class in a sample, at least", sensitivity="1.08 (1.7), 1.06 (1.7)")
    first_rows: int = constant(
        3_000, "rows of the steps from zero", GENERATED_ROWS, sensitivity="1.13 (2.5), 1.19 (3.0)"
    )
    first_width: float = constant(
        2.0,
        "width of the first step, in margins: all classes tie",
        GENERATED_ROWS,
        sensitivity="1.29 (10.1), 1.48 (10.3)",
    )
    coarse_width: float = constant(
        0.5, "width from which on the whole sample is needed", GENERATED_ROWS, sensitivity="1.06 (1.3), 1.12 (1.9)"
    )
    narrow_width: float = constant(
        0.05, "width of the last steps on the sample", GENERATED_ROWS, sensitivity="1.05 (2.5), 1.04 (2.0)"
    )
    # Steps.
    gap_share: float = constant(
        0.6, "share of tol that the residuals may use", GENERATED_ROWS, sensitivity="1.13 (2.4), 4.39 (33.4)"
    )
    small_gain: float = constant(
        1e-3,
        "gain / objective of a step on the sample that is not followed by another",
        sensitivity="1.13 (1.8), 1.06 (1.1)",
    )
    damping: float = constant(
        0.1,
        "of a step that overshot by as much as it promised, beside the curvature",
        sensitivity="1.20 (2.9), 1.07 (1.4)",
    )
    # Memory.
    piece_bytes: int = constant(
        1 << 26, "bytes of a block, of a load from a file, of the sums of all lanes: memory", sensitivity="same bits"
    )
    lane_rows: int = constant(
        1 << 13, "rows below which the sums of another lane cost more than they save", sensitivity="same bits"
    )


@dataclass(frozen=True)
class Tuning:
    """All of them."""

    storage: StorageTuning = StorageTuning()
    kernel_rows: KernelRowsTuning = KernelRowsTuning()
    linear: LinearTuning = LinearTuning()
    many_classes: ManyClassesTuning = ManyClassesTuning()
    kernel: KernelTuning = KernelTuning()
    odm: OdmTuning = OdmTuning()
    block_norm: BlockNormTuning = BlockNormTuning()
    multi_margin: MultiMarginTuning = MultiMarginTuning()
    primal: PrimalTuning = PrimalTuning()
    two_class: TwoClassTuning = TwoClassTuning()
    estimators: EstimatorTuning = EstimatorTuning()
    blocks: BlocksTuning = BlocksTuning()

    def changed(self, **groups: Mapping[str, Any]) -> Tuning:
        """With other values: ``DEFAULT.changed(linear={"tiny_work": 0})``."""
        return replace(self, **{name: replace(getattr(self, name), **values) for name, values in groups.items()})


DEFAULT = Tuning()

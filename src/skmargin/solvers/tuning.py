"""Every constant of the Python side that steers speed or memory: one frozen structure a solver.

A wrong value costs time, never the certificate: what steers accuracy, and limits that no run meets, stay beside the
code that needs them.  This file imports nothing of the package, so that every storey may read it.  Solvers take a
`Tuning` as an argument; estimators hand on their class attribute ``_tuning``.

Each constant says its unit, where its value came from, and its sensitivity: the CPU time with half of it, and with
twice of it, beside the usual one: geometric mean (and largest ratio) over the problems of
``benchmarks/sensitivity.py``, none of which was used to set it, cut to at most 2500 rows, one run each.  "same bits":
the results of all problems are the same (their times were not compared), be it that none of them reaches the constant.
Where a constant took the place of several, the figures are those of the one of them that mattered most.
"""

from __future__ import annotations

import math
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
class CommonTuning:
    """What all solvers share: sizes of arrays and of work, and when one stage gives way to the next."""

    cache_numbers: int = constant(
        1 << 18, "numbers of a block that is processed in the cache", HARDWARE, sensitivity="1.00 (1.0), 1.00 (1.0)"
    )
    least_block: int = constant(
        64, "rows or columns of a block at least: BLAS is slower for fewer", MEASURED, sensitivity="same bits"
    )
    dense_numbers: int = constant(
        6000**2,
        "numbers of the largest array that a solver makes beside the rows: memory; documented for users",
        sensitivity="same bits",
    )
    pass_work: int = constant(
        10**6,
        "multiply-adds of a pass over the rows that is worth a thread, or a stage in float32 first",
        MEASURED,
        sensitivity="0.99 (1.0), 1.00 (1.0)",
    )
    product_work: float = constant(
        2e8, "multiply-adds of one matrix product, between two checks for Ctrl-C", sensitivity="same bits"
    )
    call_work: float = constant(
        1e9,
        "multiply-adds of one call of LAPACK, likewise, and of work beyond tol that nobody waits for",
        sensitivity="same bits",
    )
    tiny_work: int = constant(
        20_000, "n d k up to which a solve to rounding costs no more than the call", MEASURED, sensitivity="same bits"
    )
    sparse_below: float = constant(
        0.25, "share of non-zeros from which dense rows are faster than CSR", MEASURED, sensitivity="same bits"
    )
    overhead_features: float = constant(
        96,
        "features whose multiply-adds take as long as the other work on a number, or its copy",
        FITTED,
        sensitivity="1.01 (1.5), 0.99 (1.0)",
    )
    product_speed: float = constant(
        4,
        "multiply-adds of a product or a factor of matrices in the time of one of a pass",
        MEASURED,
        sensitivity="1.00 (1.3), 0.99 (1.1)",
    )
    passes_per_parameter: float = constant(
        5,
        "passes of a first-order method for each parameter that cost as much as a second-order one",
        FITTED,
        sensitivity="0.95 (1.0), 1.04 (1.4)",
    )
    lbfgs_memory: int = constant(10, "pairs of L-BFGS", sensitivity="1.02 (1.2), 1.03 (1.2)")
    check_every: int = constant(
        10, "steps of L-BFGS or epochs of Adam between two certificates", sensitivity="0.99 (1.4), 1.06 (1.6)"
    )
    patience: int = constant(10, "steps without progress that end a method", sensitivity="1.00 (1.1), 1.00 (1.0)")
    start_tol: float = constant(
        1e-2, "relative gap of a problem that only gives a start", sensitivity="0.97 (1.1), 0.98 (1.1)"
    )
    inner_goal: float = constant(
        0.85, "share of the final gap at which an inner method stops", sensitivity="1.10 (1.3), 1.11 (1.4)"
    )
    float32_tol: float = constant(
        9e-4,
        "relative gap down to which float32 agrees with float64 to 1 %: below what the usual tol asks of a solver",
        MEASURED,
        sensitivity="1.00 (1.0), 1.05 (2.6)",
    )

    def block_of(self, width: int) -> int:
        """Rows of a block whose rows have so many numbers."""
        return max(self.least_block, self.cache_numbers // max(1, width))

    def tile_of(self, depth: int) -> int:
        """Rows and columns of a tile of products: both factors, with so many numbers a row, and the values together."""
        return max(self.least_block, int(math.sqrt(depth**2 + self.cache_numbers) - depth))

    @property
    def direct_rows(self) -> int:
        """Rows of the largest square matrix that a solver makes."""
        return math.isqrt(int(self.dense_numbers))

    @property
    def most_factored(self) -> int:
        """Rows of the largest matrix whose Cholesky factor one call may make: a sixth of their cube multiply-adds."""
        return int((6 * self.call_work) ** (1 / 3))

    def can_factor(self, size: int) -> bool:
        """Whether one call may make the factor of a matrix of so many rows."""
        return size <= self.most_factored


@dataclass(frozen=True)
class LinearTuning:
    """Linear machines in the dual (solvers/dual/plan.py)."""

    newton_steps: float = constant(
        30, "Newton steps, which block passes may cost first", MEASURED, sensitivity="1.01 (1.5), 1.02 (1.8)"
    )
    newton_flops: float = constant(
        5,
        "flops of a Newton step for each n k and feature, `overhead_features` among them",
        FITTED,
        sensitivity="1.01 (1.6), 1.01 (1.8)",
    )
    block_passes: float = constant(
        15, "block passes to a gap of 1e-3, times strength ** block_power", FITTED, sensitivity="1.01 (1.5), 1.00 (1.5)"
    )
    block_power: float = constant(0.66, "exponent of the strength", FITTED, sensitivity="1.04 (1.9), 1.00 (1.3)")
    block_rows: float = constant(
        10, "rows for each k d below which rows count as separable", FITTED, sensitivity="1.03 (2.1), 1.02 (1.8)"
    )
    centre_from: float = constant(
        0.1,
        "squared mean over variance below which dense rows are not centred",
        MEASURED,
        sensitivity="1.00 (1.0), 1.02 (1.8)",
    )
    faint_strength: float = constant(
        0.3, "C times the variance below which first intercepts pay", MEASURED, sensitivity="same bits"
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


@dataclass(frozen=True)
class KernelTuning:
    """Kernel machines in the dual (solvers/dual/kernel.py, working_set.py, kernel_factor.py; rows/kernel_rows.py)."""

    round_drop: float = constant(
        0.05,
        "share of the gap of a working set at which a round stops",
        MEASURED,
        sensitivity="1.05 (1.4), 1.04 (1.3)",
    )
    min_set: int = constant(
        200, "samples of the first set and of the smallest growth", sensitivity="0.95 (1.2), 0.91 (1.2)"
    )
    set_growth: float = constant(
        0.5, "rows added in a round, as a share of those kept", MEASURED, sensitivity="1.01 (1.1), 0.96 (1.0)"
    )
    gap_left_out: float = constant(
        0.02, "share of the gap outside the working set", MEASURED, sensitivity="0.95 (1.1), 0.94 (1.1)"
    )
    proximal: float = constant(
        0.06, "mean curvatures: proximal step of the intercepts", MEASURED, sensitivity="0.85 (1.0), 0.93 (1.3)"
    )
    whole_rows: float = constant(
        0.6,
        "share of the samples in a working set that reads whole rows: least memory",
        sensitivity="1.00 (1.0), 1.00 (1.1)",
    )
    factor_steps: float = constant(
        0.5, "block steps for each pair of rows that a factored solve costs", FITTED, sensitivity="same bits"
    )


@dataclass(frozen=True)
class OdmTuning:
    """The optimal margin distribution machine (solvers/odm)."""

    inner_gap: float = constant(
        0.43,
        "share of what an outer step has gained that may be left of the gap of its inner problem",
        MEASURED,
        sensitivity="1.00 (1.0), 0.99 (1.1)",
    )


@dataclass(frozen=True)
class BlockNormTuning:
    """The machine with a block norm (solvers/block_norm)."""

    polish_gap: float = constant(
        1e-13, "relative gap that interior-point steps reach for tiny problems", sensitivity="same bits"
    )


@dataclass(frozen=True)
class MultiMarginTuning:
    """The machine of all margins (solvers/multi_margin)."""

    grow: float = constant(1.1, "factor of the step after one that gained", sensitivity="0.85 (1.0), 1.05 (1.3)")
    rounds: int = constant(20, "most relabellings of one stage of the semi-supervised machine", sensitivity="same bits")
    exact_work: int = constant(
        4 * 10**6, "n max(n, k^2) up to which balanced labels are optimal", sensitivity="same bits"
    )


@dataclass(frozen=True)
class PrimalTuning:
    """Smooth problems in the primal (solvers/primal)."""

    first_level: float = constant(
        0.5, "first level of smoothing, in margins", MEASURED, sensitivity="1.03 (1.6), 1.00 (1.7)"
    )
    few_pairs: int = constant(
        10_000,
        "pairs with most of the curvature up to which Newton-CG is chosen",
        MEASURED,
        sensitivity="0.99 (1.0), 1.00 (1.0)",
    )
    level_factor: float = constant(
        0.2, "factor from one level to the next", MEASURED, sensitivity="1.09 (2.5), 1.07 (1.5)"
    )
    solver_share: float = constant(
        0.6,
        "share of the gap that the solver may have when the level falls",
        MEASURED,
        sensitivity="1.04 (1.4), 1.18 (3.2)",
    )
    lbfgs_steps: float = constant(
        2, "L-BFGS steps for each parameter before a whole Hessian replaces them", FITTED, sensitivity="same bits"
    )
    explicit_work: float = constant(
        3e7,
        "multiply-adds below which a whole Hessian is cheaper than CG",
        MEASURED,
        sensitivity="0.98 (1.0), 1.02 (1.2)",
    )
    forcing: float = constant(
        0.15, "share of the gradient that CG may leave", MEASURED, sensitivity="1.02 (1.4), 1.00 (1.1)"
    )
    pairs: int = constant(
        700, "pairs in the preconditioner of CG, at first", MEASURED, sensitivity="0.98 (1.2), 1.22 (2.5)"
    )
    many_cg: int = constant(
        30, "CG iterations of a step after which the pairs are doubled", MEASURED, sensitivity="same bits"
    )
    strong_pair: float = constant(
        0.1,
        "curvature, in that of the penalty, from which a pair is kept exactly",
        MEASURED,
        sensitivity="1.04 (1.4), 0.99 (1.0)",
    )
    precondition_rows: int = constant(
        200, "rows in the preconditioner of L-BFGS", MEASURED, sensitivity="0.92 (1.0), 1.27 (2.5)"
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

    common: CommonTuning = CommonTuning()
    linear: LinearTuning = LinearTuning()
    many_classes: ManyClassesTuning = ManyClassesTuning()
    kernel: KernelTuning = KernelTuning()
    odm: OdmTuning = OdmTuning()
    block_norm: BlockNormTuning = BlockNormTuning()
    multi_margin: MultiMarginTuning = MultiMarginTuning()
    primal: PrimalTuning = PrimalTuning()
    blocks: BlocksTuning = BlocksTuning()

    def changed(self, **groups: Mapping[str, Any]) -> Tuning:
        """With other values: ``DEFAULT.changed(common={"tiny_work": 0})``."""
        return replace(self, **{name: replace(getattr(self, name), **values) for name, values in groups.items()})


DEFAULT = Tuning()

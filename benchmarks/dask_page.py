# ruff: noqa: E501 (tables of the page have long lines)
"""Writes docs/scaling-out.md from the numbers of benchmarks.dask.

python -m benchmarks.dask gauss; python -m benchmarks.dask parquet; python -m benchmarks.dask rounds
python -m benchmarks.dask cost; python -m benchmarks.dask_page
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

from skmargin.rows.chains import CHAIN_LENGTH, LEAST_CHAINS, MOST_CHAINS
from skmargin.rows.workers import FAN_IN, WORKER_TIMEOUT
from skmargin.solvers.blocks.local_rounds import MOST_KEPT
from skmargin.solvers.blocks.local_task import PASSES

ROOT = Path(__file__).parents[1]
PARTITIONS_PER_WORKER = 4  # of the cluster that the model of time is for

HEAD = """# Many machines

<!-- Written by `python -m benchmarks.dask_page` from benchmarks/results/dask.json.  Do not edit: run it again. -->

The estimators themselves take [Dask](https://docs.dask.org) collections. Nothing else changes: what is fitted is an
ordinary estimator with NumPy attributes, which is saved and used anywhere.

## How to use it

`pip install 'skmargin[dask]'`. Start a client of `distributed`, or none: then the threads of this process do the work.

```python
>>> import dask.array as da
>>> import numpy as np
>>> from skmargin import CrammerSingerSVC
>>> rng = np.random.default_rng(0)
>>> y = rng.integers(3, size=20_000)
>>> X = rng.normal(size=(20_000, 5)) + rng.normal(size=(3, 5))[y]
>>> Xd, yd = da.from_array(X, chunks=(5_000, 5)), da.from_array(y, chunks=5_000)
>>> model = CrammerSingerSVC(random_state=0).fit(Xd, yd)
>>> model.coef_.shape, bool(model.dual_gap_ <= 1e-3)
((3, 5), True)
>>> model.predict(Xd)
dask.array<predict, shape=(20000,), dtype=int64, chunksize=(5000,), chunktype=numpy.ndarray>
>>> bool(model.score(Xd, yd).compute() > 0.5)
True

```

| what | how |
|---|---|
| rows | `dask.array` (dense blocks, or blocks that are CSR), `dask.dataframe`, or a list of delayed blocks |
| labels, `sample_weight` | collections that are divided as the rows are; arrays of known sizes are divided so |
| machines | `CrammerSingerSVC`, `WestonWatkinsSVC`, `TopKSVC`, `ODMClassifier`, `MultiMarginSVC`, `M3SVC(loss="log_loss")` |
| machines, in one pass | `LSSVC` and `ULDMClassifier` with `kernel="linear"`: means and products of features are all they need |
| `predict`, `decision_function`, `score` | lazy Dask results |
| `MarginSearchCV` | all candidates and folds share the passes; scorings of predictions such as accuracy, macro-F1 |
| command | `skmargin fit 'data/*.parquet' --model crammer-singer --target kind --out model.skm --dask tcp://host:8786`, or `--dask local` |

The other machines refuse in one sentence. A partition that cannot be used (NaN, other features, X and y of different
lengths, labels that are missing, sparse among dense ones) is named in one sentence. Empty partitions, partitions of
unknown size and of several number types are fine (the widest type is taken), and a partition need not have every class.

Keep the rows in the memory of the workers where they fit (`X = X.persist()`): otherwise each pass reads them again, in
pieces, which is slower and needs little memory. Partitions of 50 to 500 MB are right: each is one task of a pass.

## What happens when something fails

Every pass is a set of pure tasks, one for each partition, whose sums are added in a fixed tree. There are no actors, no
scattered data and no sockets of our own. Where partitions keep something from round to round (the duals of many columns),
that is the result of a task too, and its lineage says how to make it again.

- A worker dies, joins late or is slow: Dask computes again what was lost. The coefficients have **the same bits** for
  every number of workers and threads, and after workers were killed.
- All workers are lost: an error after {timeout:g} seconds. `dask.config.set({{"skmargin.worker-timeout": 600}})` sets
  another limit; a fit never hangs.
- A task was on more than three workers that died: Dask blames the task, and we try the pass again. Where workers are
  expected to die often, raise `distributed.scheduler.allowed-failures`.
- The client dies: with `fit(X, y, checkpoint="fit.npz")` the same call goes on from the best point so far. With many
  columns the file also holds the duals of all rows, if they are at most {kept:.0f} million numbers: what is lost are the
  rounds since it was written (writing takes at most a tenth of the time), and the acceleration begins anew.
- Ctrl-C cancels the tasks.

`verbose=1` and scikit-learn's callbacks tell how far a fit is. On the dashboard tasks have names that say what they do:
`skmargin-check` (a first look at a partition), `skmargin-moments-draw` (means, and a sample of the rows),
`skmargin-pass` and `skmargin-gradient` (a pass at a point), `skmargin-ascend` (a local round; `-open`, `-carry` and
`-keep` are what goes into it and stays), `skmargin-scale`, `skmargin-class-moments`, `skmargin-judge`, and each with `-add`
(the tree).

## What is sent
"""

SENT = """
A round sends one point to every worker, and sums back along a tree in which {fan_in} sums become one.

| | to a worker, per round | sums that come back |
|---|---|---|
| few parameters, (k - 1)(d + 1) <= 2,000: smoothed Newton steps | {g_sent:.0f} kB | {g_back:.0f} kB (curvature: triangles of k(k - 1)/2 matrices) |
| many parameters, here {t_features:,} features and {t_classes} classes: local rounds | {t_sent:.1f} MB | {t_back:.1f} MB |

Points and sums have the number type of the rows where that is enough, and features that no row of a partition has are not
sent.

**Many parameters.** Machines with hinge losses take *accelerated local rounds*: partitions make {passes} passes of exact
steps for their own duals, which stay where they are. What partitions find at the same time has to be made smaller before it
is added, and rounds grow with the root of their number. So partitions form chains, in which one goes on from where the last
one came to: partitions divided by {length}, but at least {least} and at most {most} chains. Their number depends on the
number of partitions alone: with more workers than chains some wait; with fewer partitions than {least} each is a chain. The
other machines take L-BFGS on the smoothed problem, whose rounds do not depend on the number of partitions.

| gear | partitions | chains | C | `tol` | rounds | certified gap | CPU seconds |
|---|---|---|---|---|---|---|---|
{rounds}

Generated text of {r_rows:,} rows, {t_features:,} features, {t_classes} classes, free intercept, from the solution of a tenth
of the rows; CPU time is of one process. L-BFGS is there for comparison: its rounds cost less and all partitions work at the
same time, so that it may be the faster one on very many workers with a small C. A tolerance of 1e-3 takes {fine:.1f} times as
many rounds as 1e-2.

## Measured

Two cores, one for each worker, processes on one machine (`LocalCluster`), float32, `tol` as told, free intercept. Other
programs ran at the same time, more of them than there are cores: wall times are upper bounds, and those of one worker and of
two cannot be compared.

| data | workers | rounds | seconds | seconds a pass | gap |
|---|---|---|---|---|---|
{table}

- **Two workers** take 1 / {speedup:.2f} of the time of one ({gauss_rows:,} rows), and 1 / {speedup_cpu:.2f} of the CPU time of
  the busiest worker and the client, which is what counts on a machine that does nothing else. What does not get faster are
  {client:.2f} s of the client: the solution of a sample of the rows, and the scheduler.
- **Dask itself** costs {empty:.0f} ms a round with {partitions} partitions, {empty_cpu:.0f} ms of them CPU time of the client and
  the busiest worker ({empty_curvature:.0f} and {curvature_cpu:.0f} ms with the sums of the curvature, half of which move from
  one worker to the other, {g_back:.0f} kB each): rounds over partitions of next to no rows.
"""

MEMORY = """- **Memory**: {rows:,} rows of {gb:.1f} GB in Parquet files, two workers with a limit of {limit:.0f} GB each: the largest
  worker held {peak:.2f} GB, and {spilled:.1f} MB were spilled to disk.
"""

TEXT = """- **Text**: {rows:,} generated rows, {features:,} features, {classes} classes, {stored:.1f} million numbers, C = 1, {partitions}
  partitions, two workers: {fits}.
"""

MODEL = """
## A model of time

    time = passes x (rows / workers x cost + reduction + latency)

| constant | value | from |
|---|---|---|
| cost of a row in a gradient pass, 1,000 features, 10 classes | {cost_gradient:.2f} microseconds | `benchmarks.dask cost` |
| cost of a row in a pass with curvature, 1,000 features, 2 classes | {cost_curvature:.1f} microseconds | `benchmarks.dask cost` |
| latency of a task | {per_task:.2f} ms | round without rows, over its tasks |
| reduction of a byte | {per_byte:.1f} ns | rounds without rows, with and without the curvature |

For 10^9 rows of 1,000 features (4 TB in float32) on {workers} workers of one core each, {partitions} partitions:

| machine | passes | rows | reduction | latency | a pass | all |
|---|---|---|---|---|---|---|
{rows}

This is an extrapolation, not a measurement: rows in memory, a network as fast as this machine's loopback, and as many
passes as the fits above. A slower network makes the reduction longer: divide the bytes of a partition's sums by its
speed.

## Beside others

Figures that others have **published**, for other problems, on other machines. They tell orders of magnitude, not who is
faster; none of these programs has a multi-class margin machine.

| program | problem | hardware | time | source |
|---|---|---|---|---|
| Snap ML | logistic regression, two classes, Criteo click logs, 4.2 x 10^9 rows | GPUs on several servers | 1.53 min | [Dünner et al., version 1](https://arxiv.org/abs/1803.06333v1), its abstract |
| the fastest known to them | the same | | 46 times as long | the same |
| Spark ML 2.1 | logistic regression, two classes, the same logs: 10^9 rows, 10^5 hashed features | 512 cores | 5,133 s | [criteo-1tb-benchmark](https://github.com/rambler-digital-solutions/criteo-1tb-benchmark), `results/metrics.cluster.tsv` |
| Spark ML 2.1 | the same, 10^8 rows | 256 cores | 429 s | the same |
| skmargin | Crammer-Singer, 10 classes, 10^9 rows, 1,000 dense features | {workers} cores | {ours:.0f} s | the model above, **not run** |

Spark's `LinearSVC` knows two classes only; published times of it on data of this size were not found.
"""


def line(name: str, workers: int, fit: dict[str, Any]) -> str:
    return (
        f"| {name}, `tol={fit['tol']:g}` | {workers} | {fit['rounds']} | {fit['seconds']:.1f} | "
        f"{fit['pass_seconds']:.2f} | {fit['gap']:.1e} |"
    )


def measured(found: dict[str, Any]) -> str:
    gauss, rounds = found["gauss"], found["rounds"]
    name = f"Gaussian classes, {gauss['rows']:,} x {gauss['features']}, {gauss['classes']} classes, in memory"
    lines = [line(name, n, gauss[f"workers_{n}"]) for n in (1, 2)]
    memory = ""
    if "parquet" in found:  # the part that takes hours on a busy machine
        parquet = found["parquet"]
        lines.append(line(f"the same classes, {parquet['rows']:,} rows, from Parquet files", 2, parquet))
        sizes = {name: parquet[name] / 1e9 for name in ("limit", "peak")}
        memory = MEMORY.format(
            rows=parquet["rows"], gb=parquet["bytes"] / 1e9, spilled=parquet["spilled"] / 1e6, **sizes
        )
    if "text" in found:
        text = found["text"]
        fits = "; ".join(
            f"certified {one['gap']:.1e} after {one['rounds']} rounds, {one['seconds'] / 60:.0f} minutes and "
            f"{sum(one['worker_cpu']):.0f} CPU seconds of the workers, {one['sent'] / 1e6:.0f} MB to a worker each round"
            for one in text["fits"]
        )
        memory += TEXT.format(**{**text, "stored": text["stored"] / 1e6, "fits": fits})
    local = [one for one in rounds["fits"] if one["gear"] == "local"]
    fewest = {one["tol"]: one["rounds"] for one in local if (one["partitions"], one["C"]) == (32, 1.0)}
    one = gauss["workers_2"]
    return SENT.format(
        fan_in=FAN_IN, g_sent=one["sent"] / 1e3, g_back=one["back"] / 1e3, t_features=rounds["features"],
        t_classes=rounds["classes"], r_rows=rounds["rows"], t_sent=max(f["sent"] for f in local) / 1e6,
        t_back=max(f["back"] for f in local) / 1e6, rounds="\n".join(round_line(one) for one in rounds["fits"]),
        fine=fewest[1e-3] / fewest[1e-2], passes=PASSES, length=CHAIN_LENGTH, least=LEAST_CHAINS, most=MOST_CHAINS,
        table="\n".join(lines), speedup=gauss["speedup"],
        speedup_cpu=gauss["speedup_cpu"], empty_cpu=1e3 * gauss["empty_round"]["gradient_cpu"],
        curvature_cpu=1e3 * gauss["empty_round"]["curvature_cpu"], gauss_rows=gauss["rows"], client=one["client_cpu"],
        empty=1e3 * gauss["empty_round"]["gradient"],
        empty_curvature=1e3 * gauss["empty_round"]["curvature"], partitions=gauss["partitions"],
    ).rstrip("\n") + "\n" + memory  # fmt: skip


def round_line(one: dict[str, Any]) -> str:
    local = one["gear"] == "local"
    chains = str(one["chains"]) if local else ""
    return (
        f"| {'local rounds' if local else 'L-BFGS'} | {one['partitions']} | {chains} | {one['C']:g} | {one['tol']:g} | "
        f"{one['rounds']} | {one['gap']:.1e} | {one['cpu']:.0f} |"
    )


def model(found: dict[str, Any], rows: float = 1e9, workers: int = 100) -> str:
    gauss, cost = found["gauss"], found["cost"]
    empty, partitions = gauss["empty_round"], gauss["partitions"]
    per_task = empty["gradient"] / (partitions + math.ceil(partitions / FAN_IN) + 1)
    per_byte = (empty["curvature"] - empty["gradient"]) / (partitions * gauss["workers_2"]["back"])
    many = PARTITIONS_PER_WORKER * workers
    levels = math.ceil(math.log(many, FAN_IN))
    lines, totals = [], []
    by_gradients = [fit for fit in found["rounds"]["fits"] if fit["gear"] == "gradients"]
    passes = {"gradient": by_gradients[0]["rounds"], "curvature": gauss["workers_2"]["rounds"]}
    numbers = {"gradient": lambda k, d: k * d * 4, "curvature": lambda k, d: 8 * k * (k - 1) // 2 * d * d // 2}
    for name, words in (("gradient", "10 classes, L-BFGS"), ("curvature", "2 classes, Newton")):
        of_rows = rows / workers * cost[name]["seconds_per_row"]
        # sums meet in a tree: those of one worker's partitions, then `FAN_IN` at a time
        reduction = (PARTITIONS_PER_WORKER + levels * FAN_IN) * per_byte * numbers[name](cost[name]["classes"], 1000)
        latency = (many + many / FAN_IN) * per_task
        one = of_rows + reduction + latency
        totals.append(passes[name] * one)
        lines.append(
            f"| {words} | {passes[name]} | {of_rows:.1f} s | {reduction:.2f} s | {latency:.2f} s | {one:.1f} s | "
            f"{totals[-1]:.0f} s |"
        )
    return MODEL.format(
        cost_gradient=1e6 * cost["gradient"]["seconds_per_row"], cost_curvature=1e6 * cost["curvature"]["seconds_per_row"],
        per_task=1e3 * per_task, per_byte=1e9 * per_byte, workers=workers, partitions=many, rows="\n".join(lines),
        ours=totals[0],
    )  # fmt: skip


def main() -> int:
    found = json.loads((ROOT / "benchmarks" / "results" / "dask.json").read_text())
    parts = [
        HEAD.format(timeout=WORKER_TIMEOUT, kept=MOST_KEPT / 1e6).strip("\n"),
        measured(found).strip("\n"),
        model(found).strip("\n"),
    ]
    (ROOT / "docs" / "scaling-out.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

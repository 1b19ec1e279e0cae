"""The claims of the papers, each judged by the results: what holds, what does not, and on which numbers that rests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ._readings import NEAR, differences, firsts
from ._scores import Scores, finished
from ._statistics import half_width
from ._tables import win_tie_loss
from ._views import above_ceiling, seconds

HOLDS, PART, NOT, OPEN = "holds", "holds in part", "does not hold", "not decided"
MOST, HALF = 0.9, 0.5  # shares of the data sets from which a claim about all of them holds, or holds in part
TIE = 0.5  # points that are no difference
_NAMED = ("method", "rival", "base", "rival_base")  # arguments that are methods
Parts = Mapping[str, Scores]


class Finding(NamedTuple):
    """Verdict on a claim, and the numbers that it rests on, in a sentence."""

    verdict: str
    evidence: str


Judge = Callable[..., Finding | None]


def judge(claim: dict[str, Any], parts: Parts) -> Finding | None:
    """The finding on a claim of prose.toml (``test`` and its arguments); None where results are missing."""
    arguments = claim.get("with", {})
    needed = {*arguments.get("rivals", ()), *(arguments[key] for key in _NAMED if key in arguments)}
    found = []
    for part in (parts[name] for name in claim["tables"] if name in parts):
        reference = {part.experiment.reference} if "rivals" in arguments else set()
        found.append(finished(part, sorted(needed | reference) or None))
    if len(found) < len(claim["tables"]) or not all(table.rows for table in found):
        return None
    return JUDGES[claim["test"]](*found, **arguments)


def agreement(first: Scores, best: Scores, column: str = "") -> tuple[int, int, int]:
    """Figures within two points of the paper's in two readings of a table, and how many published figures both have.

    With ``column`` only those of one published column.
    """
    before, after = _by_column(first), _by_column(best)
    both = {cell for cell in before.keys() & after.keys() if column in ("", cell[1])}
    near = [sum(abs(one[cell]) <= NEAR for cell in both) for one in (before, after)]
    return near[0], near[1], len(both)


def _by_column(scores: Scores) -> dict[tuple[str, str], float]:
    """Differences from the paper by published column; the method that has its name goes first."""
    columns = scores.experiment.columns
    out: dict[tuple[str, str], float] = {}
    for (data, method), value in sorted(differences(scores).items(), key=lambda item: item[0][1] in columns):
        out.setdefault((data, columns.get(method, method)), value)
    return out


def _graded(share: float) -> str:
    return HOLDS if share >= MOST else PART if share >= HALF else NOT


def rests_on(scores: Scores, methods: list[str] | None = None) -> str:
    """On how many data sets a finding rests, and on how many divisions that the methods, all by default, have."""
    runs = []
    for data in scores.names:
        found = [set(scores.values(data, method)) for method in methods or scores.methods]
        runs.append(len(set.intersection(*(some for some in found if some))) if any(found) else 0)
    few, many = min(runs, default=0), max(runs, default=0)
    count = f"{few} to {many} divisions each" if few < many else f"{many} division{'s' * (many != 1)} each"
    return f"{len(scores.rows)} set{'s' * (len(scores.rows) != 1)}, {count}"


def _first(scores: Scores) -> Finding:
    ours, theirs = firsts(scores)
    n, reference = len(scores.rows), scores.experiment.reference
    whole = [row.data.name for row in scores.rows if row.protocol.values is None and row.protocol.rows is None]
    text = f"{reference} has the best mean on {len(ours)} of {n} sets here, on {len(theirs)} of them in the paper"
    if 0 < len(whole) < n:
        text += f"; with all rows and the whole grid on {len(set(ours) & set(whole))} of {len(whole)}"
    return Finding(_graded(len(ours) / n), f"{text} ({rests_on(scores)}).")


def _better(scores: Scores, rivals: list[str]) -> Finding:
    """Significantly better on most sets, never worse."""
    counts = {rival: win_tie_loss(scores, rival) for rival in rivals}
    words = ", ".join(f"{rival} {w}/{t}/{l}" for rival, (w, t, l) in counts.items())
    wins = min(w / max(1, w + t + l) for w, t, l in counts.values())
    losses = max(l for _, _, l in counts.values())
    verdict = HOLDS if wins >= HALF and not losses else PART if all(w > l for w, _, l in counts.values()) else NOT
    basis = rests_on(scores, [scores.experiment.reference, *rivals])
    return Finding(verdict, f"Win/tie/loss of {scores.experiment.reference} against {words} ({basis}).")


def _comparable(scores: Scores, rivals: list[str]) -> Finding:
    """Ties nearly everywhere, as many wins as losses but one, and no mean difference that is large.

    A tie alone says little where divisions are few: the mean differences must be small as well.
    """
    reference = scores.experiment.reference
    gaps = {(data, m): gap for m in rivals for data, gap in zip(scores.names, scores.gaps(reference, m), strict=True)}
    (where, whom), largest = max(gaps.items(), key=lambda item: abs(np.nan_to_num(item[1])))
    counts = {rival: win_tie_loss(scores, rival) for rival in rivals}
    words = ", ".join(f"{rival} {w}/{t}/{l}" for rival, (w, t, l) in counts.items())
    tied = min(t / max(1, w + t + l) for w, t, l in counts.values())
    behind = max(l - w for w, _, l in counts.values())
    close = tied >= HALF and abs(largest) <= NEAR
    verdict = HOLDS if close and behind <= 1 else PART if behind <= 1 else NOT
    return Finding(
        verdict,
        f"Win/tie/loss of {reference} against {words}; the largest mean difference is {largest:+.1f} points ({whom} on "
        f"{where}; {rests_on(scores, [reference, *rivals])}).",
    )


def _near(scores: Scores, points: float, method: str = "") -> Finding | None:
    found = {cell: d for cell, d in differences(scores).items() if method in ("", cell[1])}
    if not found:
        return None
    near = sum(abs(d) <= points for d in found.values())
    (data, name), largest = max(found.items(), key=lambda item: abs(item[1]))
    of = f"figures of {method}" if method else "figures"
    return Finding(
        _graded(near / len(found)),
        f"{near} of {len(found)} {of} lie within {points:g} point{'s' * (points != 1)} of the paper's, "
        f"{sum(d > 0 for d in found.values())} are above it; the largest difference is {largest:+.1f} "
        f"({name} on {data}).",
    )


def _below_ceiling(scores: Scores) -> Finding:
    above = above_ceiling(scores)
    words = ", ".join(f"{data} {there:.1f} against {here:.1f}" for data, there, here in above)
    far = sum(there - here > NEAR for _, there, here in above)
    return Finding(
        _graded(1 - len(above) / len(scores.rows)) if above else HOLDS,
        f"On {len(above)} of {len(scores.rows)} sets the published test accuracy of {scores.experiment.reference} is "
        f"above that of every linear machine tried here on its own training rows, on {far} by more than {NEAR:g} points"
        + (f": {words}." if words else "."),
    )


def _no_luck(here: Scores, others: Scores, method: str) -> Finding:
    """The figures of one division are those of other divisions."""
    gaps = {}
    for data in here.names:
        one, many = (list(s.values(data, method).values()) for s in (here, others))
        if one and many:
            here_mean, elsewhere = 100 * float(np.mean(one)), 100 * float(np.mean(many))
            gaps[data] = here_mean - elsewhere, here_mean, elsewhere
    close = sum(abs(gap) <= NEAR for gap, *_ in gaps.values())
    data = max(gaps, key=lambda name: gaps[name][0])
    _, high, low = gaps[data]
    return Finding(
        _graded(close / len(gaps)),
        f"On {close} of {len(gaps)} sets the mean of the other divisions is within {NEAR:g} points; the most "
        f"favourable is {data}: {high:.1f} against {low:.1f} elsewhere.",
    )


def _ahead(scores: Scores, method: str, rival: str) -> Finding:
    gap = scores.gaps(method, rival)
    gap = gap[np.isfinite(gap)]
    ahead, behind = int((gap > TIE).sum()), int((gap < -TIE).sum())
    share = (len(gap) - behind) / len(gap)
    return Finding(
        _graded(share),
        f"{method} is more than {TIE:g} points ahead of {rival} on {ahead} of {len(gap)} sets, as far behind on "
        f"{behind}; {gap.mean():+.1f} points on average ({rests_on(scores, [method, rival])}).",
    )


def _gains(scores: Scores, method: str, base: str, rival: str, rival_base: str) -> Finding:
    """A method gains as much over the machine that it is made of as another over its own."""
    ours, theirs = (scores.gaps(*pair) for pair in ((method, base), (rival, rival_base)))
    there = np.isfinite(ours) & np.isfinite(theirs)
    behind = int((ours[there] < theirs[there] - TIE).sum())
    words = ", ".join(
        f"{data} {one:+.1f} against {two:+.1f}" for data, one, two in zip(scores.names, ours, theirs, strict=True)
    )
    return Finding(
        _graded(1 - behind / max(1, there.sum())),
        f"Points that {method} gains over {base}, and {rival} over {rival_base}: {words}; on average "
        f"{ours[there].mean():+.1f} against {theirs[there].mean():+.1f} "
        f"({rests_on(scores, [method, base, rival, rival_base])}).",
    )


def _never_behind(scores: Scores, rivals: list[str]) -> Finding:
    gap = np.fmin.reduce([scores.gaps(scores.experiment.reference, rival) for rival in rivals])
    behind = [f"{data} {value:+.1f}" for data, value in zip(scores.names, gap, strict=True) if value < -TIE]
    return Finding(
        _graded(1 - len(behind) / len(gap)),
        f"{scores.experiment.reference} is at least {TIE:g} points behind the best of {', '.join(rivals)} on "
        f"{len(behind)} of {len(gap)} sets"
        + (f": {', '.join(behind)}" if behind else "")
        + f" ({rests_on(scores, [scores.experiment.reference, *rivals])}).",
    )


def _drop(scores: Scores) -> Finding | None:
    """The rivals drop with the fifth class, the reference does not."""
    means, at = scores.means(), scores.methods.index(scores.experiment.reference)
    k = np.array([int(name.split()[-2]) for name in scores.names])
    if k.min() >= 5 or k.max() < 5:
        return None
    before, after = 100 * np.nanmean(means[k < 5], axis=0), 100 * np.nanmean(means[k >= 5], axis=0)
    falls = dict(zip(scores.methods, before - after, strict=True))
    rivals = [fall for method, fall in falls.items() if method != scores.methods[at]]
    own = falls[scores.methods[at]]
    verdict = HOLDS if min(rivals) > own + NEAR else PART if np.mean(rivals) > own + NEAR else NOT
    words = ", ".join(f"{method} {fall:.1f}" for method, fall in falls.items())
    return Finding(
        verdict,
        f"Mean accuracy with fewer than five classes minus that with five or more: {words} ({rests_on(scores)}).",
    )


def _sharper(scores: Scores) -> Finding:
    variance, negative = scores.means("margin variance"), scores.means("negative margins")
    at = scores.methods.index(scores.experiment.reference)
    least = int(np.sum(variance[:, at] <= np.fmin.reduce(variance, axis=1) + 1e-12))
    words = ", ".join(f"{m} {100 * np.nanmean(negative[:, j]):.1f} %" for j, m in enumerate(scores.methods))
    return Finding(
        _graded(least / len(variance)),
        f"{scores.methods[at]} has the least variance in {least} of {len(variance)} panels; mean share of margins that "
        f"are not positive: {words}.",
    )


def _cheap(scores: Scores, rival: str) -> Finding:
    table = scores.means("iteration")
    ratio = np.log(table[:, scores.methods.index(scores.experiment.reference)] / table[:, scores.methods.index(rival)])
    value = float(np.exp(np.nanmean(ratio)))
    return Finding(
        HOLDS if value <= 2 else NOT,
        f"Geometric mean of the time of an iteration over that of {rival}: {value:.2f}.",
    )


def _exponent(scores: Scores, usual: float, prior: float) -> Finding:
    (method,) = scores.methods
    curves = {data: scores.curve(data, method) for data in scores.names}
    curves = {data: curve for data, curve in curves.items() if usual in curve[0] and prior in curve[0]}
    gain = [100 * (y[x == prior][0] - y[x == usual][0]) for x, y in curves.values()]
    best = [100 * (y.max() - y[x == usual][0]) for x, y in curves.values()]
    other = sum(value > TIE for value in best)
    return Finding(
        _graded(other / len(best)),
        f"On {other} of {len(best)} sets some p is more than {TIE:g} points better than p = {usual:g} on the test "
        f"rows; p = {prior:g} is {np.mean(gain):+.1f} points from p = {usual:g} on average.",
    )


def _broad(scores: Scores) -> Finding:
    (method,) = scores.methods
    spread = {data: 100 * np.ptp(scores.curve(data, method)[1]) for data in scores.names}
    narrow = sum(value <= NEAR for value in spread.values())
    widest = max(spread, key=lambda data: spread[data])
    return Finding(
        _graded(narrow / len(spread)),
        f"On {narrow} of {len(spread)} sets the accuracy stays within {NEAR:g} points over the whole range; on "
        f"{widest} it moves by {spread[widest]:.1f}.",
    )


def _converges(scores: Scores, method: str, exact: str) -> Finding:
    above = {}
    for data in scores.names:
        slow, best = (scores.curve(data, name, "objective")[1] for name in (method, exact))
        if len(slow) and len(best):
            above[data] = 100 * (slow[-1] / min(best[-1], slow[-1]) - 1)
    near = sum(value <= 1 for value in above.values())
    worst = max(above, key=lambda data: above[data])
    return Finding(
        _graded(near / len(above)),
        f"After 500 epochs {method} is within 1 % of the optimum on {near} of {len(above)} sets; on {worst} it is "
        f"{above[worst]:.0f} % above.",
    )


def _optimal(scores: Scores, up_to: float) -> Finding:
    """The published solver ends at the optimum, up to one per cent, for each value of its parameter up to a limit."""
    (method,) = scores.methods
    found = [
        (100 * value, x, data)
        for data in scores.names
        for x, value in zip(*scores.curve(data, method, "above optimum"), strict=True)
        if x <= up_to
    ]
    near = sum(value <= 1 for value, *_ in found)
    worst, x, data = max(found)
    return Finding(
        _graded(near / len(found)),
        f"{method} ends within 1 % of the optimum in {near} of {len(found)} cases; the worst objective is "
        f"{1 + worst / 100:.2f} times the optimum ({data}, p = {x:g}).",
    )


def _least_error(scores: Scores) -> Finding:
    first, at, names = 0, scores.experiment.methods[0].name, []
    for data in scores.names:
        ends = {m: scores.curve(data, m, "suboptimality")[1] for m in scores.methods}
        if all(len(values) for values in ends.values()):
            names.append(data)
            first += ends[at][-1] <= min(values[-1] for values in ends.values())
    return Finding(
        _graded(first / len(names)),
        f"After the last epoch {at} is nearest to the optimum on {first} of {len(names)} sets.",
    )


def _slower(scores: Scores, method: str, rival: str) -> Finding:
    table = seconds(scores)
    ratio = table[:, scores.methods.index(method)] / table[:, scores.methods.index(rival)]
    slower = int(np.sum(ratio > 1))
    mean = float(np.exp(np.nanmean(np.log(ratio))))
    verdict = HOLDS if slower >= MOST * len(ratio) and mean > 1.2 else PART if mean > 1.2 else NOT
    return Finding(
        verdict,
        f"{method} takes longer than {rival} on {slower} of {len(ratio)} sets, {mean:.2f} times as long on average.",
    )


def _gain(scores: Scores) -> Finding:
    """The reference is ahead of the other method everywhere, significantly.

    Where it is not, the claim is refuted by a set whose published gain is beyond the 95 % interval of ours, or on which
    the reference is worse; with neither the divisions are too few to decide.
    """
    other = next(m for m in scores.methods if m != scores.experiment.reference)
    wins, ties, losses = win_tie_loss(scores, other)
    paper, both = scores.paper, (scores.experiment.reference, other)
    words, refuted = [], losses
    for data in scores.names:
        one, two = (scores.values(data, method) for method in both)
        gains = [100 * (one[split] - two[split]) for split in one.keys() & two.keys()]
        mean, width = float(np.mean(gains)), half_width(gains)
        words.append(f"{data} {mean:+.2f}" + (f" ± {width:.2f}" if np.isfinite(width) else " on one division"))
        if all((data, method) in paper for method in both):
            there = paper[data, both[0]][0] - paper[data, other][0]
            words[-1] += f" (paper {there:+.2f})"
            refuted += there > mean + width
    n = len(scores.rows)
    verdict = HOLDS if wins == n else PART if wins > losses else NOT if refuted else OPEN
    return Finding(
        verdict,
        f"Gain in points, with its 95 % interval: {', '.join(words)}; win/tie/loss {wins}/{ties}/{losses} "
        f"({rests_on(scores)}).",
    )


JUDGES: dict[str, Judge] = {
    "first": _first, "better": _better, "comparable": _comparable, "near": _near, "below ceiling": _below_ceiling,
    "no luck": _no_luck, "ahead": _ahead, "never behind": _never_behind, "drop": _drop, "sharper": _sharper,
    "cheap": _cheap, "exponent": _exponent, "broad": _broad, "converges": _converges, "least error": _least_error,
    "slower": _slower, "gain": _gain, "gains": _gains, "optimal": _optimal,
}  # fmt: skip

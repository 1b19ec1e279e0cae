"""The plain words for what to choose."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from ..report import ModelResult
from ._metrics import METRICS

LEVEL = 0.05


def advise(
    ranked: Sequence[ModelResult],
    baseline: ModelResult | None = None,
    metric: str = "accuracy",
    own: Collection[str] = (),
) -> list[str]:
    r"""Say in a few sentences which model to choose.

    Parameters
    ----------
    ranked : sequence of ModelResult
        As `skmargin.report.rank_models` gives them, with the scores of the folds.
    baseline : ModelResult, default=None
        The most frequent class, with its scores on the same folds and the p-value against the first model.
    metric : str, default="accuracy"
        What the scores are.
    own : collection of str, default=()
        Names of the models of this package, for a word on the best of them where another model wins.

    Returns
    -------
    sentences : list of str

    Examples
    --------
    >>> from skmargin.comparison import advise
    >>> from skmargin.report import ModelResult, rank_models
    >>> a = ModelResult("a", fold_scores=[0.95, 0.96, 0.97], fit_time=2.0)
    >>> b = ModelResult("b", fold_scores=[0.71, 0.75, 0.73], fit_time=1.0)
    >>> print(*advise(rank_models([b, a])), sep="\n")
    Choose a: 96.0 % of new samples right (± 1.0 over 3 folds).
    It is clearly better than every other model (p < 0.05).
    """
    best = ranked[0]
    right = f"{100 * np.mean(best.fold_scores):.1f} % {METRICS[metric][1]}"
    if len(best.fold_scores) > 1:
        right += f" (± {100 * np.std(best.fold_scores, ddof=1):.1f} over {len(best.fold_scores)} folds)"
    if baseline is not None:
        right += f", {100 * np.mean(baseline.fold_scores):.1f} % by always saying {baseline.params['says']!r}"
        if not _beats(best, baseline):
            return [
                f"No model is clearly better than always saying {baseline.params['says']!r} (p >= {LEVEL}): "
                f"{best.name} is first with {right}.",
                "Look for other features, more samples, or another metric (--metric balanced-accuracy).",
            ]
    return _choice(ranked, right) + _of_ours(ranked, own)


def choose(ranked: Sequence[ModelResult]) -> ModelResult:
    """The model that `advise` names first: the best one, or the fastest of those that are level with it.

    Examples
    --------
    >>> from skmargin.comparison import choose
    >>> from skmargin.report import ModelResult, rank_models
    >>> slow = ModelResult("slow", fold_scores=[0.91, 0.92, 0.9], fit_time=9.0)
    >>> fast = ModelResult("fast", fold_scores=[0.92, 0.91, 0.9], fit_time=0.1)
    >>> choose(rank_models([slow, fast])).name
    'fast'
    """
    best = ranked[0]
    level = [model for model in _equal(ranked) if np.mean(model.fold_scores) >= np.mean(best.fold_scores) - 1e-12]
    return min([best, *level], key=_fit_time)


def _equal(ranked: Sequence[ModelResult]) -> list[ModelResult]:
    """The models that the folds do not tell from the first."""
    return [model for model in ranked[1:] if model.p_value is not None and model.p_value >= LEVEL]


def _fit_time(model: ModelResult) -> float:
    return np.inf if model.fit_time is None else model.fit_time


def _beats(best: ModelResult, baseline: ModelResult) -> bool:
    """Whether the folds show that the best model is better than the baseline.

    The test says nothing of two or three folds: there the lead must be large against its scatter.
    """
    ahead = np.subtract(best.fold_scores, baseline.fold_scores)
    if not (ahead > 0).all() or baseline.p_value is None:
        return bool((ahead > 0).all())
    few = len(ahead) < 4 and ahead.mean() > 2 * ahead.std(ddof=1)
    return baseline.p_value < LEVEL or few


def _of_ours(ranked: Sequence[ModelResult], own: Collection[str]) -> list[str]:
    """A word on the best machine of this package where a classic model wins."""
    best, ours = ranked[0], next((model for model in ranked if model.name in own), None)
    if ours is None or ours is best or best.name in own:
        return []
    clear = ours.p_value is not None and ours.p_value < LEVEL
    score = f"{100 * np.mean(ours.fold_scores):.1f} %"
    return [
        f"The best machine of skmargin, {ours.name} ({score}), is {'clearly worse' if clear else 'not clearly worse'}"
        f" than {best.name}."
    ]


def _choice(ranked: Sequence[ModelResult], right: str) -> list[str]:
    best = ranked[0]
    equal = _equal(ranked)
    if not equal:
        words = [f"Choose {best.name}: {right}."]
        if len(ranked) > 1 and all(model.p_value is not None for model in ranked[1:]):
            words.append(f"It is clearly better than every other model (p < {LEVEL}).")
        return words
    words = [f"{best.name} is first: {right}."]
    names = ", ".join(model.name for model in equal[:4]) + (f" and {len(equal) - 4} more" if len(equal) > 4 else "")
    words.append(f"The folds show no clear difference from {names} (p >= {LEVEL}).")
    chosen, fastest = choose(ranked), min([best, *equal], key=_fit_time)
    if fastest.fit_time is None:
        words.append(f"Choose {best.name}, or the simplest of these.")
    elif fastest is best:
        words.append(f"Choose {best.name}: of these it is also the fastest to fit.")
    elif fastest is chosen:
        words.append(f"Choose {fastest.name}: it is level with {best.name}, and of these the fastest to fit.")
    else:
        words.append(f"Choose {best.name} for its score, or {fastest.name}, which of these is the fastest to fit.")
    worse = sum(model.p_value is not None and model.p_value < LEVEL for model in ranked[1:])
    if worse:
        words.append(f"The other {'model is' if worse == 1 else f'{worse} models are'} clearly worse (p < {LEVEL}).")
    return words

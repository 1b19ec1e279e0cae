"""Readers of raw tables as ONNX operations.

A graph takes columns that are read already: numbers as numbers, NaN for what is missing; dates as seconds since 1970;
text without blanks around it, "" for what is missing.  Everything after that is as in `transform`, in double precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .._types import Estimator
from ._graph import Graph

OTHER = "\ufffd"  # stands for characters that no term has
DAY, MARCH = 86400.0, 719468.0  # seconds; days from the first of March of the year 0 to 1970
TURN = 2 * np.pi


def numbers(graph: Graph, model: Estimator, values: str) -> str:
    """``ParseNumbers``: infinite numbers count as missing."""
    return graph.op("Where", graph.op("IsInf", values), graph.const(np.nan, np.float64), values)


def soft_clip(graph: Graph, model: Estimator, values: str) -> str:
    """``SoftClip``: ``z / sqrt(1 + z^2)``."""
    flags = model.scale_ == 0
    z = graph.op("Sub", values, graph.const(model.center_))
    z = graph.op("Div", z, graph.const(np.where(flags, 1.0, model.scale_)))
    z = graph.op("Clip", z, graph.const(-1e150), graph.const(1e150))  # whose square is a number
    root = graph.op("Sqrt", graph.op("Add", graph.op("Mul", z, z), graph.const(1.0)))
    return graph.op("Where", graph.const(flags), values, graph.op("Div", z, root))


def imputed(graph: Graph, model: Estimator, values: str, dtype: DTypeLike) -> str:
    """``SimpleImputer`` of numbers whose missing ones are NaN."""
    missing = graph.op("IsNaN", values)
    filled = graph.op("Where", missing, graph.const(np.asarray(model.statistics_, dtype=dtype)[None]), values)
    kept = _kept(model)
    if len(kept) < len(model.statistics_):
        filled = graph.columns(filled, kept)
    if model.indicator_ is None:
        return filled
    marks = graph.cast(graph.columns(missing, model.indicator_.features_), dtype)
    return graph.op("Concat", filled, marks, axis=1)


def _kept(model: Estimator) -> np.ndarray:
    """Columns that are not left out because they were empty."""
    known = ~np.isnan(np.asarray(model.statistics_, dtype=np.float64))
    return np.flatnonzero(known | (model.keep_empty_features or model.strategy == "constant"))


def n_imputed(model: Estimator) -> int:
    """Number of columns of `imputed`."""
    return len(_kept(model)) + (0 if model.indicator_ is None else len(model.indicator_.features_))


def date_parts(graph: Graph, model: Estimator, values: str) -> str:
    """``DateParts`` of seconds since 1970, one column after the other."""
    columns = []
    for i in range(model.n_features_in_):
        seconds = graph.columns(values, [i])
        missing = graph.op("IsNaN", seconds)
        seconds = graph.op("Where", missing, graph.const(0.0), seconds)
        days = _floored(graph, seconds, DAY)
        weekday = _modulo(graph, graph.op("Add", days, graph.const(3.0)), 7.0)
        parts = {"days": days, "weekend": graph.cast(graph.op("GreaterOrEqual", weekday, graph.const(5.0)), np.float64)}
        season = _day_of_year(graph, days)
        for name, period in (("season", 365.25), ("half_season", 365.25 / 2), ("third_season", 365.25 / 3)):
            parts |= _circle(graph, name, season, period)
        parts |= _circle(graph, "weekday", weekday, 7.0) | _circle(graph, "hour", _modulo(graph, seconds, DAY), DAY)
        together = graph.op("Concat", *(parts[name] for name in date_names(model)), axis=1)
        columns.append(graph.op("Where", missing, graph.const(np.nan), together))
    return columns[0] if len(columns) == 1 else graph.op("Concat", *columns, axis=1)


def date_names(model: Estimator) -> list[str]:
    """The parts of one date, in order."""
    return [name.removeprefix("x_") for name in model.get_feature_names_out(["x"])]


def _floored(graph: Graph, value: str, by: float) -> str:
    return graph.op("Floor", graph.op("Div", value, graph.const(float(by))))


def _modulo(graph: Graph, value: str, by: float) -> str:
    return graph.op("Sub", value, graph.op("Mul", _floored(graph, value, by), graph.const(float(by))))


def _circle(graph: Graph, name: str, value: str, period: float) -> dict[str, str]:
    angle = graph.op("Mul", value, graph.const(TURN / period))
    cosine = graph.op("Sin", graph.op("Add", angle, graph.const(np.pi / 2)))
    return {f"{name}_sin": graph.op("Sin", angle), f"{name}_cos": cosine}


def _day_of_year(graph: Graph, days: str) -> str:
    """Days since the first of January, from days since 1970: years that begin in March have their leap day last."""
    in_era = _modulo(graph, graph.op("Add", days, graph.const(MARCH)), 146097.0)  # 400 years
    leaps = graph.op("Sub", _floored(graph, in_era, 36524), _floored(graph, in_era, 1460))
    year = _floored(graph, graph.op("Sub", graph.op("Add", in_era, leaps), _floored(graph, in_era, 146096)), 365)
    before = graph.op("Add", graph.op("Mul", year, graph.const(365.0)), _floored(graph, year, 4))
    since_march = graph.op("Sub", in_era, graph.op("Sub", before, _floored(graph, year, 100)))
    fourth, hundredth, first = (
        graph.op("Equal", _modulo(graph, year, n), graph.const(0.0)) for n in (4.0, 100.0, 400.0)
    )
    leap = graph.op("And", fourth, graph.op("Or", graph.op("Not", hundredth), first))
    from_march = graph.op("Add", graph.op("Add", since_march, graph.const(59.0)), graph.cast(leap, np.float64))
    winter = graph.op("GreaterOrEqual", since_march, graph.const(306.0))
    return graph.op("Where", winter, graph.op("Sub", since_march, graph.const(306.0)), from_march)


# -- text -------------------------------------------------------------------------------------------------------------


def levels(graph: Graph, model: Estimator, values: str) -> str:
    """``OneHotEncoder`` of text, with rare levels together and unknown ones as the encoder has them."""
    parts = []
    for i, (categories, targets, unknown, width) in enumerate(_level_targets(model)):
        names = [str(name) for name in categories]
        place = graph.op(
            "LabelEncoder", graph.columns(values, [i]), domain="ai.onnx.ml", keys_strings=names,
            values_int64s=targets, default_int64=unknown,
        )  # fmt: skip
        parts.append(graph.cast(graph.op("Equal", place, graph.const(np.arange(width)[None], np.int64)), np.float64))
    return parts[0] if len(parts) == 1 else graph.op("Concat", *parts, axis=1)


def n_levels(model: Estimator) -> int:
    """Number of columns of `levels`."""
    return sum(width for *_, width in _level_targets(model))


def _level_targets(model: Estimator) -> list[tuple[Any, list[int], int, int]]:
    """Of each column: its levels, which feature each lights (-1: none), that of unknown ones, how many there are."""
    found = []
    for i, categories in enumerate(model.categories_):
        mapping = model._default_to_infrequent_mappings[i] if model._infrequent_enabled else None
        groups = np.arange(len(categories)) if mapping is None else np.asarray(mapping)
        width = int(groups.max()) + 1
        unknown = width - 1 if mapping is not None and model.handle_unknown == "infrequent_if_exist" else -1
        dropped = None if model.drop_idx_ is None else model._drop_idx_after_grouping[i]
        if dropped is not None:
            keep = np.delete(np.arange(width), dropped)
            place = np.full(width + 1, -1)
            place[keep] = np.arange(len(keep))  # the last stays -1: what unknown levels light
            groups, unknown, width = place[groups], int(place[unknown]), len(keep)
        found.append((categories, groups.tolist(), unknown, width))
    return found


def can_weigh(model: Estimator) -> bool:
    """Whether `term_weights` knows a vectorizer exactly."""
    words = model.analyzer == "word" and tuple(model.ngram_range) == (1, 1)
    words = words and model.token_pattern in (r"(?u)\b\w\w+\b", r"(?u)\b\w+\b") and model.tokenizer is None
    parts = model.analyzer == "char_wb" and model.ngram_range[0] >= 2
    return (words or parts) and model.strip_accents is None and model.preprocessor is None


def term_weights(graph: Graph, model: Estimator, values: str, weights: Any = None) -> str:
    """Counts of terms in texts (N,), and their weights by a fitted ``TfidfTransformer``.

    Texts become rows of characters, lower case where the vectorizer makes them so, blanks for what separates terms.  A
    term is a sequence of characters, a word one between two blanks; ONNX counts such sequences.
    """
    vocabulary = {str(term): int(i) for term, i in model.vocabulary_.items()}
    words = model.analyzer == "word"
    sequences = sorted(((f" {term} " if words else term, i) for term, i in vocabulary.items()), key=lambda t: len(t[0]))
    letters = graph.op(
        "Tokenizer", graph.op("Reshape", values, graph.const([-1], np.int64)), domain="com.microsoft", mark=0,
        pad_value=" ", mincharnum=1, separators=[""],
    )  # fmt: skip
    keys = _characters({letter for term, _ in sequences for letter in term} - {" "}, words, model.lowercase)
    letters = graph.op(
        "LabelEncoder", letters, domain="ai.onnx.ml", keys_strings=list(keys), values_strings=list(keys.values()),
        default_string=OTHER,
    )  # fmt: skip
    count = graph.op("Slice", graph.op("Shape", letters), *(graph.const([n], np.int64) for n in (0, 1)))
    blank = graph.op("Expand", graph.const(np.array([[" "]], dtype=object)), _with_one(graph, count))
    counts = _count_sequences(graph, graph.op("Concat", blank, letters, blank, axis=1), sequences, len(vocabulary))
    if getattr(model, "binary", False):
        counts = graph.cast(graph.op("Greater", counts, graph.const(0.0)), np.float64)
    return counts if weights is None else _weigh(graph, weights, counts)


def _with_one(graph: Graph, count: str) -> str:
    return graph.op("Concat", count, graph.const([1], np.int64), axis=0)


def _characters(known: set[str], words: bool, lowercase: bool) -> dict[str, str]:
    """What each character counts as; those that are not listed count as one that no term has."""
    found = {}
    for code in range(1, 0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        letter = chr(code)
        if letter.isspace() or (words and not (letter.isalnum() or letter == "_") and _is_assigned(letter)):
            found[letter] = " "
            continue
        low = letter.lower() if lowercase else letter
        if low in known:
            found[letter] = low
    return found


def _is_assigned(letter: str) -> bool:
    import unicodedata

    return unicodedata.category(letter) not in ("Cn", "Co", "Cs")


def _count_sequences(graph: Graph, letters: str, sequences: list[tuple[str, int]], n_terms: int) -> str:
    longest = max(len(term) for term, _ in sequences)
    starts: list[int] = []
    pool: list[str] = []
    for length in range(1, longest + 1):
        starts.append(len(pool))
        pool += [letter for term, _ in sequences if len(term) == length for letter in term]
    counts = graph.op(
        "TfIdfVectorizer", letters, mode="TF", min_gram_length=min(len(term) for term, _ in sequences),
        max_gram_length=longest, max_skip_count=0, ngram_counts=starts, ngram_indexes=[i for _, i in sequences],
        pool_strings=pool,
    )  # fmt: skip
    return graph.cast(counts, np.float64)


def _weigh(graph: Graph, model: Estimator, counts: str) -> str:
    """``TfidfTransformer``."""
    if model.sublinear_tf:
        positive = graph.op("Greater", counts, graph.const(0.0))
        logarithm = graph.op("Add", graph.op("Log", graph.op("Max", counts, graph.const(1.0))), graph.const(1.0))
        counts = graph.op("Where", positive, logarithm, graph.const(0.0))
    if model.use_idf:
        counts = graph.op("Mul", counts, graph.const(np.asarray(model.idf_, dtype=np.float64)))
    if model.norm is None:
        return counts
    size = graph.op("Abs", counts) if model.norm == "l1" else graph.op("Mul", counts, counts)
    size = graph.sums(size) if model.norm == "l1" else graph.op("Sqrt", graph.sums(size))
    nothing = graph.op("Equal", size, graph.const(0.0))
    return graph.op("Div", counts, graph.op("Where", nothing, graph.const(1.0), size))

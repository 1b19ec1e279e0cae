"""Labels of least loss for rows without one, free or with shares of the classes within bounds."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ..tuning import DEFAULT, Tuning

SWEEPS = 100  # over the prices of the classes, at most
UNBALANCED = 0.001  # share of the rows that may be in excess in a class, where prices balance


def label_losses(F: np.ndarray) -> np.ndarray:
    """``L[i, l] = sum_{j != l} max(0, 1 - F_il + F_ij)``, the loss of giving label l to row i."""
    losses = np.empty_like(F)
    for l in range(F.shape[1]):
        losses[:, l] = np.maximum(0, 1 - F[:, [l]] + F).sum(axis=1) - 1  # the term j = l is 1
    return losses


def whole_counts(shares: np.ndarray, n: int) -> np.ndarray:
    """Whole numbers with sum n, as near to ``n shares`` as can be."""
    wanted = n * shares / shares.sum()
    counts = np.floor(wanted).astype(np.intp)
    most = np.argsort(counts - wanted, kind="stable")[: n - counts.sum()]
    counts[most] += 1
    return counts


def likely_shares(labeled: np.ndarray, unlabeled: float) -> tuple[np.ndarray, np.ndarray]:
    """Shares of the classes among the unlabelled rows, one standard error up and down from those of the labelled ones.

    ``labeled`` is the mass of each class, ``unlabeled`` that of the unlabelled rows; one row more in each class keeps
    the error of a rare class from being zero.
    """
    shares = (labeled + 1) / (labeled.sum() + len(labeled))
    error = np.sqrt(shares * (1 - shares) * (1 / labeled.sum() + 1 / unlabeled))
    return np.maximum(shares - error, 0), np.minimum(shares + error, 1)


def balanced_labels(
    losses: np.ndarray,
    mass: np.ndarray,
    least: np.ndarray,
    most: np.ndarray,
    tuning: Tuning = DEFAULT,
) -> np.ndarray:
    """Labels of small total loss for which the mass of each class lies between two shares of all mass.

    The optimum for few rows of equal mass.  Else prices: every row takes the class of least loss plus price, and the
    price of one class after the other is zero if it keeps its bounds with that, or else what takes it to its bound, up
    to `UNBALANCED` or one row.  Prices cannot part rows of equal losses: these move from class to class in the end.
    """
    n, k = losses.shape
    if n * max(n, k**2) <= tuning.multi_margin.exact_work and (mass == mass[0]).all():
        low, high = np.floor(n * least).astype(np.intp), np.ceil(n * most).astype(np.intp)
        if np.array_equal(least, most):
            low = high = whole_counts(least, n)
        return cheapest_labels(losses, low, high)
    labels: np.ndarray = losses.argmin(axis=1)
    low, high = mass.sum() * least, mass.sum() * most
    slack = max(UNBALANCED * mass.sum(), mass.max())  # no move of one row can break a bound by more
    price = np.zeros(k)
    for _ in range(SWEEPS):
        now = np.bincount(labels, mass, k)
        bound = np.where(price > 0, high, low)  # of a class that has a price: it is there, or the price is wrong
        excess = np.where(price == 0, np.maximum(now - high, low - now), np.abs(now - bound))
        if excess.max() <= slack:
            return labels
        l = int(excess.argmax())
        others = losses + price
        others[:, l] = np.inf
        bid = others.min(axis=1) - losses[:, l]  # row i takes class l where its price is below the bid
        free = mass[bid > 0].sum()
        price[l] = 0.0
        if not low[l] <= free <= high[l]:
            order = np.argsort(-bid, kind="stable")
            taken = int(np.searchsorted(np.cumsum(mass[order]), high[l] if free > high[l] else low[l]))
            price[l] = 0.5 * (bid[order[max(taken - 1, 0)]] + bid[order[min(taken, n - 1)]])
        labels = (losses + price).argmin(axis=1)
    moves = Moves(losses, labels)
    for _ in range(n * k):  # a row may pass through all classes
        now = np.bincount(labels, mass, k)
        full, lacking = now > high + slack, now < low - slack
        allowed = full[:, None] & (now < high) | (now > low)[:, None] & lacking
        if not allowed.any():
            break
        a, b = np.unravel_index(np.where(allowed, moves.cost, np.inf).argmin(), (k, k))
        movable = min(high[b] - now[b], now[a] - low[a])  # without breaking another bound
        moves.make_many(int(a), int(b), mass, min(movable, max(now[a] - high[a], low[b] - now[b])))
    return labels


class Moves:
    """The cheapest row to move from each class to each other one, while rows move."""

    def __init__(self, losses: np.ndarray, labels: np.ndarray) -> None:
        k = losses.shape[1]
        self.losses, self.labels = losses, labels
        self.cost, self.row = np.full((k, k), np.inf), np.zeros((k, k), dtype=np.intp)
        for a in range(k):
            self._look(a)

    def _look(self, a: int) -> None:
        rows = np.flatnonzero(self.labels == a)
        self.cost[a] = np.inf
        if len(rows):
            extra = self.losses[rows] - self.losses[rows, a][:, None]
            self.row[a] = rows[extra.argmin(axis=0)]
            self.cost[a] = extra.min(axis=0)
            self.cost[a, a] = np.inf

    def make(self, pairs: list[Any]) -> None:
        """Move one row for each pair of classes, from the first to the second."""
        for a, b in pairs:
            self.labels[self.row[a, b]] = b
        for a in {a for pair in pairs for a in pair}:
            self._look(a)

    def make_many(self, a: int, b: int, mass: np.ndarray, most: float) -> None:
        """Move the cheapest rows from class a to b: up to this mass if they cost the same, else an eighth of it."""
        rows = np.flatnonzero(self.labels == a)
        extra = self.losses[rows, b] - self.losses[rows, a]
        order = np.argsort(extra, kind="stable")
        equal = int((extra <= extra.min() + 1e-12 * abs(extra.min())).sum())
        eighth, all_of_it = np.searchsorted(np.cumsum(mass[rows[order]]), [most / 8, most], side="right")
        self.labels[rows[order[: max(1, int(eighth), min(equal, int(all_of_it)))]]] = b
        self._look(a)
        self._look(b)


def cheapest_labels(losses: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Labels of least total loss with between ``low`` and ``high`` rows in each class.

    A flow of least cost by shortest paths.  Its nodes are the k classes and one reservoir, which takes the rows that a
    class has above ``low``, at most ``high - low``, and needs as many as all ``low`` leave.  From the labels of least
    loss, the cheapest for the counts that they have, a path leads from a node that holds too much to one that lacks
    something, and one row moves from each class on it to the next.  Prices, the lengths of the shortest paths, leave no
    step with a negative length but by rounding, which is cut off: so that no path can turn in a circle.
    """
    n, k = losses.shape
    labels: np.ndarray = losses.argmin(axis=1)
    moves, step = Moves(losses, labels), np.full((k + 1, k + 1), np.inf)
    price = np.zeros(k + 1)
    for _ in range(n):
        now = np.bincount(labels, minlength=k)
        above = np.clip(now - low, 0, high - low)  # what the reservoir has of each class
        held = np.r_[now - low - above, above.sum() - (n - low.sum())]
        if not held.any():
            break
        step[:k, :k] = moves.cost
        step[:k, k], step[k, :k] = np.where(above < high - low, 0, np.inf), np.where(above > 0, 0, np.inf)
        length = np.maximum(step + (price[:, None] - price), 0)
        cost, source = np.where(held > 0, np.maximum(-price, 0), np.inf), np.full(k + 1, -1)
        for _ in range(k + 1):
            ways = cost[:, None] + length
            via = ways.argmin(axis=0)
            way = ways[via, np.arange(k + 1)]
            shorter = way < cost
            if not shorter.any():
                break
            cost[shorter], source[shorter] = way[shorter], via[shorter]
        path = [int(np.where(held < 0, cost + price, np.inf).argmin())]
        while source[path[-1]] >= 0:
            path.append(int(source[path[-1]]))
        moves.make([(a, b) for b, a in pairwise(path) if max(a, b) < k])
        price += np.minimum(cost, cost[np.isfinite(cost)].max())
    return labels

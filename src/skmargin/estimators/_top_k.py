"""The top-k machine of Lapin, Hein and Schiele (2015)."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from ._documented import documented
from ._dual import DualMachine


@documented
class TopKSVC(DualMachine):
    """Multi-class SVM of the k closest rivals, for tasks that are judged by their top-k error.

    Minimises, with scores ``f_il = w_l'x_i + b_l`` and weights ``s_i``::

        1/2 ||W||^2 + C sum_i s_i (mean of the k largest max(0, 1 - f_{i,y_i} + f_il), l != y_i)

    ``k=1`` is the machine of Crammer and Singer; with all rivals it is that of Weston and Watkins with ``C / k``.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the penalty.
    k : int, default=5
        Number of rivals that count; at most the number of classes less one is used.
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    CrammerSingerSVC : The closest rival only.
    WestonWatkinsSVC : Every rival.

    References
    ----------
    Lapin, Hein and Schiele, Top-k multiclass SVM, NeurIPS 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skmargin import TopKSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = TopKSVC(k=2).fit(X / 16, y)
    >>> bool(clf.score(X / 16, y) > 0.97), bool(clf.dual_gap_ <= clf.tol)
    (True, True)
    """

    _in_blocks = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DualMachine._parameter_constraints,
        "k": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        C: float = 1.0,
        k: int = 5,
        *,
        kernel: Any = "linear",
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        cache_size: float = 500,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            C, kernel=kernel, gamma=gamma, degree=degree, coef0=coef0, cache_size=cache_size,
            fit_intercept=fit_intercept,
            class_weight=class_weight, tol=tol, max_iter=max_iter, warm_start=warm_start, n_jobs=n_jobs,
            random_state=random_state, verbose=verbose,
        )  # fmt: skip
        self.k = k

    def _loss(self, n_classes: int) -> tuple[str, int]:
        return "top", min(self.k, n_classes - 1)

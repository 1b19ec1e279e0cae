"""The multi-class machine of Weston and Watkins (1998)."""

from __future__ import annotations

from ._documented import documented
from ._dual import DualMachine


@documented
class WestonWatkinsSVC(DualMachine):
    """Multi-class SVM of Weston and Watkins: every rival that comes too close counts.

    Minimises, with scores ``f_il = w_l'x_i + b_l`` and weights ``s_i``::

        1/2 ||W||^2 + C sum_i s_i sum_{l != y_i} max(0, 1 - f_{i,y_i} + f_il)

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the penalty.
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    CrammerSingerSVC : Counts the closest rival only.
    TopKSVC : Between the two.

    References
    ----------
    Weston and Watkins, Multi-class support vector machines, Royal Holloway technical report 1998.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skmargin import WestonWatkinsSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = WestonWatkinsSVC(C=10, kernel="rbf").fit(X, y)
    >>> bool(clf.score(X, y) > 0.97), bool(clf.dual_gap_ <= clf.tol)
    (True, True)
    """

    _in_blocks = True

    def _loss(self, n_classes: int) -> tuple[str, int]:
        return "sum", n_classes - 1

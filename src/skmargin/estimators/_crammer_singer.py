"""The multi-class machine of Crammer and Singer (2001)."""

from __future__ import annotations

from ._documented import documented
from ._dual import DualMachine


@documented
class CrammerSingerSVC(DualMachine):
    """Multi-class SVM of Crammer and Singer: one margin a sample, against its closest rival.

    Minimises, with scores ``f_il = w_l'x_i + b_l`` and weights ``s_i``::

        1/2 ||W||^2 + C sum_i s_i max(0, 1 - f_{i,y_i} + max_{l != y_i} f_il)

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
    WestonWatkinsSVC : Counts every rival.
    TopKSVC : Between the two.

    References
    ----------
    Crammer and Singer, On the algorithmic implementation of multiclass kernel-based vector machines, JMLR 2001.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skmargin import CrammerSingerSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = CrammerSingerSVC(C=10).fit(X, y)
    >>> bool(clf.score(X, y) > 0.97), bool(clf.dual_gap_ <= clf.tol)
    (True, True)
    """

    _in_blocks = True

    def _loss(self, n_classes: int) -> tuple[str, int]:
        return "max", 1

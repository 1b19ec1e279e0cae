"""What the dual machines share is written once and shown as each one's own: docstrings and the constructor."""

from __future__ import annotations

from types import FunctionType
from typing import Any, TypeVar

PARAMETERS = """kernel : {"linear", "rbf", "poly", "sigmoid", "laplacian", "precomputed"} or callable, default="linear"
        Kernel.  With ``"linear"`` the class vectors themselves are found and stored.
    gamma : {"scale", "auto"} or float, default="scale"
        Width of the kernels "rbf", "poly", "sigmoid" and "laplacian".
    degree : float, default=3
        Degree of the kernel "poly".
    coef0 : float, default=0.0
        Constant of the kernels "poly" and "sigmoid".
    cache_size : float, default=500
        Megabytes for rows of the kernel matrix.
    fit_intercept : bool, default=True
        Fit an intercept for each class; it is not penalised.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with the weights of the samples.
    tol : float, default=1e-3
        Relative duality gap at which the fit ends: the objective is within this share of the optimum.
    max_iter : int, default=10000
        Largest number of passes over the data.
    warm_start : bool, default=False
        Start from the solution of the last fit on the same rows, also after a change of ``C``.
    n_jobs : int or None, default=None
        Threads of the long loops; None means one, -1 all.  The result is the same for every number.
    random_state : int, RandomState instance or None, default=None
        Seeds the order in which samples are visited.
    verbose : int, default=0
        Print how far a long fit is, once a second, and how the solver of a linear machine ended."""
ATTRIBUTES = """classes_ : ndarray of shape (n_classes,)
        The labels.
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        Class vectors of a linear machine; with two classes their difference.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercepts.
    dual_coef_ : ndarray of shape (n_support, n_classes) or (n_support, 1)
        Coefficients of the support vectors of a kernel machine.
    support_ : ndarray of shape (n_support,)
        Positions of the support vectors in the training data (kernel machine).
    support_vectors_ : {ndarray, CSR matrix} of shape (n_support, n_features)
        The support vectors (kernel machine, not for ``kernel="precomputed"``).
    objective_ : float
        Value of the primal objective.
    dual_gap_ : float
        Certified relative duality gap.
    n_iter_ : int
        Passes over the data.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X has string column names."""

Machine = TypeVar("Machine", bound=type)


def documented(cls: Machine) -> Machine:
    """Put the shared lines where the docstring says ``{parameters}`` and ``{attributes}``; own the constructor."""
    assert cls.__doc__ is not None
    cls.__doc__ = cls.__doc__.replace("{parameters}", PARAMETERS).replace("{attributes}", ATTRIBUTES)
    if "__init__" not in vars(cls):
        _own_constructor(cls)
    return cls


def _own_constructor(cls: Any) -> None:
    """Give the class a copy of the constructor that it inherits: errors name the class where a function was written."""
    shared = cls.__init__
    own = FunctionType(shared.__code__, shared.__globals__, shared.__name__, shared.__defaults__, shared.__closure__)
    own.__kwdefaults__, own.__annotations__, own.__doc__ = shared.__kwdefaults__, shared.__annotations__, shared.__doc__
    own.__qualname__ = f"{cls.__qualname__}.__init__"
    cls.__init__ = own

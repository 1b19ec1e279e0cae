"""Settings of the whole library; so far there is one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral

_settings = {"max_dense_bytes": 2**31}


def get_config() -> dict[str, int]:
    """The settings in force.

    Returns
    -------
    config : dict
        ``max_dense_bytes``: the largest dense array, in bytes, that a machine of very many classes makes.  Class
        vectors that would be larger are published as a sparse ``coef_`` (a SciPy CSR array, one row a class), and a
        machine with such a ``coef_`` refuses to make a larger array of scores (`predict_top` gives the best of them).

    Examples
    --------
    >>> import skmargin
    >>> sorted(skmargin.get_config())
    ['max_dense_bytes']
    """
    return dict(_settings)


def set_config(*, max_dense_bytes: int | None = None) -> None:
    """Change settings for the whole process, from now on.

    Parameters
    ----------
    max_dense_bytes : int, default=None
        See `get_config`; None leaves it as it is.

    Examples
    --------
    >>> import skmargin
    >>> before = skmargin.get_config()
    >>> skmargin.set_config(max_dense_bytes=10**9)
    >>> skmargin.get_config()["max_dense_bytes"]
    1000000000
    >>> skmargin.set_config(**before)
    """
    if max_dense_bytes is None:
        return
    if not isinstance(max_dense_bytes, Integral) or isinstance(max_dense_bytes, bool) or max_dense_bytes < 0:
        raise ValueError(f"max_dense_bytes must be a whole number that is not negative, got {max_dense_bytes!r}.")
    _settings["max_dense_bytes"] = int(max_dense_bytes)


@contextmanager
def config_context(*, max_dense_bytes: int | None = None) -> Iterator[None]:
    """Change settings within a ``with`` block; as `set_config`, for all threads.

    Parameters
    ----------
    max_dense_bytes : int, default=None
        See `get_config`; None leaves it as it is.

    Examples
    --------
    >>> import skmargin
    >>> with skmargin.config_context(max_dense_bytes=10**6):
    ...     skmargin.get_config()["max_dense_bytes"]
    1000000
    """
    before = get_config()
    set_config(max_dense_bytes=max_dense_bytes)
    try:
        yield
    finally:
        set_config(**before)

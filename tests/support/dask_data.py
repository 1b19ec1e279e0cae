"""Rows as Dask collections, and what has to be the same bits of a model that was fitted to them."""

import time

import dask
import dask.array as da


def arrays(*values, part):
    """Dask arrays in blocks of so many rows."""
    return tuple(da.from_array(value, chunks=(part, *value.shape[1:])) for value in values)


def blocks(values, part, types=(None,), pause=0.0):
    """Delayed blocks of so many rows, of these number types in turn, which take their time to be made."""

    def made(at, kind):
        time.sleep(pause)
        block = values[at : at + part]
        return block if kind is None else block.astype(kind)

    starts = range(0, values.shape[0], part)
    return [dask.delayed(made)(at, types[place % len(types)]) for place, at in enumerate(starts)]


def numbers(model):
    return model.coef_.tobytes(), model.intercept_.tobytes(), model.objective_, model.dual_gap_, model.n_iter_

"""Functions that run side by side and wait for each other's questions, so that one look answers all of them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

from sklearn import config_context, get_config

Result = TypeVar("Result")
Ask = Callable[[Any], Any]


class _Over(BaseException):
    """Another of the functions has failed, or Ctrl-C came."""


def side_by_side(works: Sequence[Callable[[Ask], Result]], answer: Callable[[list[Any]], list[Any]]) -> list[Result]:
    """The result of each function, of which each has a thread of its own and may ask.

    As soon as all that still run have asked, ``answer`` gets the questions, in the order of the functions, in this
    thread.  The first exception ends all.
    """
    heard: queue.Queue[tuple[int, str, Any]] = queue.Queue()
    answers: list[queue.Queue[Any]] = [queue.Queue() for _ in works]
    results: dict[int, Result] = {}
    config = get_config()  # scikit-learn's settings belong to a thread

    def run(number: int) -> None:
        def ask(question: Any) -> Any:
            heard.put((number, "asks", question))
            found = answers[number].get()
            if found is _Over:
                raise _Over
            return found

        try:
            with config_context(**config):
                heard.put((number, "ends", works[number](ask)))
        except BaseException as error:  # handed over: it is raised where the results are wanted
            heard.put((number, "fails", error))

    for number in range(len(works)):
        threading.Thread(target=copy_context().run, args=(run, number), name="skmargin-solve", daemon=True).start()
    busy, asked = len(works), {}
    try:
        while busy:
            number, what, value = _next(heard)
            busy -= 1
            if what == "fails":
                raise value
            if what == "ends":
                results[number] = value
            else:
                asked[number] = value
            if not busy and asked:
                order = sorted(asked)
                for place, found in zip(order, answer([asked[n] for n in order]), strict=True):
                    answers[place].put(found)
                busy, asked = len(asked), {}
    finally:
        for one in answers:
            one.put(_Over)
    return [results[number] for number in range(len(works))]


def _next(heard: queue.Queue[Any]) -> Any:
    while True:  # a wait without a limit cannot be interrupted on Windows
        with suppress(queue.Empty):
            return heard.get(timeout=0.05)

"""How far a fit of rows in blocks is: a bar on a terminal, plain lines elsewhere, on the error stream.

What such a fit costs is passes over the rows.  How many there will be is not known: each stage has an estimate, which
grows when it is passed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ..rows.files import Batch, OpenRows
from ._terminal import console, say

SECONDS = 5.0  # between two plain lines


class Watch:
    """Counts passes over rows, and the part of the current one that is done."""

    def __init__(self, stages: dict[str, int], show: Callable[[Watch], None]) -> None:
        self.expected, self.show = dict(stages), show  # passes of each stage
        self.stage, self.begun = "", 0  # the stage, and the passes before it
        self.passes, self.part = 0, 0.0  # whole ones, and the part of the one that is under way
        self.gap: float | None = None

    def begin(self, stage: str, passes: int | None = None) -> None:
        """A stage begins, which takes about so many passes."""
        for one in list(self.expected):  # those before it have ended
            if one == stage:
                break
            del self.expected[one]
        self.stage, self.begun, self.part, self.gap = stage, self.passes, 0.0, None
        self.expected[stage] = passes or self.expected[stage]
        self.show(self)

    def over(self, rows: OpenRows) -> Callable[[], Iterator[Batch]]:
        """The batches of rows, which are counted as they are read."""

        def batches() -> Iterator[Batch]:
            read = 0
            for batch in rows.batches():
                yield batch
                read += batch.X.shape[0]
                self.part = min(1.0, read / max(1, rows.n_rows or 0))
                self.show(self)
            self.passes, self.part = self.passes + 1, 0.0
            self.show(self)

        return batches

    def hear(self, gap: float, tol: float) -> None:
        """A relative gap was reached, on the way to ``tol``."""
        self.gap = gap
        self.show(self)

    def share(self, part: float) -> None:
        """Part of a pass that is no pass over rows yet: text that is converted."""
        self.part = part
        self.show(self)

    @property
    def done(self) -> float:
        """Passes, and the part of the current one."""
        return self.passes + self.part

    @property
    def total(self) -> float:
        """How many there will be, as far as one knows."""
        here = self.begun + self.expected[self.stage]
        later = sum(self.expected.values()) - self.expected[self.stage]
        return (here if self.done <= here else self.passes + 1) + later

    @property
    def words(self) -> str:
        """The stage, the pass and the gap."""
        number = self.passes + (self.part > 0)
        at = f", pass {number}" if number else ""
        part = f" ({self.part:.0%})" if self.part else ""
        gap = "" if self.gap is None else f", relative gap {self.gap:.1e}"
        return f"{self.stage}{at}{part}{gap}"


@contextmanager
def watched(stages: dict[str, int], lines: bool) -> Iterator[Watch]:
    """Show how far a fit is; ``lines``: also where the error stream is no terminal."""
    out = console(stderr=True)
    if out.is_terminal:
        columns = (BarColumn(bar_width=24), TextColumn("{task.description}"), TimeRemainingColumn())
        with Progress(*columns, console=out, transient=True, refresh_per_second=8) as bar:
            number = bar.add_task("", total=sum(stages.values()))

            def advance(at: Watch) -> None:  # a pass that has ended is shown at once
                bar.update(number, completed=at.done, total=at.total, description=at.words, refresh=at.part == 0)

            yield Watch(stages, advance)
        return
    stage, last = "", 0.0

    def show(at: Watch) -> None:
        nonlocal stage, last
        now = time.monotonic()
        if lines and (at.stage != stage or now - last > SECONDS):
            stage, last = at.stage, now
            say(at.words, stderr=True)

    yield Watch(stages, show)

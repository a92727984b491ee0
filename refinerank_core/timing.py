"""One way to measure: medians over repeats, after the device has finished."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Line:
    """One line of a table of measurements.

    Attributes:
        name: what was measured.
        value: median, in `unit`.
        unit: "ms", "s", "MB", "x" or a rate.
        repeats: measurements behind the median.
        target: what is aimed for, in words; "" where nothing is.
        met: whether the aim is met; None without one.
    """

    name: str
    value: float
    unit: str
    repeats: int
    target: str = ""
    met: bool | None = None


def nothing() -> None:
    """No preparation."""


def settle() -> None:
    """Wait for what a card still computes: its calls return before they are done."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def median_ms(
    job: Callable[[], object], repeats: int, before: Callable[[], object] = nothing
) -> float:
    """Milliseconds of a job; `before` is run ahead of each repeat and not measured."""
    spent = []
    for _ in range(repeats):
        before()
        spent.append(_ms(job))
    return statistics.median(spent)


@dataclass(frozen=True)
class Compared:
    """Two jobs that were measured in turns.

    Attributes:
        first_ms, second_ms: medians.
        ratio: median of what the second took of the first of its turn: where a machine slows down
            for seconds at a time, both of a turn are slow.
    """

    first_ms: float
    second_ms: float
    ratio: float


def compare_ms(
    first: Callable[[], object],
    second: Callable[[], object],
    repeats: int,
    *,
    before: Callable[[], object] = nothing,
    between: Callable[[], object] = nothing,
) -> Compared:
    """Milliseconds of two jobs in turns; `before` and `between` are run ahead, unmeasured."""
    turns = []
    for _ in range(repeats):
        before()
        one = _ms(first)
        between()
        turns.append((one, _ms(second)))
    return Compared(
        first_ms=statistics.median(one for one, _ in turns),
        second_ms=statistics.median(two for _, two in turns),
        ratio=statistics.median(two / one for one, two in turns),
    )


def _ms(job: Callable[[], object]) -> float:
    settle()
    started = time.perf_counter()
    job()
    settle()
    return (time.perf_counter() - started) * 1000

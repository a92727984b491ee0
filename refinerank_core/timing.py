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
        settle()
        started = time.perf_counter()
        job()
        settle()
        spent.append((time.perf_counter() - started) * 1000)
    return statistics.median(spent)

"""Smooth movement: rests, minimum-jerk moves between them, and small rhythms on top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from refinerank_core.phantom.geometry import Point


def eased(share: float) -> float:
    """Return the minimum-jerk course from 0 to 1 (Flash and Hogan 1985)."""
    share = min(max(share, 0.0), 1.0)
    return share**3 * (10.0 - 15.0 * share + 6.0 * share**2)


def swell(time_s: float, start_s: float, end_s: float, ramp_s: float = 0.5) -> float:
    """Return 1 inside the span, 0 outside, eased over ramp_s at both of its ends."""
    return eased((time_s - start_s) / ramp_s) * eased((end_s - time_s) / ramp_s)


@dataclass(frozen=True, eq=False)
class Track:
    """A value that eases from key to key and rests at the first and last.

    Attributes:
        times_s: (K,) rising.
        values: (K, D).
    """

    times_s: np.ndarray
    values: np.ndarray

    @staticmethod
    def of(keys: Sequence[tuple[float, np.ndarray]]) -> Track:
        return Track(
            np.array([time for time, _ in keys], dtype=np.float64),
            np.array([value for _, value in keys], dtype=np.float64),
        )

    def at(self, time_s: float) -> np.ndarray:
        """Return the (D,) value at a time."""
        after = int(np.searchsorted(self.times_s, time_s, side="right"))
        if after == 0:
            return np.asarray(self.values[0])
        if after == len(self.times_s):
            return np.asarray(self.values[-1])
        span = self.times_s[after] - self.times_s[after - 1]
        share = eased((time_s - self.times_s[after - 1]) / span)
        start, end = self.values[after - 1], self.values[after]
        return np.asarray(start + (end - start) * share)


@dataclass(frozen=True, eq=False)
class Sway:
    """An endless small wander: a few slow sines per axis.

    Attributes:
        reach: (D, S) strength of each sine.
        pace: (D, S) radians per second.
        phase: (D, S) radians.
    """

    reach: np.ndarray
    pace: np.ndarray
    phase: np.ndarray

    @staticmethod
    def draw(
        rng: np.random.Generator, reach: Sequence[float], periods_s: Point, sines: int = 3
    ) -> Sway:
        shape = (len(reach), sines)
        share = rng.dirichlet(np.full(sines, 2.0), len(reach))
        return Sway(
            share * np.asarray(reach)[:, None],
            2 * np.pi / rng.uniform(*periods_s, shape),
            rng.uniform(0, 2 * np.pi, shape),
        )

    def at(self, time_s: float) -> np.ndarray:
        """Return the (D,) offset at a time; no axis passes its reach."""
        return np.asarray((self.reach * np.sin(self.pace * time_s + self.phase)).sum(axis=1))


@dataclass(frozen=True)
class Phase:
    """A stretch of time in which an actor does one thing.

    Attributes:
        start_s, end_s: the span.
        action: such as "dissecting".
        target: the structure acted on.
        place: the point acted on, view units.
    """

    start_s: float
    end_s: float
    action: str
    target: str
    place: Point


def phase_at(phases: Sequence[Phase], time_s: float) -> Phase | None:
    return next((phase for phase in phases if phase.start_s <= time_s < phase.end_s), None)

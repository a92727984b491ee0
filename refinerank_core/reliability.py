"""Do scores mean what they say? Predicted against reached IoU, in bins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

BINS = 10
_DIGITS = 4


@dataclass(frozen=True)
class Reliability:
    """Binned counts behind a reliability plot; bins of equal width divide 0 to 1.

    Attributes:
        counts: boxes in each bin of predicted IoU.
        predicted: mean predicted IoU of a bin, None where it is empty.
        reached: mean IoU of the same boxes.
        error: mean distance of the two over all boxes, bin by bin (expected calibration error).
    """

    counts: tuple[int, ...]
    predicted: tuple[float | None, ...]
    reached: tuple[float | None, ...]
    error: float

    def as_json(self) -> dict[str, Any]:
        """Plain data, rounded; `from_json` reads it."""
        return {
            "counts": list(self.counts),
            "predicted": [_rounded(value) for value in self.predicted],
            "reached": [_rounded(value) for value in self.reached],
            "error": _rounded(self.error),
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Reliability:
        """What `as_json` gave.

        Raises:
            KeyError, TypeError, ValueError: it is something else.
        """
        lists = {
            name: tuple(None if value is None else float(value) for value in told[name])
            for name in ("predicted", "reached")
        }
        counts = tuple(int(count) for count in told["counts"])
        if len({len(counts), *map(len, lists.values())}) != 1:
            raise ValueError("bins must have one count and two means each")
        return cls(counts, lists["predicted"], lists["reached"], float(told["error"]))


def reliability(predicted: np.ndarray, reached: np.ndarray, *, bins: int = BINS) -> Reliability:
    """Bin boxes by what was predicted of them.

    Args:
        predicted: (N,) predicted IoU in 0 to 1. N may be 0.
        reached: (N,) IoU with the annotation.
        bins: of equal width; 1 falls into the last.

    Raises:
        ValueError: the lengths differ, or a prediction is not in 0 to 1.
    """
    if predicted.shape != reached.shape or predicted.ndim != 1:
        raise ValueError(f"need two (N,) arrays, got {predicted.shape} and {reached.shape}")
    if not ((predicted >= 0) & (predicted <= 1)).all():
        raise ValueError("predicted IoU must lie in 0 to 1")
    places = np.minimum((predicted * bins).astype(np.int64), bins - 1)
    counts = np.bincount(places, minlength=bins)
    sums = [np.bincount(places, weights=one, minlength=bins) for one in (predicted, reached)]
    means = [
        tuple(float(s / n) if n else None for s, n in zip(one, counts, strict=True)) for one in sums
    ]
    gap = float(np.abs(sums[0] - sums[1]).sum() / max(len(predicted), 1))
    return Reliability(tuple(int(n) for n in counts), means[0], means[1], gap)


def as_share(logits: np.ndarray) -> np.ndarray:
    """RefineNet's scores as the IoU that they were taught to predict: their sigmoid, float64."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(logits.astype(np.float64), -60, 60))))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)

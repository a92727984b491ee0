"""An option beyond the paper: scores turned into the IoU that answers of that score reach.

The order of scores stays, so no answer changes; what changes is how much a score may be believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Knots = tuple[tuple[float, float], ...]
"""(score, expected IoU), rising in both."""

_DIGITS = 5


@dataclass(frozen=True)
class Calibration:
    """A rising curve from scores to expected IoU, straight between its knots and flat outside."""

    knots: Knots

    def __post_init__(self) -> None:
        rising = all(
            a[0] < b[0] and a[1] <= b[1] for a, b in zip(self.knots, self.knots[1:], strict=False)
        )
        if not self.knots or not rising or not all(0 <= value <= 1 for _, value in self.knots):
            raise ValueError("knots must rise and hold an IoU of 0 to 1 each")

    def expected_iou(self, scores: np.ndarray) -> np.ndarray:
        """(N,) expected IoU of N scores, float64."""
        at, value = zip(*self.knots, strict=True)
        return np.asarray(np.interp(scores.astype(np.float64), at, value))


def fit_calibration(scores: Sequence[float], reached: Sequence[float]) -> Calibration:
    """Fit by isotonic regression.

    Args:
        scores: (N,) of answers that no training has seen.
        reached: (N,) their IoU with the annotation.

    Raises:
        ValueError: there are fewer than two different scores.
    """
    from sklearn.isotonic import IsotonicRegression

    if len(set(scores)) < 2:
        raise ValueError("a calibration needs answers of two different scores at least")
    fitted = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    fitted.fit(np.asarray(scores, np.float64), np.asarray(reached, np.float64))
    knots: list[tuple[float, float]] = []
    for score, value in zip(fitted.X_thresholds_, fitted.y_thresholds_, strict=True):
        one = round(float(score), _DIGITS), round(float(value), _DIGITS)
        if not knots or one[0] > knots[-1][0]:
            knots.append(one)
    return Calibration(tuple(knots))

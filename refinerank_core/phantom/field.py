"""Where a scene's structures lie and where tools may act on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from refinerank_core.phantom.geometry import VIEW_WIDTH, Colour


@dataclass(frozen=True, eq=False)
class FieldPlan:
    """Structures of one scene in view units.

    Attributes:
        outlines: closed (N, 2) outline of each painted region, by name.
        anchors: points to act on, by structure.
    """

    outlines: dict[str, np.ndarray]
    anchors: dict[str, list[np.ndarray]]

    @staticmethod
    def of(
        outlines: dict[str, np.ndarray], anchors: dict[str, list[np.ndarray]], *, flip: bool
    ) -> FieldPlan:
        """Keep the plan as drawn, or mirror it left to right."""
        if not flip:
            return FieldPlan(outlines, anchors)
        return FieldPlan(
            {name: _mirrored(points) for name, points in outlines.items()},
            {name: [_mirrored(point) for point in points] for name, points in anchors.items()},
        )


def _mirrored(points: np.ndarray) -> np.ndarray:
    return np.asarray(points * (-1.0, 1.0) + (VIEW_WIDTH, 0.0))


def shifted(colour: Colour, factor: float) -> Colour:
    """Return colour made darker (factor below 1) or lighter (above)."""
    red, green, blue = (min(255.0, channel * factor) for channel in colour)
    return (red, green, blue)

"""One instant of a scene, laid out for a frame size: what picture and truth are both made from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from refinerank_core.phantom.cast import Actor
from refinerank_core.phantom.fixtures import Fixture
from refinerank_core.phantom.shapes import Patch
from refinerank_core.phantom.tissue import Tissue


@dataclass(frozen=True, eq=False)
class Sheets:
    """What a scene keeps for one frame size.

    Attributes:
        tissue: the painted field.
        gains: (H, W, 3) float32, what the lens lets through.
        hidden: (H, W) uint8, 255 outside the scope's circle; None without one.
    """

    tissue: Tissue
    gains: np.ndarray
    hidden: np.ndarray | None


@dataclass(frozen=True, eq=False)
class Moment:
    """Where everything is.

    Attributes:
        time_s: the instant.
        size_wh: of the frame.
        to_view: (2, 3) from field to view.
        map_x, map_y: (H, W) float32, the tissue pixel that each frame pixel shows.
        labels: (H, W) uint8, structure under each frame pixel.
        sheets: of this frame size.
        actors: in drawing order.
        drawn: patches of each body of each actor, view units.
        fixtures: those that are there by now.
        laid: their patches, view units.
    """

    time_s: float
    size_wh: tuple[int, int]
    to_view: np.ndarray
    map_x: np.ndarray
    map_y: np.ndarray
    labels: np.ndarray
    sheets: Sheets
    actors: list[Actor]
    drawn: list[list[list[Patch]]]
    fixtures: list[Fixture]
    laid: list[list[Patch]]

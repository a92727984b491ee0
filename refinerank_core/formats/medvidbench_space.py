"""In which space each data set of MedVidBench writes its boxes, and at which rate it counts frames.

Source: RefineRank, arXiv:2608.23928, and its released code (canvas, tolerance, local time).
"""

from __future__ import annotations

from dataclasses import dataclass

from refinerank_core.boxes import Corners
from refinerank_core.formats.rows import RowError

OVERHANG_PX = 3.0
"""An annotated box may overhang its canvas by this much and is then cut; a farther one is wrong."""

_ASPECT_SLACK = 0.01


@dataclass(frozen=True)
class Convention:
    """How one data set writes its rows.

    Attributes:
        dataset: its name, "" for any other.
        canvas_wh: size of the picture that boxes are written on; None: the frame's own pixels.
        one_scale: both axes share the scale of the width; the canvas's height is no measure.
        rate_hz: frame numbers a second where the data set fixes it; None: as the row says.
    """

    dataset: str = ""
    canvas_wh: tuple[int, int] | None = None
    one_scale: bool = False
    rate_hz: float | None = None


_KNOWN = (
    Convention("CholecTrack20", canvas_wh=(854, 480), rate_hz=25.0),
    # Pictures of about 1306x1009 stand at the top of a square: y is never scaled by the height.
    Convention("CoPESD", canvas_wh=(1306, 1306), one_scale=True),
    Convention("EgoSurgery"),
)


def convention_of(dataset: str) -> Convention:
    """The convention of a data set by its name, in any case; pixels for one not known."""
    for known in _KNOWN:
        if known.dataset.casefold() == dataset.casefold():
            return known
    return Convention()


def on_canvas(box: Corners, convention: Convention) -> Corners:
    """An annotated box cut to its canvas.

    Raises:
        RowError: it lies farther outside than OVERHANG_PX, has no area, or is no larger than
            a pixel (fractions).
    """
    x0, y0, x1, y1 = box
    shown = [round(edge, 3) for edge in box]
    if not (x0 < x1 and y0 < y1):
        raise RowError(f"the box has no area: {shown}")
    if max(x1 - x0, y1 - y0) <= 1:
        raise RowError(f"the box is no larger than a pixel: {shown}. Fractions are not read here")
    width, height = convention.canvas_wh or (float("inf"), float("inf"))
    if min(x0, y0) < -OVERHANG_PX or x1 > width + OVERHANG_PX or y1 > height + OVERHANG_PX:
        raise RowError(f"the box lies outside its picture: {shown}")
    cut = (max(x0, 0.0), max(y0, 0.0), min(x1, width), min(y1, height))
    if not (cut[0] < cut[2] and cut[1] < cut[3]):
        raise RowError(f"the box has no area inside its picture: {shown}")
    return cut


def to_frame(box: Corners, convention: Convention, size_wh: tuple[int, int]) -> Corners:
    """A box of the data set's canvas in pixels of a decoded frame, cut to it.

    Raises:
        RowError: the frame's shape is not the canvas's, or nothing of the box is in the frame.
    """
    across, down = _scale(convention, size_wh)
    width, height = size_wh
    x0, y0, x1, y1 = box[0] * across, box[1] * down, box[2] * across, box[3] * down
    if x1 > width + OVERHANG_PX * across or y1 > height + OVERHANG_PX * down:
        raise RowError(f"the box lies outside the {width}x{height} frame")
    x0, y0, x1, y1 = max(x0, 0.0), max(y0, 0.0), min(x1, float(width)), min(y1, float(height))
    if not (x0 < x1 and y0 < y1):
        raise RowError(f"the box lies outside the {width}x{height} frame")
    return x0, y0, x1, y1


def to_canvas(box: Corners, convention: Convention, size_wh: tuple[int, int]) -> Corners:
    """A box in pixels of a decoded frame in the space that the data set writes. Errors as above."""
    across, down = _scale(convention, size_wh)
    return box[0] / across, box[1] / down, box[2] / across, box[3] / down


def _scale(convention: Convention, size_wh: tuple[int, int]) -> tuple[float, float]:
    """Frame pixels per canvas pixel, across and down."""
    width, height = size_wh
    if convention.canvas_wh is None:
        return 1.0, 1.0
    across = width / convention.canvas_wh[0]
    if convention.one_scale:
        return across, across
    down = height / convention.canvas_wh[1]
    if abs(across / down - 1) > _ASPECT_SLACK:
        canvas = f"{convention.canvas_wh[0]}x{convention.canvas_wh[1]}"
        raise RowError(
            f"the frame is {width}x{height}, another shape than the {canvas} picture on which "
            f"{convention.dataset} is annotated"
        )
    return across, down

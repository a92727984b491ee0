"""Box arithmetic in numpy: overlap, deltas, clipping, coordinate spaces.

A box is x0 y0 x1 y1 between edges: no pixel is ever added or taken away, so a full-width box is
0..width. Overlaps and deltas need no unit as long as both boxes share it. All sums run in float64
and come back as float32. `boxes_torch` holds the few of these that RefineNet differentiates.
"""

from math import log
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from refinerank_core.structures import Bool, Float32, Float64

Boxes = NDArray[np.floating[Any]]  # (..., 4); any float width comes in, float32 goes out

Corners = tuple[float, float, float, float]
"""One box as plain numbers, x0 y0 x1 y1 in a unit that its owner states."""

DELTA_BOUNDS = (0.5, 0.5, log(2.0), log(2.0))
"""Largest move of a centre in box widths and heights, largest log ratio of the sides."""

SNAP_PX = 2.5
"""A detector's box may overhang the frame by this much and is then snapped to the edge."""

_LARGEST = float(np.finfo(np.float32).max)  # what does not fit float32 is not finite here

Space = Literal["pixels", "unit", "thousand", "unit_cxcywh", "pixels_xywh"]
"""How four numbers are to be read. They look alike, so it is always stated and never guessed.

pixels: corners in pixels. unit: corners as fractions of the frame. thousand: corners in
thousandths of the frame. unit_cxcywh: centre and sides as fractions (detectors). pixels_xywh:
top left corner and sides in pixels (COCO).
"""


def _as_boxes(name: str, boxes: Boxes) -> Float64:
    """A float64 copy of (..., 4) boxes."""
    array = np.array(boxes, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] != 4:
        raise ValueError(f"{name} must be (..., 4), got {array.shape}")
    return array


def is_valid(boxes: Boxes) -> Bool:
    """Tell which corner boxes are finite and have a positive width and height.

    Args:
        boxes: (..., 4) corners in any unit.

    Returns:
        (...) bool.
    """
    array = _as_boxes("boxes", boxes)
    # An infinite corner would pass the comparison of sides; NaN fails it by itself.
    solid = (array[..., 2] > array[..., 0]) & (array[..., 3] > array[..., 1])
    return np.asarray(solid & (np.abs(array) <= _LARGEST).all(axis=-1), dtype=np.bool_)


def _edges(name: str, boxes: Boxes) -> tuple[Float64, Float64, Float64, Float64]:
    """The four columns of boxes, (...) each; a degenerate box becomes a point."""
    array = _as_boxes(name, boxes)
    array[~(np.abs(array) <= _LARGEST)] = 0.0
    array[..., 2:] = np.where(is_valid(boxes)[..., None], array[..., 2:], array[..., :2])
    x0, y0, x1, y1 = np.ascontiguousarray(np.moveaxis(array, -1, 0))
    return x0, y0, x1, y1


def _overlap(boxes_a: Boxes, boxes_b: Boxes) -> tuple[Float64, Float64]:
    """IoU and area of the union.

    Column by column, since axes of length 2 or 4 are slow, and in place: for a matrix of 256 x 256
    most of the time would go into fresh memory.
    """
    ax0, ay0, ax1, ay1 = _edges("boxes_a", boxes_a)
    bx0, by0, bx1, by1 = _edges("boxes_b", boxes_b)
    shared, height = np.minimum(ax1, bx1), np.minimum(ay1, by1)
    shared -= np.maximum(ax0, bx0)  # the width so far
    height -= np.maximum(ay0, by0)
    shared = np.maximum(shared, 0.0)
    shared *= np.maximum(height, 0.0)
    union = (ax1 - ax0) * (ay1 - ay0) + (bx1 - bx0) * (by1 - by0)
    union -= shared
    shared /= union + (union <= 0)
    return shared, union


def iou(boxes_a: Boxes, boxes_b: Boxes) -> Float32:
    """Intersection over union, pair by pair.

    Args:
        boxes_a: (..., 4) corners.
        boxes_b: (..., 4) corners in the same unit; the leading axes broadcast.

    Returns:
        (...) float32 in [0, 1]; 0 where a box is degenerate (inverted, without area, not finite).

    Raises:
        ValueError: the last axis is not 4.
    """
    return _overlap(boxes_a, boxes_b)[0].astype(np.float32)


def giou(boxes_a: Boxes, boxes_b: Boxes) -> Float32:
    """Generalised IoU, pair by pair: IoU less the share of the enclosing box that neither fills.

    Args and errors as in `iou`.

    Returns:
        (...) float32 in [-1, 1]; never NaN. A degenerate box counts as a point.

    Source: Rezatofighi et al. 2019, arXiv:1902.09630, algorithm 1.
    """
    iou, union = _overlap(boxes_a, boxes_b)
    ax0, ay0, ax1, ay1 = _edges("boxes_a", boxes_a)
    bx0, by0, bx1, by1 = _edges("boxes_b", boxes_b)
    outer = np.maximum(ax1, bx1) - np.minimum(ax0, bx0)
    outer *= np.maximum(ay1, by1) - np.minimum(ay0, by0)
    idle: Float64 = (outer - union) / (outer + (outer <= 0))
    generalised: Float64 = iou - idle
    return generalised.astype(np.float32)


def iou_matrix(boxes_a: Boxes, boxes_b: Boxes) -> Float32:
    """IoU of every box of (N, 4) with every box of (M, 4): (N, M) float32. N and M may be 0."""
    return iou(boxes_a[:, None, :], boxes_b[None, :, :])


def giou_matrix(boxes_a: Boxes, boxes_b: Boxes) -> Float32:
    """Generalised IoU of every box of (N, 4) with every box of (M, 4): (N, M) float32."""
    return giou(boxes_a[:, None, :], boxes_b[None, :, :])


def to_centres(boxes: Boxes) -> Float32:
    """Corners x0 y0 x1 y1 to cx cy width height, same unit: (..., 4) float32."""
    array = _as_boxes("boxes", boxes)
    sides = array[..., 2:] - array[..., :2]
    return np.concatenate((array[..., :2] + sides / 2, sides), axis=-1).astype(np.float32)


def from_centres(boxes: Boxes) -> Float32:
    """Centres cx cy width height to corners x0 y0 x1 y1, same unit: (..., 4) float32."""
    array = _as_boxes("boxes", boxes)
    half = array[..., 2:] / 2
    corners = np.concatenate((array[..., :2] - half, array[..., :2] + half), axis=-1)
    return corners.astype(np.float32)


def encode_delta(boxes: Boxes, targets: Boxes) -> Float32:
    """The bounded move that takes boxes towards targets.

    Args:
        boxes: (..., 4) corners.
        targets: (..., 4) corners in the same unit; the leading axes broadcast.

    Returns:
        (..., 4) float32: dx, dy in box widths and heights, log width ratio, log height ratio, each
        cut to +-DELTA_BOUNDS. No move (0) where either box is degenerate.

    Source: RefineRank, arXiv:2608.23928 (refinement head).
    """
    usable = (is_valid(boxes) & is_valid(targets))[..., None]
    unit = np.array([0.0, 0.0, 1.0, 1.0])
    box = np.where(usable, _as_boxes("boxes", boxes), unit)
    target = np.where(usable, _as_boxes("targets", targets), unit)
    box_sides, target_sides = (array[..., 2:] - array[..., :2] for array in (box, target))
    shift = (target[..., :2] + target_sides / 2 - box[..., :2] - box_sides / 2) / box_sides
    delta: Float64 = np.concatenate((shift, np.log(target_sides / box_sides)), axis=-1)
    bounds = np.array(DELTA_BOUNDS)
    bounded: Float64 = np.clip(delta, -bounds, bounds)
    return bounded.astype(np.float32)


def decode_delta(boxes: Boxes, delta: Boxes) -> tuple[Float32, Bool]:
    """Move boxes by delta and clip them to the frame.

    Args:
        boxes: (..., 4) corners as fractions of the frame.
        delta: (..., 4) as `encode_delta` gives it; taken as it is, the bounds are its maker's.

    Returns:
        (..., 4) float32 corners in [0, 1], and (...) bool: False where the result is not finite or
        has no area inside the frame; such a row holds zeros.

    Source: RefineRank, arXiv:2608.23928 (refinement head).
    """
    box, move = _as_boxes("boxes", boxes), _as_boxes("delta", delta)
    sides = box[..., 2:] - box[..., :2]
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is marked below
        centre = box[..., :2] + sides / 2 + move[..., :2] * sides
        half = sides * np.exp(move[..., 2:]) / 2
        corners = np.concatenate((centre - half, centre + half), axis=-1)
    finite = np.isfinite(corners).all(axis=-1)
    clipped = np.clip(corners, 0.0, 1.0).astype(np.float32)
    valid = finite & is_valid(clipped)
    return np.where(valid[..., None], clipped, np.float32(0)), valid


def clip_to_frame(
    boxes: Boxes, *, size_wh: tuple[float, float], overhang: float = SNAP_PX
) -> tuple[Float32, Bool]:
    """Bring boxes that overhang the frame a little to its edge and refuse the others.

    Args:
        boxes: (N, 4) corners.
        size_wh: width and height of the frame, in the unit of the boxes.
        overhang: how far a side may lie outside; `math.inf` cuts any overhang off.

    Returns:
        (N, 4) float32 inside the frame, and (N,) bool: False where the box was refused because it
        overhangs farther, has no area inside the frame, or is not finite; such a row holds zeros.

    Raises:
        ValueError: the frame has no area.
    """
    width, height = size_wh
    if not (width > 0 and height > 0):
        raise ValueError(f"size_wh must be positive, got {size_wh}")
    array = _as_boxes("boxes", boxes)
    upper = np.array([width, height, width, height])
    near = ((array >= -overhang) & (array <= upper + overhang)).all(axis=-1)
    clipped = np.clip(array, 0.0, upper).astype(np.float32)
    valid = np.asarray(near & is_valid(array) & is_valid(clipped), dtype=np.bool_)
    return np.where(valid[..., None], clipped, np.float32(0)), valid


def normalise(boxes: Boxes, *, size_wh: tuple[float, float]) -> Float32:
    """Pixels to fractions of the frame, each axis by its own size: (..., 4) float32."""
    return rescale(boxes, from_wh=size_wh, to_wh=(1, 1))


def denormalise(boxes: Boxes, *, size_wh: tuple[float, float]) -> Float32:
    """Fractions of the frame to pixels, each axis by its own size: (..., 4) float32."""
    return rescale(boxes, from_wh=(1, 1), to_wh=size_wh)


def rescale(boxes: Boxes, *, from_wh: tuple[float, float], to_wh: tuple[float, float]) -> Float32:
    """Carry boxes from one size of a picture to another, each axis on its own.

    Args:
        boxes: (..., 4), two x y pairs (corners, or a centre or corner and sides).
        from_wh: width and height of the picture that the boxes are on.
        to_wh: width and height of the picture that they shall be on.

    Returns:
        (..., 4) float32.

    Raises:
        ValueError: a size is not positive.
    """
    if not all(side > 0 for side in (*from_wh, *to_wh)):
        raise ValueError(f"sizes must be positive, got {from_wh} and {to_wh}")
    # Multiply before dividing: a whole number of thousandths of a frame then stays exact.
    to_sides, from_sides = np.array([*to_wh, *to_wh]), np.array([*from_wh, *from_wh])
    scaled: Float64 = _as_boxes("boxes", boxes) * to_sides / from_sides
    return scaled.astype(np.float32)


def convert(boxes: Boxes, *, source: Space, target: Space, size_wh: tuple[int, int]) -> Float32:
    """Rewrite boxes from one stated coordinate space in another.

    Args:
        boxes: (..., 4) numbers in the source space.
        source: how they are to be read.
        target: how they shall be written.
        size_wh: width and height of the frame in pixels.

    Returns:
        (..., 4) float32.

    Raises:
        ValueError: an unknown space, or a frame without area.
    """
    for space in (source, target):
        if space not in get_args(Space):
            raise ValueError(f"space must be one of {get_args(Space)}, got {space!r}")
    corners: Boxes = _as_boxes("boxes", boxes)
    if source == "unit_cxcywh":
        corners = from_centres(corners)
    elif source == "pixels_xywh":
        corners = np.concatenate((corners[..., :2], corners[..., :2] + corners[..., 2:]), axis=-1)
    sizes = {"unit": (1, 1), "unit_cxcywh": (1, 1), "thousand": (1000, 1000)}
    written = rescale(corners, from_wh=sizes.get(source, size_wh), to_wh=sizes.get(target, size_wh))
    if target == "unit_cxcywh":
        return to_centres(written)
    if target == "pixels_xywh":
        return np.concatenate((written[..., :2], written[..., 2:] - written[..., :2]), axis=-1)
    return written

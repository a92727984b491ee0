"""The box arithmetic that RefineNet and its loss differentiate, on torch tensors.

Same meaning as the functions of these names in `boxes`, with gradients that stay finite for any
input: a denominator that may be 0 is replaced before the division, not after it.
"""

import torch
from torch import Tensor

from refinerank_core.boxes import DELTA_BOUNDS

_TINY = 1e-12  # sides below this, in frame fractions, count as no side at all


def is_valid(boxes: Tensor) -> Tensor:
    """(...) bool: which (..., 4) corner boxes are finite and have a positive width and height."""
    solid = (boxes[..., 2:] > boxes[..., :2]).all(dim=-1)
    return solid & torch.isfinite(boxes).all(dim=-1)


def _overlap(boxes_a: Tensor, boxes_b: Tensor) -> tuple[Tensor, Tensor]:
    """IoU, and the union's share of the enclosing box.

    Both are ratios of areas, so each pair is measured in sides of its own enclosing box: no area
    of a float32 box then overflows or vanishes. A degenerate box is a point.
    """
    pair = []
    for boxes in (boxes_a, boxes_b):
        low = torch.where(torch.isfinite(boxes[..., :2]), boxes[..., :2], 0.0)
        pair.append((low, torch.where(is_valid(boxes)[..., None], boxes[..., 2:], low)))
    (a_low, a_high), (b_low, b_high) = pair
    outer = torch.maximum(a_high, b_high) - torch.minimum(a_low, b_low)
    unit = torch.where(outer > _TINY, outer, 1.0)
    inner = torch.minimum(a_high, b_high) - torch.maximum(a_low, b_low)
    shared = (inner.clamp(min=0.0) / unit).prod(dim=-1)
    union = ((a_high - a_low) / unit).prod(dim=-1) + ((b_high - b_low) / unit).prod(dim=-1) - shared
    filled = union > _TINY
    iou = torch.where(filled, shared / torch.where(filled, union, 1.0), 0.0)
    flat = (outer <= _TINY).any(dim=-1)
    return iou, torch.where(flat, 1.0, union)


def iou(boxes_a: Tensor, boxes_b: Tensor) -> Tensor:
    """Intersection over union of (..., 4) corner boxes, broadcast: (...) in [0, 1]."""
    return _overlap(boxes_a, boxes_b)[0]


def giou(boxes_a: Tensor, boxes_b: Tensor) -> Tensor:
    """Generalised IoU of (..., 4) corner boxes, broadcast: (...) in [-1, 1], never NaN.

    Source: Rezatofighi et al. 2019, arXiv:1902.09630, algorithm 1.
    """
    overlap, filled = _overlap(boxes_a, boxes_b)
    return overlap - (1.0 - filled)


def encode_delta(boxes: Tensor, targets: Tensor) -> Tensor:
    """The bounded move (..., 4) that takes (..., 4) boxes towards targets.

    dx, dy in box widths and heights, log width ratio, log height ratio, each cut to
    +-DELTA_BOUNDS; 0 where either box is degenerate.

    Source: RefineRank, arXiv:2608.23928 (refinement head).
    """
    usable = (is_valid(boxes) & is_valid(targets))[..., None]
    unit = boxes.new_tensor([0.0, 0.0, 1.0, 1.0])
    box, target = torch.where(usable, boxes, unit), torch.where(usable, targets, unit)
    box_sides, target_sides = (corners[..., 2:] - corners[..., :2] for corners in (box, target))
    shift = (target[..., :2] + target_sides / 2 - box[..., :2] - box_sides / 2) / box_sides
    delta = torch.cat((shift, torch.log(target_sides / box_sides)), dim=-1)
    bounds = delta.new_tensor(DELTA_BOUNDS)
    return torch.minimum(torch.maximum(delta, -bounds), bounds)


def decode_delta(boxes: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
    """Move boxes by delta and clip them to the frame.

    Args:
        boxes: (..., 4) corners as fractions of the frame.
        delta: (..., 4) as `encode_delta` gives it, within its bounds.

    Returns:
        (..., 4) corners in [0, 1], and (...) bool: False where the result is not finite or has no
        area inside the frame; such a row holds zeros.

    Source: RefineRank, arXiv:2608.23928 (refinement head).
    """
    sound = (torch.isfinite(boxes) & torch.isfinite(delta)).all(dim=-1)
    box = torch.where(sound[..., None], boxes, 0.0)
    move = torch.where(sound[..., None], delta, 0.0)
    sides = box[..., 2:] - box[..., :2]
    centre = box[..., :2] + sides / 2 + move[..., :2] * sides
    half = sides * torch.exp(move[..., 2:]) / 2
    corners = torch.cat((centre - half, centre + half), dim=-1).clamp(0.0, 1.0)
    valid = sound & is_valid(corners)
    return torch.where(valid[..., None], corners, 0.0), valid

"""The detector's two losses: a dense one on the encoder's heads and a set loss on the decoder's.

With the set loss alone a small GroundingDINO learns nothing in an hour; a dense assignment on the
encoder's tokens gives every box several teachers. A class target is what the thing owes to the
token times the fit of the predicted box, so that a score also says how well the box lies.

Source: GroundingDINO, arXiv:2303.05499 (heads, set loss); varifocal loss, arXiv:2008.13367.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped]
from torch import Tensor
from torch.nn import functional as F

from refinerank_core.boxes_torch import giou, iou

TOKENS_PER_BOX = 10
L1_WEIGHT, GIOU_WEIGHT = 5.0, 2.0
DENSE_BOXES = 2.0  # weight of the boxes beside the classes in the dense loss
_LEVEL_SHARE = 3.0  # a level answers for boxes of about this many of its proposals' sides
_PRIOR_SIDE = 0.05  # the encoder's proposals at the finest level; doubled at each coarser one


@dataclass(frozen=True, eq=False)
class Wanted:
    """What one picture owes to the caption.

    Attributes:
        boxes: (M, 4) float32, cx cy w h as fractions of the picture. M may be 0.
        owed: (M, T) float32 in [0, 1], per token.
    """

    boxes: Tensor
    owed: Tensor


@dataclass(frozen=True, eq=False)
class Tokens:
    """The encoder's tokens: (N, 2) centres as fractions, and (N,) side of their proposals."""

    centres: Tensor
    sides: Tensor


def encoder_tokens(size_hw: tuple[int, int]) -> Tokens:
    """Where the tokens of a picture lie: strides 8, 16, 32 of the Swin and one level beyond.

    Args:
        size_hw: height and width of the picture in pixels.
    """
    height, width = (-(-side // 4) for side in size_hw)
    centres, sides = [], []
    for level in range(4):
        if level < 3:
            height, width = -(-height // 2), -(-width // 2)
        else:
            height, width = (height - 1) // 2 + 1, (width - 1) // 2 + 1
        rows = (torch.arange(height) + 0.5) / height
        columns = (torch.arange(width) + 0.5) / width
        grid = torch.stack(torch.meshgrid(columns, rows, indexing="xy"), dim=-1)
        centres.append(grid.reshape(-1, 2))
        sides.append(torch.full((height * width,), _PRIOR_SIDE * 2.0**level))
    return Tokens(torch.cat(centres), torch.cat(sides))


def corners(boxes: Tensor) -> Tensor:
    """cx cy w h to x0 y0 x1 y1: (..., 4)."""
    return torch.cat(
        (boxes[..., :2] - boxes[..., 2:] / 2, boxes[..., :2] + boxes[..., 2:] / 2), dim=-1
    )


def varifocal(logits: Tensor, targets: Tensor) -> Tensor:
    """Sum of binary cross entropies, a negative weighed by 0.75 p^2, a positive by its target.

    Args:
        logits, targets: same shape; targets in [0, 1].
    """
    weight = torch.where(targets > 0, targets, 0.75 * logits.detach().sigmoid() ** 2)
    return (weight * F.binary_cross_entropy_with_logits(logits, targets, reduction="none")).sum()


def box_loss(boxes: Tensor, wanted: Tensor) -> Tensor:
    """Sum over pairs of 5 * L1 + 2 * (1 - GIoU); (K, 4) cx cy w h each."""
    distance = (boxes - wanted).abs().sum()
    return L1_WEIGHT * distance + GIOU_WEIGHT * (1 - giou(corners(boxes), corners(wanted))).sum()


def fitness(boxes: Tensor, wanted: Tensor) -> Tensor:
    """(K,) what a pair's class target is multiplied with: 0.3 without overlap, 1 when it fits."""
    return 0.3 + 0.7 * iou(corners(boxes.detach()), corners(wanted))


def nearest_tokens(boxes: Tensor, tokens: Tokens) -> tuple[Tensor, Tensor]:
    """Choose the tokens that answer for each box: close to its centre, of a level of its size.

    Args:
        boxes: (M, 4) cx cy w h, M at least 1.

    Returns:
        (K,) token numbers, each once, and (K,) the box that each answers for.
    """
    away = (tokens.centres[:, None] - boxes[None, :, :2]).abs() / (boxes[None, :, 2:] / 2 + 1e-6)
    size = boxes[:, 2:].prod(dim=-1).sqrt()
    mismatch = torch.log2((size[None, :] + 1e-6) / (_LEVEL_SHARE * tokens.sides[:, None])).abs()
    cost = away.amax(dim=-1) + 0.5 * mismatch  # (N, M)
    near = cost.topk(min(TOKENS_PER_BOX, len(cost)), dim=0, largest=False).indices
    taken = torch.full_like(cost, torch.inf).scatter(0, near, cost.gather(0, near))
    best, box = taken.min(dim=1)
    chosen = torch.isfinite(best).nonzero().squeeze(1)
    return chosen, box[chosen]


def dense_loss(logits: Tensor, boxes: Tensor, wanted: Sequence[Wanted], tokens: Tokens) -> Tensor:
    """The loss of the encoder's heads, per responsible token.

    The divisor is at least what one box a picture would give.

    Args:
        logits: (B, N, T) for the caption's T tokens.
        boxes: (B, N, 4) cx cy w h.
        wanted: B.
    """
    targets = torch.zeros_like(logits)
    total = logits.new_zeros(())
    count = 0
    for row, one in enumerate(wanted):
        if not len(one.boxes):
            continue
        chosen, box = nearest_tokens(one.boxes, tokens)
        pair = boxes[row, chosen], one.boxes[box]
        fit = fitness(*pair)
        targets[row, chosen] = one.owed[box] * fit[:, None]
        total = total + DENSE_BOXES * box_loss(*pair)
        count += len(chosen)
    return (total + varifocal(logits, targets)) / max(count, TOKENS_PER_BOX * len(wanted))


def set_loss(logits: Tensor, boxes: Tensor, wanted: Sequence[Wanted]) -> Tensor:
    """The loss of one decoder layer after the best one-to-one assignment, per wanted box.

    A picture without a wanted box counts as one.

    Args:
        logits: (B, Q, T).
        boxes: (B, Q, 4) cx cy w h.
        wanted: B.
    """
    targets = torch.zeros_like(logits)
    total = logits.new_zeros(())
    count = 0
    for row, one in enumerate(wanted):
        if not len(one.boxes):
            continue
        query, box = assign(logits[row].detach(), boxes[row].detach(), one)
        pair = boxes[row, query], one.boxes[box]
        fit = fitness(*pair)
        targets[row, query] = one.owed[box] * fit[:, None]
        total = total + box_loss(*pair)
        count += len(one.boxes)
    return (total + varifocal(logits, targets)) / max(count, len(wanted))


def assign(logits: Tensor, boxes: Tensor, one: Wanted) -> tuple[Tensor, Tensor]:
    """Pair queries with wanted boxes at the least total cost: (M,) queries and (M,) boxes."""
    share = one.owed / one.owed.sum(dim=1, keepdim=True).clamp(min=1e-6)  # (M, T)
    cost = -2.0 * logits.sigmoid() @ share.T
    cost = cost + L1_WEIGHT * torch.cdist(boxes, one.boxes, p=1)
    cost = cost - GIOU_WEIGHT * giou(corners(boxes)[:, None], corners(one.boxes)[None])
    query, box = linear_sum_assignment(cost.numpy())
    return torch.from_numpy(query), torch.from_numpy(box)


def layer_outputs(model: Any, output: Any, mask: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Logits and boxes of every decoder layer, the last one as the model gave it.

    Args:
        model: GroundingDinoForObjectDetection.
        output: what it returned.
        mask: (B, T) attention mask of the caption.
    """
    states = output.intermediate_hidden_states
    layers = []
    for level in range(states.shape[1] - 1):
        before = (
            output.init_reference_points
            if level == 0
            else output.intermediate_reference_points[:, level - 1]
        )
        logits = model.class_embed[level](
            vision_hidden_state=states[:, level],
            text_hidden_state=output.encoder_last_hidden_state_text,
            text_token_mask=mask.bool(),
        )
        move = model.bbox_embed[level](states[:, level])
        layers.append((logits, (move + torch.special.logit(before, eps=1e-5)).sigmoid()))
    return [*layers, (output.logits, output.pred_boxes)]

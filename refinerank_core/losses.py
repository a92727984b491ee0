"""RefineNet's losses: two rankings and the regression of the best originals.

Source: RefineRank, arXiv:2608.23928 (losses).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from refinerank_core.boxes_torch import decode_delta, encode_delta, giou, iou
from refinerank_core.refinenet import RefineNet

TEMPERATURE = 0.1
CALIBRATION_WEIGHT = 0.25
OVERLAP_WEIGHT = 0.5


@dataclass(frozen=True, eq=False)
class Batch:
    """Examples of all data sets, padded to one pool size.

    Attributes:
        q_last: (B, Dq); r_final: (B, N, Df); r_inter: (B, N, Di); metadata: (B, N, 12).
        boxes: (B, N, 4) originals as fractions of the frame.
        valid: (B, N) bool.
        wanted: (B, 4) annotated boxes as fractions of the frame.
    """

    q_last: Tensor
    r_final: Tensor
    r_inter: Tensor
    metadata: Tensor
    boxes: Tensor
    valid: Tensor
    wanted: Tensor


def rank_loss(scores: Tensor, quality: Tensor, valid: Tensor) -> Tensor:
    """Listwise cross entropy to the boxes' quality, and calibration of the scores.

    Args:
        scores: (B, N) logits.
        quality: (B, N) IoU with the annotation; no gradient flows into it.
        valid: (B, N) bool.

    Returns:
        Cross entropy of softmax(quality / 0.1) and softmax(scores) over valid boxes, averaged over
        the examples in which some box overlaps the target, plus 0.25 times the mean smooth L1 of
        sigmoid(scores) to quality over valid boxes.

    Source: RefineRank, arXiv:2608.23928 (ranking loss).
    """
    quality = quality.detach()
    lowest = torch.finfo(scores.dtype).min
    target = (quality / TEMPERATURE).masked_fill(~valid, lowest).softmax(dim=1)
    log_share = scores.masked_fill(~valid, lowest).log_softmax(dim=1)
    entropy = -(target * log_share.masked_fill(~valid, 0.0)).sum(dim=1)
    useful = (quality.masked_fill(~valid, 0.0) > 0).any(dim=1)
    listwise = entropy[useful].sum() / useful.sum().clamp(min=1)
    apart = F.smooth_l1_loss(scores.sigmoid(), quality, reduction="none")
    calibration = apart.masked_fill(~valid, 0.0).sum() / valid.sum().clamp(min=1)
    return listwise + CALIBRATION_WEIGHT * calibration


def regression_loss(
    delta: Tensor, boxes: Tensor, wanted: Tensor, quality: Tensor, valid: Tensor, *, anchors: int
) -> Tensor:
    """How far the corrections of the best originals are from the right ones.

    Args:
        delta: (B, N, 4) bounded corrections.
        boxes: (B, N, 4) originals as fractions of the frame.
        wanted: (B, 4) annotations as fractions of the frame.
        quality: (B, N) IoU of originals and annotation.
        valid: (B, N) bool.
        anchors: originals per example that are taught.

    Returns:
        Smooth L1 to the encoded annotation plus 0.5 * (1 - GIoU) of the refined box, each a mean
        over the taught originals.

    Source: RefineRank, arXiv:2608.23928 (refinement loss).
    """
    taught = min(anchors, quality.shape[1])
    chosen = quality.masked_fill(~valid, -1.0).topk(taught, dim=1).indices  # (B, T)
    real = valid.gather(1, chosen)
    rows = chosen[..., None].expand(-1, -1, 4)
    originals, moves = boxes.gather(1, rows), delta.gather(1, rows)
    targets = wanted[:, None].expand_as(originals)
    distance = F.smooth_l1_loss(moves, encode_delta(originals, targets), reduction="none")
    refined, usable = decode_delta(originals, moves)
    usable = usable & real
    shift = distance.mean(dim=-1).masked_fill(~real, 0.0).sum() / real.sum().clamp(min=1)
    apart = (1 - giou(refined, targets)).masked_fill(~usable, 0.0).sum()
    return shift + OVERLAP_WEIGHT * apart / usable.sum().clamp(min=1)


def _read(net: RefineNet, batch: Batch) -> tuple[Tensor, Tensor]:
    """What RefineNet says of the real candidates, (B, N, 2) and (B, N, 4); 0 at padding.

    Candidates do not see each other, so padding, often more than half of a batch, is left out.
    """
    real = batch.valid.nonzero(as_tuple=True)
    told = net(
        batch.q_last[real[0]],
        batch.r_final[real][:, None],
        batch.r_inter[real][:, None],
        batch.metadata[real][:, None],
    )
    scores, delta = (
        part.new_zeros(*batch.valid.shape, part.shape[-1]).index_put(real, part[:, 0])
        for part in told
    )
    return scores, delta


def refinenet_loss(net: RefineNet, batch: Batch, *, anchors: int) -> Tensor:
    """The whole loss: both rankings and the regression.

    Source: RefineRank, arXiv:2608.23928 (training objective).
    """
    scores, delta = _read(net, batch)
    wanted = batch.wanted[:, None].expand_as(batch.boxes)
    quality = iou(batch.boxes, wanted)
    refined, usable = decode_delta(batch.boxes, delta)
    refined_quality = iou(refined, wanted).detach()
    return (
        rank_loss(scores[..., 0], quality, batch.valid)
        + rank_loss(scores[..., 1], refined_quality, batch.valid & usable)
        + regression_loss(delta, batch.boxes, batch.wanted, quality, batch.valid, anchors=anchors)
    )

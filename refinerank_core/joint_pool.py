"""Answers of a trained RefineNet on precomputed features, and the joint pools behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from refinerank_core.boxes import iou
from refinerank_core.decode import filter_and_choose
from refinerank_core.feature_sets import FeatureSet, Labels
from refinerank_core.refinenet import RefineNet, RegionFeatures, refine
from refinerank_core.structures import CandidatePool, Float32, Ranking, Refinement


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the frozen RefineNet makes of one example."""

    pool: CandidatePool
    refinement: Refinement
    ranking: Ranking


@dataclass(frozen=True, eq=False)
class JointPool:
    """The filtered joint pools of E examples, padded to M members.

    Attributes:
        boxes: (E, M, 4) float32 in pixels.
        parents: (E, M) int64: row of the original that a member is or comes from.
        refined: (E, M) bool.
        valid: (E, M) bool.
    """

    boxes: np.ndarray
    parents: np.ndarray
    refined: np.ndarray
    valid: np.ndarray


def outcomes(net: RefineNet | Sequence[RefineNet], features: FeatureSet) -> list[Outcome]:
    """RefineNet, filter and choice for every example, by the pipeline's own steps.

    Args:
        net: one, or an ensemble as `refine` takes it.
        features: of the examples.
    """
    first = net if isinstance(net, RefineNet) else net[0]
    device, block = first.delta_bounds.device, first.config.inter_block
    found = []
    for example in range(len(features)):
        rows = np.flatnonzero(features.valid[example])
        pool = features.pool_at(example)
        width, height = (int(side) for side in features.sizes_wh[example])
        region = RegionFeatures(
            q_last=torch.from_numpy(features.q_last[example]).to(device),
            r_final=torch.from_numpy(features.r_final[example, rows]).to(device),
            r_inter=torch.from_numpy(features.r_blocks[block][example, rows]).to(device),
            metadata=torch.from_numpy(features.metadata[example, rows]).to(device),
        )
        refinement = refine(net, region, pool, size_wh=(width, height))
        found.append(Outcome(pool, refinement, filter_and_choose(pool, refinement)))
    return found


def chosen_boxes(found: Sequence[Outcome]) -> Float32:
    """(E, 4) the boxes that RefineRank answers with, pixels."""
    rows = []
    for one in found:
        choice = one.ranking.chosen
        source = one.refinement.boxes if choice.refined else one.pool.boxes
        rows.append(source[choice.candidate])
    return np.stack(rows).astype(np.float32)


def joint_pools(found: Sequence[Outcome]) -> JointPool:
    """The members that the filter kept, in the order in which it kept them."""
    most = max(len(one.ranking.kept) for one in found)
    boxes = np.zeros((len(found), most, 4), np.float32)
    parents = np.zeros((len(found), most), np.int64)
    refined = np.zeros((len(found), most), np.bool_)
    valid = np.zeros((len(found), most), np.bool_)
    for row, one in enumerate(found):
        kept = one.ranking.kept
        parents[row, : len(kept)] = [choice.candidate for choice in kept]
        refined[row, : len(kept)] = [choice.refined for choice in kept]
        valid[row, : len(kept)] = True
        for place, choice in enumerate(kept):
            source = one.refinement.boxes if choice.refined else one.pool.boxes
            boxes[row, place] = source[choice.candidate]
    return JointPool(boxes, parents, refined, valid)


def member_quality(joint: JointPool, labels: Labels) -> Float32:
    """(E, M) IoU of each member with the annotation, 0 at padding."""
    return np.where(joint.valid, iou(joint.boxes, labels.boxes[:, None]), 0).astype(np.float32)


def selected_boxes(scores: Float32, joint: JointPool) -> Float32:
    """(E, 4) boxes of the best-scored members, pixels; on equal scores the first kept."""
    place = np.where(joint.valid, scores, -np.inf).argmax(axis=1)
    return np.asarray(joint.boxes[np.arange(len(place)), place])


def oracle(found: Sequence[Outcome], labels: Labels) -> tuple[np.ndarray, np.ndarray]:
    """(E,) IoU of the best original of the whole pool, and of the best original or refined box."""
    best, joint = [], []
    for one, box in zip(found, labels.boxes, strict=True):
        kept = float(iou(one.pool.boxes, box).max())
        refined = iou(one.refinement.boxes, box)[one.refinement.valid]
        best.append(kept)
        joint.append(max(kept, float(refined.max(initial=0.0))))
    return np.array(best), np.array(joint)


def method_ious(
    found: Sequence[Outcome], features: FeatureSet, labels: Labels, direct: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """(E,) IoU of each method of the paper's Table 3 and of both oracles.

    Args:
        found: RefineNet's word on E examples.
        features, labels: of them.
        direct: (E, 4) the MedVLM's own boxes; None where it was not asked: there is no "medvlm".
    """
    original, joint = oracle(found, labels)
    asked = {} if direct is None else {"medvlm": iou(direct, labels.boxes)}
    return asked | {
        "medvlm_groundingdino": iou(features.boxes[:, 0], labels.boxes),
        "refinerank": iou(chosen_boxes(found), labels.boxes),
        "oracle_original": original,
        "oracle_joint": joint,
    }

"""Does RefineRank listen? Swap the question, shuffle what it reads, and see what changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from refinerank_core.boxes import iou
from refinerank_core.feature_sets import FeatureSet, Labels
from refinerank_core.joint_pool import chosen_boxes, outcomes
from refinerank_core.refinenet import RefineNet

SWAPS = 100
_OTHER_THING = 0.3  # two annotations that overlap less than this are of different things
_ON_IT = 0.3  # a box that overlaps a thing this much is on it

Sets = Sequence[tuple[FeatureSet, Labels]]


def semantic_checks(net: RefineNet, sets: Sets, *, seed: int = 0) -> dict[str, Any]:
    """The two checks of the method, over all data sets.

    Args:
        net: RefineNet.
        sets: evaluation features and answers.
        seed: of the shuffles.

    Returns:
        swaps: frames tried, and how often the box moved to the other thing asked for;
        mean IoU over examples as it is, with ROI features shuffled among the candidates of each
        pool, and with q_last shuffled among the examples of each data set.
    """
    rng = np.random.default_rng(seed)
    boxes = [chosen_boxes(outcomes(net, features)) for features, _ in sets]
    roi = [chosen_boxes(outcomes(net, _mixed_regions(f, rng))) for f, _ in sets]
    question = [chosen_boxes(outcomes(net, _mixed_questions(f, rng))) for f, _ in sets]
    moved, tried = question_swaps(sets, boxes, rng)
    return {
        "swaps": {"tried": tried, "moved": moved},
        "mean_iou": _mean(sets, boxes),
        "mean_iou_shuffled_roi": _mean(sets, roi),
        "mean_iou_shuffled_q_last": _mean(sets, question),
    }


def question_swaps(
    sets: Sets, boxes: Sequence[np.ndarray], rng: np.random.Generator
) -> tuple[int, int]:
    """Ask about another thing of the same frame.

    Args:
        sets: features and answers.
        boxes: (E, 4) what RefineRank answered in each set.
        rng: draws the frames.

    Returns:
        How often the answer to the second question lies on its thing (IoU at least 0.3 and more
        than with the first thing), and how many frames were tried.
    """
    pairs: list[tuple[int, int, int]] = []
    for number, (features, labels) in enumerate(sets):
        frames: dict[tuple[str, float], list[int]] = {}
        for place, (video, time_s) in enumerate(
            zip(features.videos, features.times_s.tolist(), strict=True)
        ):
            frames.setdefault((video, time_s), []).append(place)
        for places in frames.values():
            rivals = [
                (first, second)
                for first in places
                for second in places
                if float(iou(labels.boxes[first], labels.boxes[second])) < _OTHER_THING
            ]
            if rivals:
                first, second = rivals[int(rng.integers(len(rivals)))]
                pairs.append((number, first, second))
    order = rng.permutation(len(pairs))[:SWAPS]
    moved = 0
    for number, first, second in (pairs[int(place)] for place in order):
        answer, truth = boxes[number][second], sets[number][1].boxes
        on_new, on_old = float(iou(answer, truth[second])), float(iou(answer, truth[first]))
        moved += on_new >= _ON_IT and on_new > on_old
    return moved, len(order)


def _mixed_regions(features: FeatureSet, rng: np.random.Generator) -> FeatureSet:
    """ROI features dealt out anew among the candidates of each pool."""
    every = np.arange(len(features))  # indexing with it copies
    final = features.r_final[every]
    blocks = {block: grid[every] for block, grid in features.r_blocks.items()}
    for example in range(len(features)):
        rows = np.flatnonzero(features.valid[example])
        dealt = rows[rng.permutation(len(rows))]
        final[example, rows] = features.r_final[example, dealt]
        for block, grid in blocks.items():
            grid[example, rows] = features.r_blocks[block][example, dealt]
    return replace(features, r_final=final, r_blocks=blocks)


def _mixed_questions(features: FeatureSet, rng: np.random.Generator) -> FeatureSet:
    """q_last dealt out anew among the examples."""
    return replace(features, q_last=features.q_last[rng.permutation(len(features))])


def _mean(sets: Sets, boxes: Sequence[np.ndarray]) -> float:
    values = [iou(found, labels.boxes) for found, (_, labels) in zip(boxes, sets, strict=True)]
    return round(float(np.mean(np.concatenate(values))), 4)

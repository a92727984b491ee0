"""From scores to one answer per time: the filter to 48, the choice, optional temporal smoothing.

Source: RefineRank, arXiv:2608.23928 (filter); the smoothing is the released submission's decoder.
"""

from collections.abc import Sequence

import numpy as np

from refinerank_core.boxes import iou_matrix
from refinerank_core.structures import CandidatePool, Choice, Float64, Ranking, Refinement

KEEP = 48
FIRST_ORIGINALS = 16
QUALITY_WEIGHT = 0.7
DIVERSITY_WEIGHT = 0.3

_PATH_WIDTH = 20
_TRANSITION_WEIGHT = 0.2
_JUMP_PX = 1500.0
_AREA_WEIGHT = 0.10
_RANK_WEIGHT = 0.002


def filter_and_choose(pool: CandidatePool, refinement: Refinement, *, keep: int = KEEP) -> Ranking:
    """Filter the joint pool of originals and refined boxes, and take the best score.

    The first 16 originals are kept; then, one by one, the member with the largest
    0.7 * sigmoid(score) + 0.3 * (1 - largest IoU with the kept). A refined box that was discarded
    is no member. The answer is the kept member of highest score; on equal scores the better rank,
    then the original.

    Args:
        pool: N candidates in rank order.
        refinement: RefineNet's word on them.
        keep: members kept at most.
    """
    count = len(pool)
    members = [(row, False) for row in range(count)]
    members += [(row, True) for row in range(count) if refinement.valid[row]]
    rows = np.array([row for row, _ in members])
    refined = np.array([is_refined for _, is_refined in members])
    boxes = np.where(refined[:, None], refinement.boxes[rows], pool.boxes[rows])
    scores = np.where(
        refined, refinement.score_refined[rows], refinement.score_original[rows]
    ).astype(np.float64)
    order = _kept_order(boxes, scores, first=min(FIRST_ORIGINALS, count), keep=keep)
    kept = tuple(
        Choice(candidate=int(rows[k]), refined=bool(refined[k]), score=float(scores[k]))
        for k in order
    )
    return _choose(kept)


def _kept_order(boxes: np.ndarray, scores: Float64, *, first: int, keep: int) -> list[int]:
    """Members in the order they are kept; the first ones lead the joint list already."""
    quality = 1.0 / (1.0 + np.exp(-np.clip(scores, -60, 60)))
    overlap = iou_matrix(boxes, boxes).astype(np.float64)
    order = list(range(min(first, keep)))
    nearest = overlap[:, order].max(axis=1)
    while len(order) < min(keep, len(scores)):
        gain = QUALITY_WEIGHT * quality + DIVERSITY_WEIGHT * (1.0 - nearest)
        gain[order] = -np.inf
        best = int(gain.argmax())
        order.append(best)
        nearest = np.maximum(nearest, overlap[:, best])
    return order


def _choose(kept: tuple[Choice, ...]) -> Ranking:
    ranked = ranked_choices(kept)
    margin = ranked[0].score - ranked[1].score if len(ranked) > 1 else 0.0
    return Ranking(kept=kept, chosen=ranked[0], margin=margin)


def ranked_choices(kept: Sequence[Choice]) -> list[Choice]:
    """Members by score, best first; on equal scores the better rank, then the original."""
    return sorted(kept, key=lambda c: (-c.score, c.candidate, c.refined))


def smooth_over_time(
    rankings: Sequence[Ranking],
    pools: Sequence[CandidatePool],
    refinements: Sequence[Refinement],
) -> list[Ranking]:
    """Choose one member per time so that the box's place, area and rank do not jump.

    A Viterbi path over the 20 best members of each time: the sum of scores minus
    0.2 * (centre jump / 1500 px + 0.10 * |ln area ratio| + 0.002 * |rank difference|) from each
    time to the next. The margin of a time whose member is not its best score is negative.

    Args:
        rankings, pools, refinements: one of each per requested time, in time order.
    """
    if len(rankings) < 2:
        return list(rankings)
    columns = [ranked_choices(ranking.kept)[:_PATH_WIDTH] for ranking in rankings]
    shapes = [
        np.array([_centre_and_log_area(_box_of(c, pool, fix)) for c in column])
        for column, pool, fix in zip(columns, pools, refinements, strict=True)
    ]
    best = np.array([c.score for c in columns[0]])
    came_from: list[np.ndarray] = []
    for before, after, column in zip(shapes, shapes[1:], columns[1:], strict=False):
        total = best[:, None] - _transition(before, after)
        came_from.append(total.argmax(axis=0))
        best = total.max(axis=0) + np.array([c.score for c in column])
    path = [int(best.argmax())]
    for step in reversed(came_from):
        path.append(int(step[path[-1]]))
    return [
        _with_choice(ranking, column[place])
        for ranking, column, place in zip(rankings, columns, reversed(path), strict=True)
    ]


def _transition(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """(before, after) cost of going from one member to another."""
    jump = np.hypot(before[:, None, 0] - after[None, :, 0], before[:, None, 1] - after[None, :, 1])
    area = np.abs(before[:, None, 2] - after[None, :, 2])
    ranks = np.abs(np.arange(len(before))[:, None] - np.arange(len(after))[None, :])
    cost: np.ndarray = _TRANSITION_WEIGHT * (
        jump / _JUMP_PX + _AREA_WEIGHT * area + _RANK_WEIGHT * ranks
    )
    return cost


def _box_of(choice: Choice, pool: CandidatePool, refinement: Refinement) -> np.ndarray:
    source = refinement.boxes if choice.refined else pool.boxes
    box: np.ndarray = source[choice.candidate]
    return box


def _centre_and_log_area(box: np.ndarray) -> tuple[float, float, float]:
    x0, y0, x1, y1 = (float(side) for side in box)
    return (x0 + x1) / 2, (y0 + y1) / 2, float(np.log((x1 - x0) * (y1 - y0)))


def _with_choice(ranking: Ranking, choice: Choice) -> Ranking:
    others = [c.score for c in ranking.kept if c != choice]
    margin = choice.score - max(others) if others else 0.0
    return Ranking(kept=ranking.kept, chosen=choice, margin=margin)

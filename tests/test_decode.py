"""From scores to one answer: the filter, the choice, smoothing over time."""

import numpy as np
import pytest

from refinerank_core.bench import random_detections
from refinerank_core.boxes import iou
from refinerank_core.candidates import build_pool
from refinerank_core.decode import filter_and_choose, smooth_over_time
from refinerank_core.structures import CandidatePool, Choice, Detections, Ranking, Refinement

SIZE_WH = (640, 360)


def pool_of(boxes: list[list[float]]) -> CandidatePool:
    count = len(boxes)
    return build_pool(
        Detections(
            boxes=np.array(boxes, dtype=np.float32),
            scores=np.linspace(0.9, 0.5, count).astype(np.float32),
            phrases=("hook",) * count,
        ),
        SIZE_WH,
        raw_limit=count,
    )


def refinement_of(
    pool: CandidatePool,
    original: list[float],
    refined: list[float],
    valid: list[bool] | None = None,
) -> Refinement:
    return Refinement(
        score_original=np.array(original, dtype=np.float32),
        score_refined=np.array(refined, dtype=np.float32),
        delta=np.zeros((len(pool), 4), dtype=np.float32),
        boxes=pool.boxes.copy(),
        valid=np.array(valid or [True] * len(pool)),
    )


SMALL_BOXES = [[10.0 + 50 * k, 10, 40 + 50 * k, 40] for k in range(4)]


def test_the_best_score_of_originals_and_refined_wins() -> None:
    pool = pool_of(SMALL_BOXES)

    ranking = filter_and_choose(pool, refinement_of(pool, [0, 1, 0, 0], [0, 0, 2.5, 0]))

    assert ranking.chosen == Choice(candidate=2, refined=True, score=2.5)
    assert ranking.margin == pytest.approx(1.5)


def test_a_discarded_refined_box_is_never_chosen() -> None:
    pool = pool_of(SMALL_BOXES)
    refinement = refinement_of(pool, [0, 1, 0, 0], [0, 0, 9, 0], valid=[True, True, False, True])

    ranking = filter_and_choose(pool, refinement)

    assert ranking.chosen == Choice(candidate=1, refined=False, score=1.0)
    assert Choice(2, True, 9.0) not in ranking.kept


def test_equal_scores_go_to_the_better_rank_and_the_original() -> None:
    pool = pool_of(SMALL_BOXES)

    ranking = filter_and_choose(pool, refinement_of(pool, [1, 2, 2, 0], [0, 2, 0, 0]))

    assert ranking.chosen == Choice(candidate=1, refined=False, score=2.0)
    assert ranking.margin == 0.0


def slow_filter(boxes: np.ndarray, scores: np.ndarray, first: int, keep: int) -> list[int]:
    """The rule, member by member."""
    kept = list(range(first))
    while len(kept) < min(keep, len(scores)):
        gains = {}
        for k in range(len(scores)):
            if k not in kept:
                nearest = max(float(iou(boxes[k], boxes[j])) for j in kept)
                gains[k] = 0.7 / (1 + np.exp(-scores[k])) + 0.3 * (1 - nearest)
        kept.append(max(gains, key=lambda k: gains[k]))
    return kept


def test_the_filter_equals_the_rule_written_out() -> None:
    pool = build_pool(random_detections(40, SIZE_WH), SIZE_WH, raw_limit=40, pool_limit=40)
    rng = np.random.default_rng(5)
    original, refined = rng.normal(size=(2, 40))
    refinement = refinement_of(pool, original.tolist(), refined.tolist())

    ranking = filter_and_choose(pool, refinement)

    scores = np.concatenate([original, refined]).astype(np.float32).astype(np.float64)
    expected = slow_filter(np.concatenate([pool.boxes, pool.boxes]), scores, 16, 48)
    assert [c.candidate + 40 * c.refined for c in ranking.kept] == expected


def test_small_pools_are_kept_whole() -> None:
    pool = pool_of(SMALL_BOXES)

    ranking = filter_and_choose(pool, refinement_of(pool, [0] * 4, [0] * 4))

    assert len(ranking.kept) == 8


def test_smoothing_prefers_the_near_box_over_a_slightly_better_far_one() -> None:
    pool = pool_of([[10, 10, 50, 50], [580, 300, 620, 340]])
    first = refinement_of(pool, [2.0, 0.0], [-9, -9])
    # The far box scores 0.05 more; the jump of about 640 px costs 0.2 * 640 / 1500 = 0.085.
    second = refinement_of(pool, [1.0, 1.05], [-9, -9])
    rankings = [filter_and_choose(pool, r) for r in (first, second)]

    smooth = smooth_over_time(rankings, [pool, pool], [first, second])

    assert [r.chosen.candidate for r in rankings] == [0, 1]
    assert [r.chosen.candidate for r in smooth] == [0, 0]
    assert smooth[1].margin == pytest.approx(-0.05, abs=1e-6)


def test_smoothing_keeps_a_far_box_that_is_clearly_better() -> None:
    pool = pool_of([[10, 10, 50, 50], [580, 300, 620, 340]])
    first = refinement_of(pool, [2.0, 0.0], [-9, -9])
    second = refinement_of(pool, [1.0, 1.2], [-9, -9])
    rankings = [filter_and_choose(pool, r) for r in (first, second)]

    smooth = smooth_over_time(rankings, [pool, pool], [first, second])

    assert [r.chosen.candidate for r in smooth] == [0, 1]


def test_smoothing_leaves_one_time_as_it_is() -> None:
    pool = pool_of(SMALL_BOXES)
    refinement = refinement_of(pool, [0, 1, 0, 0], [0] * 4)
    ranking: Ranking = filter_and_choose(pool, refinement)

    assert smooth_over_time([ranking], [pool], [refinement]) == [ranking]

"""The failure categories, one by one, on boxes whose IoU is known by hand."""

import numpy as np
import pytest

from refinerank_core.failure_figures import Judged, compare, count_by, decompose, size_band
from refinerank_core.failures import (
    CATEGORIES,
    SECONDARY_TAGS,
    Attempt,
    Neighbour,
    Scene,
    Verdict,
    classify,
)
from refinerank_core.reviews.inspection import attempt_of
from tests.groundings import candidate, grounding, time_grounding

TRUTH = (100.0, 100.0, 200.0, 200.0)
SCENE = Scene(truth=TRUTH, size_wh=(640, 360), label="hook")


def _box(share: float) -> tuple[float, float, float, float]:
    """A box of IoU `share` with the truth: the upper part of it."""
    return (100.0, 100.0, 200.0, 100.0 + 100.0 * share)


FAR = (400.0, 250.0, 500.0, 350.0)


def _boxes(*shares: float) -> np.ndarray:
    return np.array([_box(share) for share in shares], dtype=np.float32).reshape(-1, 4)


@pytest.mark.parametrize(
    ("attempt", "category", "sub_tag"),
    [
        (Attempt(None, pool=_boxes(0.9), kept=_boxes(0.9)), "format", ""),
        (Attempt.single(None), "format", ""),
        (Attempt.single(_box(0.5)), "correct", "as original"),
        (Attempt.single(_box(0.49)), "candidate miss", "near"),
        (Attempt.single(FAR), "candidate miss", "absent"),
        (Attempt(_box(0.8), parent=_box(0.4)), "correct", "rescued by refinement"),
        (Attempt(_box(0.8), parent=_box(0.9)), "correct", "as original"),
        (Attempt(_box(0.3), pool=_boxes(0.3, 0.2), kept=_boxes(0.3)), "candidate miss", "near"),
        (Attempt(FAR, pool=_boxes(0.05), kept=_boxes(0.05)), "candidate miss", "absent"),
        (Attempt(_box(0.3), pool=_boxes(0.3, 0.7), kept=_boxes(0.3)), "filter miss", ""),
        (
            Attempt(_box(0.4), parent=_box(0.6), pool=_boxes(0.6, 0.4), kept=_boxes(0.6, 0.4)),
            "refinement harm",
            "",
        ),
        (
            Attempt(_box(0.4), parent=_box(0.6), pool=_boxes(0.6, 0.4), kept=_boxes(0.4)),
            "filter miss",
            "",
        ),
        (Attempt(_box(0.3), pool=_boxes(0.3, 0.7), kept=_boxes(0.3, 0.7)), "ranking miss",
         "localisation"),
        (Attempt(FAR, pool=_boxes(0.7), kept=_boxes(0.7)), "ranking miss", "background"),
    ],
)  # fmt: skip
def test_the_first_category_that_fits_holds(attempt: Attempt, category: str, sub_tag: str) -> None:
    verdict = classify(attempt, SCENE)

    assert (verdict.category, verdict.sub_tag) == (category, sub_tag)
    assert verdict.category in CATEGORIES


def test_another_thing_in_the_answer_is_the_wrong_instance() -> None:
    scene = Scene(truth=TRUTH, size_wh=(640, 360), others=(Neighbour(FAR, "grasper"),))

    verdict = classify(Attempt(FAR, pool=_boxes(0.7), kept=_boxes(0.7)), scene)

    assert (verdict.category, verdict.sub_tag) == ("ranking miss", "wrong instance")


def test_the_verdict_shows_every_iou() -> None:
    verdict = classify(
        Attempt(_box(0.4), parent=_box(0.3), pool=_boxes(0.9, 0.3), kept=_boxes(0.6)), SCENE
    )

    found = (verdict.iou, verdict.parent_iou, verdict.best_iou, verdict.kept_iou)
    assert found == pytest.approx((0.4, 0.3, 0.9, 0.6))


def test_a_stricter_tau_makes_a_correct_answer_a_miss() -> None:
    assert classify(Attempt.single(_box(0.6)), SCENE, tau=0.7).category == "candidate miss"


@pytest.mark.parametrize(
    ("attempt", "scene", "tag"),
    [
        (
            Attempt.single(FAR),
            Scene(TRUTH, (640, 360), label="hook", phrases=("grasper", "clip applier")),
            "query wrong",
        ),
        (
            Attempt.single(FAR),
            Scene(TRUTH, (640, 360), "own left hand", (Neighbour(FAR, "other left hand"),)),
            "hand side or owner confused",
        ),
        (Attempt.single(FAR), Scene((10, 10, 30, 30), (640, 360)), "small target"),
        (Attempt.single(FAR), Scene((0, 100, 99, 200), (640, 360)), "cut by the frame edge"),
        (Attempt(_box(0.6), parent=_box(0.8)), SCENE, "lost by refinement"),
        (Attempt.single(_box(0.6), filled=True), SCENE, "filled from the previous time"),
        (Attempt(FAR, reference=FAR), SCENE, "copied reference box"),
        (Attempt.single((0, 0, 640, 350)), SCENE, "full-image box"),
        (Attempt.single((0, 0, 650, 350)), SCENE, "out of canvas"),
        (Attempt(FAR, wrong_image=True), SCENE, "wrong image"),
    ],
)
def test_a_secondary_tag_is_given_where_it_holds(attempt: Attempt, scene: Scene, tag: str) -> None:
    assert tag in classify(attempt, scene).tags
    assert tag in SECONDARY_TAGS


def test_a_plain_correct_answer_has_no_secondary_tag() -> None:
    scene = Scene(TRUTH, (640, 360), label="hook", phrases=("l-hook", "hook"))

    assert classify(Attempt(_box(0.8), parent=_box(0.85)), scene).tags == ()


@pytest.mark.parametrize("box", [(5.0, 5.0, 5.0, 5.0), (9.0, 9.0, 1.0, 1.0)])
def test_an_answer_without_area_is_no_crash(box: tuple[float, float, float, float]) -> None:
    assert classify(Attempt.single(box), SCENE).category == "candidate miss"


def _judged(iou: float, best: float, kept: float, row: str = "a", **facts: float) -> Judged:
    verdict = Verdict(
        category="correct" if iou >= 0.5 else "ranking miss",
        sub_tag="",
        iou=iou,
        parent_iou=facts.get("parent", iou),
        best_iou=best,
        kept_iou=kept,
    )
    key = ("clip", "where?", facts.get("time", 0.0))
    return Judged(verdict, "refinerank", row=row, key=key, truth_share=facts.get("share", 0.5))


def test_the_losses_add_up_and_each_row_weighs_the_same() -> None:
    rows = [_judged(0.2, 0.8, 0.6, "a"), _judged(0.4, 1.0, 0.8, "a"), _judged(0.6, 0.7, 0.6, "b")]

    found = decompose(rows)

    assert found is not None
    assert (found.times, found.rows) == (3, 2)
    assert found.selected == pytest.approx((0.3 + 0.6) / 2)
    assert found.candidate_loss == pytest.approx(1 - (0.9 + 0.7) / 2)
    assert found.filter_loss == pytest.approx((0.9 + 0.7) / 2 - (0.7 + 0.6) / 2)
    total = found.candidate_loss + found.filter_loss + found.ranking_loss
    assert total == pytest.approx(1 - found.selected)
    assert found.selection_loss == pytest.approx(found.filter_loss + found.ranking_loss)


def test_refinement_is_counted_where_it_harms() -> None:
    found = decompose([_judged(0.4, 0.9, 0.9, parent=0.6), _judged(0.4, 0.9, 0.9, parent=0.3)])

    assert found is not None
    assert found.harmed == 1


def test_no_times_have_no_decomposition() -> None:
    assert decompose([]) is None


def test_counts_go_by_any_key() -> None:
    rows = [_judged(0.9, 1, 1, share=0.005), _judged(0.1, 1, 1, share=0.3), _judged(0.2, 1, 1)]

    assert count_by(rows, size_band) == {
        "over 20 %": {"ranking miss": 2},
        "under 1 %": {"correct": 1},
    }


def test_two_runs_are_compared_time_by_time() -> None:
    before = [_judged(0.2, 1, 1, time=1), _judged(0.9, 1, 1, time=2), _judged(0.5, 1, 1, time=3)]
    after = [_judged(0.7, 1, 1, time=1), _judged(0.3, 1, 1, time=2), _judged(0.505, 1, 1, time=3),
             _judged(0.1, 1, 1, time=4)]  # fmt: skip

    found = compare(before, after)

    assert [change.gain for change in found.better] == pytest.approx([0.5])
    assert [change.gain for change in found.worse] == pytest.approx([-0.6])
    assert (found.same, found.only_before, found.only_after) == (1, 0, 1)
    assert found.moved["correct", "ranking miss"] == 1


def test_a_groundings_pool_holds_originals_and_refined_boxes() -> None:
    one = grounding().times[0]

    attempt = attempt_of(one, "refinerank")

    assert attempt.chosen == (0.0, 0.0, 110.0, 100.0)
    assert attempt.parent == (0.0, 0.0, 100.0, 100.0)
    assert (len(attempt.pool), len(attempt.kept)) == (5, 5)
    assert attempt_of(one, "medvlm").chosen is None
    assert len(attempt_of(one, "medvlm_groundingdino").pool) == 3


def test_what_the_filter_dropped_is_in_the_pool_only() -> None:
    pool = (
        candidate(0, FAR, None),
        candidate(1, _box(0.8), None, kept=False),
    )
    one = time_grounding(1.0, pool, chosen=0, refined=False)

    assert classify(attempt_of(one, "refinerank"), SCENE).category == "filter miss"


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(ValueError, match="method must be one of"):
        attempt_of(grounding().times[0], "oracle")

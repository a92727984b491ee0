"""Scores worked out by hand."""

from copy import deepcopy

import pytest

from refinerank_core.boxes import Corners
from refinerank_core.metrics import (
    accuracy_at,
    box_ious,
    dataset_average,
    dataset_miou,
    question_miou,
)

WHOLE: Corners = (0, 0, 10, 10)
HALF: Corners = (0, 0, 10, 5)  # IoU 0.5 with WHOLE
AWAY: Corners = (20, 0, 30, 10)  # IoU 0 with WHOLE
FLAT: Corners = (0, 0, 10, 0)


def test_a_question_scores_the_mean_over_its_annotated_times() -> None:
    predicted = [WHOLE, HALF, AWAY, WHOLE]

    assert box_ious(predicted, [WHOLE, WHOLE, WHOLE, None]) == (1.0, 0.5, 0.0)
    assert question_miou(predicted, [WHOLE, WHOLE, WHOLE, None]) == 0.5


@pytest.mark.parametrize("box", [None, FLAT, (10, 0, 0, 10), (0, 0, float("nan"), 1)])
def test_a_missing_or_degenerate_box_scores_zero_strictly(box: Corners | None) -> None:
    assert question_miou([WHOLE, box], [WHOLE, WHOLE]) == 0.5


@pytest.mark.parametrize(
    ("predicted", "ious"),
    [
        pytest.param([HALF, None, None], (0.5, 0.5, 0.5), id="filled from the one before"),
        pytest.param([None, HALF, WHOLE], (0.5, 1.0), id="a missing first is left out"),
        pytest.param([WHOLE, AWAY, None], (1.0, 0.0, 0.0), id="a wrong box is filled in too"),
        pytest.param([HALF, (0, 0, 0, 0), WHOLE], (0.5, 0.5, 1.0), id="four zeros are missing"),
        pytest.param([WHOLE, FLAT, HALF], (1.0, 0.5), id="a box without area is left out"),
        pytest.param([None, None, None], (), id="nothing predicted"),
    ],
)
def test_the_leaderboard_fills_and_skips(
    predicted: list[Corners | None], ious: tuple[float, ...]
) -> None:
    assert box_ious(predicted, [WHOLE] * 3, scoring="leaderboard") == ious


def test_the_leaderboard_skips_a_question_that_strictly_scores_zero() -> None:
    assert question_miou([None], [WHOLE]) == 0.0
    assert question_miou([None], [WHOLE], scoring="leaderboard") is None


def test_filling_looks_at_annotated_times_only() -> None:
    truth = [WHOLE, None, WHOLE]

    assert box_ious([HALF, WHOLE, None], truth, scoring="leaderboard") == (0.5, 0.5)


def test_a_question_without_annotation_has_no_score() -> None:
    assert question_miou([WHOLE], [None]) is None
    assert question_miou([], []) is None


def test_every_question_of_a_dataset_counts_once() -> None:
    assert dataset_miou([0.0, 0.5, 1.0]) == 0.5
    assert dataset_miou([0.0, None, 1.0]) == 0.5
    assert dataset_miou([None]) is None


def test_datasets_weigh_the_same() -> None:
    published = {"CholecTrack20": 0.3960, "CoPESD": 0.5972, "EgoSurgery": 0.3671}

    assert dataset_average(published) == pytest.approx(0.4534, abs=5e-5)


def test_an_average_of_no_dataset_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one dataset"):
        dataset_average({})


def test_accuracy_counts_the_threshold_itself() -> None:
    assert accuracy_at([0.3, 0.5, 0.7, 0.49], 0.5) == 0.5
    assert accuracy_at([], 0.5) is None


def test_scoring_twice_gives_the_same_and_changes_nothing() -> None:
    predicted, truth = [[0, 0, 10, 5], None], [[0, 0, 10, 10], [0, 0, 10, 10]]
    before = deepcopy((predicted, truth))

    first = question_miou(predicted, truth, scoring="leaderboard")  # type: ignore[arg-type]
    second = question_miou(predicted, truth, scoring="leaderboard")  # type: ignore[arg-type]

    assert first == second == 0.5
    assert (predicted, truth) == before


def test_unequal_lengths_and_unknown_scoring_are_refused() -> None:
    with pytest.raises(ValueError, match="each time needs a pair"):
        box_ious([WHOLE], [])
    with pytest.raises(ValueError, match="scoring must be one of"):
        box_ious([], [], scoring="kind")  # type: ignore[arg-type]

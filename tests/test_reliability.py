"""Reliability bins against counts and means done by hand."""

import json

import numpy as np
import pytest

from refinerank_core.reliability import Reliability, as_share, reliability


def test_boxes_are_binned_by_what_was_predicted() -> None:
    found = reliability(
        np.array([0.05, 0.1, 0.6, 0.9, 1.0]), np.array([0.0, 0.2, 0.5, 1.0, 0.8]), bins=2
    )

    assert found.counts == (2, 3)
    assert found.predicted == pytest.approx((0.075, 2.5 / 3))
    assert found.reached == pytest.approx((0.1, 2.3 / 3))
    assert found.error == pytest.approx((0.05 + 0.2) / 5)


def test_perfect_predictions_have_no_error() -> None:
    values = np.linspace(0, 1, 21)

    assert reliability(values, values).error == pytest.approx(0.0)


def test_an_empty_bin_has_no_mean_and_no_boxes_no_error() -> None:
    assert reliability(np.array([0.9]), np.array([0.5]), bins=2).predicted[0] is None
    assert reliability(np.zeros(0), np.zeros(0)).error == 0.0


def test_bins_come_back_from_json() -> None:
    found = reliability(np.array([0.25, 0.75]), np.array([0.5, 0.5]), bins=4)

    assert Reliability.from_json(json.loads(json.dumps(found.as_json()))) == found


@pytest.mark.parametrize("told", [{}, {"counts": [1], "predicted": [], "reached": [], "error": 0}])
def test_other_json_is_refused(told: dict[str, object]) -> None:
    with pytest.raises((KeyError, ValueError)):
        Reliability.from_json(told)


@pytest.mark.parametrize(
    ("predicted", "reached"),
    [
        pytest.param(np.zeros(2), np.zeros(3), id="lengths"),
        pytest.param(np.array([1.5]), np.array([0.0]), id="a logit"),
        pytest.param(np.array([np.nan]), np.array([0.0]), id="not a number"),
    ],
)
def test_what_cannot_be_binned_is_refused(predicted: np.ndarray, reached: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"need two|must lie in"):
        reliability(predicted, reached)


def test_a_logit_of_zero_is_a_half() -> None:
    assert as_share(np.array([-1000.0, 0.0, 1000.0])) == pytest.approx([0.0, 0.5, 1.0])

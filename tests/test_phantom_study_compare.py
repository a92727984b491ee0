"""A repeated study is held against the kept one."""

import copy
from typing import Any

import pytest

from refinerank_core.phantom.study_compare import ROUNDING, differences

KEPT: dict[str, Any] = {
    "models": ["medvlm@1", "detector@2"],
    "split": {"train": {"laparoscopy": {"videos": 3}}, "eval": {"laparoscopy": {"videos": 2}}},
    "methods": {"refinerank": {"laparoscopy": {"mean": 0.6, "spread": 0.01}}},
    "oracle": {"joint": {"laparoscopy": {"mean": 0.8, "spread": 0.0}}},
}


def again(**changes: float) -> dict[str, Any]:
    study = copy.deepcopy(KEPT)
    for path, mean in changes.items():
        table, line = path.split("__")
        study[table][line]["laparoscopy"]["mean"] = mean
    return study


@pytest.mark.parametrize("mean", [0.6, 0.669, 0.531])
def test_a_figure_within_three_deviations_and_rounding_agrees(mean: float) -> None:
    assert differences(again(methods__refinerank=mean), KEPT) == []


def test_a_figure_beyond_that_is_named_with_both_values() -> None:
    found = differences(again(methods__refinerank=0.671, oracle__joint=0.79), KEPT)

    assert found == ["refinerank, laparoscopy: 0.6710, kept 0.6000 +- 0.0700"]


def test_without_a_spread_only_rounding_is_allowed() -> None:
    assert differences(again(oracle__joint=0.8 + ROUNDING + 0.001), KEPT)


def test_other_models_and_other_videos_are_named() -> None:
    other = again() | {"models": ["medvlm@9", "detector@2"], "split": {"train": {}, "eval": {}}}

    assert len(differences(other, KEPT)) == 2


def test_parts_that_only_one_of_the_two_has_do_not_differ() -> None:
    richer = again() | {"videos": {"laparoscopy": {"v": {"rows": 2}}}, "reliability": {}}

    assert differences(richer, KEPT) == differences(KEPT, richer) == []

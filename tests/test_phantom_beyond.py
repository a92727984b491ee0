"""The options beyond the paper, laid beside its defaults on small sides and random weights."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from refinerank_core.calibration import Calibration
from refinerank_core.errors import RefineRankError
from refinerank_core.frozen_steps import Backbones
from refinerank_core.joint_pool import chosen_boxes
from refinerank_core.phantom.beyond import (
    OPTIONS,
    Found,
    calibration_figures,
    compare_options,
    option_outcomes,
    reencoded_outcomes,
)
from refinerank_core.phantom.examples import ExamplePlan, cached_examples
from refinerank_core.phantom.study_figures import Side
from refinerank_core.phantom.vocabulary import PROCEDURES
from refinerank_core.profiles import load_profile
from refinerank_core.refinenet import RefineNet, RefineNetConfig

SMALL = ExamplePlan(
    "tests", 540, scenes=1, timings=1, questions=2, most_times=2, size_wh=(224, 126)
)
CONFIG = RefineNetConfig(96, 96, 64, inter_block=5, d_model=16, hidden_dim=32)


@pytest.fixture(scope="module")
def backbones(untrained_profile: Path) -> Backbones:
    return Backbones.load(load_profile(str(untrained_profile)), torch.device("cpu"))


@pytest.fixture(scope="module")
def side(backbones: Backbones, tmp_path_factory: pytest.TempPathFactory) -> Side:
    folder = tmp_path_factory.mktemp("beyond")
    return Side(tuple(cached_examples(backbones, SMALL, name, folder) for name in PROCEDURES))


@pytest.fixture(scope="module")
def found(backbones: Backbones, side: Side) -> dict[str, list[Found]]:
    nets = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        nets.append(RefineNet(CONFIG).eval().requires_grad_(False))
    return option_outcomes(backbones, nets, side, SMALL)


def test_every_option_is_measured_beside_the_paper(
    side: Side, found: dict[str, list[Found]]
) -> None:
    figures = compare_options(found, side.for_study())

    assert tuple(figures["options"]) == OPTIONS
    assert set(figures["differences"]) == set(OPTIONS) - {"paper"}
    for cells in figures["options"].values():
        assert set(cells) == {*PROCEDURES, "average"}
    for option, gaps in figures["differences"].items():
        options = figures["options"]
        wanted = options[option]["average"]["mean"] - options["paper"]["average"]["mean"]
        assert gaps["average"]["mean"] == pytest.approx(wanted, abs=2e-4)
        assert gaps["average"]["videos"] == 3


def test_reencoding_keeps_boxes_and_changes_refined_scores(
    found: dict[str, list[Found]],
) -> None:
    for paper, again in zip(found["paper"][0], found["reencode"][0], strict=True):
        for before, after in zip(paper, again, strict=True):
            assert np.array_equal(before.refinement.boxes, after.refinement.boxes)
            assert not np.allclose(before.refinement.score_refined, after.refinement.score_refined)


def test_smoothing_leaves_a_question_about_one_time_alone(
    side: Side, found: dict[str, list[Found]]
) -> None:
    for place, one in enumerate(side.sets):
        rows = list(one.features.rows)
        alone = [k for k, row in enumerate(rows) if rows.count(row) == 1]
        before, after = (chosen_boxes(found[name][0][place]) for name in ("paper", "smooth"))
        assert np.array_equal(before[alone], after[alone])


def test_examples_of_another_plan_are_refused(
    backbones: Backbones, side: Side, found: dict[str, list[Found]]
) -> None:
    torch.manual_seed(1)
    nets = [RefineNet(CONFIG).eval()]

    with pytest.raises(RefineRankError, match="another plan"):
        reencoded_outcomes(
            backbones, nets, found["paper"][:1], side, replace(SMALL, first_scene=541)
        )


def test_a_calibration_that_knows_better_has_the_smaller_error(
    side: Side, found: dict[str, list[Found]]
) -> None:
    reached = 0.01  # random weights hit nothing
    knots = ((-10.0, reached), (10.0, reached))

    figures = calibration_figures(Calibration(knots), found["paper"], side)

    assert figures["ece"]["after"] < figures["ece"]["before"]
    answers = 2 * sum(len(one.features) for one in side.sets)
    assert sum(figures["bins"]["before"]["counts"]) == answers

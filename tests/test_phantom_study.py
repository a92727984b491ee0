"""The whole path from phantom scenes to the study's tables, on models with random weights."""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from refinerank_core.errors import ProfileError, RefineRankError
from refinerank_core.frozen_steps import Backbones
from refinerank_core.metrics import row_mean
from refinerank_core.phantom import refinenet_training as shipped
from refinerank_core.phantom.examples import (
    ExamplePlan,
    ExampleSet,
    ask_models,
    ask_scene,
    cached_examples,
)
from refinerank_core.phantom.rows import video_id
from refinerank_core.phantom.scene import Scene
from refinerank_core.phantom.seeds import seed_for
from refinerank_core.phantom.semantics import question_swaps
from refinerank_core.phantom.study import require_split, run_study
from refinerank_core.phantom.study_figures import Side
from refinerank_core.phantom.study_tables import as_markdown
from refinerank_core.phantom.training_commands import add_training
from refinerank_core.phantom.vocabulary import PROCEDURES
from refinerank_core.profiles import load_profile
from refinerank_core.refinenet import RefineNetConfig
from tests.test_training import feature_set

SMALL = ExamplePlan(
    "tests", 500, scenes=1, timings=1, questions=2, most_times=1, size_wh=(224, 126)
)


@pytest.fixture(scope="module")
def backbones(untrained_profile: Path) -> Backbones:
    return Backbones.load(load_profile(str(untrained_profile)), torch.device("cpu"))


@pytest.fixture(scope="module")
def sides(
    backbones: Backbones, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Side, Side, Path]:
    folder = tmp_path_factory.mktemp("features")
    plans = (SMALL, replace(SMALL, first_scene=520, with_answers=True))
    training, evaluation = (
        Side(tuple(cached_examples(backbones, plan, name, folder) for name in PROCEDURES))
        for plan in plans
    )
    return training, evaluation, folder


def test_the_study_gives_every_table_of_the_contract(sides: tuple[Side, Side, Path]) -> None:
    training, evaluation, _ = sides
    config = RefineNetConfig(96, 96, 64, inter_block=5, d_model=16, hidden_dim=32)

    figures, net = run_study(training, evaluation, config, seeds=(1, 2), epochs=1)

    assert figures["procedures"] == list(PROCEDURES)
    assert set(figures["methods"]) == {"medvlm", "medvlm_groundingdino", "refinerank"}
    assert set(figures["oracle"]) == {"original", "joint"}
    assert set(figures["selectors"]) == {"extra_trees", "mlp", "transformer"}
    assert list(figures["features"]) == [
        "f_dino", "q_last", "block_1", "block_3", "block_5", "block_7"
    ]  # fmt: skip
    for table in ("methods", "oracle", "selectors", "features"):
        for cells in figures[table].values():
            assert set(cells) == {*PROCEDURES, "average"}
            mean = np.mean([cells[name]["mean"] for name in PROCEDURES])
            assert cells["average"]["mean"] == pytest.approx(mean, abs=2e-4)
    for name in PROCEDURES:
        assert (
            figures["oracle"]["joint"][name]["mean"]
            >= figures["methods"]["refinerank"][name]["mean"]
        )
        lost = figures["decomposition"][name]
        assert 0 <= lost["candidate_loss"] <= 1
    assert net.config == config
    videos = {v for one in evaluation.sets for v in one.features.videos}
    assert {v for found in figures["videos"].values() for v in found} == videos
    assert figures["worst"][PROCEDURES[0]][0]["question"]
    assert sum(row["examples"] for row in figures["by_kind"].values()) == sum(
        len(one.features) for one in evaluation.sets
    )
    text = as_markdown({**json.loads(json.dumps(figures)), "command": "c", "revision": "r"})
    assert "PHANTOM" in text
    assert text.count("RefineRank") >= 3


def test_examples_come_back_from_their_folder(
    backbones: Backbones, sides: tuple[Side, Side, Path]
) -> None:
    training, _, folder = sides
    fresh: ExampleSet = training.sets[0]

    again = cached_examples(backbones, SMALL, PROCEDURES[0], folder)

    assert again.asked == fresh.asked
    assert np.array_equal(again.features.q_last, fresh.features.q_last)
    assert np.array_equal(again.direct, fresh.direct, equal_nan=True)


def test_features_depend_on_words_and_frames_alone(backbones: Backbones) -> None:
    scene = Scene.from_seed(seed_for("tests", 500), PROCEDURES[0])
    question, frames = next(iter(ask_scene(scene, SMALL)))

    def features(text: str, video: str) -> np.ndarray:
        examples = ask_models(
            backbones, text, frames, row="r", video=video, duration_s=scene.duration_s
        ).examples
        return np.concatenate((examples[0].q_last, examples[0].r_final.ravel()))

    first = features(question.text, video_id(scene))
    same = features(question.text, "the same frames under another name")
    other = features(question.text.replace("the ", "a certain "), video_id(scene))

    assert np.allclose(first, same, atol=1e-5)
    assert not np.allclose(first[:96], other[:96], atol=1e-5)


def test_sides_that_share_a_video_are_refused(sides: tuple[Side, Side, Path]) -> None:
    training, evaluation, _ = sides

    require_split(training, evaluation)
    with pytest.raises(RefineRankError, match="both sides"):
        require_split(training, Side((*evaluation.sets, training.sets[0])))


def test_the_shipped_plans_share_no_scene() -> None:
    plans = (shipped.TRAINING, shipped.VALIDATION, shipped.EVALUATION)
    seeds = [
        {seed_for(p.purpose, n) for n in range(p.first_scene, p.first_scene + p.scenes)}
        for p in plans
    ]

    assert not seeds[0] & seeds[1] | seeds[0] & seeds[2] | seeds[1] & seeds[2]


def test_a_row_counts_once_however_many_times_it_asks_for() -> None:
    assert row_mean(np.array([1.0, 0.0, 0.2]), ["a", "a", "b"]) == pytest.approx(0.35)


def test_a_swap_counts_when_the_box_lies_on_the_second_thing() -> None:
    features, labels = feature_set("a", 2)
    features = replace(features, videos=("v", "v"), times_s=np.zeros(2, np.float32))
    labels = replace(labels, boxes=np.array([[0, 0, 20, 20], [50, 50, 80, 80]], np.float32))
    rng = np.random.default_rng(0)

    on_each = question_swaps([(features, labels)], [labels.boxes], rng)
    always_first = question_swaps(
        [(features, labels)], [labels.boxes[[0, 0]]], np.random.default_rng(1)
    )

    assert on_each == (1, 1)
    assert always_first[0] in (0, 1)  # one of the two orders asks for the first thing


def test_a_profile_without_trained_models_is_refused() -> None:
    with pytest.raises(ProfileError, match="no trained models"):
        shipped.study_of_profile("untrained", quick=True, work=None)


def test_the_commands_parse() -> None:
    parser = argparse.ArgumentParser()
    add_training(parser.add_subparsers())

    study = parser.parse_args(["study", "--quick", "--json", "s.json"])
    detector = parser.parse_args(["train-detector", "stills", "out", "--work", "w"])

    assert study.quick
    assert study.json == Path("s.json")
    assert detector.steps > 0

"""A study's figures against values done by hand, and folds put together again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from refinerank_core.intervals import row_scores
from refinerank_core.joint_pool import chosen_boxes, outcomes
from refinerank_core.metrics import row_mean
from refinerank_core.refinenet import RefineNet
from refinerank_core.study import TABLES, Measured, StudyPlan, StudySet, joined, measure
from refinerank_core.study_figures import decomposition, figures_of, worst_cases
from refinerank_core.study_tables import paper_tables
from tests.test_training import CONFIG, feature_set


def study_set(name: str, examples: int, *, seed: int = 0) -> StudySet:
    features, labels = feature_set(name, examples, seed=seed)
    return StudySet(features, labels, np.full((examples, 4), np.nan, np.float32))


@pytest.fixture(scope="module")
def sets() -> list[StudySet]:
    return [study_set("a", 12), study_set("b", 8, seed=1)]


@pytest.fixture(scope="module")
def measured(sets: list[StudySet]) -> list[Measured]:
    training = [study_set("a", 16, seed=2), study_set("b", 16, seed=3)]
    return [measure(training, sets, CONFIG, StudyPlan(seed, epochs=1)) for seed in (1, 2)]


@pytest.fixture(scope="module")
def figures(measured: list[Measured], sets: list[StudySet]) -> dict[str, Any]:
    return figures_of(measured, sets, {"a-row0": "Where?"})


def test_each_table_has_its_lines_and_the_figures_of_its_examples(
    measured: list[Measured], sets: list[StudySet], figures: dict[str, Any]
) -> None:
    assert set(figures["methods"]) == {"medvlm", "medvlm_groundingdino", "refinerank"}
    assert list(figures["features"]) == ["f_dino", "q_last", "block_1", "block_3"]
    values = [
        row_mean(one.ious["methods"]["refinerank"]["a"], sets[0].features.rows) for one in measured
    ]
    cell = figures["methods"]["refinerank"]["a"]
    assert cell["mean"] == pytest.approx(np.mean(values), abs=1e-4)
    assert cell["spread"] == pytest.approx(np.std(values, ddof=1), abs=1e-4)
    assert figures["methods"]["medvlm"]["average"]["mean"] == 0.0  # it gave no box at all


def test_the_mean_over_a_data_sets_videos_by_rows_is_its_figure(figures: dict[str, Any]) -> None:
    for name in ("a", "b"):
        videos = figures["videos"][name].values()
        rows = sum(one["rows"] for one in videos)
        for line in ("medvlm_groundingdino", "refinerank"):
            mean = sum(one["rows"] * one[line] for one in videos) / rows
            assert figures["methods"][line][name]["mean"] == pytest.approx(mean, abs=2e-4)
        mean = sum(one["rows"] * one["joint"] for one in videos) / rows
        assert figures["oracle"]["joint"][name]["mean"] == pytest.approx(mean, abs=2e-4)


def test_intervals_hold_their_figure_and_differences_are_of_the_tables(
    figures: dict[str, Any],
) -> None:
    for table in TABLES:
        for line, cells in figures["intervals"][table].items():
            for name, ends in cells.items():
                mean = figures[table][line][name]["mean"]
                assert ends["low"] - 1e-4 <= mean <= ends["high"] + 1e-4
    gap = figures["differences"]["mlp"]["a"]
    ours, theirs = figures["methods"]["refinerank"]["a"], figures["selectors"]["mlp"]["a"]
    assert gap["mean"] == pytest.approx(ours["mean"] - theirs["mean"], abs=2e-4)
    assert set(figures["differences"]) == {
        "medvlm", "medvlm_groundingdino", "extra_trees", "mlp", "transformer"
    }  # fmt: skip


def test_every_answer_and_kept_member_stands_in_a_bin(
    measured: list[Measured], figures: dict[str, Any]
) -> None:
    found = figures["reliability"]
    kept = sum(len(o.ranking.kept) for one in measured for o in one.found["a"])

    assert sum(found["a"]["answers"]["counts"]) == 2 * 12
    assert sum(found["a"]["pool"]["counts"]) == kept
    for what in ("answers", "pool"):
        both = np.add(found["a"][what]["counts"], found["b"][what]["counts"])
        assert both.tolist() == found["all"][what]["counts"]


def test_curves_and_json_are_plain(figures: dict[str, Any]) -> None:
    assert [len(figures["curves"][seed]["refinenet"]) for seed in ("1", "2")] == [1, 1]
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures
    text = "\n".join(paper_tables(figures, "data set"))
    assert "| RefineRank | 0." in text
    assert "| MLP | " in text.split("RefineRank less")[1]


def test_rows_weigh_the_same_and_keep_their_video() -> None:
    rows, videos = ("r", "r", "s", "t"), ("v", "v", "v", "w")

    found = row_scores(np.array([1.0, 0.0, 0.2, 0.4]), rows, videos)

    assert found == [("v", 0.5), ("v", pytest.approx(0.2)), ("w", pytest.approx(0.4))]


def small_net() -> RefineNet:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return RefineNet(CONFIG).eval()


def told(one: StudySet, chosen: list[float], joint: list[float], before: list[float]) -> Measured:
    name, net = one.features.dataset, small_net()
    return Measured(
        seed=0,
        net=net,
        ious={
            "methods": {"refinerank": {name: np.array(chosen)}},
            "oracle": {"joint": {name: np.array(joint)}},
        },
        before={name: np.array(before)},
        found={name: outcomes(net, one.features)},
    )


def test_where_iou_is_lost_adds_up() -> None:
    lost = decomposition(
        ("r", "s", "t", "u"),
        chosen=np.array([0.6, 0.6, 0.4, 0.0]),
        before=np.array([0.4, 0.7, 0.5, 0.0]),
        best=np.array([1.0, 0.8, 0.8, 0.2]),
    )

    assert lost == {
        "candidate_loss": 0.3, "ranking_loss": 0.3, "correct": 0.5, "rescued": 0.25, "harmed": 0.25
    }  # fmt: skip


def test_the_worst_answers_come_first_and_a_video_at_most_twice() -> None:
    one = study_set("a", 5)
    features = replace(one.features, videos=("v", "v", "v", "w", "x"), rows=tuple("abcde"))
    one = replace(one, features=features)
    measured = told(one, [0.1, 0.0, 0.0, 0.3, 0.9], [0.5, 0.6, 0.9, 0.4, 1.0], [0.0] * 5)

    cases = worst_cases(measured, one, {"c": "Where is it?"}, most=3)

    assert [case["row"] for case in cases] == ["c", "b", "d"]
    assert cases[0]["question"] == "Where is it?"
    assert cases[0]["boxes"]["truth"] == pytest.approx(one.labels.boxes[2].tolist(), abs=0.06)
    answer = chosen_boxes(measured.found["a"])[2]
    assert cases[0]["boxes"]["answer"] == pytest.approx(answer.tolist(), abs=0.06)


def test_folds_put_together_are_every_example_in_its_place(
    measured: list[Measured], sets: list[StudySet]
) -> None:
    whole = measured[0]
    folds = [
        (np.array([5, 0, 2, 7]), np.array([1, 3])),
        (np.array([1, 3, 4, 6, 8, 9, 10, 11]), np.array([0, 2, 4, 5, 6, 7])),
    ]
    parts = []
    for places in folds:
        mine = dict(zip("ab", places, strict=True))
        part = replace(
            whole,
            ious={
                table: {
                    line: {name: values[mine[name]] for name, values in cells.items()}
                    for line, cells in lines.items()
                }
                for table, lines in whole.ious.items()
            },
            before={name: values[mine[name]] for name, values in whole.before.items()},
            found={name: [f[k] for k in mine[name]] for name, f in whole.found.items()},
        )
        parts.append((part, places))

    found = joined(parts, sets)

    assert list(found.losses) == ["fold 1 of 2", "fold 2 of 2"]
    assert found.found == whole.found
    for table, lines in whole.ious.items():
        for line, cells in lines.items():
            for name, values in cells.items():
                assert np.array_equal(found.ious[table][line][name], values)

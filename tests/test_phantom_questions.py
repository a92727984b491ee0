"""Phantom questions say what they mean and their answers are the truth of the frames."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from refinerank_core.phantom.pointers import KINDS, pointers
from refinerank_core.phantom.questions import PhantomQuestion, ask, ask_about
from refinerank_core.phantom.rows import write_rows
from refinerank_core.phantom.scene import Scene
from refinerank_core.phantom.truth import FrameTruth, ObjectTruth
from refinerank_core.phantom.vocabulary import PROCEDURES
from refinerank_core.phantom.wording import Timing, draw_timing
from refinerank_core.question import parse_question

SIZE = (160, 90)

every_procedure = pytest.mark.parametrize("procedure", PROCEDURES)


@lru_cache(maxsize=8)
def asked(procedure: str) -> list[tuple[Scene, PhantomQuestion]]:
    pairs = []
    for seed in range(3):
        scene, rng = Scene.from_seed(seed, procedure), np.random.default_rng(seed)
        questions = [ask(scene, rng, size_wh=SIZE) for _ in range(12)]
        pairs += [(scene, question) for question in questions if question is not None]
    return pairs


def tool(instance: int, name: str, side: str = "left", **facts: str) -> ObjectTruth:
    box = np.array([10, 10, 40, 40], np.float32) + 5 * instance
    return ObjectTruth(
        instance, name, "tool", box, None, 1.0, side=side, side_is_clear=True,
        action=facts.get("action"), target=facts.get("target"),
    )  # fmt: skip


def frame_of(*objects: ObjectTruth) -> FrameTruth:
    return FrameTruth(1.0, SIZE, objects)


@every_procedure
def test_the_words_ask_for_the_times_that_are_answered(procedure: str) -> None:
    for scene, question in asked(procedure):
        assert parse_question(question.text).requested_s == question.times_s
        assert all(0 <= time < scene.duration_s for time in question.times_s)


@every_procedure
def test_answers_are_the_boxes_of_the_frames(procedure: str) -> None:
    for scene, question in asked(procedure):
        if question.instance is None:
            continue
        for time, box in zip(question.times_s, question.boxes, strict=True):
            thing = scene.truth_at(time, SIZE).instance(question.instance)

            assert thing is not None
            assert thing.in_view
            assert np.array_equal(thing.box, box)


@every_procedure
def test_a_negative_is_nowhere_to_be_seen(procedure: str) -> None:
    negatives = [(s, q) for s, q in asked(procedure) if q.kind == "negative"]

    assert negatives
    for scene, question in negatives:
        names = {t.name for at in question.times_s for t in scene.truth_at(at, SIZE).objects}
        assert question.phrase not in names
        assert question.boxes.shape == (0, 4)
        assert question.answer().endswith(" not in view.")


def test_all_kinds_of_question_come_up() -> None:
    kinds = {question.kind for procedure in PROCEDURES for _, question in asked(procedure)}

    assert kinds == set(KINDS)


def test_two_graspers_are_never_just_the_grasper() -> None:
    truth = frame_of(
        tool(1, "grasper", "left", action="grasping", target="liver"),
        tool(2, "grasper", "right", action="retracting", target="gallbladder"),
    )

    found = pointers(truth)

    assert not [p for p in found if p.kind == "name"]
    assert {p.instance for p in found if p.facts == ("left",)} == {1}
    assert {p.instance for p in found if p.facts == ("retracting", "gallbladder")} == {2}


def test_two_tools_doing_the_same_to_the_same_thing_are_told_apart_by_name_only() -> None:
    same = {"action": "grasping", "target": "liver"}
    truth = frame_of(tool(1, "grasper", "left", **same), tool(2, "bipolar", "left", **same))

    kinds = {pointer.kind for pointer in pointers(truth)}

    assert kinds == {"name", "category"}


def test_a_thing_barely_visible_makes_its_name_ambiguous_but_is_not_asked_for() -> None:
    hidden = tool(1, "hook")
    truth = frame_of(
        ObjectTruth(1, "hook", "tool", hidden.box, None, 0.1, "left", True), tool(2, "hook", "top")
    )

    assert not [p for p in pointers(truth) if p.kind == "name"]
    assert {p.instance for p in pointers(truth)} == {2}


def test_an_empty_frame_can_only_be_asked_in_vain() -> None:
    rng, when = np.random.default_rng(0), Timing((1.0,), "at 1.0 seconds")

    question = ask_about([frame_of()], when, "laparoscopy", rng)

    assert question is not None
    assert question.kind == "negative"


def test_an_answer_is_written_the_way_of_the_benchmark() -> None:
    question = PhantomQuestion(
        text="", thing="the hook", kind="name", phrase="hook", instance=1, times_s=(2.0, 6.5),
        size_wh=SIZE, boxes=np.array([[1, 2, 30, 40], [5.4, 6.6, 70, 80]], np.float32),
    )  # fmt: skip

    assert question.answer() == "2.0 seconds: [1, 2, 30, 40] 6.5 seconds: [5, 7, 70, 80]"


def test_one_truth_a_time_is_wanted() -> None:
    with pytest.raises(ValueError, match="one truth a time"):
        ask_about([], Timing((1.0,), "at 1.0 seconds"), "laparoscopy", np.random.default_rng(0))


@pytest.mark.parametrize("duration_s", [2.0, 8.0, 20.0, 30.0])
def test_drawn_times_lie_on_the_grid_inside_the_clip(duration_s: float) -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        timing = draw_timing(rng, duration_s)

        assert parse_question(f"Where is the hook {timing.words}?").requested_s == timing.times_s
        assert 0 <= timing.times_s[0] <= timing.times_s[-1] <= duration_s - 0.2 + 1e-9
        assert np.allclose(np.array(timing.times_s) * 5, np.rint(np.array(timing.times_s) * 5))


def test_rows_have_the_benchmark_s_fields_and_their_frames_exist(tmp_path: Path) -> None:
    scene = Scene.from_seed(3, "endoscopic dissection", duration_s=4.0)

    path = write_rows([scene], tmp_path, size_wh=SIZE, per_scene=3, seed=1)

    rows = json.loads(path.read_text())
    assert len(rows) == 3
    for row in rows:
        assert row["qa_type"] == "stg"
        assert row["data_source"] == "PhantomEndoscopicDissection"
        assert row["metadata"]["input_video_end_frame"] == 99
        assert row["conversations"][0]["from"] == "human"
        assert all((tmp_path / frame).is_file() for frame in row["video"])
        numbers = [int(Path(frame).stem.rsplit("_", 1)[1]) for frame in row["video"]]
        assert numbers == list(range(0, 100, 5))
        for time, box in row["struc_info"][0]["bbox_dict"].items():
            assert round(float(time) * 25) in numbers
            assert box[0] < box[2]
            assert box[1] < box[3]

"""Facts about rendered phantom scenes and their truth."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest

from refinerank_core.phantom.effects import Sensor
from refinerank_core.phantom.scene import Scene
from refinerank_core.phantom.truth import FrameTruth, ObjectTruth
from refinerank_core.phantom.vocabulary import LADDERS, PROCEDURES

SMALL = (256, 144)
TIMES = (2.0, 7.0, 12.0)
SEEDS = (11, 12, 13)

every_procedure = pytest.mark.parametrize("procedure", PROCEDURES)


@lru_cache(maxsize=64)
def frame(procedure: str, seed: int, time_s: float) -> tuple[np.ndarray, FrameTruth]:
    return Scene.from_seed(seed, procedure).render(time_s, SMALL, with_masks=True)


def truths(procedure: str) -> list[FrameTruth]:
    return [frame(procedure, seed, time)[1] for seed in SEEDS for time in TIMES]


def things(procedure: str) -> list[ObjectTruth]:
    return [thing for truth in truths(procedure) for thing in truth.objects]


@every_procedure
def test_the_same_seed_gives_the_same_picture_and_boxes(procedure: str) -> None:
    image, truth = frame(procedure, 11, 2.0)

    again, same = Scene.from_seed(11, procedure).render(2.0, SMALL, with_masks=True)

    assert np.array_equal(again, image)
    assert same.as_json() == truth.as_json()


@every_procedure
def test_other_seeds_give_other_pictures(procedure: str) -> None:
    first, second = frame(procedure, 11, 2.0)[0], frame(procedure, 12, 2.0)[0]

    assert np.abs(first.astype(int) - second).mean() > 5


@every_procedure
def test_a_frame_does_not_depend_on_the_frames_before_it(procedure: str) -> None:
    scene = Scene.from_seed(11, procedure)
    for time in (9.0, 0.0, 5.0):
        scene.render(time, SMALL)

    assert np.array_equal(scene.render(2.0, SMALL)[0], frame(procedure, 11, 2.0)[0])


@every_procedure
def test_truth_without_a_picture_is_the_truth_of_the_picture(procedure: str) -> None:
    scene = Scene.from_seed(11, procedure)

    assert scene.truth_at(2.0, SMALL).as_json() == frame(procedure, 11, 2.0)[1].as_json()


@every_procedure
def test_pictures_are_rgb_bytes_of_the_size_asked_for(procedure: str) -> None:
    image, truth = frame(procedure, 11, 2.0)

    assert image.shape == (144, 256, 3)
    assert image.dtype == np.uint8
    assert truth.size_wh == SMALL


def tight(mask: np.ndarray) -> tuple[int, int, int, int]:
    rows, columns = np.nonzero(mask)
    return int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1


@every_procedure
def test_boxes_enclose_their_masks_exactly(procedure: str) -> None:
    truth = Scene.from_seed(11, procedure).truth_at(2.0, (640, 360), with_masks=True)

    for thing in truth.objects:
        assert thing.mask is not None
        assert tuple(thing.box.tolist()) == tight(thing.mask), thing.name


@every_procedure
def test_boxes_of_small_frames_keep_points_thinner_than_a_pixel(procedure: str) -> None:
    for thing in things(procedure):
        assert thing.mask is not None
        if not thing.mask.any():
            continue
        box = tight(thing.mask)

        assert all(thing.box[:2] <= np.array(box[:2]) + 0.5), thing.name
        assert all(thing.box[2:] >= np.array(box[2:]) - 0.5), thing.name


@every_procedure
def test_boxes_lie_inside_the_frame_and_have_area(procedure: str) -> None:
    for thing in things(procedure):
        x0, y0, x1, y1 = thing.box.tolist()

        assert thing.box.dtype == np.float32
        assert 0 <= x0 < x1 <= 256
        assert 0 <= y0 < y1 <= 144


@every_procedure
def test_no_pixel_belongs_to_two_things(procedure: str) -> None:
    for truth in truths(procedure):
        masks = [thing.mask for thing in truth.objects if thing.mask is not None]

        assert np.sum(masks, axis=0).max() <= 1


@every_procedure
def test_boxes_scale_with_the_frame(procedure: str) -> None:
    large = Scene.from_seed(11, procedure).truth_at(2.0, (640, 360))

    for thing in large.in_view():
        if thing.kind == "structure":
            continue
        small = frame(procedure, 11, 2.0)[1].instance(thing.instance)
        assert small is not None
        assert (small.box * 2.5).tolist() == pytest.approx(thing.box.tolist(), abs=3.0)


@every_procedure
def test_shares_run_from_nothing_to_all(procedure: str) -> None:
    assert all(0 < thing.visible_share <= 1 for thing in things(procedure))


@every_procedure
def test_every_name_has_its_phrases(procedure: str) -> None:
    assert {thing.name for thing in things(procedure)} <= set(LADDERS)


@every_procedure
def test_whoever_acts_acts_on_a_structure_of_the_scene(procedure: str) -> None:
    for seed in SEEDS:
        scene = Scene.from_seed(seed, procedure)
        for phase in scene.phases:
            assert phase.target in scene.plan.anchors
            assert phase.start_s < phase.end_s


@every_procedure
def test_tips_move_smoothly(procedure: str) -> None:
    for seed in SEEDS:
        for actor in Scene.from_seed(seed, procedure).actors:
            path = np.array([actor.tip_at(index / 25) for index in range(500)])
            steps = np.hypot(*np.diff(path, axis=0).T)

            assert steps.max() < 0.09  # of the view's height, in a 25th of a second


@every_procedure
def test_most_scenes_hold_several_tools_and_often_two_of_a_class(procedure: str) -> None:
    scenes = [Scene.from_seed(seed, procedure) for seed in range(60)]
    names = [
        [body.name for actor in scene.actors for body in actor.bodies if body.kind == "tool"]
        for scene in scenes
    ]

    assert np.mean([len(each) >= 2 for each in names]) > 0.9
    assert np.mean([len(each) > len(set(each)) for each in names]) > 0.4


@every_procedure
def test_tools_leave_and_come_back(procedure: str) -> None:
    comings, goings = 0, 0
    for seed in SEEDS:
        scene = Scene.from_seed(seed, procedure, duration_s=40.0)
        seen = [
            {thing.instance for thing in scene.truth_at(time, SMALL).in_view("tool")}
            for time in np.arange(0, 40, 2.0)
        ]
        comings += sum(len(after - before) for before, after in pairwise(seen))
        goings += sum(len(before - after) for before, after in pairwise(seen))

    assert comings >= 2
    assert goings >= 2


def test_only_open_surgery_has_hands_with_owner_and_side() -> None:
    hands = [thing for thing in things("open surgery") if thing.kind == "hand"]

    assert {thing.owner for thing in hands} == {"own", "other"}
    assert all(thing.name == f"{thing.owner} {thing.hand} hand" for thing in hands)
    assert all(thing.owner is None for thing in things("laparoscopy"))


def test_a_tool_under_another_shows_less_of_itself() -> None:
    scene = Scene.from_seed(11, "laparoscopy")
    covered = [
        (thing, time)
        for time in np.arange(0, 20, 0.5)
        for thing in scene.truth_at(float(time), SMALL).in_view("tool")
        if thing.visible_share < 0.9
    ]
    assert covered, "no tool is ever covered"
    thing, time = covered[0]
    alone = Scene.from_seed(11, "laparoscopy")
    alone.actors = [
        actor
        for actor in alone.actors
        if any(body.instance == thing.instance for body in actor.bodies)
    ]

    free = alone.truth_at(float(time), SMALL).instance(thing.instance)

    assert free is not None
    assert free.visible_share >= thing.visible_share


def test_grain_and_compression_change_the_picture_but_not_the_truth() -> None:
    plain, truth = frame("laparoscopy", 11, 2.0)

    noisy, same = Scene.from_seed(11, "laparoscopy").render(
        2.0, SMALL, with_masks=True, sensor=Sensor(noise=4.0, jpeg_quality=60)
    )

    difference = np.abs(noisy.astype(int) - plain).mean()
    assert 0.5 < difference < 12
    assert same.as_json() == truth.as_json()


def test_an_unknown_procedure_is_refused() -> None:
    with pytest.raises(ValueError, match="procedure must be one of laparoscopy"):
        Scene.from_seed(1, "dentistry")


def test_a_clip_without_time_is_refused() -> None:
    with pytest.raises(ValueError, match="must be above 0"):
        Scene.from_seed(1, "laparoscopy", duration_s=0.0)

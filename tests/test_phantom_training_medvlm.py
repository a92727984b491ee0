"""The training of the embedded MedVLM: its truth, its texts, and how it goes on after a stop."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from refinerank_core.answers import parse_answer
from refinerank_core.models.medvlm import MedVLMSettings, QwenMedVLM
from refinerank_core.models.small import SmallMedVLM, save
from refinerank_core.phantom.medvlm_cells import (
    FIELDS,
    NAMES,
    NOTHING,
    UNKNOWN,
    cells_of,
    label_cells,
    mirrored,
)
from refinerank_core.phantom.medvlm_language import LanguagePlan, LanguageRun
from refinerank_core.phantom.medvlm_lessons import (
    Lesson,
    direct_answer,
    draw_lesson,
    draw_times,
    query_answer,
    shared_length,
)
from refinerank_core.phantom.medvlm_looks import answer_looks
from refinerank_core.phantom.medvlm_start import whiten_patches
from refinerank_core.phantom.medvlm_texts import build_phantom_medvlm
from refinerank_core.phantom.medvlm_tower import SIZE, TowerPlan, TowerRun
from refinerank_core.phantom.stills import StillPlan, StillSet, make_stills
from refinerank_core.phantom.truth import FrameTruth, ObjectTruth
from refinerank_core.phantom.vocabulary import PROCEDURES
from refinerank_core.question import parse_query_answer
from refinerank_core.structures import Frame

TINY = replace(SIZE, depth=4, full_blocks=(0, 1, 2, 3), hidden=32, heads=1, mlp=32, layers=2)
TINY = replace(TINY, width=32, text_heads=2, key_heads=1, text_mlp=32, max_pixels=28 * 28 * 12)
PLAN = StillPlan(
    purpose="tests",
    procedures=PROCEDURES,
    scenes=2,
    shard_scenes=2,
    stills_per_scene=2,
    size_wh=(224, 126),
)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Keep tiny sums on one thread: sharing them out takes longer than doing them."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("stills")
    make_stills(PLAN, home)
    return home


@pytest.fixture(scope="module")
def stills(folder: Path) -> StillSet:
    return StillSet(folder, "tests")


def thing(name: str, kind: str, box: list[float], **facts: Any) -> ObjectTruth:
    return ObjectTruth(
        instance=1,
        name=name,
        kind=kind,
        box=np.array(box, np.float32),
        mask=None,
        visible_share=1.0,
        **facts,
    )


def truth(*things: ObjectTruth) -> FrameTruth:
    return FrameTruth(time_s=1.0, size_wh=(400, 200), objects=things)


def test_a_cell_tells_the_tool_above_the_structure_behind_it() -> None:
    hook = thing("hook", "tool", [0, 0, 100, 100], side="left", side_is_clear=True)
    seen = truth(thing("gallbladder", "structure", [0, 0, 200, 100]), hook)

    facts, boxes = label_cells(seen, (2, 4))

    place = {name: number for number, name in enumerate(FIELDS)}
    assert facts[0, :, place["name"]].tolist() == [
        NAMES.index("hook"),
        NAMES.index("gallbladder"),
        NOTHING,
        NOTHING,
    ]
    assert facts[0, 0, place["side"]] == 0
    assert facts[0, 1, place["side"]] == UNKNOWN
    assert boxes[0, 0].tolist() == [0.0, 0.0, 0.25, 0.5]
    assert facts[1, :, place["name"]].tolist() == [NOTHING] * 4


def test_in_a_mirror_left_becomes_right_for_places_and_for_hands() -> None:
    hand = thing("own left hand", "hand", [0, 0, 40, 20], owner="own", hand="left", side="left")

    turned = mirrored(truth(hand)).objects[0]

    assert (turned.name, turned.hand, turned.side) == ("own right hand", "right", "right")
    assert turned.box.tolist() == [360, 0, 400, 20]


def test_a_box_is_shared_out_over_the_cells_that_it_covers_most() -> None:
    shares = cells_of(np.array([0.0, 0.0, 0.5, 0.5], np.float32), (2, 4))

    assert shares.tolist() == [0.5, 0.5, 0, 0, 0, 0, 0, 0]


def test_a_box_between_cells_still_has_one() -> None:
    shares = cells_of(np.array([0.3, 0.6, 0.3, 0.6], np.float32), (2, 4))

    assert shares.sum() == 1


def lessons_of(stills: StillSet, count: int) -> list[Lesson]:
    rng = np.random.default_rng(5)
    drawn = [
        draw_lesson(rng, [still.truth], draw_times(rng, 1), still.procedure, in_full=turn % 2 == 0)
        for still in stills[0 : len(stills)]
        for turn in range(count)
    ]
    return [lesson for lesson in drawn if lesson is not None]


def test_direct_answers_read_back_to_the_times_and_boxes_that_were_written(
    stills: StillSet,
) -> None:
    there = [lesson for lesson in lessons_of(stills, 4) if lesson.asked.instance is not None]
    assert there

    for lesson in there:
        (read,) = parse_answer(direct_answer(lesson, [12.5], (252, 140))).boxes

        assert read.time_s == 12.5
        wanted = lesson.boxes[0] * np.array([252, 140, 252, 140])
        assert np.abs(np.array(read.corners) - wanted).max() <= 0.51


def test_what_is_not_in_view_gets_no_box(stills: StillSet) -> None:
    rng = np.random.default_rng(0)
    still = stills[0]
    lesson = draw_lesson(rng, [still.truth], [1.0], still.procedure, in_full=True, kind="negative")

    assert lesson is not None
    assert lesson.name == NOTHING
    assert parse_answer(direct_answer(lesson, [1.0], (252, 140))).boxes == ()


def test_detector_phrases_read_back_as_they_were_written(stills: StillSet) -> None:
    for lesson in lessons_of(stills, 6):
        phrases = parse_query_answer(query_answer(lesson.asked))

        assert phrases is not None
        assert ", ".join(phrases) == query_answer(lesson.asked)


def test_rows_share_their_beginning_but_never_their_last_token() -> None:
    assert shared_length([[1, 2, 3, 4], [1, 2, 5]]) == 2
    assert shared_length([[1, 2], [1, 2]]) == 1


def test_the_writer_of_a_second_box_looks_into_the_second_frame() -> None:
    box = np.array([[0.0, 0.0, 0.5, 1.0], [0.5, 0.0, 1.0, 1.0]], np.float32)
    labels = torch.tensor([[-100, -100, 5, 9, 5, -100]])  # 9 ends a box

    rows, places, cells = answer_looks(labels, [box], (1, 2), closing=9)

    assert rows.tolist() == [0, 0, 0]
    assert places.tolist() == [1, 2, 3]
    assert cells.tolist() == [
        [True, False, False, False],
        [True, False, False, False],
        [False, False, False, True],
    ]


def test_stills_that_are_there_are_not_drawn_again(folder: Path) -> None:
    whole = sorted(folder.glob("*.json"))
    whole[0].unlink()

    assert make_stills(PLAN, folder) == 1
    assert make_stills(PLAN, folder) == 0


def test_a_scene_keeps_its_stills_together(stills: StillSet) -> None:
    places = stills.scene_places(3)

    assert places == [2, 3]
    assert stills[2].truth.time_s < stills[3].truth.time_s


def test_no_stills_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="phantom make"):
        StillSet(tmp_path, "training")


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(first[name], second[name]) for name in first)


def test_the_tower_goes_on_to_the_same_weights(stills: StillSet, tmp_path: Path) -> None:
    plan = TowerPlan(steps=2, batch=3, whitened=0, size=TINY)
    straight = TowerRun(plan, stills, tmp_path / "straight")
    straight.train()

    TowerRun(plan, stills, tmp_path / "halved").train(stop_after=1)
    resumed = TowerRun(plan, stills, tmp_path / "halved")
    assert resumed.step == 1
    resumed.train()

    assert same(straight.visual.state_dict(), resumed.visual.state_dict())
    assert same(straight.heads.state_dict(), resumed.heads.state_dict())


def test_a_whitened_embedding_tells_as_much_along_every_filter() -> None:
    model, _ = build_phantom_medvlm(TINY, seed=0)
    visual = model.model.visual
    patches = torch.randn(4, 300, 588, generator=torch.Generator().manual_seed(0))

    whiten_patches(visual, patches)

    told = patches.flatten(0, 1) @ visual.patch_embed.proj.weight.sum(dim=2).flatten(1).T
    spread = told.T @ told / len(told)
    torch.testing.assert_close(spread, torch.eye(TINY.hidden), atol=2e-2, rtol=0)


def language_plan(size: SmallMedVLM) -> LanguagePlan:
    return LanguagePlan(
        steps=2,
        joint_from=1,
        videos_from=0,
        pictures=3,
        questions=2,
        answered=1,
        answers=1,
        queries=2,
        size=size,
    )


def test_the_language_side_goes_on_to_the_same_weights(stills: StillSet, tmp_path: Path) -> None:
    plan = language_plan(TINY)
    straight = LanguageRun(plan, stills, tmp_path / "straight", tower=None)
    straight.train()

    LanguageRun(plan, stills, tmp_path / "halved", tower=None).train(stop_after=1)
    resumed = LanguageRun(plan, stills, tmp_path / "halved", tower=None)
    assert resumed.step == 1
    resumed.train()

    assert same(straight.model.state_dict(), resumed.model.state_dict())
    assert same(straight.heads.state_dict(), resumed.heads.state_dict())


def test_the_language_side_may_go_on_from_a_finished_model(
    stills: StillSet, tmp_path: Path
) -> None:
    first = LanguageRun(language_plan(TINY), stills, tmp_path / "first", tower=None)
    first.train()
    save(first.model, first.processor, tmp_path / "out")

    begun = LanguageRun(
        language_plan(TINY), stills, tmp_path / "second", tower=None, weights=tmp_path / "out"
    )
    assert same(begun.model.state_dict(), first.model.state_dict())
    assert begun.step == 0
    assert begun.started_from.startswith("out@")

    begun.train(stop_after=1)
    with pytest.raises(ValueError, match="another plan"):
        LanguageRun(language_plan(TINY), stills, tmp_path / "second", tower=None)


def test_a_checkpoint_of_another_plan_is_refused(stills: StillSet, tmp_path: Path) -> None:
    TowerRun(TowerPlan(steps=1, batch=2, whitened=0, size=TINY), stills, tmp_path).train()

    with pytest.raises(ValueError, match="another plan"):
        TowerRun(TowerPlan(steps=1, batch=3, whitened=0, size=TINY), stills, tmp_path)


def test_a_training_may_go_on_with_another_number_of_steps(
    stills: StillSet, tmp_path: Path
) -> None:
    plan = language_plan(TINY)
    LanguageRun(plan, stills, tmp_path, tower=None).train(stop_after=1)

    longer = LanguageRun(replace(plan, steps=plan.steps + 3), stills, tmp_path, tower=None)
    assert longer.step == 1
    with pytest.raises(ValueError, match="another plan"):
        LanguageRun(replace(plan, peak_rate=1.0), stills, tmp_path, tower=None)


def test_training_sees_and_reads_what_the_adapter_does(stills: StillSet, tmp_path: Path) -> None:
    run = LanguageRun(language_plan(TINY), stills, tmp_path, tower=None)
    save(run.model, run.processor, tmp_path / "model")
    adapter = QwenMedVLM(
        MedVLMSettings(source=str(tmp_path / "model"), blocks=(1,)),
        torch.device("cpu"),
        torch.float32,
    )
    still, rng = stills[0], np.random.default_rng(1)
    frame = Frame(index=0, time_s=12.5, image=still.image)

    with torch.no_grad():
        seen = run.viewer.look([still], None)
        lessons = [run.draw(seen, 0, [12.5], rng) for _ in range(2)]
        asked = run.ask(seen, [lessons], [12.5])

    for place, lesson in enumerate(lessons):
        told = adapter.encode([frame], [12.5], lesson.text, "clip")[0]
        torch.testing.assert_close(told.vision.final.flatten(0, 1), seen.merged[0])
        torch.testing.assert_close(told.q_last, asked[0, place], atol=1e-4, rtol=1e-4)

"""The whole path on small random models: contract, batching, warnings."""

import json
import pickle
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from refinerank_core.boxes import iou
from refinerank_core.errors import QuestionError, VideoError
from refinerank_core.frame_writer import write_video
from refinerank_core.grounding import Grounding, TimeGrounding
from refinerank_core.models.protocols import AnswerText, Encoding, VisionFeatures
from refinerank_core.pipeline import RefineRank
from refinerank_core.profiles import load_profile
from refinerank_core.progress import (
    STAGES,
    UNWRITTEN,
    Begun,
    Grounded,
    Passed,
    Ranked,
    Written,
)
from refinerank_core.structures import Detections, Frame, Query, Question
from refinerank_core.video import Video, open_video
from tests.conftest import REAL_DATA

QUESTION = "Which instrument is dissecting the gallbladder from 1 to 3 seconds, every 1 second?"


def check_contract(grounding: Grounding) -> None:
    """What holds for every grounding."""
    width, height = grounding.video.width, grounding.video.height
    assert len(grounding.times) == len(grounding.question.times_s) > 0
    for one in grounding.times:
        boxes = [one.answers.refinerank.box, one.answers.medvlm_groundingdino.box]
        boxes += [c.box for c in one.candidates]
        boxes += [c.refined_box for c in one.candidates if c.refined_box is not None]
        boxes += [] if one.answers.medvlm.box is None else [one.answers.medvlm.box]
        for x0, y0, x1, y1 in boxes:
            assert 0 <= x0 < x1 <= width
            assert 0 <= y0 < y1 <= height
        assert 1 <= len(one.candidates) <= 128
        assert [c.id for c in one.candidates] == list(range(len(one.candidates)))
        assert 1 <= len(one.kept) <= 48
        check_choice(one)
    again = Grounding.from_json(grounding.to_json())
    assert again == grounding
    json.loads(grounding.to_json(), parse_constant=lambda word: pytest.fail(f"{word} in JSON"))


def check_choice(one: TimeGrounding) -> None:
    best = one.answers.refinerank
    row = one.candidates[best.candidate_id]
    assert best.box == (row.refined_box if best.refined else row.box)
    assert best.score == (row.score_refined if best.refined else row.score_original)
    kept = {(c.id, False) for c in one.candidates if c.kept_original}
    kept |= {(c.id, True) for c in one.candidates if c.kept_refined}
    assert kept == set(one.kept)
    scores = sorted(
        one.candidates[k].score_refined if refined else one.candidates[k].score_original
        for k, refined in one.kept
    )
    assert best.score == scores[-1]


def test_each_requested_time_has_three_answers_and_all_maps(
    system: RefineRank, clip_path: Path
) -> None:
    grounded = system.run(clip_path, QUESTION)

    grounding = grounded.grounding
    check_contract(grounding)
    assert grounding.question.times_s == (1.0, 2.0, 3.0)
    assert [one.frame_index for one in grounding.times] == [5, 10, 15]
    assert grounding.profile.untrained
    assert set(grounding.seconds) == set(STAGES)
    assert set(grounded.maps) == {0, 1, 2}
    for one, maps in grounded.maps.items():
        assert set(maps.raw) == {"block1", "block3", "block5", "block7", "final"}
        assert maps.target == grounding.times[one].answers.refinerank.box


def test_times_together_equal_times_one_by_one(system: RefineRank, video: Video) -> None:
    together = system.ground(video, "Where is the hook?", [1.0, 2.0, 4.0])

    for one in together.times:
        alone = system.ground(video, "Where is the hook?", [one.requested_s]).times[0]
        assert [c.phrase for c in alone.candidates] == [c.phrase for c in one.candidates]
        np.testing.assert_allclose(
            [c.score_original for c in alone.candidates],
            [c.score_original for c in one.candidates],
            atol=1e-4,
        )


def test_the_current_frame_is_asked_about_when_no_time_is_named(
    system: RefineRank, video: Video
) -> None:
    grounding = system.ground(video, "Where is the hook?", current_s=2.4)

    assert grounding.question.times_s == (2.4,)
    assert grounding.times[0].frame_index == 12


def test_given_times_go_before_those_in_the_question(system: RefineRank, video: Video) -> None:
    grounding = system.ground(video, QUESTION, [0.0, 5.0])

    assert grounding.question.times_s == (0.0, 5.0)


def test_groups_of_times_give_the_same_answers_as_one_group(
    system: RefineRank, video: Video
) -> None:
    profile = system.profile
    medvlm = profile.medvlm.model_copy(update={"answer_frames": 2})
    grouped = RefineRank(
        profile.model_copy(update={"medvlm": medvlm}),
        system.medvlm,
        system.detector,
        system.net,
        refinenet_name="net",
        device=torch.device("cpu"),
        dtype=torch.float32,
    ).run(video, QUESTION)

    whole = system.run(video, QUESTION)

    assert set(grouped.maps) == set(whole.maps)
    for one, other in zip(grouped.grounding.times, whole.grounding.times, strict=True):
        assert one.frame_index == other.frame_index
        np.testing.assert_allclose(
            [c.score_refined for c in one.candidates],
            [c.score_refined for c in other.candidates],
            atol=1e-4,
        )


def test_progress_reaches_every_stage_and_may_cancel(system: RefineRank, video: Video) -> None:
    seen: list[tuple[str, int, int]] = []

    class CancelledError(Exception):
        pass

    def stop(stage: str, done: int, total: int) -> None:
        if stage == "detect":
            raise CancelledError

    system.run(
        video, QUESTION, progress=lambda stage, done, total: seen.append((stage, done, total))
    )

    assert {stage for stage, _, _ in seen} == set(STAGES)
    assert all((done, total) == (3, 3) for _, done, total in seen)
    with pytest.raises(CancelledError):
        system.run(video, QUESTION, progress=stop)


def test_times_are_told_batch_by_batch_before_the_direct_answer(
    system: RefineRank, video: Video
) -> None:
    told = list(system.steps(video, QUESTION, batch=2))

    findings = [one for one in told if not isinstance(one, Passed)]
    assert [type(one) for one in findings] == [Begun, Ranked, Ranked, Written, Grounded]
    _, first, second, written, whole = findings
    assert isinstance(first, Ranked)
    assert isinstance(second, Ranked)
    assert isinstance(written, Written)
    assert isinstance(whole, Grounded)
    assert (first.first, len(first.times), second.first, len(second.times)) == (0, 2, 2, 1)
    assert [one.answers.medvlm for one in first.times] == [UNWRITTEN] * 2
    assert {**first.maps, **second.maps}.keys() == whole.maps.keys()
    for early, words, late in zip(
        first.times + second.times, written.answers, whole.grounding.times, strict=True
    ):
        answers = early.answers.model_copy(update={"medvlm": words})
        assert early.model_copy(update={"answers": answers}) == late


def test_what_is_told_passes_between_processes(system: RefineRank, video: Video) -> None:
    for one in system.steps(video, QUESTION, batch=2):
        again = pickle.loads(pickle.dumps(one))
        if isinstance(one, Grounded):
            assert again.grounding == one.grounding
            assert again.maps[0].raw["final"].tolist() == one.maps[0].raw["final"].tolist()


def test_closing_the_steps_stops_the_work(system: RefineRank, video: Video) -> None:
    told = system.steps(video, QUESTION)
    assert isinstance(next(told), Passed)

    told.close()

    assert list(told) == []


def test_smoothing_moves_the_maps_with_the_choice(system: RefineRank, video: Video) -> None:
    grounded = system.run(video, QUESTION, smooth=True)

    for k, maps in grounded.maps.items():
        assert maps.target == grounded.grounding.times[k].answers.refinerank.box


def test_frames_that_were_asked_about_are_in_the_cache(system: RefineRank, video: Video) -> None:
    system.ground(video, "Where is the hook?", [0.0, 1.0])

    assert system.frames_in_cache(video, [0, 5, 7]) == 2


def test_maps_of_any_box_can_be_asked_for(system: RefineRank, video: Video) -> None:
    maps = system.maps_at(video, 3, (10.0, 20.0, 60.0, 80.0))

    assert maps.target == (10.0, 20.0, 60.0, 80.0)
    assert maps.raw["final"].shape[0] * 2 == maps.raw["block1"].shape[0]


@pytest.mark.parametrize(
    ("question", "times", "error", "words"),
    [
        pytest.param("", None, QuestionError, "empty", id="empty question"),
        pytest.param("x" * 10_000, None, QuestionError, "10000 characters", id="long question"),
        pytest.param("Where is it?", [99.0], QuestionError, "past the end", id="time past the end"),
        pytest.param(
            "Where is it every 1 seconds from 4 to 2 seconds?",
            None,
            QuestionError,
            "2",
            id="reversed span",
        ),
    ],
)
def test_bad_questions_are_refused(
    system: RefineRank,
    video: Video,
    question: str,
    times: list[float] | None,
    error: type[Exception],
    words: str,
) -> None:
    with pytest.raises(error, match=words):
        system.ground(video, question, times)


def test_a_missing_file_is_one_sentence(system: RefineRank, tmp_path: Path) -> None:
    with pytest.raises(VideoError, match="nothing"):
        system.ground(tmp_path / "nothing.mp4", QUESTION)


def test_anchors_stand_in_when_nothing_is_found(untrained_profile: Path, video: Video) -> None:
    profile = load_profile(str(untrained_profile))
    strict = profile.detector.model_copy(update={"box_threshold": 1.0})
    blind = RefineRank.load(profile.model_copy(update={"detector": strict}), device="cpu")

    grounding = blind.ground(video, "Where is the hook?", [1.0])

    check_contract(grounding)
    assert [c.source for c in grounding.times[0].candidates] == ["anchor"] * 19
    assert grounding.times[0].answers.medvlm_groundingdino.confidence is None
    assert any("19 fixed anchors stand in" in w for w in grounding.warnings)


def test_a_blank_frame_is_pointed_out(system: RefineRank, tmp_path: Path) -> None:
    path = tmp_path / "blank.mp4"
    blank = np.zeros((112, 168, 3), dtype=np.uint8)
    write_video(path, [blank, blank], [0.0, 0.2])

    grounding = system.ground(path, "Where is the hook?", [0.0])

    assert any("Frame 0 is blank" in warning for warning in grounding.warnings)


class ScriptedMedVLM:
    """Says what the test wants; its features are constant."""

    model_id, attention, merged_patch_px = "scripted@0", "none", 28

    def __init__(self, text: str, *, cut: bool = False) -> None:
        self._text = text
        self._cut = cut

    def see(self, frames: Sequence[Frame], video_key: str) -> list[VisionFeatures]:
        grid, final = torch.ones(4, 8, 64), torch.ones(2, 4, 96)
        return [VisionFeatures({5: grid}, final, resized_wh=(560, 336)) for _ in frames]

    def remembered(self, video_key: str, indices: Sequence[int]) -> int:
        return 0

    def encode(
        self, frames: Sequence[Frame], times_s: Sequence[float], question: str, video_key: str
    ) -> list[Encoding]:
        return [Encoding(torch.ones(96), vision) for vision in self.see(frames, video_key)]

    def answer(
        self, frames: Sequence[Frame], times_s: Sequence[float], question: str, video_key: str
    ) -> AnswerText:
        return AnswerText(self._text, cut=self._cut, notes=())

    def query(self, question: Question) -> Query:
        return Query(("hook",), "medvlm", "hook")

    def take_notes(self) -> tuple[str, ...]:
        return ()


class ScriptedDetector:
    """Finds the same two boxes on every frame, and says once that memory was short."""

    model_id = "scripted@0"

    def take_notes(self) -> tuple[str, ...]:
        return ("Memory ran out with 8 frames at once: went on with 4.",)

    def detect(
        self, frames: Sequence[Frame], phrases: Sequence[str], *, video_key: str = ""
    ) -> list[Detections]:
        boxes = np.array([[10, 10, 60, 60], [100, 50, 180, 120]], dtype=np.float32)
        scores = np.array([0.9, 0.3], dtype=np.float32)
        return [Detections(boxes, scores, ("hook", "hook")) for _ in frames]


def scripted(system: RefineRank, text: str, *, cut: bool = False) -> RefineRank:
    return RefineRank(
        system.profile,
        ScriptedMedVLM(text, cut=cut),
        ScriptedDetector(),
        system.net,
        refinenet_name="net",
        device=torch.device("cpu"),
        dtype=torch.float32,
    )


def test_the_direct_answer_is_mapped_from_the_resized_picture(
    system: RefineRank, video: Video
) -> None:
    # The model saw 560x336, the frame is 280x168: everything it says is twice as large.
    text = "1.0 seconds: [20, 40, 120, 160] 2.0 seconds: nothing. 3 seconds: [560, 0, 900, 50]"

    grounding = scripted(system, text).ground(video, QUESTION)

    direct = [one.answers.medvlm for one in grounding.times]
    assert direct[0].box == (10.0, 20.0, 60.0, 80.0)
    assert direct[1].box is None
    assert direct[2].box is None
    assert direct[0].text == text
    assert any("1 box(es) outside the frame" in warning for warning in grounding.warnings)
    check_contract(grounding)


def test_what_the_models_note_stands_among_the_warnings_once(
    system: RefineRank, video: Video
) -> None:
    grounding = scripted(system, "nothing").ground(video, QUESTION)

    assert grounding.warnings.count("Memory ran out with 8 frames at once: went on with 4.") == 1


@pytest.mark.parametrize("cut", [True, False])
def test_an_answer_that_was_cut_off_is_pointed_out(
    system: RefineRank, video: Video, cut: bool
) -> None:
    grounding = scripted(system, "1.0 seconds: [1, 2, 3, 4]", cut=cut).ground(video, QUESTION)

    assert any("reached its length limit" in warning for warning in grounding.warnings) == cut


def test_the_detector_baseline_is_the_most_confident_box(system: RefineRank, video: Video) -> None:
    grounding = scripted(system, "").ground(video, QUESTION)

    for one in grounding.times:
        assert one.answers.medvlm_groundingdino.box == (10.0, 10.0, 60.0, 60.0)
        assert one.answers.medvlm_groundingdino.confidence == pytest.approx(0.9)
    assert grounding.query.source == "medvlm"


REAL_CLIPS = sorted(REAL_DATA.rglob("*.mp4")) if REAL_DATA.is_dir() else [REAL_DATA / "absent.mp4"]


@pytest.mark.real
@pytest.mark.parametrize("path", REAL_CLIPS, ids=lambda path: path.stem)
def test_real_clips_are_answered_at_every_requested_time(system: RefineRank, path: Path) -> None:
    with open_video(path) as clip:
        last = float(clip.times_s[-1])
        grounded = system.run(clip, "Which instrument holds the tissue?", [0.0, last / 2, last])

    check_contract(grounded.grounding)
    assert len(grounded.grounding.times) == 3
    assert all(len(maps.raw) == 5 for maps in grounded.maps.values())
    box = np.array(grounded.grounding.times[0].answers.refinerank.box)
    assert iou(box, box) == pytest.approx(1.0)

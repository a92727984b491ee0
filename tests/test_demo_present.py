"""What the screen says of an answer."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from demo import exports, present
from demo.sessions import Answer, Clip
from refinerank_core.grounding import Grounding
from refinerank_core.video import Video, open_video
from tests.browser.fakes import GRID, FakeMaps, grounding_of, tissue
from tests.clips import encode


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Clip:
    path = encode(tmp_path_factory.mktemp("clip") / "a.mp4", (tissue(k) for k in range(50)))
    return Clip("token", open_video(path), None)


def answer_on(
    clip: Clip, text: str = "where is the hook?", times: tuple[float, ...] = (1.0,)
) -> Answer:
    grounding = grounding_of(clip.video, text, "hook", ["hook"], times)
    return Answer("answer", clip, grounding, {}, {})


def without(grounding: Grounding, **changes: object) -> Grounding:
    """The same grounding with other values in its first candidate."""
    plain = json.loads(grounding.to_json())
    plain["times"][0]["candidates"][0] |= changes
    return Grounding.model_validate(plain)


def test_the_sentence_says_the_margin_and_the_origin_of_the_top_box(clip: Clip) -> None:
    time = answer_on(clip).grounding.times[0]
    best = time.answers.refinerank

    words = present.why(time)

    assert f"Margin {best.margin:.2f} over rank 2" in words
    assert f"#{best.candidate_id + 1}" in words


def test_ranks_fall_by_score_and_start_with_the_answer(clip: Clip) -> None:
    time = answer_on(clip).grounding.times[0]

    order = present.ranked(time)

    assert len(order) == 48
    assert (order[0].candidate, order[0].refined) == (
        time.answers.refinerank.candidate_id,
        time.answers.refinerank.refined,
    )
    scores = [one.score for one in order]
    assert scores == sorted(scores, reverse=True)


def test_boxes_reach_the_browser_bit_by_bit(clip: Clip) -> None:
    time = answer_on(clip).grounding.times[0]

    rows = json.loads(json.dumps(present.pool_facts(time, 0)))["rows"]

    assert [row["box"] for row in rows] == [list(one.box) for one in time.candidates]


def test_even_frames_travel_as_one_step_and_uneven_ones_as_time_stamps(
    clip: Clip, tmp_path: Path
) -> None:
    stamps = [0, 1, 2, 5, 6, 9]
    uneven = encode(tmp_path / "b.mp4", (tissue(k) for k in range(6)), pts=stamps)

    with open_video(uneven) as video:
        packed = present.time_table(video)

    assert present.time_table(clip.video) == {"step": pytest.approx(0.04)}
    assert set(packed) == {"packed"}


def test_a_map_keeps_its_hot_cell_when_packed() -> None:
    import base64

    values = np.full(GRID, -0.2, np.float16)
    values[2, 7] = 1.0

    facts = present.maps_facts(FakeMaps((0, 0, 1, 1), {"block5": values}), 5)["maps"][0]  # type: ignore[arg-type]

    whole = np.frombuffer(base64.b64decode(facts["packed"]), "<i2").reshape(GRID)
    assert (facts["rows"], facts["columns"], facts["feeds"]) == (*GRID, True)
    assert np.argwhere(whole == 32767).tolist() == [[2, 7]]


def test_the_table_to_take_away_holds_every_candidate_of_every_time(clip: Clip) -> None:
    answer = answer_on(clip, times=(0.5, 1.0))

    rows = list(csv.DictReader(io.StringIO(exports.pool_csv(answer))))

    assert len(rows) == 2 * 128
    first = answer.grounding.times[0].candidates[0]
    assert [float(rows[0][name]) for name in ("x0", "y0", "x1", "y1")] == list(first.box)
    assert sum(row["answer"] != "" for row in rows) == 2


def test_every_column_of_the_table_is_explained() -> None:
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")

    assert [name for name in exports.CSV_COLUMNS if f"`{name}`" not in readme] == []


def test_a_phrase_that_looks_like_a_formula_is_not_run_by_a_spreadsheet(clip: Clip) -> None:
    answer = answer_on(clip)
    grounding = without(answer.grounding, phrase="=1+1", score_original=-2.5)

    text = exports.pool_csv(Answer("a", clip, grounding, {}, {}))

    row = next(csv.DictReader(io.StringIO(text)))
    assert row["phrase"] == "'=1+1"
    assert row["score_original"] == "-2.5"


def test_overlap_with_the_truth_is_told_for_each_method(clip: Clip) -> None:
    plain = answer_on(clip)
    best = plain.grounding.times[0].answers.refinerank.box
    answer = Answer("a", clip, plain.grounding, {}, {plain.grounding.times[0].frame_index: best})

    facts = present.answer_facts(answer)["times"][0]["iou"]

    assert facts["refinerank"] == 1.0


def test_a_video_shows_its_own_name_and_size(clip: Clip) -> None:
    facts = present.clip_facts(clip, 3)

    assert (facts["title"], facts["width"], facts["height"], facts["count"]) == (
        "a.mp4",
        320,
        180,
        50,
    )
    assert isinstance(clip.video, Video)

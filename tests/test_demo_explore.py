"""The handlers of the Explore tab, called as the page calls them."""

import base64
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from demo import plots
from demo.api import Api
from demo.events import answered
from demo.explore import best_frame
from demo.frames import FrameImages
from demo.lookup import Lookup
from demo.runs import Pace
from demo.sessions import Answer, Sessions
from demo.shots import Shots
from refinerank_core.grounding import Grounding, TimeGrounding
from tests.browser.fakes import GRID, FakeCore, fake_services, grounding_of
from tests.clips import encode, number_shown, numbered

SIZE_WH = (96, 64)


class Desk:
    """A page's server side on one numbered clip with a kept answer."""

    def __init__(self, samples: Path) -> None:
        services = fake_services(FakeCore(), samples)
        self.sessions = Sessions(services)
        self.frames = FrameImages(limit_bytes=20_000)
        self.look = Lookup(services, self.sessions, self.frames, Pace())
        self.api = Api(services, self.sessions, self.frames)
        clip = self.sessions.sample("numbers")
        grounding = grounding_of(clip.video, "where?", "it", ["it"], [0.4, 0.8])
        best = grounding.times[0].answers.refinerank.box
        truth = {grounding.times[0].frame_index: best}
        self.answer = Answer("answer", clip, grounding, {}, truth)
        self.sessions.add_answer(self.sessions.of("me"), self.answer)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    samples = tmp_path_factory.mktemp("samples")
    encode(samples / "numbers.mp4", (numbered(k, SIZE_WH) for k in range(60)))
    opened = Desk(samples)
    yield opened
    opened.sessions.close()


def plain(grey: int) -> np.ndarray:
    return np.full((64, 96, 3), grey, np.uint8)


def picture_of(url: str) -> np.ndarray:
    import cv2

    packed = np.frombuffer(base64.b64decode(url.split(",")[1]), np.uint8)
    return np.asarray(cv2.imdecode(packed, cv2.IMREAD_COLOR))


def test_every_frame_asked_for_is_the_frame_that_comes(desk: Desk) -> None:
    for index in (0, 59, 7, 8, 30, 29, 7):
        sent = {"clip": "sample:numbers", "index": index, "request_id": 5}

        reply = desk.look.frame(sent)

        assert (reply["index"], reply["request_id"]) == (index, 5)
        assert number_shown(picture_of(reply["src"])) == index


def test_a_frame_past_the_end_is_a_sentence(desk: Desk) -> None:
    sent = {"clip": "sample:numbers", "index": 60, "request_id": 1}

    assert "no such frame" in answered(desk.look.frame)(sent)["error"]


def test_the_pool_of_a_time_holds_all_its_candidates(desk: Desk) -> None:
    pool = desk.look.pool({"answer": "answer", "k": 1})

    assert (len(pool["rows"]), len(pool["order"])) == (128, 48)


@pytest.mark.parametrize("target", ["answer", "original", "refined", "medvlm", "truth"])
def test_a_map_is_hot_in_the_cell_under_its_target(desk: Desk, target: str) -> None:
    reply = desk.look.maps({"answer": "answer", "k": 0, "target": target, "candidate": 3})

    x0, y0, x1, y1 = reply["target"]
    one = reply["maps"][0]
    whole = np.frombuffer(base64.b64decode(one["packed"]), "<i2").reshape(GRID)
    row = int((y0 + y1) / 2 / SIZE_WH[1] * GRID[0])
    column = int((x0 + x1) / 2 / SIZE_WH[0] * GRID[1])
    assert np.argwhere(whole == whole.max()).tolist() == [[row, column]]


def test_a_map_for_a_box_that_is_not_there_is_refused(desk: Desk) -> None:
    sent = {"answer": "answer", "k": 1, "target": "truth"}

    assert "no such box" in answered(desk.look.maps)(sent)["error"]


def test_times_in_the_words_are_read_before_asking(desk: Desk) -> None:
    read = answered(desk.look.read)

    assert read({"clip": "sample:numbers", "text": "Where is the hook at 0:01?"})["times"] == [1.0]
    assert "past the end" in read({"clip": "sample:numbers", "text": "the hook at 9 s"})["error"]


def test_shot_changes_are_sought_once(tmp_path: Path) -> None:
    path = encode(tmp_path / "cut.mp4", (plain(90 if k < 8 else 180) for k in range(16)))
    sessions = Sessions(fake_services(FakeCore(), tmp_path))
    look = Lookup(sessions.services, sessions, FrameImages(), Pace())
    sent = {"clip": "sample:cut"}

    first = look.shots(sent)
    path.unlink()

    assert first == look.shots(sent) == {"shots": [8]}
    sessions.close()


def test_while_one_clip_is_searched_another_waits(tmp_path: Path) -> None:
    for name in ("a", "b"):
        encode(tmp_path / f"{name}.mp4", (plain(90) for _ in range(3)))
    sessions = Sessions(fake_services(FakeCore(), tmp_path))
    meanwhile: list[tuple[int, ...] | None] = []

    def find(path: Path) -> tuple[int, ...]:
        meanwhile.append(shots.of(sessions.sample("b")))
        return (2,)

    shots = Shots(find)

    assert shots.of(sessions.sample("a")) == (2,)
    assert meanwhile == [None]
    sessions.close()


def test_the_answer_taken_away_is_the_answer(desk: Desk) -> None:
    reply = desk.look.take({"answer": "answer", "kind": "json"})

    assert Grounding.from_json(base64.b64decode(reply["content"])) == desk.answer.grounding


def test_the_maps_taken_away_open_in_numpy(desk: Desk) -> None:
    content = base64.b64decode(desk.look.take({"answer": "answer", "kind": "npz"})["content"])

    with np.load(io.BytesIO(content)) as arrays:
        assert arrays["t0_raw_block5"].shape == GRID
        assert "t1_raw_final" in arrays
    about = json.loads(zipfile.ZipFile(io.BytesIO(content)).read("about.json"))
    assert about["caution"] == "UNTRAINED"


def test_another_visitor_cannot_name_my_answer(desk: Desk) -> None:
    sent = {"answer": "answer ", "k": 0}

    assert "no longer here" in answered(desk.look.pool)(sent)["error"]


def test_pictures_in_memory_stay_below_the_limit(desk: Desk) -> None:
    for index in range(60):
        desk.look.frame({"clip": "sample:numbers", "index": index, "request_id": 1})

    assert desk.frames._held_bytes <= 20_000


def test_programs_find_clips_frames_and_answers(desk: Desk) -> None:
    assert [one["name"] for one in desk.api.list_samples()] == ["numbers"]
    assert number_shown(picture_of(desk.api.read_frame("numbers", 12)["src"])) == 12
    plain: dict[str, Any] = desk.api.ground("numbers", "where is it?", [0.4])
    assert Grounding.model_validate(plain).times[0].frame_index == 10


def test_the_figures_show_every_box_and_every_time(desk: Desk) -> None:
    time = desk.answer.grounding.times[0]

    spread = plots.scores(time).data
    scatter = plots.refinement(time).data
    over_time = plots.over_time(desk.answer).data

    assert sum(len(one.x) for one in spread) == 256
    assert [len(one.x) for one in scatter[1:]] == [127, 1]
    assert [one.name for one in over_time][:2] == ["score", "margin"]
    assert "IoU R1" in [one.name for one in over_time]


def test_the_screen_knows_no_model() -> None:
    code = "import sys, demo.ui; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0


def test_a_clip_opens_where_refinerank_and_the_detector_mean_different_things(desk: Desk) -> None:
    def told(apart: bool, margin: float, frame: int) -> TimeGrounding:
        time = desk.answer.grounding.times[0]
        box = time.answers.refinerank.box
        other = (box[0] + 500, box[1], box[2] + 500, box[3]) if apart else box
        answers = time.answers.model_copy(
            update={
                "refinerank": time.answers.refinerank.model_copy(update={"margin": margin}),
                "medvlm_groundingdino": time.answers.medvlm_groundingdino.model_copy(
                    update={"box": other}
                ),
            }
        )
        return time.model_copy(update={"answers": answers, "frame_index": frame})

    def opened_at(*times: TimeGrounding) -> int:
        return best_frame(desk.answer.grounding.model_copy(update={"times": times}))

    assert opened_at(told(False, 0.9, 1), told(True, 0.1, 2), told(True, 0.2, 3)) == 3
    assert opened_at(told(False, 0.1, 1), told(False, 0.9, 2)) == 2

"""Files of decisions and boxes that go out of the Review tab and come in."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from demo.events import answered
from demo.review_files import ReviewFiles
from demo.shelf import Shelf
from refinerank_core.reviews.worklist import Wanted
from refinerank_core.video import open_video
from tests.clips import encode, numbered
from tests.desks import Desk, Facts, action, desk, samples, send

__all__ = ["desk", "samples"]  # fixtures


def test_what_goes_out_comes_back_in(
    desk: Desk, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = desk.fill()[0]
    send(desk, action(first, body={"decision": "fix", "box_after": [3.25, 4.5, 40.0, 50.0]}))
    reply = desk.files.review_out({"format": "jsonl", "decided": True})
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    (tmp_path / "back.jsonl").write_bytes(base64.b64decode(reply["content"]))
    other = Desk(samples, tmp_path / "other.db")

    told = other.files.review_in(
        {"who": {"name": "Dr B"}, "path": str(tmp_path / "back.jsonl"), "format": "jsonl"}
    )

    view = next(other.store.views(Wanted()))
    other.close()
    assert reply["words"] == "1 rows written."
    assert told["left_out"] == 0
    assert view.state.truth == (3.25, 4.5, 40.0, 50.0)


def test_bad_lines_are_listed_and_good_ones_go_in(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    (tmp_path / "rows.jsonl").write_text(
        '{"video": "numbers.mp4", "frame_index": 3, "box": [1, 2, 30, 40], "label": "hook"}\n'
        '{"video": "numbers.mp4", "frame_index": 900, "box": [1, 2, 30, 40], "label": "hook"}\n'
    )
    ask = {"who": {"name": "Dr B"}, "path": str(tmp_path / "rows.jsonl"), "format": "jsonl"}

    told = desk.files.review_in(ask)

    assert told["words"].startswith("1 new case")
    assert [one["line"] for one in told["faults"]] == [2]
    assert not (tmp_path / "rows.jsonl").exists()


def test_what_a_file_does_not_say_can_be_said_on_the_screen(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    width, height = desk.sessions.sample("numbers").video.size_wh
    path = tmp_path / "boxes.csv"

    def bring(**said: Any) -> Facts:
        path.write_text("video,frame_index,label,x0,y0,x1,y1\nnumbers.mp4,1,hook,0.25,0.5,0.5,1\n")
        ask = {"who": {"name": "Dr B"}, "path": str(path), "format": "csv"}
        return answered(desk.files.review_in)(ask | said)

    silent = bring()
    said = bring(space="unit")

    assert (silent["left_out"], said["left_out"]) == (1, 0)
    assert "Give “How boxes are read”" in silent["faults"][0]["text"]
    view = next(desk.store.views(Wanted()))
    assert view.state.truth == pytest.approx((width / 4, height / 2, width / 2, height))
    assert bring(space="furlongs")["error"]


def test_a_submission_comes_in_with_its_question_rows(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    desk.fill()
    who = {"who": {"name": "Dr B"}}
    for kind, name in (("medvidbench", "rows.json"), ("medvidbench-submission", "answers.json")):
        reply = desk.files.review_out({"format": kind, "what": "refinerank"})
        (tmp_path / name).write_bytes(base64.b64decode(reply["content"]))
    ask = who | {"format": "medvidbench-submission", "method": "mine"}
    ask |= {"path": str(tmp_path / "answers.json")}
    kept = (tmp_path / "answers.json").read_bytes()

    alone = answered(desk.files.review_in)(ask)
    (tmp_path / "answers.json").write_bytes(kept)
    told = desk.files.review_in(ask | {"rows": str(tmp_path / "rows.json")})

    assert alone["error"] == "A submission needs its question rows. Give them with “Question rows”."
    assert told["left_out"] == 0
    assert [one.method for one in desk.store.queue(Wanted(method="mine")).items] == ["mine"] * 2
    assert not (tmp_path / "rows.json").exists()


def test_an_imported_box_finds_its_video_in_the_operators_folder(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()
    path = encode(folder / "Operation 7.mp4", (numbered(k) for k in range(30)))
    (folder / "broken.mp4").write_text("no video")
    shelf = Shelf(desk.sessions, folder)
    files = ReviewFiles(desk.reviews, desk.sessions, shelf)
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    lines = [
        {"video": name, "frame_index": 29, "box": [1, 2, 30, 40], "label": "hook"}
        for name in ("Operation 7.mp4", "broken.mp4")
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, lines)))

    told = files.review_in(
        {"who": {"name": "Dr B"}, "path": str(tmp_path / "in.jsonl"), "format": "jsonl"}
    )

    (view,) = desk.store.views(Wanted())
    with open_video(path) as video:
        assert view.case.video_sha256 == video.sha256
        assert view.case.frame_s == pytest.approx(video.times_s[29])
    assert shelf.find(view.case) is not None
    assert [one["line"] for one in told["faults"]] == [2]
    assert "“Frame size”" in told["faults"][0]["text"]


def test_a_file_from_elsewhere_is_not_read(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "secret.jsonl").write_text("{}")
    ask = {"who": {"name": "x"}, "path": str(tmp_path / "secret.jsonl"), "format": "jsonl"}

    assert "did not arrive" in answered(desk.files.review_in)(ask)["error"]

"""The Review tab's queue: what fills it, what comes with a case, where its video is."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.events import answered
from demo.sessions import SessionError
from demo.shelf import Shelf
from refinerank_core.video import open_video
from tests.clips import encode, number_shown, numbered
from tests.desks import Desk, desk, samples
from tests.stores import case
from tests.test_demo_explore import picture_of

__all__ = ["desk", "samples"]  # fixtures


def test_the_kept_answers_fill_the_queue_once_with_their_truth(desk: Desk) -> None:
    assert desk.fill() == desk.fill()

    page = desk.look.review_queue({})
    assert [one["requested_s"] for one in page["items"]] == [1.0, 2.0]
    assert [one["iou"] is None for one in page["items"]] == [False, True]
    assert page["items"][0]["procedure"] == "laparoscopy"
    assert page["items"][0]["dataset"] == "Phantom surgery"
    assert page["progress"]["words"] == "0 of 2 decided"


def test_a_case_comes_with_its_exact_frame(desk: Desk) -> None:
    ids = desk.fill()

    facts = desk.look.review_case({"case_id": ids[1]})

    assert facts["frame"] == 50
    sent = {"clip": facts["clip"]["token"], "index": 50, "request_id": 1}
    assert number_shown(picture_of(desk.look.frame(sent)["src"])) == 50


def test_a_case_whose_video_is_elsewhere_has_no_clip(desk: Desk) -> None:
    other = case()
    desk.store.add([other], by="import")

    assert desk.look.review_case({"case_id": other.case_id})["clip"] is None


def test_a_video_is_found_by_its_name_and_bytes(desk: Desk, tmp_path: Path) -> None:
    path = encode(tmp_path / "mine.mp4", (numbered(k) for k in range(12)))
    with open_video(path) as video:
        sha256 = video.sha256
    shelf = Shelf(desk.sessions, tmp_path)

    found = shelf.find(case(video_name="mine.mp4", video_sha256=sha256, width=96, height=64))

    assert found is not None
    assert shelf.clip(found.token) is found
    other = case(video_name="mine.mp4", video_sha256="0" * 64, width=96, height=64)
    assert shelf.find(other) is None
    with pytest.raises(SessionError):
        shelf.clip("shelf:../mine.mp4")


def test_candidates_come_in_rank_order(desk: Desk) -> None:
    rows = desk.look.review_candidates({"case_id": desk.fill()[0]})["rows"]

    assert [one["rank"] for one in rows] == list(range(1, 49))
    assert rows[0]["score"] == max(one["score"] for one in rows)


def test_tags_are_suggested_for_a_box_far_from_the_answer(desk: Desk) -> None:
    first = desk.fill()[0]

    corner = desk.look.review_suggest({"case_id": first, "box": [0, 0, 3, 3]})["tags"]

    assert "small target" in corner
    assert "cut by the frame edge" in corner
    assert desk.look.review_suggest({"case_id": first, "box": [5, 5, 5, 5]})["tags"] == []


def test_an_answer_of_explore_joins_the_queue_under_a_name(desk: Desk) -> None:
    sent = {"answer": "sample:numbers", "who": {"name": ""}}

    assert "Say who you are" in answered(desk.files.review_enqueue)(sent)["error"]
    told = desk.files.review_enqueue(sent | {"who": {"name": "Dr A"}})

    assert told["words"] == "2 new cases, 1 with truth."

"""A visitor's own clip under review: its pictures stay only where someone says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.events import answered
from demo.findings_desk import FindingsDesk
from demo.frames import FrameImages
from demo.identity import Identity
from demo.review_desk import ReviewDesk
from demo.review_files import ReviewFiles
from demo.review_services import Reviews
from demo.sessions import Answer, Clip
from refinerank_core.errors import StoreError
from refinerank_core.reviews.pictures import Pictures
from tests.browser.fakes import grounding_of
from tests.clips import encode, number_shown, numbered
from tests.desks import QUESTION, Desk, Facts, desk, samples
from tests.stores import case
from tests.test_demo_explore import picture_of

__all__ = ["desk", "samples"]  # fixtures


@pytest.fixture
def upload(desk: Desk, tmp_path: Path) -> tuple[Desk, Clip, Answer]:
    """A desk that may keep pictures, a visitor's own clip and an answer about two of its times."""
    pictures = Pictures(tmp_path / "kept")
    desk.reviews = Reviews(desk.store, Identity(), ephemeral=False, videos=None, pictures=pictures)
    desk.look = ReviewDesk(desk.reviews, desk.shelf, FrameImages())
    desk.files = ReviewFiles(desk.reviews, desk.sessions, desk.shelf)
    session = desk.sessions.of("me")
    path = encode(tmp_path / "Name of a patient.mp4", (numbered(k + 3) for k in range(60)))
    clip = desk.sessions.add_upload(session, path)
    grounding = grounding_of(clip.video, QUESTION, "grasper", ["grasper"], [1.0, 2.0])
    answer = Answer("secret", clip, grounding, {}, {})
    desk.sessions.add_answer(session, answer)
    return desk, clip, answer


ASKED = {"answer": "secret", "who": {"name": "Dr A"}}


def test_no_picture_of_an_upload_stays_unless_someone_says_so(
    upload: tuple[Desk, Clip, Answer], tmp_path: Path
) -> None:
    desk, clip, _ = upload

    told = desk.files.review_enqueue(ASKED)
    case_id = told["cases"][0]
    here = desk.look.review_case({"case_id": case_id, "clips": [clip.token]})
    desk.sessions.end("me")
    gone = desk.look.review_case({"case_id": case_id, "clips": [clip.token]})

    assert told["keep"] == 2  # it is asked
    assert here["clip"]["token"] == clip.token
    assert (gone["clip"], gone["kept"]) == (None, False)
    assert not (tmp_path / "kept").exists()


def test_an_asked_frame_outlives_its_upload_and_can_be_forgotten(
    upload: tuple[Desk, Clip, Answer], tmp_path: Path
) -> None:
    desk, _, _ = upload
    ids = desk.files.review_enqueue(ASKED)["cases"]

    words = desk.files.review_keep(ASKED)["words"]
    again = desk.files.review_enqueue(ASKED)["keep"]
    desk.sessions.end("me")
    src = desk.look.review_picture({"case_id": ids[1]})["src"]

    assert words == "2 pictures kept with the review."
    assert again == 0  # not asked twice
    assert desk.look.review_case({"case_id": ids[1]})["kept"]
    assert number_shown(picture_of(src)) == 53  # frame 50 of a clip that counts from 3
    names = sorted(one.name for one in (tmp_path / "kept").iterdir())
    assert names == sorted(f"{one}.jpg" for one in ids)  # no name of a file or person
    thumb = FindingsDesk(desk.reviews, desk.shelf).thumb({"case_id": ids[1]})["src"]
    assert thumb.startswith("data:image/jpeg")

    assert (
        "Say who you are"
        in answered(desk.files.review_forget)({"case_id": ids[1], "who": {"name": ""}})["error"]
    )
    desk.files.review_forget({"case_id": ids[1], "who": {"name": "Dr B"}})
    assert not desk.look.review_case({"case_id": ids[1]})["kept"]
    assert "not kept any more" in answered(desk.look.review_picture)({"case_id": ids[1]})["error"]


def test_a_bundled_clip_or_a_place_without_storage_offers_no_pictures(
    upload: tuple[Desk, Clip, Answer],
) -> None:
    desk, _, _ = upload
    reviews = Reviews(desk.store, Identity(), ephemeral=True, videos=None)
    without = ReviewFiles(reviews, desk.sessions, desk.shelf)

    bundled = {"answer": "sample:numbers", "who": {"name": "Dr A"}}
    assert desk.files.review_enqueue(bundled)["keep"] == 0
    assert without.review_enqueue(ASKED)["keep"] == 0
    assert "No pictures are kept here" in answered(without.review_keep)(ASKED)["error"]


def test_a_nameless_video_of_the_same_size_is_not_taken_for_another(
    upload: tuple[Desk, Clip, Answer],
) -> None:
    desk, clip, _ = upload
    facts: Facts = {
        "video_sha256": "",
        "width": clip.video.size_wh[0],
        "height": clip.video.size_wh[1],
    }
    other, mine = case(**facts), case(video_name=clip.video.name, **facts)

    assert desk.shelf.find(other, [clip.token]) is None
    assert desk.shelf.find(mine, [clip.token]) is clip


def test_a_picture_that_cannot_be_written_leaves_nothing_half_done(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("a file where the folder should be")
    pictures = Pictures(tmp_path / "kept")

    with pytest.raises(StoreError, match="cannot be kept"):
        pictures.keep("a" * 64, b"jpeg")
    with pytest.raises(StoreError, match="No case has this id"):
        pictures.keep("../" * 20 + "abcd", b"jpeg")
    assert not pictures.has("a" * 64)

"""The Review tab's server side: what it hands out, what it writes, what it refuses."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from demo.events import answered
from demo.findings_desk import FindingsDesk
from demo.frames import FrameImages
from demo.identity import Identity, IdentityError
from demo.review_desk import ReviewDesk
from demo.review_files import ReviewFiles
from demo.review_services import Reviews
from demo.sessions import Answer, Clip, SessionError, Sessions
from demo.shelf import Shelf
from refinerank_core.errors import StoreError
from refinerank_core.reviews.accounts import Accounts, hash_password
from refinerank_core.reviews.pictures import Pictures
from refinerank_core.reviews.store import Store
from refinerank_core.reviews.worklist import Wanted
from refinerank_core.video import open_video
from tests.browser.fakes import FakeCore, fake_services, grounding_of
from tests.clips import encode, number_shown, numbered
from tests.stores import Ticking, case
from tests.test_demo_explore import picture_of

QUESTION = "Where is the grasper at 1 and 2 seconds?"
TRUTH = [30.0, 20.0, 60.0, 50.0]
Facts = dict[str, Any]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A numbered clip with a kept answer to two times and the truth of the first."""
    folder = tmp_path_factory.mktemp("samples")
    path = encode(folder / "numbers.mp4", (numbered(k) for k in range(60)))
    with open_video(path) as video:
        kept = grounding_of(video, QUESTION, "grasper", ["grasper"], [1.0, 2.0])
    (folder / "numbers.grounding.json").write_text(kept.to_json())
    question = {"text": QUESTION, "truth": {"25": TRUTH}}
    facts = {"procedure": "laparoscopy", "phantom": True, "questions": [question]}
    (folder / "numbers.json").write_text(json.dumps(facts))
    return folder


class Desk:
    """A page's server side over an empty record."""

    def __init__(self, samples: Path, db: Path, identity: Identity | None = None) -> None:
        self.sessions = Sessions(fake_services(FakeCore(), samples))
        self.store = Store(db, clock=Ticking())
        self.reviews = Reviews(self.store, identity or Identity(), ephemeral=False, videos=None)
        self.shelf = Shelf(self.sessions, None)
        self.look = ReviewDesk(self.reviews, self.shelf, FrameImages())
        self.files = ReviewFiles(self.reviews, self.sessions, self.shelf)

    def close(self) -> None:
        self.store.close()
        self.sessions.close()

    def fill(self) -> list[str]:
        """Put the kept answer in; gives the ids of its cases in order of time."""
        self.files.review_fill({"who": {"name": "Dr A"}})
        return [one.case_id for one in self.store.queue(Wanted()).items]


@pytest.fixture
def desk(samples: Path, tmp_path: Path) -> Iterator[Desk]:
    opened = Desk(samples, tmp_path / "reviews.db")
    yield opened
    opened.close()


def action(case_id: str, client_id: str = "web-12345678", **changes: Any) -> Facts:
    """An accepting decision as the browser keeps it."""
    plain = {
        "client_id": client_id,
        "case_id": case_id,
        "by": "Dr A",
        "kind": "decided",
        "based_on": 0,
        "body": {"decision": "accept", "shown": "R"},
    }
    return plain | changes


def send(desk: Desk, *actions: Facts, token: str = "") -> list[Facts]:
    reply = desk.look.review_act({"actions": list(actions), "token": token})
    outcomes: list[Facts] = reply["outcomes"]
    return outcomes


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


def test_an_accepted_answer_is_written_with_its_own_box_and_models(desk: Desk) -> None:
    first = desk.fill()[0]

    outcome = send(desk, action(first))[0]

    view = desk.store.case(first)
    assert outcome["ok"]
    assert outcome["status"] == "accepted"
    assert view.state.reviewed_box == view.case.box_of("refinerank")
    assert view.state.current is not None
    assert view.state.current.judgement.models == view.case.models


def test_sent_twice_is_written_once(desk: Desk) -> None:
    first = desk.fill()[0]

    once, twice = send(desk, action(first)), send(desk, action(first))

    assert once[0]["seq"] == twice[0]["seq"]
    assert (once[0]["replayed"], twice[0]["replayed"]) == (False, True)
    assert desk.store.counts()["decided"] == 1


def test_a_bad_action_stops_no_good_one(desk: Desk) -> None:
    ids = desk.fill()
    bad = action(ids[0], "web-bad-box-1", body={"decision": "fix", "box_after": [9, 9, 1, 1]})

    outcomes = send(desk, bad, action(ids[1], "web-good-one"))

    assert outcomes[0]["stuck"]
    assert "x0 < x1" in outcomes[0]["error"]
    assert outcomes[1]["ok"]


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"client_id": "web-12345678", "kind": "imported"},
        action("f" * 64) | {"body": "accept"},
        action("../../etc"),
        action("f" * 64, based_on=-1),
    ],
)
def test_a_message_of_another_shape_is_one_sentence(desk: Desk, raw: Facts) -> None:
    outcome = send(desk, raw)[0]

    assert outcome["stuck"]
    assert "cannot be read" in outcome["error"]


def test_a_late_decision_is_shown_beside_the_one_that_holds(desk: Desk) -> None:
    first = desk.fill()[0]
    box = [1.0, 2.0, 30.0, 40.0]
    late = {"decision": "fix", "shown": "R", "box_after": box}
    send(desk, action(first))

    outcome = send(desk, action(first, "web-late-one", by="Dr B", body=late))[0]

    conflict = outcome["conflict"]
    assert "Dr A" in conflict["words"]
    assert tuple(conflict["yours"]["box"]) == tuple(box)
    assert conflict["theirs"]["by"] == "Dr A"
    facts = desk.look.review_case({"case_id": first, "me": "Dr B"})
    assert [one["seq"] for one in facts["conflicts"]] == [conflict["seq"]]
    body = facts["conflicts"][0]["yours"]["judgement"] | {"resolves": conflict["seq"]}
    settled = action(first, "web-settled", by="Dr B", based_on=1, body=body)
    assert send(desk, settled)[0]["ok"]
    assert desk.store.case(first).state.open_conflicts == ()
    assert desk.store.case(first).state.reviewed_box == tuple(box)


def test_an_undone_decision_can_be_put_back(desk: Desk) -> None:
    first = desk.fill()[0]
    send(desk, action(first))
    undo = action(first, "web-undo-it", kind="undone", based_on=1, body={"target": 0})
    redo = action(first, "web-redo-it", kind="redone", based_on=2, body={"target": 0})

    assert send(desk, undo)[0]["status"] == "new"
    facts = desk.look.review_case({"case_id": first, "me": "Dr A"})
    assert (facts["state"]["undoable"], facts["state"]["redoable"]) == (False, True)
    assert send(desk, redo)[0]["status"] == "accepted"
    assert len(facts["history"]) == 4


def test_blind_hides_names_and_the_order_is_one_reviewers_own(desk: Desk) -> None:
    ids = desk.fill()
    send(desk, action(ids[0]))

    seen = desk.look.review_case({"case_id": ids[0], "me": "Dr B", "blind": True})

    text = json.dumps(seen["answers"]) + json.dumps(seen["history"]) + json.dumps(seen["state"])
    assert not any(word in text.casefold() for word in ("refinerank", "medvlm", "grounding"))
    assert seen["state"]["opinions"] == []
    assert [one["key"] for one in seen["answers"]] == ["A", "B", "C"]
    again = desk.look.review_case({"case_id": ids[0], "me": "Dr B", "blind": True})
    assert again["answers"] == seen["answers"]
    orders = {
        tuple(one["box"] for one in desk.look.review_case(ask)["answers"])
        for ask in ({"case_id": ids[0], "me": f"Dr {k}", "blind": True} for k in range(12))
    }
    assert len(orders) > 1


def test_a_blind_queue_tells_nothing_of_what_others_decided(desk: Desk) -> None:
    first, second = desk.fill()
    send(desk, action(first), action(second, "web-of-dr-b", by="Dr B"))

    items = desk.look.review_queue({"me": "Dr B", "blind": True})["items"]
    open_eyed = desk.look.review_queue({"me": "Dr B"})["items"]

    assert [one["status"] for one in items] == ["decided", "accepted"]
    assert all("method" not in one for one in items)
    assert [one["status"] for one in open_eyed] == ["accepted", "accepted"]


def test_a_comment_stands_in_the_history_and_beside_a_conflict(desk: Desk) -> None:
    first = desk.fill()[0]
    body = {"decision": "reject", "comment": "the tip is hidden"}
    send(desk, action(first), action(first, "web-too-late", by="Dr B", body=body))

    facts = desk.look.review_case({"case_id": first, "me": "Dr A"})

    assert "“the tip is hidden”" in facts["conflicts"][0]["yours"]["words"]


def test_a_blind_choice_is_written_with_the_real_names(desk: Desk) -> None:
    first = desk.fill()[0]
    seen = desk.look.review_case({"case_id": first, "me": "Dr A", "blind": True})
    boxes = {one["key"]: one["box"] for one in seen["answers"]}
    spoken = desk.store.case(first).case.box_of("medvlm")
    key = next(key for key, box in boxes.items() if box == spoken)
    body = {"decision": "accept", "shown": key, "best": key, "blind": True}

    assert send(desk, action(first, body=body))[0]["ok"]

    current = desk.store.case(first).state.current
    assert current is not None
    assert (current.judgement.shown, current.judgement.best) == ("medvlm", "medvlm")
    assert current.judgement.blind
    assert current.judgement.box_before == spoken


def test_draw_first_hands_out_no_box_before_the_drawing(desk: Desk) -> None:
    first = desk.fill()[0]

    facts = desk.look.review_case({"case_id": first, "hidden": True})

    assert (facts["answers"], facts["truth"], facts["margin"]) == ([], None, None)
    assert facts["count"] == 3


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


def test_with_accounts_one_looks_without_and_decides_with_a_login(
    samples: Path, tmp_path: Path
) -> None:
    accounts = Accounts({"Dr A": hash_password("correct horse")})
    desk = Desk(samples, tmp_path / "reviews.db", Identity("accounts", accounts))
    other = case()
    desk.store.add([other], by="import")

    refused = send(desk, action(other.case_id))[0]
    told = desk.look.review_login({"name": "Dr A", "password": "correct horse"})
    stolen = send(desk, action(other.case_id, by="Dr B"), token=told["token"])[0]
    taken = send(desk, action(other.case_id), token=told["token"])[0]

    assert desk.look.review_queue({})["total"] == 1
    assert refused["login"]
    assert "Log in" in refused["error"]
    assert "Log in as Dr B" in stolen["error"]
    assert taken["ok"]
    assert "Log in" in answered(desk.files.review_fill)({"who": {"name": "Dr A"}})["error"]
    desk.close()


def test_wrong_passwords_have_to_wait() -> None:
    now = [0.0]
    accounts = Accounts({"Dr A": hash_password("correct horse")})
    identity = Identity("accounts", accounts, clock=lambda: now[0])
    for _ in range(5):
        with pytest.raises(IdentityError, match="do not belong"):
            identity.login("Dr A", "guess")

    with pytest.raises(IdentityError, match="Wait 30 s"):
        identity.login("Dr A", "correct horse")
    now[0] = 31.0

    assert identity.login("Dr A", "correct horse")[0] == "Dr A"


def test_an_answer_of_explore_joins_the_queue_under_a_name(desk: Desk) -> None:
    sent = {"answer": "sample:numbers", "who": {"name": ""}}

    assert "Say who you are" in answered(desk.files.review_enqueue)(sent)["error"]
    told = desk.files.review_enqueue(sent | {"who": {"name": "Dr A"}})

    assert told["words"] == "2 new cases, 1 with truth."


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


def test_a_locked_database_is_an_outcome_to_try_again(samples: Path, tmp_path: Path) -> None:
    import sqlite3

    desk = Desk(samples, tmp_path / "reviews.db")
    first = desk.fill()[0]
    quick = Store(tmp_path / "reviews.db", timeout_s=0.2)
    look = ReviewDesk(
        Reviews(quick, Identity(), ephemeral=False, videos=None), desk.shelf, FrameImages()
    )
    holder = sqlite3.connect(tmp_path / "reviews.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")

    outcome = look.review_act({"actions": [action(first)]})["outcomes"][0]
    holder.execute("ROLLBACK")
    holder.close()
    again = look.review_act({"actions": [action(first)]})["outcomes"][0]

    assert "locked" in outcome["error"]
    assert "stuck" not in outcome
    assert again["ok"]
    assert not again["replayed"]
    quick.close()
    desk.close()

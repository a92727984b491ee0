"""The Review tab's server side: what it hands out, what it writes, what it refuses."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from demo.events import answered
from demo.frames import FrameImages
from demo.identity import Identity, IdentityError
from demo.review_desk import ReviewDesk
from demo.review_files import ReviewFiles
from demo.review_services import Reviews
from demo.sessions import SessionError, Sessions
from demo.shelf import Shelf
from refinerank_core.reviews.accounts import Accounts, hash_password
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
        self.files = ReviewFiles(self.reviews, self.sessions)

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

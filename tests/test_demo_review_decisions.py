"""What reviewers decide is written once; what is late, undone or unreadable is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.frames import FrameImages
from demo.identity import Identity
from demo.review_desk import ReviewDesk
from demo.review_services import Reviews
from refinerank_core.reviews.store import Store
from tests.desks import Desk, Facts, action, desk, samples, send

__all__ = ["desk", "samples"]  # fixtures


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


def test_a_comment_stands_in_the_history_and_beside_a_conflict(desk: Desk) -> None:
    first = desk.fill()[0]
    body = {"decision": "reject", "comment": "the tip is hidden"}
    send(desk, action(first), action(first, "web-too-late", by="Dr B", body=body))

    facts = desk.look.review_case({"case_id": first, "me": "Dr A"})

    assert "“the tip is hidden”" in facts["conflicts"][0]["yours"]["words"]


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

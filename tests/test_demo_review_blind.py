"""A blind review, or one that draws first, is not told what it should not know."""

from __future__ import annotations

import json

from tests.desks import Desk, action, desk, samples, send

__all__ = ["desk", "samples"]  # fixtures


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

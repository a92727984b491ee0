"""A blind review, or one that draws first, is not told what it should not know."""

from __future__ import annotations

import json

from tests.desks import Desk, Facts, action, desk, samples, send

__all__ = ["desk", "samples"]  # fixtures

METHOD_WORDS = ("refinerank", "medvlm", "grounding", "refinenet", '"method"')


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


def test_nothing_that_a_blind_browser_is_sent_names_a_method(desk: Desk) -> None:
    """Every answer of the server around a conflict, also over decisions taken with open eyes."""
    first = desk.fill()[0]
    body = {"decision": "accept", "shown": "R", "best": "V", "confidence": 4}
    send(desk, action(first, body=body))
    late = {"decision": "accept", "shown": "D", "best": "R", "models": ["medvlm-7b abc"]}
    notices = _acted(desk, action(first, "web-late-one", by="Dr B", body=late))
    undo = action(first, "web-late-undo", by="Dr B", kind="undone", body={"target": 0})
    notices += _acted(desk, undo)

    look, who = desk.look, {"me": "Dr B", "blind": True}
    case = look.review_case({"case_id": first, **who})
    drawing = look.review_case({"case_id": first, "hidden": True, **who})
    candidates = look.review_candidates({"case_id": first, "blind": True})["rows"]
    sent = [look.review_queue(who), case, drawing, candidates, *notices]

    assert "conflict" in notices[0]
    assert case["conflicts"][0]["yours"]["judgement"]["best"] in ("A", "B", "C")
    assert not [word for word in METHOD_WORDS if word in json.dumps(sent).casefold()]
    assert "refinerank" in json.dumps(look.review_case({"case_id": first, "me": "Dr B"})).casefold()


def test_blind_candidates_come_in_an_order_that_ranks_nothing(desk: Desk) -> None:
    first = desk.fill()[0]

    rows = desk.look.review_candidates({"case_id": first, "blind": True})["rows"]
    open_eyed = desk.look.review_candidates({"case_id": first})["rows"]

    assert all(set(one) == {"rank", "box"} for one in rows)
    assert [one["box"][0] for one in rows] == sorted(one["box"][0] for one in open_eyed)
    assert rows[0]["box"] != open_eyed[0]["box"]


def test_a_blind_reader_settles_with_a_decision_under_their_own_keys(desk: Desk) -> None:
    first = desk.fill()[0]
    send(desk, action(first))
    late = {"decision": "accept", "shown": "D", "best": "R"}
    send(desk, action(first, "web-late-one", by="Dr B", body=late))
    met = desk.look.review_case({"case_id": first, "me": "Dr C", "blind": True})["conflicts"][0]

    body = met["yours"]["judgement"] | {"resolves": met["seq"]}
    settled = action(first, "web-settled", by="Dr C", based_on=met["version"], body=body)

    assert send(desk, settled)[0]["ok"]
    current = desk.store.case(first).state.current
    assert current is not None
    judged = current.judgement
    assert (judged.shown, judged.best) == ("medvlm_groundingdino", "refinerank")
    assert judged.blind


def _acted(desk: Desk, *actions: Facts) -> list[Facts]:
    outcomes: list[Facts] = desk.look.review_act({"actions": list(actions), "blind": True})[
        "outcomes"
    ]
    return outcomes

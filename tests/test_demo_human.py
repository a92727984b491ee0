"""What people decided, as Explore shows it."""

from __future__ import annotations

from demo.events import answered
from demo.human import Human
from tests.desks import Desk, action, desk, samples, send

__all__ = ["desk", "samples"]  # fixtures

ASK = {"answer": "sample:numbers"}


def test_decided_times_come_with_the_box_that_holds(desk: Desk) -> None:
    first, second = desk.fill()
    human = Human(desk.store, desk.sessions)
    assert human.reviewed(ASK) == {"times": []}

    box = [30.0, 20.0, 61.5, 50.25]
    fixed = {"decision": "fix", "box_after": box, "shown": "R"}
    send(desk, action(first, body=fixed))
    send(desk, action(second, "web-87654321", body={"decision": "reject", "shown": "R"}))

    assert human.reviewed(ASK)["times"] == [
        {"frame": 25, "box": tuple(box), "status": "fixed"},
        {"frame": 50, "box": None, "status": "rejected"},
    ]


def test_a_skipped_time_is_not_decided(desk: Desk) -> None:
    first = desk.fill()[0]
    send(desk, action(first, body={"decision": "skip", "shown": "R"}))

    assert Human(desk.store, desk.sessions).reviewed(ASK) == {"times": []}


def test_an_answer_that_is_gone_is_a_sentence(desk: Desk) -> None:
    reviewed = answered(Human(desk.store, desk.sessions).reviewed)

    assert "no longer here" in reviewed({"answer": "nobody's"})["error"]

"""What reviewers decided is seen in Explore: their box on the stage, a mark on the scrub bar."""

from __future__ import annotations

from tests.browser.conftest import QUESTION, state, wait_for
from tests.browser.reviewing import Enter, Record, enter, record, review_address, turn_to
from tests.stores import act, fix

__all__ = ["enter", "record", "review_address"]  # fixtures

CHIP = '#stage [data-layer="human"]'


def test_a_reviewers_box_joins_the_answer_it_is_about(enter: Enter, record: Record) -> None:
    first, second = record.put(QUESTION, 1.0, 2.0)
    record.store.record(act(first, "decided", fix((12.0, 11.0, 52.5, 49.25))))
    page = enter("Dr A")

    turn_to(page, "Explore")
    wait_for(page, "r.stage.human.size === 1")

    assert page.is_visible(CHIP)
    assert state(page, "s.human.get(25).box") == [12.0, 11.0, 52.5, 49.25]
    assert page.is_visible("#stage .mark.reviewed")

    turn_to(page, "Review")
    record.store.record(act(second, "decided", fix()))
    turn_to(page, "Explore")
    wait_for(page, "r.stage.human.size === 2")


def test_the_human_layer_can_be_taken_off(enter: Enter, record: Record) -> None:
    case = record.put(QUESTION, 3.0)[0]
    record.store.record(act(case, "decided", fix()))
    page = enter("Dr A")
    turn_to(page, "Explore")
    wait_for(page, "r.stage.human.size >= 1")

    page.keyboard.press("6")

    assert page.get_attribute(CHIP, "aria-pressed") == "false"
    assert state(page, "s.layers.has('human')") is False

"""A question with many times: what is known is shown at once, and outlives a stop."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Semaphore
from typing import Any

import pytest

from tests.browser.conftest import QUESTION, OpenPage, part, state, wait_for
from tests.browser.fakes import FakeCore

ELEVEN_TIMES = "Where is the hook from 1 to 3 seconds every 0.2 seconds?"
VERDICT = '[data-method="medvlm"] .verdict'
NO_BOX = '[data-method="medvlm"] .nobox'


@pytest.fixture
def permits(core: FakeCore) -> Iterator[Semaphore]:
    """One for each batch of four times, and one for the MedVLM's own words."""
    given = core.permits = Semaphore(1)
    yield given
    core.permits = None
    given.release(20)


def ask_for_eleven(page: Any) -> None:
    """Wait for the first batch; the second one has no permit yet."""
    page.fill(part("question"), ELEVEN_TIMES)
    page.click(part("go"))
    wait_for(page, "r.stage.answer.times.length === 4 && r.stage.k === 0")


def test_ranked_times_are_there_while_the_rest_is_computed(
    open_page: OpenPage, permits: Semaphore
) -> None:
    page = open_page()
    ask_for_eleven(page)

    assert page.get_attribute(".rr", "data-busy") == "yes"
    assert page.locator(".shot").count() == 4
    assert page.locator(".row").count() > 3
    assert page.text_content(NO_BOX) == "still writing"
    assert page.is_visible(".stagedot:has-text('4/11')")
    permits.release(2)
    wait_for(page, "r.stage.answer.times.length === 11 && r.dataset.busy === 'yes'")
    assert page.text_content(NO_BOX) == "still writing"
    permits.release()
    wait_for(page, "r.dataset.busy === 'no'")
    assert page.locator(".shot").count() == 11
    assert (page.text_content(NO_BOX), "wrote a box" in page.text_content(VERDICT)) == ("", True)


def test_what_is_looked_at_stays_when_more_times_come(
    open_page: OpenPage, permits: Semaphore
) -> None:
    page = open_page()
    ask_for_eleven(page)
    page.click(".shot >> nth=2")
    wait_for(page, "r.stage.k === 2 && r.stage.pools.has(2)")
    page.click(".row >> nth=3")
    picked = state(page, "s.selected")
    page.fill(part("question"), "Where is the next thing?")

    permits.release(3)
    wait_for(page, "r.dataset.busy === 'no'")

    assert state(page, "[s.k, s.selected]") == [2, picked]
    assert page.get_attribute(".row >> nth=3", "aria-selected") == "true"
    assert page.input_value(part("question")) == "Where is the next thing?"


def test_a_stop_keeps_the_times_that_are_answered_and_says_so(
    open_page: OpenPage, permits: Semaphore
) -> None:
    page = open_page()
    ask_for_eleven(page)

    page.click(part("stop"))
    page.wait_for_selector("text=Stopping after this stage")
    permits.release()
    wait_for(page, "r.dataset.busy === 'no'")

    assert "Stopped: 4 of 11 requested times are answered." in page.text_content(part("notice"))
    assert state(page, "[s.answer.times.length, s.answer.running]") == [4, False]
    assert page.text_content(NO_BOX) == "not asked"
    assert page.is_enabled(part("go"))


def test_a_stop_before_the_first_answer_leaves_the_screen_as_it_was(
    open_page: OpenPage, core: FakeCore
) -> None:
    page = open_page()
    core.pause_s = 2.0
    try:
        page.fill(part("question"), "Where is the hook?")
        page.click(part("go"))
        page.wait_for_selector(".stagedot")

        page.click(part("stop"))
        wait_for(page, "r.dataset.busy === 'no'")
    finally:
        core.pause_s = 0.0

    assert "before a time was answered" in page.text_content(part("notice"))
    assert state(page, "s.answer.text") == QUESTION
    assert page.is_enabled(part("go"))

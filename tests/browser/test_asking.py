"""A question: read while it is typed, run, shown, refused, by one visitor or two."""

from __future__ import annotations

from tests.browser.conftest import OpenPage, ask, part, state, wait_for
from tests.browser.fakes import FakeCore


def test_a_question_is_read_asked_and_answered(open_page: OpenPage) -> None:
    page = open_page()
    page.fill(part("question"), "Where is the suction at 0:01 and 2 seconds?")
    page.wait_for_selector(".chip.time")
    wait_for(page, "r.querySelectorAll('.chip.time').length === 2")

    page.keyboard.press("Enter")
    wait_for(page, "r.stage.answer.text.includes('suction') && r.stage.k !== null")

    assert page.get_attribute(".rr", "data-frame") == "25"
    assert "no box" in page.text_content('[data-method="medvlm"]')
    assert "cache" in page.text_content(part("origin"))


def test_times_can_be_changed_before_asking(open_page: OpenPage) -> None:
    page = open_page()
    page.fill(part("question"), "Where is the hook at 1 second?")
    page.wait_for_selector(".chip.time")
    wait_for(page, "r.querySelectorAll('.chip.time').length === 1")

    page.fill(".chip.time input", "2.4")
    page.keyboard.press("Tab")
    page.click(part("go"))
    wait_for(page, "r.stage.answer.text.includes('hook')")

    assert state(page, "s.answer.times.map((one) => one.requested_s)") == [2.4]


def test_an_example_shows_its_kept_answer_and_can_be_run_again(
    open_page: OpenPage, core: FakeCore
) -> None:
    page = open_page()
    wait_for(page, "r.stage.k !== null")
    before = len(core.asked)

    page.click(".chip:has-text('Examples')")
    page.click(".chip.example:has-text('hook')")
    wait_for(page, "r.stage.answer.text === 'Where is the hook?' && r.stage.k !== null")

    assert page.get_attribute(".rr", "data-frame") == "60"
    assert page.is_visible(".chip.stored")
    assert len(core.asked) == before
    page.click(".chip:has-text('Run it now')")
    wait_for(page, "r.dataset.busy === 'no' && !r.stage.answer.stored")
    assert core.asked[before:] == ["Where is the hook?"]
    assert state(page, "s.answer.times.map((one) => one.frame)") == [60]


def test_an_unanswerable_question_is_one_sentence(open_page: OpenPage) -> None:
    page = open_page()
    page.fill(part("question"), "Where is the hook at 0:50?")

    page.wait_for_selector(".fault")

    assert "past the end of the video" in page.text_content(".fault")
    page.click(part("go"))
    page.wait_for_selector(".toast-body")
    assert "past the end" in page.text_content(".toast-body")
    wait_for(page, "r.dataset.busy === 'no'")


def test_two_visitors_do_not_meet(open_page: OpenPage) -> None:
    one, two = open_page("?clip=alpha"), open_page("?clip=beta")

    ask(one, "Where is the hook at 1 second?")

    assert state(two, "[s.clip.sample, s.answer]") == ["beta", None]
    assert state(one, "s.clip.sample") == "alpha"

"""An address that brings a case back."""

from __future__ import annotations

from tests.browser.conftest import OpenPage, ask, part, state, wait_for
from tests.browser.fakes import FakeCore


def test_a_link_opens_the_same_case_again(open_page: OpenPage, address: str) -> None:
    page = open_page()
    ask(page, "Where is the hook at 3 seconds?")
    wait_for(page, "r.stage.k !== null")
    page.click('[data-layer="pool"]')
    page.keyboard.press("m")
    wait_for(page, "location.search.includes('map=')")
    link = page.evaluate("location.search")

    again = open_page(link)
    wait_for(
        again,
        "r.stage.answer !== null && r.stage.answer.text.includes('hook') && r.stage.k !== null",
    )

    assert again.get_attribute(".rr", "data-frame") == "75"
    assert state(again, "s.layers.has('pool')") is False
    assert state(again, "s.overlay") == "block5"


def test_a_link_to_a_kept_answer_runs_nothing(open_page: OpenPage, core: FakeCore) -> None:
    before = len(core.asked)

    page = open_page("?clip=alpha&q=Where+is+the+hook%3F&t=2.4&frame=60")
    wait_for(page, "r.stage.answer !== null && r.stage.k !== null")

    assert state(page, "[s.answer.text, s.answer.stored]") == ["Where is the hook?", True]
    assert len(core.asked) == before


def test_a_link_from_other_models_says_so(open_page: OpenPage) -> None:
    page = open_page("?clip=alpha&profile=full")

    wait_for(page, "!r.querySelector('[data-id=notice]').hidden")

    assert "made with the models of the profile full" in page.text_content(part("notice"))

"""The first thing a visitor sees: an answer, whole and above the fold."""

from __future__ import annotations

from tests.browser.conftest import QUESTION, OpenPage, part, wait_for
from tests.browser.fakes import FakeCore


def test_the_first_view_is_an_answer_and_asks_nothing(open_page: OpenPage, core: FakeCore) -> None:
    before = list(core.asked)
    page = open_page()

    wait_for(page, "r.stage.answer !== null && r.stage.k !== null")

    assert page.input_value(part("question")) == QUESTION
    assert "over rank 2" in page.text_content(part("why"))
    assert "UNTRAINED random weights" in page.text_content(part("badge"))
    assert page.is_visible("text=Research use only. Do not upload patient data.")
    page.wait_for_selector(".map canvas")
    assert page.locator(".map").count() == 5
    assert core.asked == before


def test_everything_that_matters_fits_1440_by_900(open_page: OpenPage) -> None:
    page = open_page()
    page.wait_for_selector(".map canvas")

    for selector in ('[data-id="view"]', ".panel canvas", ".verdict", ".row", ".map .colourbar"):
        for box in [one.bounding_box() for one in page.query_selector_all(selector)][:3]:
            assert box["y"] + box["height"] <= 900, selector

"""Everything by the keyboard alone."""

from __future__ import annotations

from tests.browser.conftest import OpenPage, part, wait_for


def test_the_whole_way_by_keyboard(open_page: OpenPage) -> None:
    page = open_page()
    wait_for(page, "r.stage.k !== null")

    page.keyboard.press("/")
    page.keyboard.press("Control+A")
    page.keyboard.type("Where is the hook at 2 seconds?")
    page.keyboard.press("Enter")
    wait_for(page, "r.stage.answer.text.includes('hook') && r.stage.k !== null")
    page.focus(part("list"))
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("?")

    assert page.locator('.row[aria-selected="true"] .rank').text_content() == "R3"
    assert page.is_visible("dialog .keytable")
    page.keyboard.press("Escape")
    assert not page.is_visible("dialog")

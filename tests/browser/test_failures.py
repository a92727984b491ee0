"""The Failures tab: counts, pictures, the way to Explore; how both new tabs look."""

from __future__ import annotations

from typing import Any

import pytest

from refinerank_core.reviews.records import Truth
from tests.browser.conftest import PATIENCE_MS
from tests.browser.reviewing import (
    Enter,
    Record,
    enter,
    record,
    review_address,
    turn_to,
    until,
)
from tests.browser.test_look import axe

__all__ = ["axe", "enter", "record", "review_address"]  # fixtures

COUNTED = '#findings .rr[data-view="findings"]'


@pytest.fixture(scope="module")
def judged(record: Record) -> None:
    """Three cases with truths: one right, two far off."""
    cases = record.put("Where is the judged hook?", 1.0, 2.0, 3.0)
    best = cases[0].box_of("refinerank")
    assert best is not None
    truths = [Truth(box=best), Truth(box=(1, 1, 6, 6)), Truth(box=(1, 1, 6, 6))]
    record.store.add_truths(cases, truths, by="import")


def counted(page: Any) -> None:
    turn_to(page, "Failures")
    page.wait_for_selector(COUNTED, timeout=PATIENCE_MS)
    page.wait_for_selector("#findings .thumb canvas[data-painted]", timeout=PATIENCE_MS)
    for plot in ("#plot-counts", "#plot-losses"):  # until then Gradio's own placeholder is there
        page.wait_for_selector(f"{plot} .js-plotly-plot", timeout=PATIENCE_MS)


def test_failures_are_counted_shown_and_lead_back(enter: Enter, judged: None) -> None:
    page = enter("Dr A")
    counted(page)
    page.wait_for_selector("#plot-counts .js-plotly-plot[data-wired]", timeout=PATIENCE_MS)
    assert page.locator("#findings .shotcard").count() == 3

    page.evaluate(
        "document.querySelector('#plot-counts .js-plotly-plot').emit('plotly_click',"
        " { points: [{ customdata: ['method', 'RefineRank', 'correct'] }] })"
    )
    page.wait_for_function("document.querySelectorAll('#findings .shotcard').length === 1")
    assert page.text_content("#findings .shotcard b").startswith("correct")

    page.click("#findings .thumb >> nth=0")
    page.wait_for_selector('#tabs button[data-tab-id="explore"][aria-selected="true"]')
    page.wait_for_function(
        "(() => { const s = document.querySelector('#stage .rr').stage;"
        " return s.answer && s.index === 25 && s.answer.text === 'Where is the judged hook?'; })()",
        timeout=PATIENCE_MS,
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_tabs_have_no_serious_accessibility_fault(
    enter: Enter, judged: None, axe: str, scheme: str
) -> None:
    page = enter("Dr A", "Where is the judged hook?", color_scheme=scheme)
    page.evaluate(axe)
    found = violations(page, "#review")
    counted(page)

    found += violations(page, "#findings")

    assert found == []


def violations(page: Any, where: str) -> list[Any]:
    """What axe finds serious or worse."""
    found: list[dict[str, Any]] = page.evaluate(
        f"axe.run('{where}', {{ resultTypes: ['violations'] }}).then((all) => all.violations)"
    )
    serious = [one for one in found if one["impact"] in {"serious", "critical"}]
    return [(one["id"], one["nodes"][0]["html"]) for one in serious]


@pytest.mark.parametrize("width", [360, 768])
def test_the_new_tabs_never_scroll_sideways(enter: Enter, judged: None, width: int) -> None:
    page = enter("Dr A", "Where is the judged hook?", viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width

    counted(page)

    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_on_a_desktop_everything_to_decide_with_is_in_sight(enter: Enter, judged: None) -> None:
    page = enter("Dr A", "Where is the judged hook?")
    until(page, "r.querySelector('.caseline')")

    for selector in (".caseline", ".decide", '[data-id="canvas"]', '[data-corner="3"]'):
        box = page.locator(f"#review {selector}").first.bounding_box()
        assert box["y"] + box["height"] <= 900, selector

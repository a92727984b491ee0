"""The Results tab in a browser: tables, figures, files of one's own, the ways out of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from demo import ui
from demo.identity import Identity
from demo.results_services import ResultsSetup
from demo.review_services import Reviews
from demo.sessions import Sessions
from refinerank_core.reviews.records import Truth
from refinerank_core.reviews.store import Store
from tests.browser.conftest import DESKTOP, PATIENCE_MS
from tests.browser.reviewing import launched, turn_to
from tests.browser.test_failures import violations
from tests.browser.test_look import axe
from tests.results import VIDEO, evaluation, study
from tests.stores import case

__all__ = ["axe"]  # a fixture

SHOWN = '#results .rr[data-view="study"]'


@pytest.fixture(scope="module")
def results_address(sessions: Sessions, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A page whose Results tab has a study and a damaged file, and a case of one of its videos."""
    folder = tmp_path_factory.mktemp("results")
    (folder / "study.json").write_text(json.dumps(study()))
    (folder / "worse.json").write_text("{")
    with Store(folder / "reviews.db") as store:
        mine = case(1.0).model_copy(update={"video_name": f"{VIDEO}.mp4"})
        store.add([mine], by="import", truths=[Truth(box=(10.0, 10.0, 50.0, 50.0))])
        reviews = Reviews(store, Identity(), ephemeral=False, videos=None)
        blocks = ui.build(sessions.services, sessions, reviews, ResultsSetup((folder,)))
        yield launched(blocks, ui.launch_settings(sessions.services))
        blocks.close()


@pytest.fixture
def look(browser: Any, results_address: str) -> Iterator[Any]:
    """Open the tab; the console must stay free of errors."""
    contexts: list[Any] = []
    faults: list[str] = []

    def look_at(**settings: Any) -> Any:
        context = browser.new_context(**{"viewport": DESKTOP, **settings})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda said: faults.extend([said.text] * (said.type == "error")))
        page.goto(results_address, timeout=PATIENCE_MS)
        turn_to(page, "Results")
        page.wait_for_selector(SHOWN)
        page.wait_for_selector("#results .thumb canvas[data-painted]")
        for name in ("methods", "videos", "reliability", "curves"):
            page.wait_for_selector(f"#plot-{name} .js-plotly-plot")
        return page

    yield look_at
    for context in contexts:
        context.close()
    assert faults == []


def test_a_study_is_shown_and_a_click_on_a_dot_finds_its_video(look: Any) -> None:
    page = look()

    assert "PHANTOM" in page.text_content('#results [data-id="badge"]')
    assert "worse.json is not JSON" in page.text_content('#results [data-id="notice"]')
    assert page.locator('#results [data-id="videos"] tbody tr').count() == 12
    page.wait_for_selector("#plot-videos .js-plotly-plot[data-wired]")
    page.evaluate(
        "document.querySelector('#plot-videos .js-plotly-plot').emit('plotly_click',"
        " { points: [{ customdata: ['laparoscopy', 'phantom-laparoscopy-3000015'] }] })"
    )
    marked = page.locator('#results [data-id="videos"] tr.strong th')
    assert marked.text_content() == "phantom-laparoscopy-3000015"


def test_a_file_of_ones_own_is_shown_and_a_bad_one_is_one_sentence(
    look: Any, tmp_path: Path
) -> None:
    page = look()
    own, bad = tmp_path / "mine.json", tmp_path / "bad.json"
    own.write_text(json.dumps(evaluation()))
    bad.write_text(json.dumps({"a": 1}))

    page.set_input_files('#results [data-id="file"]', str(bad))
    page.wait_for_selector('#results [data-id="notice"][data-kind="error"]')
    assert "bad.json holds no results" in page.text_content('#results [data-id="notice"]')
    page.set_input_files('#results [data-id="file"]', str(own))
    page.wait_for_selector('#results .rr[data-view="evaluation"]')

    assert "This method, strict" in page.text_content('#results [data-id="first"]')
    page.wait_for_selector("#plot-curves", state="hidden")


def test_a_video_leads_to_failures_and_a_low_answer_to_explore(look: Any) -> None:
    page = look()

    page.click('#results .links button:has-text("in Failures")')
    page.wait_for_selector('#tabs button[data-tab-id="failures"][aria-selected="true"]')
    page.wait_for_function(
        "document.querySelector('#findings [data-filter=video]').value === '" + VIDEO + "'"
    )
    page.wait_for_function("document.querySelectorAll('#findings .shotcard').length === 1")

    turn_to(page, "Results")
    page.click("#results .thumb >> nth=0")
    page.wait_for_selector('#tabs button[data-tab-id="explore"][aria-selected="true"]')
    page.wait_for_function(
        "document.querySelector('#stage [data-id=question]').value"
        " === 'Where is the hook at 1.4 seconds?'"
    )
    page.wait_for_function("document.querySelector('#stage .rr').stage.index === 7")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_accessibility_fault(look: Any, axe: str, scheme: str) -> None:
    page = look(color_scheme=scheme)
    for summary in page.locator("#results details.block:not([hidden]) > summary").all():
        summary.click()
    page.evaluate(axe)

    assert violations(page, "#results") == []


@pytest.mark.parametrize("width", [390, 1024])
def test_the_tab_never_scrolls_sideways(look: Any, width: int) -> None:
    page = look(viewport={"width": width, "height": 900})

    assert page.evaluate("document.documentElement.scrollWidth") <= width

"""The figures below the stage follow the answer and lead back to its frames."""

from __future__ import annotations

from pathlib import Path
from threading import Semaphore
from typing import Any

import gradio

from tests.browser.conftest import DESKTOP, PATIENCE_MS, OpenPage, wait_for
from tests.browser.fakes import FakeCore

# How many requested times the figure over time shows.
POINTS = "(document.querySelector('#plot-time .js-plotly-plot')?.data?.[0].x.length ?? 0)"


# Ask without scrolling back to the question.
SUBMIT = """(text) => {
  const r = document.querySelector('.rr');
  r.querySelector('[data-id="question"]').value = text;
  r.querySelector('[data-id="go"]').click();
}"""


def click_in_the_figure_over_time(page: Any, seconds: float) -> None:
    page.locator("#figures").scroll_into_view_if_needed()
    page.mouse.wheel(0, 2000)
    page.wait_for_selector("#plot-time .js-plotly-plot[data-wired]", timeout=PATIENCE_MS)
    page.evaluate(
        "(x) => document.querySelector('#plot-time .js-plotly-plot')"
        ".emit('plotly_click', { points: [{ x }] })",
        seconds,
    )


def test_a_click_in_the_figure_over_time_goes_to_its_frame(open_page: OpenPage) -> None:
    page = open_page()
    wait_for(page, "r.stage.k !== null")

    click_in_the_figure_over_time(page, seconds=2)

    wait_for(page, "r.dataset.frame === '50'")


def test_figures_that_load_after_the_stage_are_followed_too(open_page: OpenPage) -> None:
    parts = Path(gradio.__file__).parent / "templates" / "frontend" / "assets"
    late: list[str] = []

    def figures_last(page: Any) -> None:
        def serve(route: Any) -> None:
            name = route.request.url.rsplit("/", 1)[-1]
            if "accordion-content" in (parts / name).read_text(encoding="utf-8"):
                page.wait_for_selector(".layer", state="attached", timeout=PATIENCE_MS)
                page.wait_for_timeout(300)
                late.append(name)
            route.continue_()

        page.route("**/assets/Index-*.js", serve)

    page = open_page(before=figures_last, viewport=DESKTOP)
    wait_for(page, "r.stage.k !== null")
    assert len(late) == 1

    click_in_the_figure_over_time(page, seconds=2)

    wait_for(page, "r.dataset.frame === '50'")


def test_the_figure_over_time_grows_with_the_answer(open_page: OpenPage, core: FakeCore) -> None:
    page = open_page()
    wait_for(page, "r.stage.k !== null")
    click_in_the_figure_over_time(page, seconds=2)

    core.permits = Semaphore(1)  # the second group of times waits for the first one's figure
    try:
        page.evaluate(SUBMIT, "Where is the hook from 1 to 3 seconds every 0.4 seconds?")
        page.wait_for_function(POINTS + " === 4", timeout=PATIENCE_MS)
        core.permits.release(2)
    finally:
        core.permits = None

    page.wait_for_function(POINTS + " === 6", timeout=PATIENCE_MS)

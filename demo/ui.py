"""The page: its tabs, its look, and what is passed to launch()."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

from demo import api, explore, findings_page, results_page, review_page
from demo.findings_desk import FindingsDesk
from demo.frames import FrameImages
from demo.human import Human
from demo.results_desk import ResultsDesk
from demo.results_services import ResultsSetup
from demo.review_desk import ReviewDesk
from demo.review_files import ReviewFiles
from demo.review_services import Reviews
from demo.services import Services
from demo.sessions import Sessions
from demo.shelf import Shelf

TITLE = "RefineRank"
_PAGE_CSS = Path(__file__).with_name("page.css")
_TABS_JS = Path(__file__).with_name("tabs.js")
_FONTS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif")  # none is fetched
_MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "monospace")


def build(
    services: Services,
    sessions: Sessions,
    reviews: Reviews | None = None,
    results: ResultsSetup | None = None,
) -> gr.Blocks:
    """The whole app; nothing is loaded or served yet. Without reviews it is Explore alone."""
    frames = FrameImages()
    with gr.Blocks(title=TITLE, analytics_enabled=False, fill_width=True) as blocks:
        if reviews is None:
            explore.build(services, sessions, frames, blocks, ())
        else:
            _tabs(services, sessions, reviews, results or ResultsSetup(), frames, blocks)
        api.build(api.Api(services, sessions, frames))
    blocks.queue(max_size=32)
    return blocks  # type: ignore[no-any-return]


def _tabs(
    services: Services,
    sessions: Sessions,
    reviews: Reviews,
    results: ResultsSetup,
    frames: FrameImages,
    blocks: gr.Blocks,
) -> None:
    shelf = Shelf(sessions, reviews.videos)
    files = ReviewFiles(reviews, sessions, shelf)
    with gr.Tabs(elem_id="tabs") as tabs:
        with gr.Tab("Explore", id="explore", elem_id="tab-explore"):
            human = Human(reviews.store, sessions)
            asked = (files.review_enqueue, files.review_keep, human.reviewed)
            view = explore.build(services, sessions, frames, blocks, asked)
        with gr.Tab("Review", id="review", elem_id="tab-review"):
            review_page.build(reviews, ReviewDesk(reviews, shelf, frames), files, blocks)
        with gr.Tab("Failures", id="failures", elem_id="tab-failures"):
            desk = FindingsDesk(reviews, shelf)
            handlers = findings_page.Findings(reviews, desk, shelf, sessions, frames)
            findings_page.build(desk, handlers, view, tabs)
        with gr.Tab("Results", id="results", elem_id="tab-results"):
            shown = ResultsDesk(results, desk, reviews.identity)
            drawn = results_page.Results(shown, sessions, frames)
            results_page.build(shown, drawn, view, tabs)


def launch_settings(services: Services) -> dict[str, Any]:
    """Arguments of launch() that belong to the page, not to the machine it runs on."""
    return {
        "theme": gr.themes.Base(font=list(_FONTS), font_mono=list(_MONO)),
        "css": _PAGE_CSS.read_text(encoding="utf-8"),
        "js": _TABS_JS.read_text(encoding="utf-8"),
        "footer_links": [],
        "allowed_paths": [],
        "max_file_size": services.limits.largest_mb * 2**20,
        "show_error": False,
    }

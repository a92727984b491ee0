"""The Results tab: figures of our runs beside the published ones, and the way to their cases."""

from __future__ import annotations

from typing import Any

import gradio as gr

from demo import present, results_plots
from demo.events import answered, errors_to_toast, event_ask
from demo.frames import FrameImages
from demo.links import Link
from demo.results import results
from demo.results_desk import DocumentAsk, ResultsDesk, WorstAsk
from demo.sessions import Clip, SessionError, Sessions
from refinerank_core.phantom.replay import scene_named, write_short_clip

FIGURES = ("methods", "videos", "reliability", "curves")


class Results:
    """The handlers of the tab."""

    def __init__(self, desk: ResultsDesk, sessions: Sessions, frames: FrameImages) -> None:
        self._desk = desk
        self._sessions = sessions
        self._frames = frames

    @errors_to_toast
    def on_draw(self, event: gr.EventData) -> tuple[Any, ...]:
        """The figures of a file; one that it cannot fill is not there."""
        found = results_plots.figures(self._desk.document(event_ask(DocumentAsk, event).document))
        return tuple(gr.Plot(value=found.get(name), visible=name in found) for name in FIGURES)

    @errors_to_toast
    def on_worst(self, event: gr.EventData, request: gr.Request) -> tuple[Any, Any]:
        """Show the moment of a low answer in Explore, with its question ready to be asked."""
        case = self._desk.case(event_ask(WorstAsk, event))
        scene = scene_named(case.video)
        if scene is None:
            raise SessionError("The video of this answer is not here. Open it in Explore yourself.")
        session = self._sessions.of(request.session_hash or "")
        path = session.folder / f"{case.video}.mp4"
        write_short_clip(scene, path, size_wh=case.size_wh, until_s=case.time_s)
        clip: Clip = self._sessions.add_upload(session, path)
        index, _ = clip.video.nearest(case.time_s)
        link = Link(q=case.question, frame=index).model_dump()
        shown = present.clip_facts(clip, index) | {
            "src": self._frames.url(clip, index),
            "link": link,
            "about": "Drawn again from the study: ask the question to see what is answered now.",
        }
        facts: dict[str, Any] = {"clip": shown, "answer": None, "progress": None}
        return gr.HTML(**facts), gr.Tabs(selected="explore")


def build(desk: ResultsDesk, handlers: Results, explore: gr.HTML, tabs: gr.Tabs) -> None:
    """Lay out the tab in the open Blocks and wire it.

    Args:
        desk, handlers: what it asks.
        explore: the stage of the Explore tab. tabs: to turn to it.
    """
    served = (
        desk.results,
        desk.results_cases,
        desk.results_open,
        desk.results_picture,
        desk.learn_state,
        desk.learn_start,
        desk.learn_stop,
    )
    with results([answered(one) for one in served]) as view, gr.Row(elem_id="results-plots"):
        plots = [gr.Plot(show_label=False, elem_id=f"plot-{name}") for name in FIGURES]
    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    view.draw(handlers.on_draw, outputs=plots, trigger_mode="always_last", **quiet)
    view.worst_case(handlers.on_worst, outputs=[explore, tabs], **quiet)

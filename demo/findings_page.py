"""The Failures tab: counts, where IoU is lost, pictures, agreement; and the way back to Explore."""

from __future__ import annotations

from typing import Any

import gradio as gr

from demo import findings_plots, present
from demo.events import answered, errors_to_toast, event_ask
from demo.findings import findings
from demo.findings_desk import FindingsDesk
from demo.findings_facts import counts_for, findings_facts
from demo.frames import FrameImages
from demo.links import Link
from demo.review_asks import CaseAsk, FindingsAsk
from demo.review_services import Reviews
from demo.sessions import Answer, SessionError, Sessions, new_answer_token
from demo.shelf import Shelf


class Findings:
    """The handlers of the tab."""

    def __init__(
        self,
        reviews: Reviews,
        desk: FindingsDesk,
        shelf: Shelf,
        sessions: Sessions,
        frames: FrameImages,
    ) -> None:
        self._store = reviews.store
        self._desk = desk
        self._shelf = shelf
        self._sessions = sessions
        self._frames = frames

    @errors_to_toast
    def on_count(self, event: gr.EventData) -> tuple[Any, Any]:
        """The two figures for a choice of method and filters."""
        ask = event_ask(FindingsAsk, event)
        mine, method = self._desk.chosen(ask)
        everything = self._desk.everything()
        facts = findings_facts(everything, mine, mine, method, ask)
        counted = counts_for(everything, mine, ask.by)
        return findings_plots.counts(counted, ask.by), findings_plots.losses(facts["loss"])

    @errors_to_toast
    def on_explore(self, event: gr.EventData, request: gr.Request) -> tuple[Any, Any]:
        """Show a case in Explore, at its frame, with the answer that was reviewed."""
        ask = event_ask(CaseAsk, event)
        view = self._store.case(ask.case_id)
        clip = self._shelf.find(view.case, ask.clips)
        found = self._store.grounding(ask.case_id)
        if clip is None or found is None:
            raise SessionError("The video or the whole answer of this case is not here.")
        grounding, place = found
        index = grounding.times[place].frame_index
        truth = {index: view.state.truth} if view.state.truth else {}
        answer = Answer(new_answer_token(), clip, grounding, {}, truth)
        self._sessions.add_answer(self._sessions.of(request.session_hash or ""), answer)
        link = Link(frame=index).model_dump()
        shown = present.clip_facts(clip, index) | {
            "src": self._frames.url(clip, index),
            "link": link,
        }
        facts: dict[str, Any] = {
            "clip": shown,
            "answer": present.answer_facts(answer, index),
            "progress": None,
        }
        return gr.HTML(**facts), gr.Tabs(selected="explore")


def build(desk: FindingsDesk, handlers: Findings, explore: gr.HTML, tabs: gr.Tabs) -> None:
    """Lay out the tab in the open Blocks and wire it.

    Args:
        desk, handlers: what it asks.
        explore: the stage of the Explore tab. tabs: to turn to it.
    """
    served = [answered(one) for one in (desk.findings, desk.thumb, desk.agreement)]
    with findings(served) as view, gr.Row(elem_id="findings-plots"):
        counts = gr.Plot(show_label=False, elem_id="plot-counts")
        losses = gr.Plot(show_label=False, elem_id="plot-losses")
    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    view.tally(handlers.on_count, outputs=[counts, losses], trigger_mode="always_last", **quiet)
    view.explore_case(handlers.on_explore, outputs=[explore, tabs], **quiet)

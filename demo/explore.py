"""The Explore tab: one clip, one question, everything behind its answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np
from gradio.utils import get_upload_folder

from demo import plots, present
from demo.asking import Asking, ended
from demo.events import (
    GPU_QUEUE,
    FocusAsk,
    OpenAsk,
    StoredAsk,
    UploadAsk,
    answered,
    errors_to_toast,
    event_ask,
)
from demo.frames import FrameImages
from demo.links import Link, read_link
from demo.lookup import Lookup
from demo.runs import Pace
from demo.services import Services
from demo.sessions import Clip, Session, SessionError, Sessions
from demo.stage import stage
from demo.uploads import outside_words
from refinerank_core.boxes import iou
from refinerank_core.errors import RefineRankError, VideoError
from refinerank_core.grounding import Grounding, TimeGrounding

Facts = dict[str, Any]

_SAME_THING = 0.3  # IoU from which two boxes are taken for one thing


class Explore:
    """The handlers of the tab: they read what was sent, call the core, present."""

    def __init__(
        self,
        services: Services,
        sessions: Sessions,
        frames: FrameImages,
        pace: Pace,
        constants: Facts,
    ) -> None:
        """Wait for visitors.

        Args:
            services, sessions, frames, pace: of the page.
            constants: what the stage was built with. An update that comes before the stage's
                script has begun replaces it, so the first one brings it along.
        """
        self._constants = constants
        self._services = services
        self._sessions = sessions
        self._frames = frames
        self._pace = pace

    @errors_to_toast
    def on_open(self, request: gr.Request) -> gr.HTML:
        """A visitor comes: show the linked case, else the first clip with its kept answer."""
        link = read_link(dict(request.query_params))
        samples = self._sessions.samples()
        facts: Facts = {"samples": present.sample_facts(samples), "link": link.model_dump()}
        if samples:
            names = [one.name for one in samples]
            clip = self._sessions.sample(link.clip if link.clip in names else names[0])
            facts |= self._shown(clip, link)
        return gr.HTML(**self._constants, **facts)

    @errors_to_toast
    def on_clip(self, event: gr.EventData, request: gr.Request) -> gr.HTML:
        """Another clip of the list."""
        self._session(request).cancel.set()
        clip = self._sessions.clip(event_ask(OpenAsk, event).clip)
        return gr.HTML(**self._shown(clip, Link()))

    @errors_to_toast
    def on_stored(self, event: gr.EventData) -> gr.HTML:
        """The kept answer to an example question."""
        ask = event_ask(StoredAsk, event)
        answer = self._sessions.stored_for(self._sessions.clip(ask.clip), ask.text)
        if answer is None:
            return gr.HTML(progress=ended("unstored"))
        shown = present.answer_facts(answer, best_frame(answer.grounding))
        return gr.HTML(answer=shown, progress=None)

    @errors_to_toast
    def on_upload(self, event: gr.EventData, request: gr.Request) -> gr.HTML:
        """A clip of the visitor's own."""
        ask = event_ask(UploadAsk, event)
        path = uploaded_file(ask.path)
        if ask.drop:
            path.unlink()
            return gr.HTML(progress=ended("dropped"))
        if not self._services.limits.uploads:
            path.unlink()
            raise VideoError("Uploads are off here. Run the app yourself to ask about your videos.")
        words = "" if ask.confirmed else self._outside(path)
        if words:  # nothing is kept of it before the visitor has decided
            asked = {"path": ask.path, "mask": ask.mask, "words": words}
            return gr.HTML(progress=ended("outside") | asked)
        clip = self._sessions.add_upload(self._session(request), path, mask=ask.mask)
        return gr.HTML(**self._shown(clip, Link()))

    def _outside(self, path: Path) -> str:
        """A warning about a clip; a file that is none is removed."""
        try:
            return outside_words(path)
        except RefineRankError:
            path.unlink()
            raise

    def on_upload_failed(self) -> gr.HTML:
        """Let the stage say that it is no longer busy."""
        return gr.HTML(progress=ended("failed"))

    @errors_to_toast
    def on_focus(self, event: gr.EventData) -> tuple[Any, Any, Any]:
        """Plots of the requested time that is looked at."""
        ask = event_ask(FocusAsk, event)
        answer = self._sessions.answer(ask.answer)
        if ask.k >= len(answer.grounding.times):
            raise SessionError("There is no such requested time. Ask again.")
        time = answer.grounding.times[ask.k]
        return plots.scores(time), plots.refinement(time), plots.over_time(answer)

    def on_leave(self, request: gr.Request) -> None:
        """A visitor goes: remove what was theirs."""
        key = request.session_hash or ""
        self._frames.forget(set(self._sessions.of(key).clips))
        self._sessions.end(key)

    def _session(self, request: gr.Request) -> Session:
        return self._sessions.of(request.session_hash or "")

    def _shown(self, clip: Clip, link: Link) -> Facts:
        """Everything that a clip brings to the screen."""
        stored = self._sessions.stored_answer(clip)
        answer = self._sessions.stored_for(clip, link.q) if link.q else stored
        if answer and not link.asks_for(answer.grounding.question):
            answer = None
        if stored is not None and self._answers_like(stored.grounding):
            self._pace.guess(stored.grounding.seconds, len(stored.grounding.times))
        last = len(clip.video) - 1
        index = min(max(link.frame or 0, 0), last)
        if answer and link.frame is None:
            index = best_frame(answer.grounding)
        return {
            "clip": present.clip_facts(clip, index)
            | {"src": self._frames.url(clip, index), "link": link.model_dump()},
            "answer": present.answer_facts(answer, index) if answer else None,
            "progress": None,
        }

    def _answers_like(self, grounding: Grounding) -> bool:
        """Whether the models that answer here made this kept answer, on such a device."""
        here, there = self._services.profile, grounding.profile
        return (here.medvlm, here.device) == (there.medvlm, there.device)


def build(
    services: Services,
    sessions: Sessions,
    frames: FrameImages,
    blocks: gr.Blocks,
    reviewing: Sequence[Callable[[Any], Facts]],
) -> gr.HTML:
    """Lay out the tab in the open Blocks and wire it.

    Args:
        services, sessions, frames: what it needs.
        blocks: open.
        reviewing: review_enqueue and reviewed, served to the stage; empty: without reviews.

    Returns:
        The stage, so that other tabs can show a case on it.
    """
    pace = Pace()
    constants: Facts = {
        "reviewing": bool(reviewing),
        "profile": present.profile_facts(services.profile),
        "stages": list(services.stages),
        "caveat": services.caveat,
        "limits": asdict(services.limits),
    }
    explore = Explore(services, sessions, frames, pace, constants)
    asking = Asking(services, sessions, pace)
    look = Lookup(services, sessions, frames, pace)
    served = [look.frame, look.pool, look.maps, look.read, look.shots, look.take, look.variants]
    view = stage([answered(one) for one in (*served, *reviewing)], **constants)
    with gr.Accordion("Figures", open=True, elem_id="figures"):
        with gr.Row():
            scores = gr.Plot(show_label=False, elem_id="plot-scores")
            scatter = gr.Plot(show_label=False, elem_id="plot-refinement")
        timeline = gr.Plot(show_label=False, elem_id="plot-time")
    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    blocks.load(explore.on_open, outputs=view, queue=False, **quiet)
    view.open_clip(explore.on_clip, outputs=view, trigger_mode="always_last", **quiet)
    view.open_stored(explore.on_stored, outputs=view, queue=False, **quiet)
    sent = view.upload(explore.on_upload, outputs=view, **quiet)
    sent.failure(explore.on_upload_failed, outputs=view, **quiet)
    view.submit(
        asking.on_submit,
        outputs=view,
        concurrency_id=GPU_QUEUE,
        concurrency_limit=1,
        **quiet,
    )
    view.cancel(asking.on_cancel, queue=False, **quiet)
    view.focus_time(
        explore.on_focus,
        outputs=[scores, scatter, timeline],
        trigger_mode="always_last",
        **quiet,
    )
    blocks.unload(explore.on_leave)
    return view


def best_frame(grounding: Grounding) -> int:
    """The frame that tells most: RefineRank answers with another thing than the detector alone.

    Among several such frames, or where there is none, the one whose answer stands out most.
    """

    def tells(time: TimeGrounding) -> tuple[bool, float]:
        answers = time.answers
        boxes = np.array([answers.refinerank.box, answers.medvlm_groundingdino.box], np.float32)
        return float(iou(boxes[0], boxes[1])) < _SAME_THING, answers.refinerank.margin

    return max(grounding.times, key=tells).frame_index


def uploaded_file(path: str) -> Path:
    """A path that the browser names, if it is a file that came through the upload door.

    Raises:
        VideoError: it lies elsewhere or is gone.
    """
    folder = Path(get_upload_folder()).resolve()
    found = Path(path).resolve()
    if not found.is_relative_to(folder) or not found.is_file():
        raise VideoError("The upload did not arrive. Upload the clip again.")
    return found

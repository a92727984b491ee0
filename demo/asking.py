"""A question of a visitor: run, shown while it grows, stopped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Event
from typing import Any

import gradio as gr

from demo import present
from demo.events import (
    CancelAsk,
    SubmitAsk,
    errors_to_toast,
    event_ask,
    stream_errors_to_toast,
)
from demo.growth import Growth
from demo.runs import Pace, Step, StoppedError, follow
from demo.services import Services
from demo.sessions import Clip, Session, SessionError, Sessions, new_answer_token
from refinerank_core.errors import RefineRankError, VideoError
from refinerank_core.progress import Grounded
from refinerank_core.question import parse_question
from refinerank_core.times import check_times

Facts = dict[str, Any]


class Asking:
    """The handlers of Ask and Cancel."""

    def __init__(self, services: Services, sessions: Sessions, pace: Pace) -> None:
        self._services = services
        self._sessions = sessions
        self._pace = pace

    @stream_errors_to_toast
    def on_submit(self, event: gr.EventData, request: gr.Request) -> Iterator[gr.HTML]:
        """Answer a question; tell how far it is meanwhile."""
        session = self._session(request)
        session.cancel = Event()
        try:
            ask = event_ask(SubmitAsk, event)
            if ask.ticket in session.stopped:
                yield gr.HTML(progress=ended("stopped", "Stopped before it began."))
                return
            clip = self._sessions.clip(ask.clip)
            yield from self._answer(session, clip, ask)
        except RefineRankError:
            yield gr.HTML(progress=ended("failed"))
            raise

    @errors_to_toast
    def on_cancel(self, event: gr.EventData, request: gr.Request) -> None:
        """Stop a question of this visitor."""
        session = self._session(request)
        session.stopped.add(event_ask(CancelAsk, event).ticket)
        session.cancel.set()

    def _session(self, request: gr.Request) -> Session:
        return self._sessions.of(request.session_hash or "")

    def _answer(self, session: Session, clip: Clip, ask: SubmitAsk) -> Iterator[gr.HTML]:
        """Run a question; show its requested times as they come, keep them when it is stopped."""
        current_s, times = requested(clip, ask)
        reused = self._services.seen(clip.video, frames_of(clip, times))
        growth = Growth(clip, reused)
        stages = self._services.stages
        ground = self._services.ground
        if ask.variant:
            if self._services.ground_as is None:
                raise SessionError("This app has no other RefineNets. Reload the page.")
            ground = self._services.ground_as(ask.variant)
        news = ground(clip.video, ask.text, ask.times or None, current_s, ask.smooth)
        try:
            for one in follow(news, stages=stages, pace=self._pace, cancel=session.cancel):
                if isinstance(one, Step):
                    yield gr.HTML(progress=present.progress_facts(one, stages))
                elif growth.take(one) is not None:
                    yield self._grown(session, growth, ask.index)
                if isinstance(one, Grounded):
                    self._pace.learn(one.grounding.seconds, len(one.grounding.times))
        except RefineRankError as error:
            if growth.stop() is not None:
                yield self._grown(session, growth, ask.index)
            if not isinstance(error, StoppedError):
                raise
            yield gr.HTML(progress=ended("stopped", present.stopped_words(growth)))
            return
        yield gr.HTML(progress=ended("done"))

    def _grown(self, session: Session, growth: Growth, index: int) -> gr.HTML:
        """Show what is known of the answer so far, and keep it."""
        answer = growth.answer
        if answer is None:
            return gr.HTML(answer=None)
        self._sessions.add_answer(session, answer)
        return gr.HTML(answer=present.answer_facts(answer, index))


def ended(state: str, words: str = "") -> Facts:
    """Progress that is over; the stamp makes each end news to the stage."""
    return {"state": state, "words": words, "stamp": new_answer_token()}


def requested(clip: Clip, ask: SubmitAsk) -> tuple[float, list[float]]:
    """The second that the visitor is on, and the seconds that are asked for, rising.

    Raises:
        QuestionError: the text or its times cannot be answered.
        VideoError: the visitor is on no frame of this clip.
    """
    video = clip.video
    if ask.index >= len(video):
        raise VideoError("There is no such frame in this clip. Reload the page.")
    current_s = float(video.times_s[ask.index])
    asked = parse_question(ask.text, duration_s=video.duration_s)
    if ask.times:
        return current_s, list(check_times(ask.times, duration_s=video.duration_s))
    return current_s, list(asked.requested_s) or [current_s]


def frames_of(clip: Clip, times_s: Sequence[float]) -> list[int]:
    """The frames that times fall on, each once."""
    return sorted({clip.video.nearest(time_s)[0] for time_s in times_s})

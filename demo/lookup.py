"""What the stage asks for while one looks around: no queue, one message, one answer."""

from __future__ import annotations

import base64
from typing import Any

from demo import exports, present
from demo.events import ExportAsk, FrameAsk, MapsAsk, OpenAsk, PoolAsk, QuestionAsk, read_ask
from demo.frames import FrameImages
from demo.runs import Pace
from demo.services import Services
from demo.sessions import Answer, SessionError, Sessions
from demo.shots import Shots
from refinerank_core.grounding import Box
from refinerank_core.question import parse_question

Facts = dict[str, Any]


class Lookup:
    """The functions that the browser calls by their names, each with one unchecked message."""

    def __init__(
        self, services: Services, sessions: Sessions, frames: FrameImages, pace: Pace
    ) -> None:
        self._services = services
        self._sessions = sessions
        self._frames = frames
        self._pace = pace
        self._shots = Shots()

    def frame(self, sent: Any) -> Facts:
        """One picture."""
        ask = read_ask(FrameAsk, sent)
        clip = self._sessions.clip(ask.clip)
        url = self._frames.url(clip, ask.index)
        return {"index": ask.index, "request_id": ask.request_id, "src": url}

    def pool(self, sent: Any) -> Facts:
        """The candidates of one requested time."""
        ask = read_ask(PoolAsk, sent)
        return present.pool_facts(self._sessions.answer(ask.answer).grounding.times[ask.k], ask.k)

    def maps(self, sent: Any) -> Facts:
        """Response maps for a box that the answer holds."""
        ask = read_ask(MapsAsk, sent)
        answer = self._sessions.answer(ask.answer)
        time = answer.grounding.times[ask.k]
        target = target_box(answer, ask)
        kept = answer.maps.get(ask.k)
        if kept is None or kept.target != target:
            kept = self._services.maps_at(answer.clip.video, time.frame_index, target)
        return present.maps_facts(kept, answer.grounding.profile.inter_block) | {"k": ask.k}

    def read(self, sent: Any) -> Facts:
        """Which times and which thing do these words name?"""
        ask = read_ask(QuestionAsk, sent)
        video = self._sessions.clip(ask.clip).video
        asked = parse_question(ask.text, duration_s=video.duration_s)
        return {
            "times": list(asked.requested_s),
            "target": asked.target,
            "phrases": list(asked.phrases),
            "per_time_s": self._pace.left_s(self._services.stages, {}, 1),
        }

    def variants(self, sent: Any) -> Facts:
        """The RefineNets that can answer instead of the profile's own."""
        return {"rows": [present.profile_facts(card) for card in self._services.variants()]}

    def shots(self, sent: Any) -> Facts:
        """The frames that begin a new shot; None: not known yet, ask again later."""
        found = self._shots.of(self._sessions.clip(read_ask(OpenAsk, sent).clip))
        return {"shots": None if found is None else list(found)}

    def take(self, sent: Any) -> Facts:
        """A file to take away, base64."""
        ask = read_ask(ExportAsk, sent)
        answer = self._sessions.answer(ask.answer)
        if ask.kind == "json":
            content = answer.grounding.to_json().encode()
        elif ask.kind == "csv":
            content = exports.pool_csv(answer).encode("utf-8-sig")
        else:
            content = self._npz(answer)
        return {"content": base64.b64encode(content).decode()}

    def _npz(self, answer: Answer) -> bytes:
        grounding = answer.grounding
        maps = {
            k: answer.maps.get(k)
            or self._services.maps_at(
                answer.clip.video, time.frame_index, time.answers.refinerank.box
            )
            for k, time in enumerate(grounding.times)
        }
        about = {
            "caution": self._services.profile.caution,
            "caveat": self._services.caveat,
            "profile": grounding.profile.model_dump(),
            "question": grounding.question.model_dump(),
        }
        return exports.maps_npz(self._services.map_arrays(maps), about)


def target_box(answer: Answer, ask: MapsAsk) -> Box:
    """The box that maps are wanted for.

    Raises:
        SessionError: the answer holds no such box.
    """
    time = answer.grounding.times[ask.k]
    row = time.candidates[ask.candidate]
    box: Box | None = {
        "answer": time.answers.refinerank.box,
        "original": row.box,
        "refined": row.refined_box,
        "medvlm": time.answers.medvlm.box,
        "truth": answer.truth.get(time.frame_index),
    }[ask.target]
    if box is None:
        raise SessionError("There is no such box on this frame. Choose another target.")
    return box

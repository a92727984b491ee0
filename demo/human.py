"""What people decided about an answer: their boxes on the stage, marks on its times."""

from __future__ import annotations

from typing import Any

from demo.events import AnswerAsk, read_ask
from demo.sessions import Sessions
from refinerank_core.reviews.fold import Status
from refinerank_core.reviews.store import CaseView, Store
from refinerank_core.reviews.worklist import Wanted

Facts = dict[str, Any]
_DECIDED: tuple[Status, ...] = ("accepted", "rejected", "fixed", "unsure")


class Human:
    """The function that the browser calls by its name."""

    def __init__(self, store: Store, sessions: Sessions) -> None:
        self._store = store
        self._sessions = sessions

    def reviewed(self, sent: Any) -> Facts:
        """The decided times of an answer's question: frame, box (None: no box is right), status."""
        grounding = self._sessions.answer(read_ask(AnswerAsk, sent).answer).grounding
        name = grounding.video.name
        latest: dict[int, CaseView] = {}
        for view in self._store.views(Wanted(status=_DECIDED, text=name)):
            case, frame = view.case, view.case.frame_index
            about = (case.video_sha256, case.question)
            if about != (grounding.video.sha256, grounding.question.text) or frame is None:
                continue
            if frame not in latest or latest[frame].state.last_seq < view.state.last_seq:
                latest[frame] = view
        return {
            "times": [
                {"frame": frame, "box": view.state.reviewed_box, "status": view.state.status}
                for frame, view in sorted(latest.items())
            ]
        }

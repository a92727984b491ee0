"""Doors for programs: `gradio_client` calls these by name. Bundled clips only."""

from __future__ import annotations

from typing import Any

from gradio.events import api as api_door

from demo import present
from demo.events import GPU_QUEUE, errors_to_toast
from demo.frames import FrameImages
from demo.runs import whole
from demo.services import Services
from demo.sessions import Sessions
from refinerank_core.errors import VideoError


class Api:
    """The endpoints; what they return is plain JSON."""

    def __init__(self, services: Services, sessions: Sessions, frames: FrameImages) -> None:
        self._services = services
        self._sessions = sessions
        self._frames = frames

    @errors_to_toast
    def list_samples(self) -> list[dict[str, Any]]:
        """The bundled clips: name, title, what they are about."""
        return present.sample_facts(self._sessions.samples())

    @errors_to_toast
    def read_frame(self, sample: str, index: int) -> dict[str, Any]:
        """One frame of a bundled clip, exactly that one, as a JPEG data URL."""
        clip = self._sessions.sample(sample)
        if not 0 <= index < len(clip.video):
            raise VideoError(
                f"Frame {index} is not in the clip: frames are 0 to {len(clip.video) - 1}."
            )
        return {
            "index": index,
            "time_s": float(clip.video.times_s[index]),
            "src": self._frames.url(clip, index),
        }

    @errors_to_toast
    def ground(
        self, sample: str, question: str, times: list[float] | None = None
    ) -> dict[str, Any]:
        """Answer a question about a bundled clip: the grounding JSON of the README.

        times are seconds; without them they are read out of the question, else 0 is asked.
        """
        clip = self._sessions.sample(sample)
        news = self._services.ground(clip.video, question, times or None, 0.0, False)
        plain: dict[str, Any] = whole(news).grounding.model_dump(mode="json", by_alias=True)
        return plain


def build(api: Api) -> None:
    """Open the doors in the open Blocks."""
    api_door(api.list_samples, api_name="list_samples")
    api_door(api.read_frame, api_name="read_frame")
    api_door(api.ground, api_name="ground", concurrency_id=GPU_QUEUE, concurrency_limit=1)

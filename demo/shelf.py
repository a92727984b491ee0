"""The videos that cases are about: bundled clips, a folder of the operator's, own uploads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from demo.samples import SUFFIXES
from demo.sessions import SAMPLE_TOKEN, Clip, SessionError, Sessions
from refinerank_core.errors import VideoError
from refinerank_core.reviews.names import VIDEO_SUFFIXES, video_stem
from refinerank_core.reviews.records import Case

SHELF_TOKEN = "shelf:"


class Shelf:
    """Finds the pictures of a case. A video counts only where its bytes are the case's."""

    def __init__(self, sessions: Sessions, folder: Path | None) -> None:
        self._sessions = sessions
        self._folder = folder
        self._open: dict[str, Clip] = {}
        self._lock = Lock()

    def find(self, case: Case, own: Sequence[str] = ()) -> Clip | None:
        """The clip that a case is about, None where it is not here.

        Args:
            case: what is looked for.
            own: tokens of the visitor's own uploads.
        """
        for token in self._tokens(case, own):
            try:
                clip = self.clip(token)
            except (SessionError, VideoError):
                continue
            if is_about(clip, case):
                return clip
        return None

    def clip(self, token: str) -> Clip:
        """The clip that a browser names. Raises SessionError when there is none."""
        if not token.startswith(SHELF_TOKEN):
            return self._sessions.clip(token)
        name = token.removeprefix(SHELF_TOKEN)
        with self._lock:
            if name not in self._open:
                path = next((one for one in self._files() if one.name == name), None)
                if path is None:
                    raise SessionError("This video is no longer in the folder of videos.")
                self._open[name] = Clip(token, self._sessions.services.open_video(path), None)
            return self._open[name]

    def tokens(self) -> dict[str, str]:
        """Video stem -> token of every video that stays here; a bundled clip before a file."""
        files = {video_stem(one.name): SHELF_TOKEN + one.name for one in self._files()}
        return files | {one.name: SAMPLE_TOKEN + one.name for one in self._sessions.samples()}

    def _tokens(self, case: Case, own: Sequence[str]) -> list[str]:
        stem = video_stem(case.video_name)
        bundled = [
            self._sessions.sample(one.name).token
            for one in self._sessions.samples()
            if one.name == stem
        ]
        kept = [SHELF_TOKEN + one.name for one in self._files() if video_stem(one.name) == stem]
        return [*bundled, *kept, *own]

    def _files(self) -> list[Path]:
        if self._folder is None or not self._folder.is_dir():
            return []
        suffixes = VIDEO_SUFFIXES | set(SUFFIXES)
        return [one for one in self._folder.iterdir() if one.suffix.lower() in suffixes]


def is_about(clip: Clip, case: Case) -> bool:
    """Whether a clip shows a case: the same bytes, or name where they are not known; and size."""
    if case.video_sha256 and clip.video.sha256 != case.video_sha256:
        return False
    if not case.video_sha256 and video_stem(clip.video.name) != video_stem(case.video_name):
        return False
    return clip.video.size_wh == (case.width, case.height)

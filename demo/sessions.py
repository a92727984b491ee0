"""Who is looking at what: each visitor's clips and answers, and nobody else's.

What a browser may name is a token. Tokens of uploads and of asked questions are secrets that only
their own visitor was told; bundled clips and their stored answers have public ones.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
import unicodedata
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, RLock
from typing import TYPE_CHECKING

from demo.samples import Sample, list_samples
from demo.services import Limits, Services
from demo.uploads import kept_copy
from refinerank_core.errors import RefineRankError, VideoError
from refinerank_core.grounding import Box, Grounding
from refinerank_core.question import clean_text
from refinerank_core.video import Video

if TYPE_CHECKING:
    from refinerank_core.responses import ResponseMaps

ANSWERS_KEPT = 24
UPLOADS_KEPT = 6
SAMPLE_TOKEN = "sample:"


class SessionError(RefineRankError):
    """What the browser names is gone: the server was restarted or the session has ended."""


@dataclass(frozen=True, eq=False)
class Clip:
    """An open clip.

    Attributes:
        token: what the browser calls it.
        video: open.
        sample: None for an upload.
        home: the upload's own folder.
        path: its file; None where nobody else may open it.
    """

    token: str
    video: Video
    sample: Sample | None
    home: Path | None = None
    path: Path | None = None

    def remove(self) -> None:
        """Close an upload and remove it from the disk."""
        self.video.close()
        if self.home is not None:
            shutil.rmtree(self.home, ignore_errors=True)


@dataclass(frozen=True, eq=False)
class Answer:
    """A grounding, the clip it is about, and the maps that came with it (may be empty).

    Attributes:
        reused: how many of its frames were in the feature cache; None for a stored answer.
        running: more of it is being computed.
        unwritten: positions of the times that the MedVLM has not written its own answer for.
    """

    token: str
    clip: Clip
    grounding: Grounding
    maps: Mapping[int, ResponseMaps]
    truth: Mapping[int, Box]
    reused: int | None = None
    running: bool = False
    unwritten: frozenset[int] = frozenset()


@dataclass(eq=False)
class Session:
    """One visitor's things.

    cancel is set to stop the question that runs now; stopped holds the tickets of questions that
    were given up, some of them before they ran.
    """

    folder: Path
    clips: OrderedDict[str, Clip] = field(default_factory=OrderedDict)
    answers: OrderedDict[str, Answer] = field(default_factory=OrderedDict)
    cancel: Event = field(default_factory=Event)
    stopped: set[int] = field(default_factory=set)


class Sessions:
    """All visitors. Safe to use from several threads."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._lock = RLock()
        self._by_key: dict[str, Session] = {}
        self._bundled: dict[str, Clip] = {}
        self._stored: dict[str, Answer] = {}
        self._root = tempfile.TemporaryDirectory(prefix="refinerank-sessions-")

    def of(self, key: str) -> Session:
        """The session of a visitor, opened at their first word."""
        with self._lock:
            if key not in self._by_key:
                folder = Path(self._root.name) / secrets.token_hex(8)
                folder.mkdir(mode=0o700)
                self._by_key[key] = Session(folder=folder)
            return self._by_key[key]

    def end(self, key: str) -> None:
        """Forget a visitor and remove what they uploaded."""
        with self._lock:
            session = self._by_key.pop(key, None)
        if session is None:
            return
        session.cancel.set()
        for clip in session.clips.values():
            clip.remove()
        shutil.rmtree(session.folder, ignore_errors=True)

    def close(self) -> None:
        """End every session."""
        for key in list(self._by_key):
            self.end(key)
        self._root.cleanup()

    def samples(self) -> list[Sample]:
        """The bundled clips."""
        return list_samples(self.services.samples)

    def sample(self, name: str) -> Clip:
        """A bundled clip, opened once for all.

        Raises:
            SessionError: there is no such clip.
        """
        with self._lock:
            if name not in self._bundled:
                found = next((one for one in self.samples() if one.name == name), None)
                if found is None:
                    raise SessionError("There is no such sample clip. Choose one from the list.")
                video = self.services.open_video(found.path)
                self._bundled[name] = Clip(SAMPLE_TOKEN + name, video, found, path=found.path)
            return self._bundled[name]

    def stored_answer(self, clip: Clip, number: int = 1) -> Answer | None:
        """The answer that was kept beside a bundled clip, if it is about these very pictures.

        Args:
            clip: an upload has none.
            number: of the question, counted from 1.
        """
        if clip.sample is None or not 1 <= number <= max(1, len(clip.sample.questions)):
            return None
        token = clip.token if number == 1 else f"{clip.token}/{number}"
        with self._lock:
            if token not in self._stored:
                path = answer_path(clip.sample, number)
                grounding = Grounding.load(path) if path.is_file() else None
                if grounding is None or grounding.video.sha256 != clip.video.sha256:
                    return None
                truth = clip.sample.truth_for(grounding.question.text)
                self._stored[token] = Answer(token, clip, grounding, {}, truth)
            return self._stored[token]

    def stored_for(self, clip: Clip, text: str) -> Answer | None:
        """The kept answer to a question in these words, if there is one."""
        wanted = clean_text(text)
        questions = clip.sample.questions if clip.sample else ()
        same = [number for number, one in enumerate(questions, 1) if clean_text(one.text) == wanted]
        for number in sorted({1, *same}):
            answer = self.stored_answer(clip, number)
            if answer is not None and answer.grounding.question.text == wanted:
                return answer
        return None

    def add_upload(self, session: Session, uploaded: Path, *, mask: bool = False) -> Clip:
        """Take a file over from the upload folder into the visitor's own and open it.

        What is kept is a copy without metadata; with mask, what stands outside an endoscope's
        round picture is black in it.

        Raises:
            VideoError: it is not a video, or larger or longer than allowed; it is removed then.
        """
        token = secrets.token_urlsafe(18)
        home = session.folder / secrets.token_hex(8)
        home.mkdir(mode=0o700)
        kept = home / (unicodedata.normalize("NFC", uploaded.name) or "clip")
        try:
            shutil.move(uploaded, kept)
            _require_size(kept, self.services.limits)
            with self.services.open_video(kept) as video:
                _require_duration(video, self.services.limits)
            video = kept_copy(kept, mask=mask)
        except OSError as error:
            shutil.rmtree(home, ignore_errors=True)
            raise VideoError("The upload did not arrive whole. Upload the clip again.") from error
        except RefineRankError:
            shutil.rmtree(home, ignore_errors=True)
            raise
        clip = Clip(token, video, None, home, video.path)
        with self._lock:
            session.clips[token] = clip
            while len(session.clips) > UPLOADS_KEPT:
                session.clips.popitem(last=False)[1].remove()
        return clip

    def add_answer(self, session: Session, answer: Answer) -> None:
        """Keep an answer for its visitor; the oldest goes when there are many."""
        with self._lock:
            session.answers[answer.token] = answer
            while len(session.answers) > ANSWERS_KEPT:
                session.answers.popitem(last=False)

    def clip(self, token: str) -> Clip:
        """The clip that a browser names. Raises SessionError when there is none."""
        if token.startswith(SAMPLE_TOKEN):
            return self.sample(token.removeprefix(SAMPLE_TOKEN))
        with self._lock:
            for session in self._by_key.values():
                if token in session.clips:
                    return session.clips[token]
        raise SessionError("This clip is no longer here. Upload it again.")

    def answer(self, token: str) -> Answer:
        """The answer that a browser names. Raises SessionError when there is none."""
        if token.startswith(SAMPLE_TOKEN):
            name, _, number = token.partition("/")
            stored = self.stored_answer(self.clip(name), int(number) if number.isdecimal() else 1)
            if stored is not None:
                return stored
        with self._lock:
            for session in self._by_key.values():
                if token in session.answers:
                    return session.answers[token]
        raise SessionError("This answer is no longer here. Ask again.")


def answer_path(sample: Sample, number: int) -> Path:
    """Where the answer to a clip's question of this number, counted from 1, is kept."""
    which = "" if number == 1 else f".q{number}"
    return sample.path.with_suffix(f"{which}.grounding.json")


def answered_questions(sample: Sample) -> list[str]:
    """The questions of a clip with an answer kept beside it."""
    pairs = enumerate(sample.questions, 1)
    return [one.text for number, one in pairs if answer_path(sample, number).is_file()]


def new_answer_token() -> str:
    """A token that nobody can guess."""
    return secrets.token_urlsafe(18)


def _require_size(path: Path, limits: Limits) -> None:
    size_mb = path.stat().st_size / 2**20
    if size_mb > limits.upload_mb:
        raise VideoError(
            f"The clip has {size_mb:.0f} MB; at most {limits.upload_mb} MB are taken. "
            "Cut it shorter or export it smaller."
        )


def _require_duration(video: Video, limits: Limits) -> None:
    if video.duration_s > limits.duration_s:
        raise VideoError(
            f"The clip lasts {video.duration_s:.0f} s; at most {limits.duration_s:.0f} s are "
            "taken. Cut it shorter."
        )

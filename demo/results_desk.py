"""What the Results tab asks of the server: files, their tables, pictures of the lowest answers."""

from __future__ import annotations

import base64
import secrets
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Annotated, Any

import cv2
from pydantic import StringConstraints

from demo import results_facts
from demo.events import Ask, Index, UploadAsk, read_ask
from demo.explore import uploaded_file
from demo.findings_desk import FindingsDesk
from demo.frames import QUALITY
from demo.identity import Identity
from demo.results_learning import UNAVAILABLE, Learning, learning_facts
from demo.results_read import Document, Study, WorstCase, read_document
from demo.results_services import ResultsSetup
from demo.review_asks import Who
from refinerank_core.errors import FormatError, RefineRankError
from refinerank_core.phantom.replay import frame_at, scene_named
from refinerank_core.reviews.names import video_stem

Facts = dict[str, Any]
OPENED_KEPT = 64
NO_FILES = (
    "There are no results yet. Open a file that `evaluate --json`, `tables --json` or "
    "`phantom study --json` wrote."
)


class DocumentAsk(Ask):
    """One of the files, "" for the first."""

    document: Annotated[str, StringConstraints(max_length=100)] = ""


class LearnAsk(Ask):
    """Start or stop a training; name: of the new profile."""

    who: Who
    name: Annotated[str, StringConstraints(max_length=60)] = ""


class WorstAsk(DocumentAsk):
    """One of the lowest answers of a study."""

    dataset: Annotated[str, StringConstraints(max_length=200)]
    place: Index


@dataclass(frozen=True)
class Listed:
    """A file that can be chosen, or why it cannot."""

    token: str
    words: str
    document: Document


class ResultsDesk:
    """The functions that the browser calls by their names.

    Files of the command line are everybody's; an opened one is known by a token that only its
    visitor was told.
    """

    def __init__(self, setup: ResultsSetup, findings: FindingsDesk, identity: Identity) -> None:
        """The files of the setup are read when the tab is first looked at."""
        self._files = setup.files
        self._learning = setup.learning
        self._identity = identity
        self._findings = findings
        self._lock = Lock()
        self._shared: list[Listed] | None = None
        self._faults: list[str] = []
        self._opened: OrderedDict[str, Document] = OrderedDict()

    def results(self, sent: Any) -> Facts:
        """The list of files, and everything about one of them."""
        ask = read_ask(DocumentAsk, sent)
        listed, faults = self._listed()
        reply: Facts = {
            "documents": [{"token": one.token, "words": one.words} for one in listed],
            "faults": faults,
            "published": results_facts.published_facts(),
        }
        if not listed and not ask.document:
            return reply | {"document": None, "say": NO_FILES}
        token = ask.document or listed[0].token
        facts = results_facts.document_facts(self.document(token))
        for video in facts["videos"]:
            video["stem"] = video_stem(video["video"])
        return reply | {"document": facts | {"token": token}}

    def results_cases(self, sent: Any) -> Facts:
        """Stem of a video -> how many of its cases the Failures tab can show."""
        del sent  # there is nothing to choose
        cases = {
            (video_stem(o.case.video_name), o.case.case_id) for o in self._findings.everything()
        }
        return {"cases": dict(Counter(stem for stem, _ in cases))}

    def results_open(self, sent: Any) -> Facts:
        """Read an uploaded file; it is removed at once."""
        path = uploaded_file(read_ask(UploadAsk, sent).path)
        try:
            found = read_document(path)
        finally:
            path.unlink(missing_ok=True)
        token = secrets.token_urlsafe(12)
        with self._lock:
            self._opened[token] = found
            while len(self._opened) > OPENED_KEPT:
                self._opened.popitem(last=False)
        return {"token": token, "words": found.name}

    def results_picture(self, sent: Any) -> Facts:
        """The frame of one of the lowest answers, None where it cannot be drawn again."""
        case = self.case(read_ask(WorstAsk, sent))
        scene = scene_named(case.video)
        if scene is None:
            return {"src": None}
        image = frame_at(scene, case.time_s, case.size_wh)
        packed = cv2.imencode(".jpg", image[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, QUALITY])[1]
        return {"src": "data:image/jpeg;base64," + base64.b64encode(packed.tobytes()).decode()}

    def learn_state(self, sent: Any) -> Facts:
        """What there is to learn from, and how far the last training is."""
        del sent  # there is nothing to choose
        return learning_facts(self._learning)

    def learn_start(self, sent: Any) -> Facts:
        """Start a training; whoever may decide may start one."""
        ask = read_ask(LearnAsk, sent)
        self._allowed(ask).start(ask.name.strip())
        return learning_facts(self._learning)

    def learn_stop(self, sent: Any) -> Facts:
        """Stop the training that runs."""
        self._allowed(read_ask(LearnAsk, sent)).cancel()
        return learning_facts(self._learning)

    def _allowed(self, ask: LearnAsk) -> Learning:
        """The trainings, for somebody who may decide."""
        self._identity.name_of(ask.who.name, ask.who.token)
        if self._learning is None:
            raise RefineRankError(UNAVAILABLE)
        return self._learning

    def document(self, token: str) -> Document:
        """An opened file. Raises FormatError when it is gone."""
        listed, _ = self._listed()
        with self._lock:
            found = {one.token: one.document for one in listed} | self._opened
        if token not in found:
            raise FormatError("This file is no longer open. Open it again.")
        return found[token]

    def case(self, ask: WorstAsk) -> WorstCase:
        """One of the lowest answers. Raises FormatError when there is none such."""
        content = self.document(ask.document).content
        cases = content.worst.get(ask.dataset, []) if isinstance(content, Study) else []
        if ask.place >= len(cases):
            raise FormatError("There is no such answer in this file. Reload the page.")
        return cases[ask.place]

    def _listed(self) -> tuple[list[Listed], list[str]]:
        """The files of the command line, read once."""
        with self._lock:
            if self._shared is None:
                self._shared = []
                for path in _expanded(self._files):
                    try:
                        found = read_document(path)
                    except RefineRankError as error:
                        self._faults.append(str(error))
                    else:
                        token = f"file:{len(self._shared)}"
                        self._shared.append(Listed(token, _words(found), found))
            return list(self._shared), list(self._faults)


def _expanded(files: Sequence[Path]) -> list[Path]:
    """Files as they were named, and those of folders by their names."""
    found: list[Path] = []
    for path in files:
        found += sorted(path.glob("*.json")) if path.is_dir() else [path]
    return found


def _words(found: Document) -> str:
    """A file in the list."""
    content = found.content
    if isinstance(content, Study):
        kind = "quick study" if content.quick else "study" if content.phantom else "tables"
        return f"{found.name} ({'PHANTOM ' if content.phantom else ''}{kind})"
    return f"{found.name} ({found.kind})"

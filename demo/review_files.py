"""Cases and reviews in and out of the Review tab."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from demo.events import read_ask
from demo.explore import uploaded_file
from demo.review_asks import EnqueueAsk, FillAsk, InAsk, OutAsk, Who
from demo.review_services import Reviews
from demo.samples import Sample
from demo.sessions import Sessions
from refinerank_core.errors import FormatError
from refinerank_core.formats.catalogue import FORMATS, load_files, pack, read_rows
from refinerank_core.formats.rows import Asked
from refinerank_core.grounding import Box, Grounding
from refinerank_core.reviews.exchange import (
    Imported,
    VideoInfo,
    import_rows,
    rows_of,
    stated_facts,
)
from refinerank_core.reviews.fold import Status
from refinerank_core.reviews.intake import Added
from refinerank_core.reviews.records import Truth
from refinerank_core.reviews.sources import cases_of
from refinerank_core.reviews.worklist import Wanted

Facts = dict[str, Any]
GROUNDING = "grounding"
PHANTOM = "Phantom surgery"
_MOST_FAULTS = 50


class ReviewFiles:
    """The functions that the browser calls by their names."""

    def __init__(self, reviews: Reviews, sessions: Sessions) -> None:
        self._reviews = reviews
        self._store = reviews.store
        self._sessions = sessions

    def review_enqueue(self, sent: Any) -> Facts:
        """Put an answer of Explore into the queue, one case a requested time."""
        ask = read_ask(EnqueueAsk, sent)
        by = self._name(ask.who)
        answer = self._sessions.answer(ask.answer)
        added = self._add(answer.grounding, answer.clip.sample, by)
        video = answer.clip.video
        return {"words": added_words(added), "cases": list(added.case_ids), "video": video.sha256}

    def review_fill(self, sent: Any) -> Facts:
        """Put every answer that is kept beside a bundled clip into the queue."""
        by = self._name(read_ask(FillAsk, sent).who)
        sums = Added()
        for sample in self._sessions.samples():
            for grounding in sample.stored_answers():
                one = self._add(grounding, sample, by)
                sums = Added(
                    new=sums.new + one.new,
                    known=sums.known + one.known,
                    truths=sums.truths + one.truths,
                )
        return {"words": added_words(sums)}

    def review_out(self, sent: Any) -> Facts:
        """A file with the reviews, base64, and what its format cannot hold."""
        ask = read_ask(OutAsk, sent)
        if ask.format not in FORMATS:
            raise FormatError("There is no such format. Reload the page.")
        status: tuple[Status, ...] = ("accepted", "fixed") if ask.decided else ()
        views = self._store.views(Wanted(status=status, sort="video"))
        rows = list(rows_of(views, ask.what))
        written = FORMATS[ask.format].write(rows)
        name, content = pack(written)
        return {
            "name": name,
            "content": base64.b64encode(content).decode(),
            "words": f"{len(rows)} rows written.",
            "losses": list(written.losses),
        }

    def review_in(self, sent: Any) -> Facts:
        """Import the good lines of an uploaded file; the bad ones are listed by number."""
        ask = read_ask(InAsk, sent)
        by = self._name(ask.who)
        path = uploaded_file(ask.path)
        try:
            imported = self._import(ask, path, by)
        finally:
            path.unlink(missing_ok=True)
        return {
            "words": added_words(imported.added),
            "notes": list(imported.notes),
            "faults": [
                {"line": one.line, "text": one.text} for one in imported.faults[:_MOST_FAULTS]
            ],
            "left_out": len(imported.faults),
        }

    def _import(self, ask: InAsk, path: Path, by: str) -> Imported:
        if ask.format == GROUNDING:
            grounding = Grounding.load(path)
            added = self._store.add(cases_of(grounding), by=by, grounding=grounding)
            return Imported(added, (), ())
        if ask.format not in FORMATS:
            raise FormatError("There is no such format. Reload the page.")
        videos = [
            VideoInfo(one.video.name, one.video.sha256, one.video.size_wh, one.video.times_s)
            for one in map(self._sessions.sample, (s.name for s in self._sessions.samples()))
        ]
        sizes, frames = stated_facts(videos)
        asked = Asked(
            sizes=sizes,
            frames=frames,
            method=ask.method,
            any_size=(ask.width, ask.height) if ask.width and ask.height else None,
        )
        reading = read_rows(ask.format, load_files(path), asked)
        by_stem = dict(zip(sizes, videos, strict=True))
        return import_rows(self._store, reading, by=by, method=ask.method, videos=by_stem)

    def _add(self, grounding: Grounding, sample: Sample | None, by: str) -> Added:
        """The cases of one grounding, with the truth where the sample knows it."""
        dataset = PHANTOM if sample and sample.phantom else ""
        procedure = sample.procedure if sample else ""
        cases = cases_of(grounding, dataset=dataset, procedure=procedure)
        known = sample.truth_for(grounding.question.text) if sample else {}
        boxes = [known.get(time.frame_index) for time in grounding.times]
        truths = [_truth(box, grounding.question.target) for box in boxes]
        return self._store.add(cases, by=by, grounding=grounding, truths=truths)

    def _name(self, who: Who) -> str:
        return self._reviews.identity.name_of(who.name, who.token)


def _truth(box: Box | None, target: str) -> Truth | None:
    return Truth(box=box, label=target, source="sample") if box else None


def added_words(added: Added) -> str:
    """What an import did."""
    words = [f"{added.new} new case{'s'[: added.new != 1]}"]
    if added.known:
        words.append(f"{added.known} known already")
    if added.truths:
        words.append(f"{added.truths} with truth")
    return ", ".join(words) + "."

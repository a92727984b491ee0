"""Cases and reviews in and out of the Review tab."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from demo.events import read_ask
from demo.explore import uploaded_file
from demo.frames import pack as pack_frame
from demo.review_asks import EnqueueAsk, FillAsk, ForgetAsk, InAsk, OutAsk, Who
from demo.review_services import Reviews
from demo.review_videos import Derived, KnownVideos
from demo.samples import Sample
from demo.sessions import SessionError, Sessions
from demo.shelf import Shelf
from refinerank_core.errors import FormatError, StoreError
from refinerank_core.formats.catalogue import FORMATS, load_files, pack, read_rows
from refinerank_core.formats.rows import Asked
from refinerank_core.grounding import Box, Grounding
from refinerank_core.reviews.exchange import Imported, import_rows, rows_of
from refinerank_core.reviews.fold import Status
from refinerank_core.reviews.intake import Added
from refinerank_core.reviews.records import Truth
from refinerank_core.reviews.sources import cases_of
from refinerank_core.reviews.worklist import Wanted

Facts = dict[str, Any]
GROUNDING = "grounding"
PHANTOM = "Phantom surgery"
KEPT_QUALITY = 95  # a kept picture may be judged again much later
_MOST_FAULTS = 50


class ReviewFiles:
    """The functions that the browser calls by their names."""

    def __init__(self, reviews: Reviews, sessions: Sessions, shelf: Shelf) -> None:
        self._reviews = reviews
        self._shelf = shelf
        self._store = reviews.store
        self._sessions = sessions

    def review_enqueue(self, sent: Any) -> Facts:
        """Put an answer of Explore into the queue, one case a requested time."""
        ask = read_ask(EnqueueAsk, sent)
        by = self._name(ask.who)
        answer = self._sessions.answer(ask.answer)
        if answer.unwritten:
            raise SessionError("A part of this answer is missing. Ask again, then add it.")
        added = self._add(answer.grounding, answer.clip.sample, by)
        video, pictures = answer.clip.video, self._reviews.pictures
        fleeting = pictures if answer.clip.sample is None else None
        return {
            "words": added_words(added),
            "cases": list(added.case_ids),
            "video": video.sha256,
            "keep": sum(not fleeting.has(one) for one in added.case_ids) if fleeting else 0,
        }

    def review_keep(self, sent: Any) -> Facts:
        """Keep the asked frames of an upload, because its visitor said so."""
        ask = read_ask(EnqueueAsk, sent)
        self._name(ask.who)
        answer, pictures = self._sessions.answer(ask.answer), self._reviews.pictures
        if pictures is None:
            raise StoreError("No pictures are kept here. Export the grounding instead.")
        cases = cases_of(answer.grounding)
        for case, time in zip(cases, answer.grounding.times, strict=True):
            self._store.case(case.case_id)  # pictures are of cases, and of nothing else
            image = answer.clip.video.read_frame(time.frame_index).image
            pictures.keep(case.case_id, pack_frame(image, quality=KEPT_QUALITY))
        count = len(cases)
        return {"words": f"{count} picture{'s'[: count != 1]} kept with the review."}

    def review_forget(self, sent: Any) -> Facts:
        """Remove the kept picture of a case."""
        ask = read_ask(ForgetAsk, sent)
        self._name(ask.who)
        if self._reviews.pictures is not None:
            self._reviews.pictures.forget(ask.case_id)
        return {"words": "The picture is removed."}

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
        rows = uploaded_file(ask.rows) if ask.rows else None
        try:
            imported = self._import(ask, path, rows, by)
        except FormatError as error:
            raise FormatError(on_screen(str(error))) from error
        finally:
            for one in filter(None, (path, rows)):
                one.unlink(missing_ok=True)
        return {
            "words": added_words(imported.added),
            "notes": [on_screen(one) for one in imported.notes],
            "faults": [
                {"line": one.line, "text": on_screen(one.text)}
                for one in imported.faults[:_MOST_FAULTS]
            ],
            "left_out": len(imported.faults),
        }

    def _import(self, ask: InAsk, path: Path, rows: Path | None, by: str) -> Imported:
        if ask.format == GROUNDING:
            grounding = Grounding.load(path)
            cases = cases_of(grounding, dataset=ask.dataset, procedure=ask.procedure)
            return Imported(self._store.add(cases, by=by, grounding=grounding), (), ())
        if ask.format not in FORMATS:
            raise FormatError("There is no such format. Reload the page.")
        videos = KnownVideos(self._shelf)
        asked = Asked(
            space=ask.space,
            frame_base=ask.frame_base,
            sizes=Derived(videos, lambda one: one.size_wh),
            frames=Derived(videos, lambda one: len(one.times_s)),
            rescale=ask.rescale,
            method=ask.method,
            any_size=(ask.width, ask.height) if ask.width and ask.height else None,
        )
        reading = read_rows(ask.format, load_files(path), asked, load_files(rows) if rows else None)
        return import_rows(self._store, reading, by=by, method=ask.method, videos=videos)

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


_FLAGS = {
    "--space": "“How boxes are read”",
    "--rows": "“Question rows”",
    "--size": "“Frame size”",
    "--frame-base": "“First frame”",
    "--rescale": "“Scale boxes”",
    "--method": "“Method”",
}


def on_screen(text: str) -> str:
    """A sentence that names flags of the command, with the fields of the form in their place."""
    text = text.replace("--frame-base 1", "“First frame” 1")
    for flag, words in _FLAGS.items():
        text = text.replace(flag, words)
    return text

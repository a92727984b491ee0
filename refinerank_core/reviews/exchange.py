"""Reviews as rows that every format writes, and rows that came in as cases and truths."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
from pydantic import ValidationError

from refinerank_core.formats.rows import Fault, Reading, Row
from refinerank_core.grounding import Box
from refinerank_core.reviews.chain import canonical_json
from refinerank_core.reviews.intake import Added
from refinerank_core.reviews.names import video_stem
from refinerank_core.reviews.records import Case, MethodAnswer, Truth
from refinerank_core.reviews.store import CaseView, Store
from refinerank_core.structures import Float64

REVIEWED = "review"
TRUTH = "truth"


@dataclass(frozen=True, eq=False)
class VideoInfo:
    """What is known of a video that imported rows are about.

    Attributes:
        name, sha256, size_wh: as an open video gives them.
        times_s: (T,) float64, the time of each frame.
    """

    name: str
    sha256: str
    size_wh: tuple[int, int]
    times_s: Float64


@dataclass(frozen=True)
class Imported:
    """What came of an import: what was written, what was not and why, what to know."""

    added: Added
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]


def rows_of(views: Iterable[CaseView], what: str = REVIEWED) -> Iterator[Row]:
    """One row a case.

    Args:
        views: the cases, as `Store.views` gives them.
        what: "review" for the boxes that reviewers stand for, "truth" for annotated ones, or a
            method's name for its answers (cases without that method are left out).
    """
    for view in views:
        case, state = view.case, view.state
        answer = next((one for one in case.answers if one.method == what), None)
        if what not in (REVIEWED, TRUTH) and answer is None:
            continue
        box: Box | None = state.reviewed_box if what == REVIEWED else state.truth
        current = state.current
        judgement = current.judgement if current else None
        yield Row(
            video=case.video_name,
            frame_index=case.frame_index,
            time_s=case.requested_s,
            frame_s=case.frame_s,
            size_wh=(case.width, case.height),
            video_sha256=case.video_sha256,
            box=answer.box if answer else box,
            label=case.target,
            question=case.question,
            method=what,
            score=answer.score if answer else None,
            dataset=case.dataset,
            procedure=case.procedure,
            row_id=case.row_id,
            qa_type=case.qa_type,
            case_id=case.case_id,
            status=state.status,
            reviewer=current.reviewer if current else "",
            decided_at=current.at if current else "",
            best=(judgement.best or "") if judgement else "",
            confidence=judgement.confidence if judgement else None,
            tags=judgement.tags if judgement else (),
            comment=judgement.comment if judgement else "",
            seconds=state.seconds,
        )


def import_rows(
    store: Store,
    reading: Reading,
    *,
    by: str,
    method: str = "",
    videos: Mapping[str, VideoInfo] | None = None,
) -> Imported:
    """Write the good lines of a reading in one transaction; the bad ones are listed.

    Args:
        store: to write to.
        reading: what a format read.
        by: who imports.
        method: whose predictions they are; "": they are truths.
        videos: video stem -> what is known of it.

    Raises:
        StoreError: nothing was written.
    """
    faults = list(reading.faults)
    cases: list[Case] = []
    truths: list[Truth] = []
    for row in reading.rows:
        try:
            cases.append(_case(row, method, videos or {}))
            truths.append(Truth(box=row.box, label=row.label, source=by))
        except (ValidationError, ValueError) as error:
            del cases[len(truths) :]
            faults.append(Fault(row.line, _words(error)))
    added = store.add(cases, by=by) if method else store.add_truths(cases, truths, by=by)
    faults.sort(key=lambda fault: fault.line)
    return Imported(added, tuple(faults), reading.notes)


def _words(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return f"{where}: {first['msg']}" if where else str(first["msg"])
    return str(error)


def _case(row: Row, method: str, videos: Mapping[str, VideoInfo]) -> Case:
    info = videos.get(video_stem(row.video))
    size_wh = info.size_wh if info else row.size_wh
    if size_wh is None:
        raise ValueError("the frame's size is not known. Give the video or --size")
    index, time_s, frame_s = row.frame_index, row.time_s, row.frame_s
    if info is not None:
        index = _frame(info, row) if index is None else index
        if not 0 <= index < len(info.times_s):
            raise ValueError(f"frame {index} is not in {info.name}")
        frame_s = float(info.times_s[index])
        time_s = frame_s if time_s is None else time_s
    answers = (MethodAnswer(method=method, box=row.box, score=row.score),) if method else ()
    origin = canonical_json([method, row.box]) if method else ""
    return Case(
        video_name=info.name if info else row.video,
        video_sha256=info.sha256 if info else row.video_sha256,
        width=size_wh[0],
        height=size_wh[1],
        question=row.question or row.label or "target",
        target=row.label,
        requested_s=time_s,
        frame_index=index,
        frame_s=frame_s,
        dataset=row.dataset,
        procedure=row.procedure,
        answers=answers,
        grounding_id=hashlib.sha256(origin.encode()).hexdigest() if origin else "",
        row_id=row.row_id,
        qa_type=row.qa_type,
    )


def _frame(info: VideoInfo, row: Row) -> int:
    """The frame nearest to the row's time."""
    if row.time_s is None or not isfinite(row.time_s):
        raise ValueError("the line has neither a frame nor a time")
    if row.time_s > float(info.times_s[-1]) + 1.0:
        raise ValueError(f"{row.time_s:g} s lies past the end of {info.name}")
    return int(np.abs(info.times_s - row.time_s).argmin())


def stated_facts(
    videos: Sequence[VideoInfo],
) -> tuple[dict[str, tuple[int, int]], dict[str, int]]:
    """Sizes and frame counts by video stem, as `Asked` takes them."""
    return (
        {video_stem(one.name): one.size_wh for one in videos},
        {video_stem(one.name): len(one.times_s) for one in videos},
    )

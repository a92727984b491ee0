"""Cases that ask the same of the same picture, whatever answered them: they share one truth."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from refinerank_core.grounding import Box
from refinerank_core.reviews.fold import CaseState
from refinerank_core.reviews.names import video_stem
from refinerank_core.reviews.records import Case
from refinerank_core.reviews.schema import CASE_STATES, CASES, EVENTS

SAME_TIME_S = 1e-3
_CHUNK = 500


@dataclass(frozen=True)
class Known:
    """A case with a box that answers can be measured by.

    Attributes:
        case_id, video_stem, video_sha256, question, target, requested_s, frame_index: of the case.
        truth: its annotated box; None where it has none, or where the target is not in the frame.
        reviewed: the box that its current decision stands for.
        decided_at: when that was, "" where nothing is decided.
    """

    case_id: str
    video_stem: str
    video_sha256: str
    question: str
    target: str
    requested_s: float | None
    frame_index: int | None
    truth: Box | None = None
    reviewed: Box | None = None
    decided_at: str = ""


_NAMES = "case_id video_stem video_sha256 question target requested_s frame_index".split()
_COLUMNS = [CASES.c[name] for name in _NAMES]


def cases_about(connection: sa.Connection, about: Case) -> list[str]:
    """Ids of the cases that a truth is about.

    A truth that names the thing alone (its question is its label) is about every question with
    this target at this time; one with a question of its own is about that question.
    """
    query = sa.select(*_COLUMNS).where(CASES.c.video_stem == video_stem(about.video_name))
    if about.requested_s is not None:
        low, high = about.requested_s - SAME_TIME_S, about.requested_s + SAME_TIME_S
        query = query.where(CASES.c.requested_s.between(low, high))
    else:
        query = query.where(CASES.c.frame_index == about.frame_index)
    bare = about.question == about.target
    return [
        row.case_id
        for row in connection.execute(query)
        if _same_video(row.video_sha256, about.video_sha256)
        and (row.question == about.question or (bare and _same_target(row.target, about.target)))
    ]


def truth_holders(connection: sa.Connection, fresh: Iterable[Case]) -> dict[str, str]:
    """Case id -> id of a case in the record whose annotated box is about it, too."""
    cases = list(fresh)
    by_place: dict[tuple[str, int], list[Known]] = {}
    for one in _annotated(connection, sorted({video_stem(case.video_name) for case in cases})):
        for place in _places(one.video_stem, one.requested_s, one.frame_index):
            by_place.setdefault(place, []).append(one)
    found: dict[str, str] = {}
    for case in cases if by_place else ():
        places = _places(video_stem(case.video_name), case.requested_s, case.frame_index)
        near = [one for place in places for one in by_place.get(place, ())]
        holder = next((one for one in near if _is_about(one, case)), None)
        if holder is not None:
            found[case.case_id] = holder.case_id
    return found


def known_boxes(connection: sa.Connection) -> list[Known]:
    """Every case with an annotated or a reviewed box."""
    held = CASE_STATES.c.state.contains('"has_truth":true')
    decided = CASE_STATES.c.status.in_(("accepted", "fixed"))
    query = sa.select(*_COLUMNS, CASE_STATES.c.state).join_from(CASES, CASE_STATES)
    found = []
    for row in connection.execute(query.where(held | decided)).mappings():
        facts = dict(row)
        state = CaseState.model_validate_json(facts.pop("state"))
        at = state.current.at if state.current else ""
        found.append(Known(**facts, truth=state.truth, reviewed=state.reviewed_box, decided_at=at))
    return found


def _annotated(connection: sa.Connection, stems: Sequence[str]) -> list[Known]:
    """The cases of these videos that a truth was written to."""
    found = []
    for start in range(0, len(stems), _CHUNK):
        query = sa.select(*_COLUMNS).join_from(CASES, EVENTS).distinct()
        query = query.where(
            EVENTS.c.kind == "truth", CASES.c.video_stem.in_(stems[start : start + _CHUNK])
        )
        found += [Known(**row) for row in connection.execute(query).mappings()]
    return found


def _places(stem: str, requested_s: float | None, frame: int | None) -> list[tuple[str, int]]:
    """Where to look: a time's millisecond and its neighbours, or a frame, counted down from -1."""
    if requested_s is not None:
        middle = round(requested_s * 1000)
        return [(stem, max(0, middle + k)) for k in (-1, 0, 1)]
    return [(stem, -1 - (frame or 0))]


def _is_about(known: Known, case: Case) -> bool:
    bare = known.question == known.target
    return (
        _same_moment(known, case)
        and _same_video(known.video_sha256, case.video_sha256)
        and (known.question == case.question or (bare and _same_target(known.target, case.target)))
    )


def _same_moment(known: Known, case: Case) -> bool:
    if known.requested_s is None or case.requested_s is None:
        return known.requested_s is None and known.frame_index == case.frame_index
    return abs(known.requested_s - case.requested_s) <= SAME_TIME_S


def _same_video(one: str, other: str) -> bool:
    return not one or not other or one == other


def _same_target(one: str, other: str) -> bool:
    return bool(one) and one.casefold() == other.casefold()

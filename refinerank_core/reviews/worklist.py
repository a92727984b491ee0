"""The queue: filters, order and pages over the folded tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import Any, Literal, get_args

import sqlalchemy as sa

from refinerank_core.errors import StoreError
from refinerank_core.reviews.fold import CaseState, Status
from refinerank_core.reviews.records import Case, Judgement, Plain
from refinerank_core.reviews.schema import CASE_STATES, CASE_TAGS, CASES, EVENTS, OPINIONS

Sort = Literal["imported", "margin", "disagreement", "iou", "decided", "video", "shuffle"]
Range = tuple[float | None, float | None]

_PAUSE_S = 300.0  # a longer gap between two decisions is a break, not work


@dataclass(frozen=True)
class Wanted:
    """Which cases, in which order, which part of them.

    Attributes:
        status: any of these; empty: all.
        method, dataset, procedure: exactly this; "": any.
        tag: the current decision has it.
        reviewer: has decided the case. not_by: has not decided it (for second readings).
        assigned_to: exactly this person.
        margin, disagreement, iou: lowest and highest, each may be None.
        conflicts: only cases with an unsettled conflict.
        text: in the question or the video's name, in any case of letters.
        sort, descending, seed: order; a seed gives the same shuffle to everyone.
        offset, limit: the page.
    """

    status: tuple[Status, ...] = ()
    method: str = ""
    dataset: str = ""
    procedure: str = ""
    tag: str = ""
    reviewer: str = ""
    not_by: str = ""
    assigned_to: str = ""
    margin: Range = (None, None)
    disagreement: Range = (None, None)
    iou: Range = (None, None)
    conflicts: bool = False
    text: str = ""
    sort: Sort = "imported"
    descending: bool = False
    seed: int = 0
    offset: int = 0
    limit: int = 50


class Item(Plain):
    """One line of the queue."""

    case_id: str
    video_name: str
    question: str
    target: str
    requested_s: float | None
    frame_index: int | None
    dataset: str
    procedure: str
    method: str
    margin: float | None
    disagreement: float | None
    iou: float | None
    status: Status
    version: int
    reviewer: str
    assigned_to: str
    decided_at: str | None
    conflicts: int


class Page(Plain):
    """A part of the queue, and how many cases the filter lets through in all."""

    items: tuple[Item, ...]
    total: int


class Choices(Plain):
    """What occurs in the store, sorted: the values that filters can take."""

    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    procedures: tuple[str, ...]
    tags: tuple[str, ...]
    reviewers: tuple[str, ...]
    assignees: tuple[str, ...]


class Progress(Plain):
    """How far the work is.

    Attributes:
        total: cases. by_status: cases in each status.
        decisions: decisions in the record, of the reviewer if one was named.
        median_s: seconds per decision as the screen measured them; None without any.
        per_hour: decisions per hour of work, breaks of over five minutes left out; None for < 2.
    """

    total: int
    by_status: dict[str, int]
    decisions: int
    median_s: float | None
    per_hour: float | None


_JOINED = CASES.join(CASE_STATES, CASES.c.case_id == CASE_STATES.c.case_id)
_ITEM = [
    (CASES if name in CASES.c else CASE_STATES).c[name].label(name) for name in Item.model_fields
]
_ORDERS: dict[str, sa.ColumnElement[Any]] = {
    "imported": CASE_STATES.c.imported_seq,
    "margin": CASES.c.margin,
    "disagreement": CASES.c.disagreement,
    "iou": CASE_STATES.c.iou,
    "decided": CASE_STATES.c.decided_at,
    "video": CASES.c.video_stem,
}


def page(connection: sa.Connection, wanted: Wanted) -> Page:
    """One page of the queue."""
    if wanted.offset < 0 or not 1 <= wanted.limit <= 1000:
        raise StoreError("A page of the queue has 1 to 1000 cases.")
    rules = _rules(wanted)
    source = _JOINED if rules else CASE_STATES  # counting everything needs no join
    total = connection.execute(
        sa.select(sa.func.count()).select_from(source).where(*rules)
    ).scalar_one()
    query = sa.select(*_ITEM).select_from(_JOINED).where(*rules).order_by(*_order(wanted))
    rows = connection.execute(query.offset(wanted.offset).limit(wanted.limit)).mappings()
    return Page(items=tuple(Item(**row) for row in rows), total=total)


def ids(connection: sa.Connection, wanted: Wanted) -> list[str]:
    """Ids of all cases that the filter lets through, in its order."""
    query = sa.select(CASES.c.case_id).select_from(_JOINED).where(*_rules(wanted))
    return [str(one) for one in connection.execute(query.order_by(*_order(wanted))).scalars()]


def load(connection: sa.Connection, case_ids: Sequence[str]) -> list[tuple[Case, CaseState]]:
    """Cases and their states, in the order of the ids."""
    found: dict[str, tuple[Case, CaseState]] = {}
    for start in range(0, len(case_ids), 500):
        query = sa.select(CASES.c.case_id, CASES.c.content, CASE_STATES.c.state)
        query = query.select_from(_JOINED).where(CASES.c.case_id.in_(case_ids[start : start + 500]))
        for case_id, content, state in connection.execute(query):
            found[str(case_id)] = (
                Case.model_validate_json(content),
                CaseState.model_validate_json(state),
            )
    return [found[case_id] for case_id in case_ids if case_id in found]


def _rules(wanted: Wanted) -> list[sa.ColumnElement[bool]]:
    cases, states = CASES.c, CASE_STATES.c
    rules: list[sa.ColumnElement[bool]] = []
    if wanted.status:
        rules.append(states.status.in_(wanted.status))
    exact = (
        (cases.method, wanted.method),
        (cases.dataset, wanted.dataset),
        (cases.procedure, wanted.procedure),
        (states.assigned_to, wanted.assigned_to),
    )
    rules += [column == value for column, value in exact if value]
    ranges: tuple[tuple[sa.ColumnElement[Any], Range], ...] = (
        (cases.margin, wanted.margin),
        (cases.disagreement, wanted.disagreement),
        (states.iou, wanted.iou),
    )
    for column, (low, high) in ranges:
        rules += [column >= low] if low is not None else []
        rules += [column <= high] if high is not None else []
    if wanted.conflicts:
        rules.append(states.conflicts > 0)
    if wanted.tag:
        tagged = sa.select(CASE_TAGS.c.case_id).where(CASE_TAGS.c.tag == wanted.tag)
        rules.append(cases.case_id.in_(tagged))
    if wanted.reviewer:
        rules.append(cases.case_id.in_(_decided_by(wanted.reviewer)))
    if wanted.not_by:
        rules.append(cases.case_id.not_in(_decided_by(wanted.not_by)))
    if wanted.text:
        rules.append(
            cases.question.icontains(wanted.text, autoescape=True)
            | cases.video_name.icontains(wanted.text, autoescape=True)
        )
    return rules


def _decided_by(reviewer: str) -> sa.Select[tuple[str]]:
    return sa.select(OPINIONS.c.case_id).where(OPINIONS.c.reviewer == reviewer)


def _order(wanted: Wanted) -> list[sa.ColumnElement[Any]]:
    if wanted.sort not in get_args(Sort):
        raise ValueError(f"sort must be one of {get_args(Sort)}, got {wanted.sort!r}")
    if wanted.sort == "shuffle":  # ids are hashes: any stretch of their digits is a shuffle
        stretch = sa.func.substr(CASES.c.case_id, wanted.seed % 48 + 1, 16)
        return [stretch, CASES.c.case_id]
    column = _ORDERS[wanted.sort]
    order = column.desc() if wanted.descending else column.asc()
    if wanted.sort == "imported":
        return [order]
    # Cases without a value come last either way, on both databases.
    return [column.is_(None), order, CASE_STATES.c.imported_seq]


def choices(connection: sa.Connection) -> Choices:
    """What filters can be set to."""

    def values(column: sa.Column[Any]) -> tuple[str, ...]:
        query = sa.select(column).distinct().where(column != "").order_by(column)
        return tuple(connection.execute(query).scalars())

    return Choices(
        methods=values(CASES.c.method),
        datasets=values(CASES.c.dataset),
        procedures=values(CASES.c.procedure),
        tags=values(CASE_TAGS.c.tag),
        reviewers=values(OPINIONS.c.reviewer),
        assignees=values(CASE_STATES.c.assigned_to),
    )


def progress(connection: sa.Connection, reviewer: str) -> Progress:
    """How far the work is; the pace over the last 200 decisions."""
    statuses = sa.select(CASE_STATES.c.status, sa.func.count()).group_by(CASE_STATES.c.status)
    by_status = {str(status): int(count) for status, count in connection.execute(statuses)}
    mine = [EVENTS.c.kind == "decided"]
    mine += [EVENTS.c.reviewer == reviewer] if reviewer else []
    count = connection.execute(sa.select(sa.func.count()).where(*mine)).scalar_one()
    latest = sa.select(EVENTS.c.at, EVENTS.c.body).where(*mine).order_by(EVENTS.c.seq.desc())
    rows = connection.execute(latest.limit(200)).all()
    spent = [Judgement.model_validate_json(body).seconds for _, body in rows]
    spent = [seconds for seconds in spent if seconds > 0]
    return Progress(
        total=sum(by_status.values()),
        by_status=by_status,
        decisions=count,
        median_s=median(spent) if spent else None,
        per_hour=_per_hour([datetime.fromisoformat(str(at)) for at, _ in reversed(rows)]),
    )


def _per_hour(times: Sequence[datetime]) -> float | None:
    gaps = [(b - a).total_seconds() for a, b in pairwise(times)]
    worked = [gap for gap in gaps if 0 < gap <= _PAUSE_S]
    return 3600.0 * len(worked) / sum(worked) if worked else None

"""Check a store: the hash chain, what was imported, and the tables folded from the record."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from pydantic import ValidationError

from refinerank_core.reviews.chain import event_hash, genesis
from refinerank_core.reviews.fold import CaseState, Folding
from refinerank_core.reviews.ledger import database_id, event_of
from refinerank_core.reviews.records import Case, Event, Imported
from refinerank_core.reviews.schema import (
    CASE_STATES,
    CASE_TAGS,
    CASES,
    EVENTS,
    GROUNDINGS,
    OPINIONS,
)
from refinerank_core.reviews.standing import state_columns

_MOST_PROBLEMS = 20
_CHUNK = 2000


@dataclass(frozen=True)
class Report:
    """What a check found.

    Attributes:
        events, cases: how many there are.
        head: hash of the last event. Written down elsewhere, it later shows that nothing before
            it was changed or cut off.
        problems: sentences; empty when all is well.
    """

    events: int
    cases: int
    head: str
    problems: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """Nothing is wrong."""
        return not self.problems


def verify(connection: sa.Connection, problems: Sequence[str] = ()) -> Report:
    """Check everything in one consistent view.

    Args:
        connection: to read from.
        problems: what was found before.
    """
    found = list(problems)
    events, head = 0, genesis(database_id(connection))
    for row in _rows(connection):
        events += 1
        found += _broken_link(row, events, head)
        head = str(row["hash"])
    cases = connection.execute(sa.select(sa.func.count()).select_from(CASES)).scalar_one()
    if not found:  # a broken record has no fold to compare with
        found += _wrong_content(connection)
        found += _wrong_folds(connection)
    kept = found[:_MOST_PROBLEMS]
    if len(found) > len(kept):
        kept.append(f"and {len(found) - len(kept)} more")
    return Report(events=events, cases=cases, head=head, problems=tuple(kept))


def _rows(connection: sa.Connection) -> Iterator[Any]:
    """The record in order, chunk by chunk."""
    after = 0
    while True:
        query = sa.select(EVENTS).where(EVENTS.c.seq > after).order_by(EVENTS.c.seq).limit(_CHUNK)
        rows = connection.execute(query).mappings().all()
        if not rows:
            return
        yield from rows
        after = rows[-1]["seq"]


def _broken_link(row: Any, place: int, head: str) -> list[str]:
    if row["seq"] != place:
        return [f"event {place} is missing: {row['seq']} stands in its place"]
    if row["prev"] != head:
        return [f"event {place} does not follow the one before it"]
    if row["hash"] != event_hash(head, row):
        return [f"event {place} was changed after it was written"]
    return []


def _wrong_content(connection: sa.Connection) -> list[str]:
    problems = []
    bodies = {str(row[0]): str(row[1]) for row in connection.execute(sa.select(GROUNDINGS))}
    hashes = {name: hashlib.sha256(body.encode()).hexdigest() for name, body in bodies.items()}
    query = (
        sa.select(CASES.c.case_id, CASES.c.content, EVENTS.c.body)
        .join(EVENTS, EVENTS.c.case_id == CASES.c.case_id, isouter=True)
        .where((EVENTS.c.kind == "imported") | EVENTS.c.seq.is_(None))
    )
    for case_id, content, body in connection.execute(query):
        if body is None:
            problems.append(f"case {case_id[:12]} is in no event")
            continue
        sealed = Imported.model_validate_json(body)
        if sealed.content_sha256 != hashlib.sha256(content.encode()).hexdigest():
            problems.append(f"case {case_id[:12]} was changed after it was imported")
            continue
        grounding_id = Case.model_validate_json(content).grounding_id
        if sealed.grounding_sha256 and hashes.get(grounding_id) != sealed.grounding_sha256:
            problems.append(f"the grounding of case {case_id[:12]} was changed or is missing")
    return problems


def _wrong_folds(connection: sa.Connection) -> list[str]:
    """Cases whose ready-made state is not the fold of their events."""
    ready = {row["case_id"]: row for row in connection.execute(sa.select(CASE_STATES)).mappings()}
    contents = connection.execute(sa.select(CASES.c.case_id, CASES.c.content))
    cases = {str(row[0]): str(row[1]) for row in contents}
    tags = _grouped(connection, sa.select(CASE_TAGS.c.case_id, CASE_TAGS.c.tag))
    opinions = _grouped(connection, sa.select(OPINIONS.c.case_id, OPINIONS.c.opinion))
    problems = []
    for case_id, state in _folded(connection):
        row = ready.pop(case_id, None)
        wanted = state_columns(Case.model_validate_json(cases[case_id]), state)
        spoken = {one.model_dump_json() for one in state.opinions}
        same = (
            row is not None
            and all(row[name] == value for name, value in wanted.items())
            and tags.get(case_id, set()) == set(state.tags)
            and opinions.get(case_id, set()) == spoken
        )
        if not same:
            problems.append(f"the state of case {case_id[:12]} is not what its events say")
    return problems + [f"case {case_id[:12]} has a state without events" for case_id in ready]


def _grouped(connection: sa.Connection, query: sa.Select[tuple[Any, Any]]) -> dict[str, set[str]]:
    groups: dict[str, set[str]] = {}
    for case_id, value in connection.execute(query):
        groups.setdefault(case_id, set()).add(value)
    return groups


def _folded(connection: sa.Connection) -> Iterator[tuple[str, CaseState]]:
    """(case id, state) of every case in the record."""
    folding, current = Folding(), ""
    for event in _events_by_case(connection):
        if event.case_id != current and current:
            yield current, folding.state()
            folding = Folding()
        current = event.case_id
        folding.add(event)
    if current:
        yield current, folding.state()


def _events_by_case(connection: sa.Connection) -> Iterator[Event]:
    query = sa.select(EVENTS).order_by(EVENTS.c.case_id, EVENTS.c.seq)
    for row in connection.execution_options(yield_per=_CHUNK).execute(query).mappings():
        try:
            yield event_of(row)
        except ValidationError:
            continue  # written by other code; the chain has vouched for its bytes

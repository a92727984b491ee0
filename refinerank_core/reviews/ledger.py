"""Append events and keep the folded tables in step, inside the caller's transaction."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa

from refinerank_core.boxes import iou
from refinerank_core.errors import StoreError
from refinerank_core.reviews.chain import canonical_json, event_hash, genesis
from refinerank_core.reviews.conflicts import ConflictError
from refinerank_core.reviews.fold import CaseState, fold
from refinerank_core.reviews.records import (
    BODIES,
    JUDGING,
    Action,
    Body,
    Case,
    Conflicted,
    Event,
    Plain,
    Step,
)
from refinerank_core.reviews.schema import CASE_STATES, CASE_TAGS, CASES, EVENTS, META, OPINIONS

_NO_CASE = "No case has this id. Look it up in the queue again."


class Receipt(Plain):
    """The confirmation of a write.

    Attributes:
        event: as it stands in the record; event.seq is its number.
        state: of the case after it.
        replayed: the action had been written before; nothing was written now.
    """

    event: Event
    state: CaseState
    replayed: bool = False


def database_id(connection: sa.Connection) -> str:
    """The identity that the hash chain of this database starts from."""
    query = sa.select(META.c.value).where(META.c.name == "database_id")
    return str(connection.execute(query).scalar_one())


def event_of(row: sa.RowMapping) -> Event:
    """A row of the record as an event."""
    body = BODIES[row["kind"]].model_validate(json.loads(row["body"]))
    fields: dict[str, Any] = {**row, "body": body}
    return Event(**fields)


def history(connection: sa.Connection, case_id: str) -> list[Event]:
    """All events of one case in their order."""
    query = sa.select(EVENTS).where(EVENTS.c.case_id == case_id).order_by(EVENTS.c.seq)
    return [event_of(row) for row in connection.execute(query).mappings()]


def case_of(connection: sa.Connection, case_id: str) -> Case:
    """The case with this id. Raises StoreError when there is none."""
    content = connection.execute(
        sa.select(CASES.c.content).where(CASES.c.case_id == case_id)
    ).scalar()
    if content is None:
        raise StoreError(_NO_CASE)
    return Case.model_validate_json(content)


def state_of(connection: sa.Connection, case_id: str) -> CaseState:
    """The ready-made state of a case."""
    query = sa.select(CASE_STATES.c.state).where(CASE_STATES.c.case_id == case_id)
    return CaseState.model_validate_json(connection.execute(query).scalar_one())


class Chain:
    """The end of the record, to append to."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        newest = sa.select(EVENTS.c.seq, EVENTS.c.hash).order_by(EVENTS.c.seq.desc()).limit(1)
        found = connection.execute(newest).first()
        self._seq = found.seq if found else 0
        self._head = found.hash if found else genesis(database_id(connection))

    def append(
        self,
        *,
        client_id: str,
        at: str,
        kind: str,
        case_id: str,
        reviewer: str,
        body: Body,
        based_on: int | None = None,
        version: int | None = None,
    ) -> Event:
        """Seal and write one event."""
        row: dict[str, Any] = {
            "seq": self._seq + 1,
            "client_id": client_id,
            "at": at,
            "kind": kind,
            "case_id": case_id,
            "reviewer": reviewer,
            "based_on": based_on,
            "version": version,
            "body": canonical_json(body.model_dump(mode="json")),
            "prev": self._head,
        }
        row["hash"] = event_hash(self._head, row)
        self._connection.execute(sa.insert(EVENTS), row)
        self._seq, self._head = row["seq"], row["hash"]
        return Event(**{**row, "body": body})


class Writer:
    """Writes actions of people, each checked against the case as it stands by then."""

    def __init__(self, connection: sa.Connection, now: Callable[[], str]) -> None:
        self._connection = connection
        self._chain = Chain(connection)
        self._now = now

    def write(self, action: Action) -> Receipt | ConflictError:
        """Write one action, or tell why it has no effect."""
        query = sa.select(EVENTS).where(EVENTS.c.client_id == action.client_id)
        known = self._connection.execute(query).mappings().first()
        if known is not None:
            return self._replay(action, event_of(known))
        case = case_of(self._connection, action.case_id)
        events = history(self._connection, action.case_id)
        state = fold(events)
        judging = action.kind in JUDGING
        if judging and action.based_on != state.version:
            return self._conflict(action, case, events)
        event = self._chain.append(
            client_id=action.client_id,
            at=self._now(),
            kind=action.kind,
            case_id=action.case_id,
            reviewer=action.reviewer,
            body=_resolved(action, events, state),
            based_on=action.based_on if judging else None,
            version=state.version + 1 if judging else None,
        )
        state = fold([*events, event])
        keep_state(self._connection, case, state)
        return Receipt(event=event, state=state)

    def _replay(self, action: Action, event: Event) -> Receipt | ConflictError:
        body = event.body
        kind = body.kind if isinstance(body, Conflicted) else event.kind
        if (kind, event.case_id, event.reviewer) != (
            action.kind,
            action.case_id,
            action.reviewer,
        ):
            raise StoreError("Not saved: this action's id belongs to another one. Do it again.")
        events = history(self._connection, action.case_id)
        state = fold(events)
        if not isinstance(body, Conflicted):
            return Receipt(event=event, state=state, replayed=True)
        theirs = tuple(one for one in events if one.seq in body.against)
        return ConflictError(action, event.seq, theirs, state)

    def _conflict(self, action: Action, case: Case, events: Sequence[Event]) -> ConflictError:
        """Keep the late attempt without effect, so that not even it is lost."""
        theirs = tuple(
            one for one in events if one.version is not None and one.version > action.based_on
        )
        event = self._chain.append(
            client_id=action.client_id,
            at=self._now(),
            kind="conflicted",
            case_id=action.case_id,
            reviewer=action.reviewer,
            based_on=action.based_on,
            body=Conflicted(
                kind=action.kind,
                attempt=action.body.model_dump(mode="json"),
                against=tuple(one.seq for one in theirs),
            ),
        )
        state = fold([*events, event])
        keep_state(self._connection, case, state)
        return ConflictError(action, event.seq, theirs, state)


def _resolved(action: Action, events: Sequence[Event], state: CaseState) -> Body:
    """The body to store; an undo or redo gets the number of the decision that it is about."""
    if not isinstance(action.body, Step):
        return action.body
    if action.kind == "settled":
        if action.body.target not in state.open_conflicts:
            raise StoreError("This conflict is settled already. Open the case again.")
        return action.body
    mine = {one.seq for one in events if one.reviewer == action.reviewer}
    pile = state.undoable if action.kind == "undone" else state.redoable
    target = action.body.target or next((seq for seq in reversed(pile) if seq in mine), 0)
    if target not in pile or target not in mine:
        verb = "undo" if action.kind == "undone" else "redo"
        raise StoreError(f"There is no decision of yours to {verb} in this case.")
    return Step(target=target)


def keep_state(connection: sa.Connection, case: Case, state: CaseState) -> None:
    """Write the folded state of a case into the tables that the queue reads."""
    case_id = case.case_id
    connection.execute(
        sa.update(CASE_STATES).where(CASE_STATES.c.case_id == case_id), state_columns(case, state)
    )
    connection.execute(sa.delete(CASE_TAGS).where(CASE_TAGS.c.case_id == case_id))
    connection.execute(sa.delete(OPINIONS).where(OPINIONS.c.case_id == case_id))
    tags = [{"case_id": case_id, "tag": tag} for tag in sorted(set(state.tags))]
    if tags:
        connection.execute(sa.insert(CASE_TAGS), tags)
    opinions = [
        {
            "case_id": case_id,
            "reviewer": one.reviewer,
            "seq": one.seq,
            "decision": one.judgement.decision,
            "opinion": one.model_dump_json(),
        }
        for one in state.opinions
    ]
    if opinions:
        connection.execute(sa.insert(OPINIONS), opinions)


def state_columns(case: Case, state: CaseState) -> dict[str, Any]:
    """What the queue filters and sorts by."""
    current, overlap = state.current, None
    if state.truth and case.answers:
        box = case.answers[0].box
        overlap = float(iou(np.array(box), np.array(state.truth))) if box else 0.0
    return {
        "version": state.version,
        "last_seq": state.last_seq,
        "status": state.status,
        "reviewer": current.reviewer if current else "",
        "assigned_to": state.assigned_to,
        "decided_at": current.at if current else None,
        "conflicts": len(state.open_conflicts),
        "iou": overlap,
        "state": state.model_dump_json(),
    }


def open_state(connection: sa.Connection, case: Case, imported_seq: int) -> None:
    """Give a case its first row in the tables that the queue reads."""
    columns = {"case_id": case.case_id, "imported_seq": imported_seq}
    connection.execute(
        sa.insert(CASE_STATES), {**columns, **state_columns(case, CaseState(last_seq=imported_seq))}
    )


def rebuild(connection: sa.Connection) -> int:
    """Fold every case anew, from the record alone."""
    for table in (CASE_STATES, CASE_TAGS, OPINIONS):
        connection.execute(sa.delete(table))
    ids = connection.execute(sa.select(CASES.c.case_id)).scalars().all()
    for case_id in ids:
        case, events = case_of(connection, case_id), history(connection, case_id)
        open_state(connection, case, events[0].seq)
        keep_state(connection, case, fold(events))
    return len(ids)

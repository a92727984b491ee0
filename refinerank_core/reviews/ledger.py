"""Append events and keep the folded tables in step, inside the caller's transaction."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa

from refinerank_core.errors import StoreError
from refinerank_core.reviews.chain import canonical_json, event_hash, genesis
from refinerank_core.reviews.conflicts import ConflictError
from refinerank_core.reviews.fold import CaseState, Folding
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
from refinerank_core.reviews.schema import (
    CASE_STATES,
    CASE_TAGS,
    CASES,
    EVENTS,
    META,
    OPINIONS,
)
from refinerank_core.reviews.standing import keep_states, open_states

# Statements are built once: for a single decision, building them costs more than running them.
_CASE_ID: sa.BindParameter[str] = sa.bindparam("about")
_HISTORY = sa.select(EVENTS).where(EVENTS.c.case_id == _CASE_ID).order_by(EVENTS.c.seq)
_CONTENT = sa.select(CASES.c.content).where(CASES.c.case_id == _CASE_ID)
_STATE = sa.select(CASE_STATES.c.state).where(CASE_STATES.c.case_id == _CASE_ID)
_SENT_BEFORE = sa.select(EVENTS).where(
    EVENTS.c.client_id.in_(sa.bindparam("client_ids", expanding=True))
)
_NEWEST = sa.select(EVENTS.c.seq, EVENTS.c.hash).order_by(EVENTS.c.seq.desc()).limit(1)
_APPEND = sa.insert(EVENTS)
_CHUNK = 500


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
    return [event_of(row) for row in connection.execute(_HISTORY, {"about": case_id}).mappings()]


def case_of(connection: sa.Connection, case_id: str) -> Case:
    """The case with this id. Raises StoreError when there is none."""
    content = connection.execute(_CONTENT, {"about": case_id}).scalar()
    if content is None:
        raise StoreError("No case has this id. Look it up in the queue again.")
    return Case.model_validate_json(content)


def state_of(connection: sa.Connection, case_id: str) -> CaseState:
    """The ready-made state of a case."""
    found = connection.execute(_STATE, {"about": case_id}).scalar_one()
    return CaseState.model_validate_json(found)


class Chain:
    """The end of the record, to append to; `flush` writes what was appended."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        found = connection.execute(_NEWEST).first()
        self._seq = found.seq if found else 0
        self._head = found.hash if found else genesis(database_id(connection))
        self._rows: list[dict[str, Any]] = []

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
        """Seal one event."""
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
        self._rows.append(row)
        self._seq, self._head = row["seq"], row["hash"]
        return Event(**{**row, "body": body})

    def flush(self) -> None:
        """Write the sealed events."""
        if self._rows:
            self._connection.execute(_APPEND, self._rows)
            self._rows = []


class OpenCase:
    """A case with its events, while something is written to it."""

    def __init__(self, connection: sa.Connection, case_id: str) -> None:
        self.case = case_of(connection, case_id)
        self.events: list[Event] = []
        self._folding = Folding()
        for event in history(connection, case_id):
            self.take(event)

    def take(self, event: Event) -> None:
        """Add the next event."""
        self.events.append(event)
        self._folding.add(event)

    @property
    def state(self) -> CaseState:
        """Where the case stands after its events so far."""
        return self._folding.state()


class Writer:
    """Writes actions of people, each checked against the case as it stands by then."""

    def __init__(
        self, connection: sa.Connection, now: Callable[[], str], chain: Chain | None = None
    ) -> None:
        self._connection = connection
        self._chain = chain or Chain(connection)
        self._now = now
        self._open: dict[str, OpenCase] = {}
        self._sent: dict[str, Event] = {}

    def write_all(self, actions: Sequence[Action]) -> list[Receipt | ConflictError]:
        """Write actions in their order; a conflict is an outcome."""
        names = [action.client_id for action in actions]
        for start in range(0, len(names), _CHUNK):
            chunk = {"client_ids": names[start : start + _CHUNK]}
            for row in self._connection.execute(_SENT_BEFORE, chunk).mappings():
                self._sent[row["client_id"]] = event_of(row)
        outcomes = [self._write(action) for action in actions]
        self._chain.flush()
        keep_states(self._connection, [(one.case, one.state) for one in self._open.values()])
        return outcomes

    def open(self, case_id: str) -> OpenCase:
        """The case as it stands after what was written so far."""
        if case_id not in self._open:
            self._open[case_id] = OpenCase(self._connection, case_id)
        return self._open[case_id]

    def _write(self, action: Action) -> Receipt | ConflictError:
        before = self._sent.get(action.client_id)
        opened = self.open(action.case_id)
        if before is not None:
            return _replay(action, before, opened)
        state = opened.state
        judging = action.kind in JUDGING
        if judging and action.based_on != state.version:
            return self._conflict(action, opened)
        event = self._append(
            action,
            kind=action.kind,
            body=_resolved(action, opened.events, state),
            based_on=action.based_on if judging else None,
            version=state.version + 1 if judging else None,
        )
        return Receipt(event=event, state=opened.state)

    def _conflict(self, action: Action, opened: OpenCase) -> ConflictError:
        """Keep the late attempt without effect, so that not even it is lost."""
        theirs = tuple(
            one
            for one in opened.events
            if one.version is not None and one.version > action.based_on
        )
        body = Conflicted(
            kind=action.kind,
            attempt=action.body.model_dump(mode="json"),
            against=tuple(one.seq for one in theirs),
        )
        event = self._append(
            action, kind="conflicted", body=body, based_on=action.based_on, version=None
        )
        return ConflictError(action, event.seq, theirs, opened.state)

    def _append(
        self, action: Action, *, kind: str, body: Body, based_on: int | None, version: int | None
    ) -> Event:
        event = self._chain.append(
            client_id=action.client_id,
            at=self._now(),
            kind=kind,
            case_id=action.case_id,
            reviewer=action.reviewer,
            body=body,
            based_on=based_on,
            version=version,
        )
        self._sent[action.client_id] = event
        self.open(action.case_id).take(event)
        return event


def _replay(action: Action, event: Event, opened: OpenCase) -> Receipt | ConflictError:
    """The outcome of an action that was written before."""
    body = event.body
    kind = body.kind if isinstance(body, Conflicted) else event.kind
    sent = (action.kind, action.case_id, action.reviewer)
    if (kind, event.case_id, event.reviewer) != sent:
        raise StoreError("Not saved: this action's id belongs to another one. Do it again.")
    if not isinstance(body, Conflicted):
        return Receipt(event=event, state=opened.state, replayed=True)
    theirs = tuple(one for one in opened.events if one.seq in body.against)
    return ConflictError(action, event.seq, theirs, opened.state)


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


def rebuild(connection: sa.Connection) -> int:
    """Fold every case anew, from the record alone."""
    for table in (CASE_STATES, CASE_TAGS, OPINIONS):
        connection.execute(sa.delete(table))
    ids = connection.execute(sa.select(CASES.c.case_id)).scalars().all()
    for start in range(0, len(ids), 500):
        opened = [OpenCase(connection, case_id) for case_id in ids[start : start + 500]]
        open_states(connection, [(one.case, one.events[0].seq) for one in opened])
        keep_states(connection, [(one.case, one.state) for one in opened])
    return len(ids)

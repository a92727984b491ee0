"""The review store: the one door through which reviews are written and read."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import sqlalchemy as sa

from refinerank_core.errors import StoreError
from refinerank_core.grounding import Grounding
from refinerank_core.reviews import ledger, worklist
from refinerank_core.reviews.conflicts import ConflictError
from refinerank_core.reviews.database import BUSY_TIMEOUT_S, Database
from refinerank_core.reviews.fold import CaseState, fold
from refinerank_core.reviews.intake import Added, add_cases, add_truths
from refinerank_core.reviews.kin import Known, known_boxes
from refinerank_core.reviews.ledger import Receipt, event_of
from refinerank_core.reviews.records import Action, Case, Event, Plain, Truth
from refinerank_core.reviews.schema import CASES, EVENTS, GROUNDINGS
from refinerank_core.reviews.verify import Report, verify

Outcome = Receipt | ConflictError
_PAGE = 2000


class CaseView(Plain):
    """A case with where it stands."""

    case: Case
    state: CaseState


def utc_now() -> datetime:
    """The clock of the store."""
    return datetime.now(UTC)


class Store:
    """Reviews in one database. Share one Store between threads; each process opens its own."""

    def __init__(
        self,
        place: str | Path,
        *,
        timeout_s: float = BUSY_TIMEOUT_S,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        """Open a database, making or migrating it where needed.

        Args:
            place: a file's path, or a URL (sqlite, postgresql).
            timeout_s: how long to wait for another writer.
            clock: gives the time of each event, in UTC.

        Raises:
            StoreError: it cannot be opened.
        """
        self._database = Database(place, timeout_s=timeout_s)
        self._clock = clock

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def name(self) -> str:
        """File or database name, without folders."""
        return self._database.name

    def close(self) -> None:
        """Close all connections; what was confirmed is on disk already."""
        self._database.close()

    # Writing. Each call is one transaction: confirmed whole when it returns, absent when it raises.

    def add(
        self,
        cases: Sequence[Case],
        *,
        by: str,
        grounding: Grounding | None = None,
        truths: Sequence[Truth | None] = (),
    ) -> Added:
        """Put cases into the queue; one that is there already stays as it is.

        A new case takes over the truth of a known one that asks the same of the same picture.

        Args:
            cases: N cases.
            by: who imports them.
            grounding: the grounding that all N come from, kept whole.
            truths: N annotated boxes (or None), or nothing.

        Raises:
            StoreError: nothing was written.
        """
        with self._database.writing() as connection:
            return add_cases(
                connection, cases, by=by, at=self._now(), grounding=grounding, truths=truths
            )

    def add_truths(self, cases: Sequence[Case], truths: Sequence[Truth], *, by: str) -> Added:
        """Give annotated boxes to the cases that they are about.

        A case is found by video, question (or target) and time (or frame), whatever answered it;
        where there is none, a case without answers is made.

        Args:
            cases: N cases without answers that say what each truth is about.
            truths: N annotated boxes.
            by: who imports them.

        Raises:
            StoreError: nothing was written.
        """
        with self._database.writing() as connection:
            return add_truths(connection, cases, truths, by=by, at=self._now())

    def record(self, action: Action) -> Receipt:
        """Write one action.

        Returns:
            The event as it stands in the record, and the case's new state. Sent again with the
            same client_id, the first event comes back and nothing is written.

        Raises:
            ConflictError: the case has moved on since the version that the action was based on.
            StoreError: not written; try again with the same action.
        """
        outcome = self.record_all([action])[0]
        if isinstance(outcome, ConflictError):
            raise outcome
        return outcome

    def record_all(self, actions: Sequence[Action]) -> list[Outcome]:
        """Write actions in their order, in one transaction; a conflict is an outcome, not raised.

        Raises:
            StoreError: none of them was written.
        """
        with self._database.writing() as connection:
            return ledger.Writer(connection, self._now).write_all(actions)

    def rebuild(self) -> int:
        """Fold all events anew into the tables that the queue reads; returns the cases."""
        with self._database.writing() as connection:
            return ledger.rebuild(connection)

    # Reading.

    def queue(self, wanted: worklist.Wanted) -> worklist.Page:
        """One page of the cases that a filter lets through."""
        with self._database.reading() as connection:
            return worklist.page(connection, wanted)

    def choices(self) -> worklist.Choices:
        """What the filters can be set to."""
        with self._database.reading() as connection:
            return worklist.choices(connection)

    def progress(self, reviewer: str = "") -> worklist.Progress:
        """How far the work is, and the pace of one reviewer (or of all)."""
        with self._database.reading() as connection:
            return worklist.progress(connection, reviewer)

    def case(self, case_id: str) -> CaseView:
        """One case and its state. Raises StoreError when there is no such case."""
        with self._database.reading() as connection:
            return CaseView(
                case=ledger.case_of(connection, case_id),
                state=ledger.state_of(connection, case_id),
            )

    def views(self, wanted: worklist.Wanted) -> Iterator[CaseView]:
        """Every case that a filter lets through, in its order, whatever the page size."""
        for chunk in self._chunks(wanted):
            yield from chunk

    def _chunks(self, wanted: worklist.Wanted) -> Iterator[list[CaseView]]:
        with self._database.reading() as connection:
            ids = worklist.ids(connection, wanted)
        for start in range(0, len(ids), _PAGE):
            with self._database.reading() as connection:
                yield [
                    CaseView(case=case, state=state)
                    for case, state in worklist.load(connection, ids[start : start + _PAGE])
                ]

    def grounding(self, case_id: str) -> tuple[Grounding, int] | None:
        """The grounding that a case comes from and its place there; None: it has none."""
        with self._database.reading() as connection:
            case = ledger.case_of(connection, case_id)
            if case.time_index is None:
                return None
            body = connection.execute(
                sa.select(GROUNDINGS.c.body).where(GROUNDINGS.c.grounding_id == case.grounding_id)
            ).scalar_one()
        return Grounding.from_json(body), case.time_index

    def known_boxes(self) -> list[Known]:
        """Every case with an annotated or a reviewed box."""
        with self._database.reading() as connection:
            return known_boxes(connection)

    def history(self, case_id: str) -> list[Event]:
        """All events of a case, oldest first, conflicting attempts too."""
        with self._database.reading() as connection:
            return ledger.history(connection, case_id)

    def folded(self, case_id: str) -> CaseState:
        """The state of a case folded from its events (what `case` reads ready-made)."""
        return fold(self.history(case_id))

    def events(self, after: int = 0, limit: int = 1000) -> list[Event]:
        """The record itself, from the event after a number on."""
        query = sa.select(EVENTS).where(EVENTS.c.seq > after).order_by(EVENTS.c.seq).limit(limit)
        with self._database.reading() as connection:
            return [event_of(row) for row in connection.execute(query).mappings()]

    def counts(self) -> Counter[str]:
        """How many events of each kind the record holds."""
        query = sa.select(EVENTS.c.kind, sa.func.count()).group_by(EVENTS.c.kind)
        with self._database.reading() as connection:
            return Counter({str(kind): int(count) for kind, count in connection.execute(query)})

    def confirmed(self, client_ids: Iterable[str]) -> dict[str, int]:
        """Which of these client ids are written, and as which event."""
        wanted = list(client_ids)
        found: dict[str, int] = {}
        with self._database.reading() as connection:
            for start in range(0, len(wanted), 500):
                query = sa.select(EVENTS.c.client_id, EVENTS.c.seq).where(
                    EVENTS.c.client_id.in_(wanted[start : start + 500])
                )
                found.update((str(name), int(seq)) for name, seq in connection.execute(query))
        return found

    def find(self, start_of_id: str) -> str:
        """The id of the one case whose id starts so. Raises StoreError for none or several."""
        query = sa.select(CASES.c.case_id).where(
            CASES.c.case_id.startswith(start_of_id, autoescape=True)
        )
        with self._database.reading() as connection:
            ids = connection.execute(query.limit(2)).scalars().all()
        if len(ids) != 1:
            raise StoreError("No case has this id. Look it up in the queue again.")
        return str(ids[0])

    def verify(self) -> Report:
        """Check the hash chain, the imported content and the folded tables."""
        problems = self._database.integrity()
        with self._database.reading() as connection:
            return verify(connection, problems)

    def limit_pages(self) -> None:
        """For tests of a full disk: let an SQLite file hardly grow any more."""
        self._database.limit_pages()

    def _now(self) -> str:
        moment = self._clock().astimezone(UTC)
        return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")

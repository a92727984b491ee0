"""The current state of a case: nothing but a fold over its events."""

from collections.abc import Iterable
from typing import Literal

from refinerank_core.grounding import Box
from refinerank_core.reviews.records import (
    Assignment,
    Comment,
    Event,
    Judgement,
    Plain,
    Step,
    Truth,
)

Status = Literal["new", "accepted", "rejected", "fixed", "unsure", "skipped"]
STATUS_OF: dict[str, Status] = {
    "accept": "accepted",
    "reject": "rejected",
    "fix": "fixed",
    "unsure": "unsure",
    "skip": "skipped",
}


class Opinion(Plain):
    """The latest decision of one reviewer that was not undone."""

    seq: int
    at: str
    reviewer: str
    judgement: Judgement


class Remark(Plain):
    """A comment with its author and time."""

    seq: int
    at: str
    reviewer: str
    comment: Comment


class CaseState(Plain):
    """Where a case stands.

    Attributes:
        version: counts judgements (decisions, undos, redos); an edit names the one it saw.
        last_seq: number of the last event folded in.
        current: the last decision that was not undone, by whomever; None while new.
        opinions: one for each reviewer, oldest first.
        undoable, redoable: decisions that can be taken back, or put back, last one last.
        truth: the annotated box; has_truth tells "not in the frame" from "not annotated".
        open_conflicts: numbers of conflicting attempts that nobody has settled yet.
        seconds: time that all decisions took, the undone ones too.
    """

    version: int = 0
    last_seq: int = 0
    status: Status = "new"
    current: Opinion | None = None
    opinions: tuple[Opinion, ...] = ()
    undoable: tuple[int, ...] = ()
    redoable: tuple[int, ...] = ()
    remarks: tuple[Remark, ...] = ()
    assigned_to: str = ""
    truth: Box | None = None
    has_truth: bool = False
    open_conflicts: tuple[int, ...] = ()
    seconds: float = 0.0

    @property
    def reviewed_box(self) -> Box | None:
        """The box that the current decision stands for."""
        return self.current.judgement.reviewed_box if self.current else None

    @property
    def tags(self) -> tuple[str, ...]:
        """Tags of the current decision."""
        return self.current.judgement.tags if self.current else ()


class Folding:
    """A fold that takes events one by one."""

    def __init__(self) -> None:
        self._standing: dict[int, Opinion] = {}
        self._undone: dict[int, Opinion] = {}
        self._remarks: list[Remark] = []
        self._conflicts: list[int] = []
        self._version = 0
        self._last_seq = 0
        self._assigned_to = ""
        self._truth: Truth | None = None
        self._seconds = 0.0

    def add(self, event: Event) -> None:
        """Take the next event of the case."""
        self._last_seq = event.seq
        if event.version is not None:
            self._version = event.version
        body = event.body
        if event.kind == "conflicted":
            self._conflicts.append(event.seq)
        elif isinstance(body, Judgement):
            self._standing[event.seq] = _opinion(event, body)
            self._undone.clear()
            self._seconds += body.seconds
            self._settle(body.resolves)
        elif event.kind == "settled" and isinstance(body, Step):
            self._settle(body.target)
        elif isinstance(body, Step):
            self._step(event.kind, body.target)
        elif isinstance(body, Comment):
            self._remarks.append(
                Remark(seq=event.seq, at=event.at, reviewer=event.reviewer, comment=body)
            )
        elif isinstance(body, Assignment):
            self._assigned_to = body.to
        elif isinstance(body, Truth):
            self._truth = body

    def _step(self, kind: str, target: int) -> None:
        source, goal = (
            (self._standing, self._undone) if kind == "undone" else (self._undone, self._standing)
        )
        if target in source:
            goal[target] = source.pop(target)

    def _settle(self, conflict: int | None) -> None:
        self._conflicts = [seq for seq in self._conflicts if seq != conflict]

    def state(self) -> CaseState:
        """The state after the events so far."""
        standing = [self._standing[seq] for seq in sorted(self._standing)]
        latest = {one.reviewer: one for one in standing}
        current = standing[-1] if standing else None
        return CaseState(
            version=self._version,
            last_seq=self._last_seq,
            status=STATUS_OF[current.judgement.decision] if current else "new",
            current=current,
            opinions=tuple(sorted(latest.values(), key=lambda one: one.seq)),
            undoable=tuple(sorted(self._standing)),
            redoable=tuple(self._undone),
            remarks=tuple(self._remarks),
            assigned_to=self._assigned_to,
            truth=self._truth.box if self._truth else None,
            has_truth=self._truth is not None,
            open_conflicts=tuple(self._conflicts),
            seconds=self._seconds,
        )


def _opinion(event: Event, judgement: Judgement) -> Opinion:
    return Opinion(seq=event.seq, at=event.at, reviewer=event.reviewer, judgement=judgement)


def fold(events: Iterable[Event]) -> CaseState:
    """Fold the events of one case, in order of seq, into its state."""
    folding = Folding()
    for event in events:
        folding.add(event)
    return folding.state()

"""Two people, one case: what the second one is told."""

from refinerank_core.errors import StoreError
from refinerank_core.reviews.fold import CaseState
from refinerank_core.reviews.records import Action, Event, Judgement


class ConflictError(StoreError):
    """An edit was based on an older version of its case; nothing was overwritten.

    Attributes:
        yours: the action that came too late. It is kept in the history without effect.
        kept_as: number of the event that keeps it; a decision that settles the matter names it in
            `resolves`, and an action "settled" leaves the other decision standing.
        theirs: what others (or you, elsewhere) did since the version you saw, oldest first.
        state: where the case stands now; base the next edit on state.version.
    """

    def __init__(
        self, yours: Action, kept_as: int, theirs: tuple[Event, ...], state: CaseState
    ) -> None:
        self.yours = yours
        self.kept_as = kept_as
        self.theirs = theirs
        self.state = state
        latest = theirs[-1] if theirs else None
        by = f"{latest.reviewer} at {latest.at[11:16]} UTC" if latest else "someone else"
        now = _decision(latest.body) if latest else "changed it"
        super().__init__(
            f"{by[0].upper()}{by[1:]} {now} while you worked on this case. Your "
            f"{_own(yours)} is kept in its history; choose which one shall hold."
        )


def _decision(body: object) -> str:
    if isinstance(body, Judgement):
        words = {"accept": "accepted", "reject": "rejected", "fix": "corrected the box"}
        return words.get(body.decision, f"chose {body.decision}")
    return "took a decision back or put one back"


def _own(action: Action) -> str:
    return action.body.decision if isinstance(action.body, Judgement) else "step"

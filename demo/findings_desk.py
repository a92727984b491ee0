"""What the Failures tab asks of the server: verdicts, their boxes, agreement."""

from __future__ import annotations

from threading import Lock
from typing import Any

from demo import findings_facts as facts
from demo.events import read_ask
from demo.frames import small, thumb
from demo.review_asks import CaseAsk, FindingsAsk
from demo.review_services import Reviews
from demo.shelf import Shelf
from refinerank_core.agreement import disagreements, pairs, with_methods
from refinerank_core.reviews.inspection import (
    Evidence,
    evidence,
    method_views,
    reviewer_views,
)
from refinerank_core.reviews.sources import METHODS
from refinerank_core.reviews.worklist import Wanted

Facts = dict[str, Any]


class FindingsDesk:
    """The functions that the browser calls by their names."""

    def __init__(self, reviews: Reviews, shelf: Shelf) -> None:
        self._store = reviews.store
        self._pictures = reviews.pictures
        self._shelf = shelf
        self._lock = Lock()
        self._read: tuple[int, list[Evidence]] = (-1, [])

    def everything(self) -> list[Evidence]:
        """Verdicts on all methods and cases; worked out anew when the record has grown."""
        events = self._store.counts().total()
        with self._lock:
            if self._read[0] != events:
                found = evidence(self._store, Wanted(), methods=self._methods())
                self._read = (events, list(found))
            return self._read[1]

    def chosen(self, ask: FindingsAsk) -> tuple[list[Evidence], str]:
        """The verdicts on one method, and which one: the one asked for, else the first."""
        everything = self.everything()
        names = facts.methods_of(everything)
        method = ask.method if ask.method in names else (names[0] if names else "")
        return [one for one in everything if one.judged.method == method], method

    def findings(self, sent: Any) -> Facts:
        """Counts, the decomposition and one page of the gallery."""
        ask = read_ask(FindingsAsk, sent)
        mine, method = self.chosen(ask)
        shown = facts.filtered(mine, ask)
        reply = facts.findings_facts(self.everything(), mine, shown, method, ask)
        if ask.before and ask.after and ask.before != ask.after:
            reply["comparison"] = facts.comparison_facts(self.everything(), ask)
        return reply

    def thumb(self, sent: Any) -> Facts:
        """The small picture of a case, None where its video is not here."""
        ask = read_ask(CaseAsk, sent)
        case = self._store.case(ask.case_id).case
        clip = self._shelf.find(case, ask.clips)
        if clip is None and self._pictures is not None and self._pictures.has(ask.case_id):
            return {"src": small(self._pictures.read(ask.case_id))}
        if clip is None or case.frame_index is None:
            return {"src": None}
        return {"src": thumb(clip, case.frame_index)}

    def agreement(self, sent: Any) -> Facts:
        """Reviewers with one another and with each method; where they differ most."""
        del sent  # there is nothing to choose
        views = list(self._store.views(Wanted()))
        reviews = list(reviewer_views(views))
        return facts.agreement_facts(
            pairs(reviews),
            with_methods(reviews, method_views(views)),
            disagreements(reviews),
            {one.case.case_id: one.case for one in views},
        )

    def _methods(self) -> list[str]:
        """Every method that answered anything: the three, then those of imported predictions."""
        return list(dict.fromkeys([*METHODS, *self._store.choices().methods]))

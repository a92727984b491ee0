"""What the Review tab asks of the server: one message, one answer, each checked."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from demo.events import FrameAsk, read_ask
from demo.frames import FrameImages, data_url
from demo.identity import IdentityError
from demo.review_asks import (
    ActAsk,
    CandidatesAsk,
    CaseAsk,
    LoginAsk,
    OnlyCase,
    QueueAsk,
    SentAction,
    SuggestAsk,
)
from demo.review_facts import (
    candidates_facts,
    case_facts,
    conflict_facts,
    keys_of,
    queue_facts,
    receipt_facts,
)
from demo.review_services import Reviews
from demo.shelf import Shelf
from refinerank_core.errors import RefineRankError, StoreError
from refinerank_core.reviews.conflicts import ConflictError
from refinerank_core.reviews.inspection import suggested_tags
from refinerank_core.reviews.records import Action
from refinerank_core.reviews.store import Outcome

Facts = dict[str, Any]


class ReviewDesk:
    """The functions that the browser calls by their names."""

    def __init__(self, reviews: Reviews, shelf: Shelf, frames: FrameImages) -> None:
        self._reviews = reviews
        self._store = reviews.store
        self._shelf = shelf
        self._frames = frames

    def frame(self, sent: Any) -> Facts:
        """One picture."""
        ask = read_ask(FrameAsk, sent)
        url = self._frames.url(self._shelf.clip(ask.clip), ask.index)
        return {"index": ask.index, "request_id": ask.request_id, "src": url}

    def review_queue(self, sent: Any) -> Facts:
        """A page of the queue, the filters' values, the progress."""
        ask = read_ask(QueueAsk, sent)
        page = self._store.queue(ask.wanted())
        choices, progress = self._store.choices(), self._store.progress(ask.me)
        return queue_facts(page, choices, progress, blind=ask.blind, me=ask.me)

    def review_case(self, sent: Any) -> Facts:
        """One case with its history."""
        ask = read_ask(CaseAsk, sent)
        view = self._store.case(ask.case_id)
        clip = self._shelf.find(view.case, ask.clips)
        events = self._store.history(ask.case_id)
        facts = case_facts(view, events, clip, me=ask.me, blind=ask.blind, hidden=ask.hidden)
        pictures = self._reviews.pictures
        return facts | {"kept": pictures is not None and pictures.has(ask.case_id)}

    def review_picture(self, sent: Any) -> Facts:
        """The kept picture of a case whose video is gone."""
        pictures = self._reviews.pictures
        if pictures is None:
            raise StoreError("No pictures are kept here.")
        return {"src": data_url(pictures.read(read_ask(OnlyCase, sent).case_id))}

    def review_candidates(self, sent: Any) -> Facts:
        """The kept boxes of a case, to pick from by number."""
        ask = read_ask(CandidatesAsk, sent)
        found = self._store.grounding(ask.case_id)
        times = [found[0].times[found[1]]] if found else []
        return {"rows": [row for one in times for row in candidates_facts(one, blind=ask.blind)]}

    def review_suggest(self, sent: Any) -> Facts:
        """Tags that would fit; the person decides."""
        ask = read_ask(SuggestAsk, sent)
        x0, y0, x1, y1 = ask.box
        if x0 >= x1 or y0 >= y1:
            return {"tags": []}
        found = self._store.grounding(ask.case_id)
        case = self._store.case(ask.case_id).case
        return {"tags": list(suggested_tags(case, found[0] if found else None, ask.box))}

    def review_login(self, sent: Any) -> Facts:
        """A token for a name and its password."""
        ask = read_ask(LoginAsk, sent)
        name, token = self._reviews.identity.login(ask.name, ask.password)
        return {"name": name, "token": token}

    def review_act(self, sent: Any) -> Facts:
        """Write actions; each gets an outcome of its own, in their order.

        An outcome is {ok}, {conflict}, {error} (try again later) or {error, stuck} (never will).
        """
        ask = read_ask(ActAsk, sent)
        outcomes: list[Facts] = [{} for _ in ask.actions]
        good: list[tuple[int, Action]] = []
        for place, raw in enumerate(ask.actions):
            try:
                good.append((place, self._action(raw, ask.token)))
            except IdentityError as error:
                outcomes[place] = {"error": str(error), "login": True}
            except StoreError as error:
                outcomes[place] = {"error": str(error)}
            except RefineRankError as error:
                outcomes[place] = {"error": str(error), "stuck": True}
        for (place, action), outcome in zip(good, self._write([a for _, a in good]), strict=True):
            outcomes[place] = told(action, outcome, blind=ask.blind)
        return {"outcomes": outcomes}

    def _write(self, actions: list[Action]) -> list[Outcome | StoreError]:
        """All in one transaction; where that fails, one by one."""
        if not actions:
            return []
        try:
            return list(self._store.record_all(actions))
        except StoreError as error:
            if len(actions) == 1:
                return [error]
        return [one for action in actions for one in self._write([action])]

    def _action(self, raw: Facts, token: str) -> Action:
        """A checked action of a known person.

        Raises:
            IdentityError: nobody who may decide.
            RefineRankError: it can never be written.
        """
        sent = read_ask(SentAction, raw)
        name = self._reviews.identity.name_of(sent.by, token)
        body = dict(sent.body)
        if sent.kind == "decided":
            body = self._decided(sent.case_id, body, name)
        plain = sent.model_dump(exclude={"by", "body"}) | {"reviewer": name, "body": body}
        try:
            return Action.model_validate(plain)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "the decision"
            raise RefineRankError(f"Not saved: {where}: {first['msg']}.") from error

    def _decided(self, case_id: str, body: Facts, name: str) -> Facts:
        """A decision with names in place of the keys of the screen, and the case's own facts."""
        case = self._store.case(case_id).case
        keys = keys_of(case, me=name, blind=bool(body.get("blind")))
        shown = str(body.get("shown") or "")
        best = body.get("best")
        method = keys.get(shown, "")
        if method:
            body |= {"shown": method, "box_before": case.box_of(method)}
        if isinstance(best, str):
            body["best"] = keys.get(best, best)
        return body | {"models": case.models}


def told(action: Action, outcome: Outcome | StoreError, *, blind: bool) -> Facts:
    """What the browser hears of one action. blind: the page that sent it shows no names."""
    if isinstance(outcome, ConflictError):
        blind = blind or bool(getattr(action.body, "blind", False))
        return {"conflict": conflict_facts(outcome, names=not blind), "case_id": action.case_id}
    if isinstance(outcome, StoreError):
        return {"error": str(outcome)}
    return receipt_facts(outcome, me=action.reviewer)

"""What the Review and Failures tabs may send, checked."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from demo.events import Ask, Index, Token
from refinerank_core.boxes import Space
from refinerank_core.reviews.fold import Status
from refinerank_core.reviews.worklist import Sort, Wanted

Word = Annotated[str, StringConstraints(max_length=200)]
CaseId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Number = Annotated[float, Field(allow_inf_nan=False)]
Bounds = tuple[Number | None, Number | None]
Corner = Annotated[float, Field(allow_inf_nan=False, ge=-1e5, le=1e5)]
PAGE = 40


class Who(Ask):
    """Who sends: a stated name, and the token of a login where there is one."""

    name: Word = ""
    token: Word = ""


class QueueAsk(Ask):
    """One page of the queue. me: whose pace is shown. blind: without names of methods."""

    status: tuple[Status, ...] = ()
    method: Word = ""
    dataset: Word = ""
    procedure: Word = ""
    tag: Word = ""
    reviewer: Word = ""
    not_by: Word = ""
    assigned_to: Word = ""
    margin: Bounds = (None, None)
    disagreement: Bounds = (None, None)
    iou: Bounds = (None, None)
    conflicts: bool = False
    text: Word = ""
    sort: Sort = "imported"
    descending: bool = False
    seed: Index = 0
    offset: Index = 0
    me: Word = ""
    blind: bool = False

    def wanted(self) -> Wanted:
        """The same as the store asks it."""
        fields = self.model_dump(exclude={"me", "blind"})
        return Wanted(**fields, limit=PAGE)


class CaseAsk(Ask):
    """One case. me seeds the order in blind mode. hidden: nothing that was answered yet.

    clips: tokens of the visitor's own uploads, one of which may be the case's video.
    """

    case_id: CaseId
    me: Word = ""
    blind: bool = False
    hidden: bool = False
    clips: Annotated[tuple[Token, ...], Field(max_length=8)] = ()


class OnlyCase(Ask):
    """Something about one case."""

    case_id: CaseId


class CandidatesAsk(Ask):
    """The boxes of one case. blind: in an order that tells nothing."""

    case_id: CaseId
    blind: bool = False


class SuggestAsk(Ask):
    """Tags that would fit if this box were right."""

    case_id: CaseId
    box: tuple[Corner, Corner, Corner, Corner]


class ActAsk(Ask):
    """Actions to write, in their order, each as the browser kept it.

    blind: the page that sends them shows no names of methods.
    """

    token: Word = ""
    blind: bool = False
    actions: Annotated[list[dict[str, Any]], Field(max_length=200)]


class SentAction(Ask):
    """One action as the browser keeps it until it is confirmed; by: who did it."""

    client_id: Annotated[str, StringConstraints(min_length=8, max_length=100)]
    case_id: CaseId
    by: Word = ""
    kind: Literal["decided", "commented", "assigned", "undone", "redone", "settled"]
    based_on: Index = 0
    body: dict[str, Any]


class LoginAsk(Ask):
    """A name and its password."""

    name: Word
    password: Word


class EnqueueAsk(Ask):
    """An answer of Explore for the queue."""

    answer: Token
    who: Who


class ForgetAsk(Ask):
    """A case whose kept picture shall go."""

    case_id: CaseId
    who: Who


class FillAsk(Ask):
    """The answers kept beside the bundled clips, for the queue."""

    who: Who


class OutAsk(Ask):
    """A file of reviews. what: "review", "truth" or a method."""

    format: Word
    what: Word = "review"
    decided: bool = False


class InAsk(Ask):
    """A file that was just uploaded, with what the importing person says about it.

    rows: path of the question rows that a submission answers, just uploaded, too.
    space, frame_base: how boxes and frame numbers are to be read; None: as the format says.
    rescale: boxes made on another picture size are scaled instead of refused.
    dataset, procedure: of a grounding.
    """

    who: Who
    path: Annotated[str, StringConstraints(min_length=1, max_length=4096)]
    format: Word
    method: Word = ""
    width: Annotated[int, Field(ge=0, le=100_000)] = 0
    height: Annotated[int, Field(ge=0, le=100_000)] = 0
    rows: Annotated[str, StringConstraints(max_length=4096)] = ""
    space: Space | None = None
    frame_base: Literal[0, 1] | None = None
    rescale: bool = False
    dataset: Word = ""
    procedure: Word = ""


class FindingsAsk(Ask):
    """Failures, of one method, with at most one value for each filter; "" is any.

    before, after: two runs to set side by side, by the names that the server gave them.
    """

    method: Word = ""
    category: Word = ""
    dataset: Word = ""
    procedure: Word = ""
    tool: Word = ""
    size: Word = ""
    video: Word = ""
    by: Literal["dataset", "procedure", "tool", "size", "method"] = "method"
    offset: Index = 0
    before: Annotated[str, StringConstraints(max_length=1000)] = ""
    after: Annotated[str, StringConstraints(max_length=1000)] = ""

"""What the review store keeps: cases, the actions of people, the events that actions become."""

import hashlib
import unicodedata
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from refinerank_core.errors import StoreError
from refinerank_core.grounding import Box
from refinerank_core.reviews.chain import canonical_json

Decision = Literal["accept", "reject", "fix", "unsure", "skip"]
Best = Literal["refinerank", "medvlm", "medvlm_groundingdino", "tie", "none"]
ActionKind = Literal["truth", "decided", "commented", "assigned", "undone", "redone", "settled"]
Kind = Literal[ActionKind, "imported", "conflicted"]

JUDGING = ("decided", "undone", "redone")
"""Kinds that change the judgement: they carry the version that they were based on."""

LONGEST_TEXT = 10_000


def _composed(text: str) -> str:
    """One spelling (NFC) of what people see as one text, without NUL, which PostgreSQL refuses."""
    return unicodedata.normalize("NFC", text).replace("\0", "")


def _one_line(text: str) -> str:
    return " ".join(_composed(text).split())


def _has_area(box: Box) -> Box:
    if not (box[0] < box[2] and box[1] < box[3]):
        raise ValueError("a box needs x0 < x1 and y0 < y1")
    return box


Text = Annotated[str, Field(max_length=LONGEST_TEXT), AfterValidator(_composed)]
Name = Annotated[str, Field(max_length=200), AfterValidator(_one_line)]
Tag = Annotated[str, Field(min_length=1, max_length=64), AfterValidator(_one_line)]
SolidBox = Annotated[Box, AfterValidator(_has_area)]


class Plain(BaseModel):
    """Frozen data that goes to strict JSON and back."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class MethodAnswer(Plain):
    """One method's answer at the case's time; box is None where it gave none."""

    method: Name
    box: Box | None
    score: float | None = None
    text: Text = ""


class Case(Plain):
    """One requested time of one question, with the answers that are under review.

    Attributes:
        video_sha256: hash of the video, "" when only its name is known.
        width, height: display pixels of the frame; every box of the case lives in them.
        requested_s: requested time; None where a file names frames only.
        frame_index, frame_s: the frame shown and its own time stamp; None where not known yet.
        answers: one for each method, the one under review first; empty for truth without answers.
        margin: score of the answer under review less the next one's.
        models: ids of the checkpoints that answered.
        grounding_id: hash of where the answers come from.
        time_index: place of this time in the stored grounding; None: there is none.
        row_id, qa_type: of the benchmark row that asked, "" elsewhere.
    """

    video_name: Name
    video_sha256: str = ""
    width: int = Field(gt=0)
    height: int = Field(gt=0)
    question: Text
    target: Name = ""
    requested_s: float | None = None
    frame_index: int | None = None
    frame_s: float | None = None
    dataset: Name = ""
    procedure: Name = ""
    answers: tuple[MethodAnswer, ...] = ()
    margin: float | None = None
    models: tuple[str, ...] = ()
    grounding_id: str = ""
    time_index: int | None = None
    row_id: Name = ""
    qa_type: Name = ""

    @model_validator(mode="after")
    def _is_somewhere(self) -> Self:
        if self.requested_s is None and self.frame_index is None:
            raise ValueError("a case needs a requested time or a frame index")
        return self

    @property
    def case_id(self) -> str:
        """Video + question + time + grounding, hashed: the same case has the same id anywhere."""
        time = self.requested_s if self.requested_s is not None else f"frame {self.frame_index}"
        video = self.video_sha256 or f"name {self.video_name}"
        identity = [video, self.question, time, self.grounding_id]
        return hashlib.sha256(canonical_json(identity).encode()).hexdigest()

    @property
    def method(self) -> str:
        """The method under review, "" when there is none."""
        return self.answers[0].method if self.answers else ""

    def box_of(self, method: str) -> Box | None:
        """The box of one method."""
        return next((one.box for one in self.answers if one.method == method), None)


class Judgement(Plain):
    """What a reviewer decided about a case, and how they came to it.

    Attributes:
        shown: the method or candidate that was on show, such as "refinerank" or "candidate 12".
        box_before, box_after: pixels of the source frame; after is what the reviewer stands for.
            An accepted box that was not touched may leave it out.
        frame_index, frame_s: the frame that was on show.
        best: which answer is best; None when that was not asked.
        confidence: 1 (guess) to 5 (sure).
        not_visible: the target is not to be seen in the frame.
        question_unclear: the question cannot be answered as it stands.
        seconds: time spent on this decision.
        blind: method names were hidden. draw_first: the reviewer drew before seeing answers.
        models: ids of the checkpoints behind the answers on show.
        resolves: sequence number of the conflict that this decision settles.
    """

    decision: Decision
    shown: Name = ""
    box_before: Box | None = None
    box_after: SolidBox | None = None
    frame_index: int | None = None
    frame_s: float | None = None
    best: Best | None = None
    confidence: int | None = Field(default=None, ge=1, le=5)
    not_visible: bool = False
    question_unclear: bool = False
    tags: tuple[Tag, ...] = Field(default=(), max_length=32)
    comment: Text = ""
    point: tuple[float, float] | None = None
    seconds: float = Field(default=0.0, ge=0)
    blind: bool = False
    draw_first: bool = False
    models: tuple[str, ...] = ()
    resolves: int | None = None

    @model_validator(mode="after")
    def _stands_for_a_box(self) -> Self:
        needs = self.decision in ("accept", "fix") and not self.not_visible
        if needs and self.reviewed_box is None:
            raise ValueError(f"{self.decision} needs box_after, or not_visible")
        return self

    @property
    def reviewed_box(self) -> Box | None:
        """The box that the reviewer stands for; None unless accepted or fixed."""
        if self.not_visible or self.decision not in ("accept", "fix"):
            return None
        untouched = self.box_before if self.decision == "accept" else None
        return self.box_after or untouched


class Comment(Plain):
    """A remark, pinned to a frame and a point in its pixels where given."""

    text: Text = Field(min_length=1)
    frame_index: int | None = None
    frame_s: float | None = None
    point: tuple[float, float] | None = None


class Assignment(Plain):
    """Who shall review the case; "" takes the assignment back."""

    to: Name


class Truth(Plain):
    """The annotated box; None says that the target is not in the frame."""

    box: SolidBox | None
    label: Name = ""
    source: Name = ""


class Step(Plain):
    """Undo or redo of the decision with this sequence number; 0 in an action: one's last one.

    settled: the conflict with this number is over, and the decision that was there stays.
    """

    target: int = 0


class Imported(Plain):
    """Hashes of what came in, so that a later change of it is found."""

    content_sha256: str
    grounding_sha256: str = ""


class Conflicted(Plain):
    """An action that was based on an older version: kept, but without effect."""

    kind: ActionKind
    attempt: dict[str, Any]
    against: tuple[int, ...]


Body = Judgement | Comment | Assignment | Truth | Step | Imported | Conflicted

BODIES: dict[str, type[Body]] = {
    "imported": Imported,
    "truth": Truth,
    "decided": Judgement,
    "commented": Comment,
    "assigned": Assignment,
    "undone": Step,
    "redone": Step,
    "settled": Step,
    "conflicted": Conflicted,
}


class Action(Plain):
    """What one person wants written, once.

    Attributes:
        client_id: made by who sends it, new for each action; sent again, it writes nothing twice.
        based_on: version of the case that the person saw; only judgements are checked against it.
    """

    client_id: str = Field(min_length=8, max_length=100)
    case_id: str
    reviewer: Annotated[Name, Field(min_length=1)]
    kind: ActionKind
    body: Judgement | Comment | Assignment | Truth | Step
    based_on: int = 0

    @model_validator(mode="before")
    @classmethod
    def _body_of_its_kind(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("body"), dict):
            wanted = BODIES.get(str(data.get("kind")))
            if wanted is not None:
                return {**data, "body": wanted.model_validate(data["body"])}
        return data

    @model_validator(mode="after")
    def _body_fits(self) -> Self:
        if type(self.body) is not BODIES[self.kind]:
            raise ValueError(f"{self.kind} needs a {BODIES[self.kind].__name__}")
        return self

    @classmethod
    def from_json(cls, text: str | bytes) -> "Action":
        """Read an action that a browser kept.

        Raises:
            StoreError: text is no action.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "the action"
            raise StoreError(f"Not saved: {where}: {first['msg']}.") from error


class Event(Plain):
    """One line of the record. seq counts from 1 without gaps; version is None for side events."""

    seq: int
    client_id: str
    at: str
    kind: Kind
    case_id: str
    reviewer: str
    based_on: int | None
    version: int | None
    body: Body
    prev: str
    hash: str

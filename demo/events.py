"""What the browser may send, checked, and what a fault looks like to the visitor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Annotated, Any, Literal, ParamSpec, TypeVar

import gradio as gr
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from refinerank_core.errors import RefineRankError

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A", bound="Ask")

GPU_QUEUE = "gpu"  # every event that touches the card waits in this one queue

Token = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Index = Annotated[int, Field(ge=0, lt=2**31)]
Seconds = Annotated[float, Field(allow_inf_nan=False)]


class Ask(BaseModel):
    """A message of the browser. Unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


class FrameAsk(Ask):
    """One picture. request_id comes back with it, so that a late picture is known as late."""

    clip: Token
    index: Index
    request_id: Index


class PoolAsk(Ask):
    """The candidates of one requested time."""

    answer: Token
    k: Index


class MapsAsk(Ask):
    """Response maps of one requested time for a box that the answer already holds."""

    answer: Token
    k: Index
    target: Literal["answer", "original", "refined", "medvlm", "truth"]
    candidate: Index = 0


class QuestionAsk(Ask):
    """Words that are being typed: which times do they name?"""

    clip: Token
    text: Annotated[str, StringConstraints(max_length=20000)]


class ExportAsk(Ask):
    """A file to take away."""

    answer: Token
    kind: Literal["json", "csv", "npz"]


class OpenAsk(Ask):
    """A clip: a bundled one, or an upload of this visitor's."""

    clip: Token


class StoredAsk(Ask):
    """A question of a bundled clip whose kept answer is wanted."""

    clip: Token
    text: Annotated[str, StringConstraints(max_length=20000)]


class UploadAsk(Ask):
    """A file that the browser has just sent to the upload folder.

    mask: black out what stands outside an endoscope's round picture. confirmed: the visitor was
    warned of what it may show and keeps it; drop: the visitor does not.
    """

    path: Annotated[str, StringConstraints(min_length=1, max_length=4096)]
    mask: bool = False
    confirmed: bool = False
    drop: bool = False


class SubmitAsk(Ask):
    """A question to answer. times None: read them from the text, else the frame looked at.

    ticket: a number that the page gives this question, to be able to stop it.
    variant: whose RefineNet answers; "": that of the profile itself.
    """

    clip: Token
    ticket: Index
    text: Annotated[str, StringConstraints(max_length=20000)]
    times: list[Seconds] | None = None
    index: Index = 0
    smooth: bool = False
    variant: Annotated[str, StringConstraints(max_length=64)] = ""


class CancelAsk(Ask):
    """A question to stop, running or waiting."""

    ticket: Index


class AnswerAsk(Ask):
    """An answer that something is wanted about."""

    answer: Token


class FocusAsk(Ask):
    """The requested time whose plots are wanted."""

    answer: Token
    k: Index


def read_ask(kind: type[A], sent: object) -> A:
    """Check a message.

    Raises:
        RefineRankError: it is not of this kind; its text is fit to show.
    """
    try:
        return kind.model_validate(sent)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "message"
        raise RefineRankError(
            f"The page sent something that cannot be read ({where}: {first['msg']}). "
            "Reload the page."
        ) from error


def event_ask(kind: type[A], event: gr.EventData) -> A:
    """The checked message of an event that the stage triggered."""
    return read_ask(kind, event._data)


def errors_to_toast(handler: Callable[P, R]) -> Callable[P, R]:
    """Show a RefineRankError as a toast (raised: a gr.Error merely built shows nothing).

    Any other error is a bug and keeps its traceback.
    """

    @wraps(handler)
    def shown(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return handler(*args, **kwargs)
        except RefineRankError as error:
            raise toast(error) from error

    return shown


def stream_errors_to_toast(handler: Callable[P, Iterator[R]]) -> Callable[P, Iterator[R]]:
    """errors_to_toast for a handler that gives its results one after the other."""

    @wraps(handler)
    def shown(*args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
        try:
            yield from handler(*args, **kwargs)
        except RefineRankError as error:
            raise toast(error) from error

    return shown


def toast(error: RefineRankError) -> gr.Error:
    """A toast whose words are shown as they are: Gradio would render its message as HTML."""
    return gr.Error(as_text(str(error)), print_exception=False, duration=8)


def as_text(words: str) -> str:
    """Words that stay words where HTML and Markdown are rendered."""
    return "".join(f"&#{ord(sign)};" if sign in "<>&\"'`*_[]()\\" else sign for sign in words)


def answered(serve: Callable[[Any], dict[str, Any]]) -> Callable[[Any], dict[str, Any]]:
    """A function that the stage calls: a fault comes back as {"error": one sentence}."""

    @wraps(serve)
    def safe(sent: Any) -> dict[str, Any]:
        try:
            return serve(sent)
        except RefineRankError as error:
            return {"error": str(error)}
        except IndexError:
            return {"error": "There is no such frame or answer. Reload the page."}

    return safe

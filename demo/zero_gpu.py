"""Hugging Face ZeroGPU: a card that is there only while a decorated call runs.

How the package `spaces` does it, and what follows. Models are loaded once, in the process that
serves the page, where the package pretends a card. A decorated call runs in a process forked from
it: only its argument and what it yields are pickled, everything else is as it was at the fork, and
what it leaves behind (feature caches) serves later calls only if the same process is used again.
Of a fault other than its own, only the class name comes back: ours travel as data.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from refinerank_core.errors import ModelError, QuestionError, RefineRankError
from refinerank_core.grounding import Box
from refinerank_core.question import parse_question
from refinerank_core.video import Video, open_video

if TYPE_CHECKING:
    from refinerank_core.progress import News
    from refinerank_core.responses import ResponseMaps

Ground = Callable[[Video, str, Sequence[float] | None, float, bool], Generator["News"]]
Maps = Callable[[Video, int, Box], "ResponseMaps"]

AskT = TypeVar("AskT")
NewsT = TypeVar("NewsT")

_ON = ("1", "t", "true")  # as the package reads the variable
_START_S = 10  # the weights go onto the card
_EACH_S = 2.5  # one requested time: its encoding, its boxes, and 56 tokens of the direct answer
_MOST_S = 120  # what a visitor who is not logged in has for a day
_VIDEOS_OPEN = 2


@dataclass(frozen=True)
class GroundAsk:
    """A question on its way to the card.

    Attributes:
        video: path of the clip, which is opened anew on the other side.
        sha256: the hash that it goes by.
        question, times, current_s, smooth: as for RefineRank.run.
        count: how many times are requested, also where times is None.
    """

    video: Path
    sha256: str
    question: str
    times: tuple[float, ...] | None
    current_s: float
    smooth: bool
    count: int


@dataclass(frozen=True)
class MapsAsk:
    """Response maps of one frame for a target box, on their way to the card."""

    video: Path
    sha256: str
    frame_index: int
    target: Box


@dataclass(frozen=True)
class _Fault:
    """A fault with its words."""

    error: RefineRankError


def package(environment: Mapping[str, str]) -> Any:
    """The package `spaces` where ZeroGPU is on; None elsewhere.

    It has to be imported before anything touches CUDA.

    Raises:
        ModelError: ZeroGPU is on and the package is missing: nothing could run on a card.
    """
    if environment.get("SPACES_ZERO_GPU", "").lower() not in _ON:
        return None
    if find_spec("spaces") is None:
        raise ModelError(
            "ZeroGPU is on and the package spaces is not installed. Add it to requirements.txt."
        )
    return import_module("spaces")


def refuse_compiled(compiled: bool) -> None:
    """Refuse a profile whose model is compiled while it answers.

    Raises:
        ModelError: it is; each process would compile it anew, which ZeroGPU does not support.
    """
    if compiled:
        raise ModelError("ZeroGPU runs no compiled models. Set medvlm.compile to false.")


def seconds_for(ask: GroundAsk | MapsAsk) -> int:
    """Seconds of the card to ask for: more times, more seconds."""
    return round(_START_S + _EACH_S * (ask.count if isinstance(ask, GroundAsk) else 1))


MOST_TIMES = int((_MOST_S - _START_S) / _EACH_S)
"""Requested times that a card is lent for at once."""


def lend(spaces: Any, ground: Ground, maps_at: Maps) -> tuple[Ground, Maps]:
    """The two services that touch the card, each call of them with a card that is lent for it.

    Args:
        spaces: what `package` gave.
        ground, maps_at: the services as they are where a card is always there; they run in the
            other process.
    """

    def work(ask: GroundAsk | MapsAsk) -> Generator[Any]:
        video = opened(ask.video, ask.sha256)
        if isinstance(ask, GroundAsk):
            yield from ground(video, ask.question, ask.times, ask.current_s, ask.smooth)
        else:
            yield maps_at(video, ask.frame_index, ask.target)

    run = on_card(spaces, work, seconds_for)

    def lent_ground(
        video: Video, question: str, times: Sequence[float] | None, current_s: float, smooth: bool
    ) -> Generator[News]:
        asked = tuple(times) if times is not None else None
        count = len(asked or parse_question(question, duration_s=video.duration_s).requested_s) or 1
        if count > MOST_TIMES:
            raise QuestionError(
                f"The question asks for {count} times; this Space lends its card for {MOST_TIMES} "
                "at once. Ask for fewer."
            )
        return run(GroundAsk(video.path, video.sha256, question, asked, current_s, smooth, count))

    def lent_maps(video: Video, frame_index: int, target: Box) -> ResponseMaps:
        (maps,) = run(MapsAsk(video.path, video.sha256, frame_index, target))
        found: ResponseMaps = maps
        return found

    return lent_ground, lent_maps


def on_card(
    spaces: Any, work: Callable[[AskT], Generator[NewsT]], seconds: Callable[[AskT], int]
) -> Callable[[AskT], Generator[NewsT]]:
    """A generator that runs where the card is and streams here.

    One decorated function for all that touches the card: each has processes of its own, and what
    one of them has in its caches the others would compute again.

    Args:
        spaces: what `package` gave.
        work: gives news that can be pickled, without tensors. It may use whatever is loaded.
        seconds: of the card that an ask needs at most.
    """

    def guarded(ask: AskT) -> Generator[NewsT | _Fault]:
        try:
            yield from work(ask)
        except RefineRankError as error:
            yield _Fault(error)

    lent = spaces.GPU(duration=seconds)(guarded)

    def run(ask: AskT) -> Generator[NewsT]:
        with closing(lent(ask)) as news:  # whoever stops listening stops the work too
            for one in news:
                if isinstance(one, _Fault):
                    raise one.error
                yield one

    return run


@lru_cache(maxsize=_VIDEOS_OPEN)
def opened(path: Path, sha256: str) -> Video:
    """A clip, opened in the process that computes.

    Raises:
        VideoError: see open_video.
    """
    return open_video(path, sha256=sha256)

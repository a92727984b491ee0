"""What a run tells on its way: stages passed, times ranked, words written, the whole at the end.

Plain data without models, so that it passes from the process that computes to the one that shows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from refinerank_core.grounding import Grounding, MedVLMAnswer, TimeGrounding

if TYPE_CHECKING:
    from refinerank_core.responses import ResponseMaps

STAGES = ("query", "frames", "encode", "detect", "rank", "maps", "answer")
"""The stages of a run, in the order in which a requested time passes them."""

UNWRITTEN = MedVLMAnswer(box=None, text="")
"""Stands for the MedVLM's direct answer while it is still being written."""


@dataclass(frozen=True)
class Passed:
    """`done` of `total` requested times have passed a stage of STAGES."""

    stage: str
    done: int
    total: int


@dataclass(frozen=True, eq=False)
class Begun:
    """The question is understood.

    Attributes:
        grounding: all facts but the answers: `times` is empty, `question.times_s` is complete.
    """

    grounding: Grounding


@dataclass(frozen=True, eq=False)
class Ranked:
    """Some requested times have their candidates, scores and box.

    Attributes:
        first: position of the first of them among all requested times; they follow each other.
        times: their answers, with UNWRITTEN for the MedVLM's own.
        maps: position -> maps of the chosen box; empty where none were asked for.
        seconds, warnings: of the run so far.
    """

    first: int
    times: tuple[TimeGrounding, ...]
    maps: "Mapping[int, ResponseMaps]"
    seconds: Mapping[str, float]
    warnings: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Written:
    """The MedVLM has written its direct answer for some times that were ranked before.

    Attributes:
        first: position of the first of them among all requested times.
        answers: one per time.
        seconds, warnings: of the run so far.
    """

    first: int
    answers: tuple[MedVLMAnswer, ...]
    seconds: Mapping[str, float]
    warnings: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Grounded:
    """A whole grounding and the response maps that travel beside it.

    Attributes:
        grounding: plain data.
        maps: position of the requested time -> its maps (target: the chosen box).
    """

    grounding: Grounding
    maps: "dict[int, ResponseMaps]"


News = Passed | Begun | Ranked | Written | Grounded

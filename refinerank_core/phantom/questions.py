"""Questions about a scene whose answers are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from refinerank_core.phantom import endoscopy_cast, laparoscopy_cast, open_cast
from refinerank_core.phantom.pointers import Pointer, absent_names, pointers
from refinerank_core.phantom.scene import Scene
from refinerank_core.phantom.truth import FrameTruth
from refinerank_core.phantom.vocabulary import LADDERS, PROCEDURES
from refinerank_core.phantom.wording import PLURALS, Timing, draw_timing, said, worded

NEGATIVE_SHARE = 0.1
RARER = MappingProxyType({"structure": 0.4, "category": 0.5})  # the other kinds weigh 1
ASKED_NAMES = MappingProxyType(
    {  # what may be asked for though it is not there
        PROCEDURES[0]: tuple(laparoscopy_cast.ROLES),
        PROCEDURES[1]: (*endoscopy_cast.ROLES, "scissors", "clipper", "irrigator"),
        PROCEDURES[2]: (
            *(name for name in open_cast.ROLES if name in LADDERS),
            *(name for name in LADDERS if name.endswith("hand")),
        ),
    }
)


@dataclass(frozen=True, eq=False)
class PhantomQuestion:
    """A question and its true answer.

    Attributes:
        text: role, scene and ask.
        thing: the words for what is asked for.
        kind: one of pointers.KINDS.
        phrase: the class name that a detector should look for.
        instance: the thing, None where it is not in view.
        times_s: requested times, rising.
        size_wh: of the frames that the boxes are on.
        boxes: (T, 4) float32 house boxes, one a time; (0, 4) where the thing is not in view.
    """

    text: str
    thing: str
    kind: str
    phrase: str
    instance: int | None
    times_s: tuple[float, ...]
    size_wh: tuple[int, int]
    boxes: np.ndarray

    def answer(self) -> str:
        """Return the answer in MedVidBench's form, or the words that the thing is not in view."""
        if self.instance is None:
            verb = "are" if self.thing.endswith(PLURALS) else "is"
            return f"{self.thing[0].upper()}{self.thing[1:]} {verb} not in view."
        return " ".join(
            f"{time:.1f} seconds: [{', '.join(str(round(float(edge))) for edge in box)}]"
            for time, box in zip(self.times_s, self.boxes, strict=True)
        )


def ask(
    scene: Scene,
    rng: np.random.Generator,
    *,
    size_wh: tuple[int, int],
    kind: str | None = None,
    timing: Timing | None = None,
) -> PhantomQuestion | None:
    """Ask one question about a scene.

    Args:
        scene: asked about.
        rng: drawn from.
        size_wh: of the frames that the boxes are on.
        kind: one of pointers.KINDS, or None for any.
        timing: requested times, or None to draw some.

    Returns:
        The question, or None when the drawn times allow none of this kind.
    """
    when = timing or draw_timing(rng, scene.duration_s)
    truths = [scene.truth_at(time, size_wh) for time in when.times_s]
    return ask_about(truths, when, scene.procedure, rng, kind=kind)


def ask_about(
    truths: Sequence[FrameTruth],
    timing: Timing,
    procedure: str,
    rng: np.random.Generator,
    *,
    kind: str | None = None,
) -> PhantomQuestion | None:
    """Ask one question about frames whose truth is at hand, one frame a requested time.

    Whatever is asked for is one and the same thing at every requested time, in view, and the only
    one that the words fit. All kinds are equally likely, but for those in RARER.
    """
    if len(truths) != len(timing.times_s):
        raise ValueError(f"one truth a time: got {len(truths)} for {len(timing.times_s)} times")
    choices = shared_pointers(truths)
    absent = absent_names(truths, ASKED_NAMES[procedure])
    negatives = [Pointer("negative", name, (), name, None) for name in absent]
    if kind is None and negatives and (not choices or rng.random() < NEGATIVE_SHARE):
        kind = "negative"
    if kind == "negative":
        choices = negatives
    kinds = sorted({pointer.kind for pointer in choices if kind in (None, pointer.kind)})
    if not kinds:
        return None
    odds = np.array([RARER.get(each, 1.0) for each in kinds])
    drawn = kinds[int(rng.choice(len(kinds), p=odds / odds.sum()))]
    fitting = [pointer for pointer in choices if pointer.kind == drawn]
    return _question(fitting[int(rng.integers(len(fitting)))], truths, timing, procedure, rng)


def shared_pointers(truths: Sequence[FrameTruth]) -> list[Pointer]:
    """Return the pointers that mean the same thing in every frame."""
    common = set(pointers(truths[0]))
    for truth in truths[1:]:
        common &= set(pointers(truth))
    return sorted(common, key=repr)


def _question(
    pointer: Pointer,
    truths: Sequence[FrameTruth],
    timing: Timing,
    procedure: str,
    rng: np.random.Generator,
) -> PhantomQuestion:
    thing = said(pointer, rng)
    boxes = [
        found.box
        for truth in truths
        if pointer.instance is not None and (found := truth.instance(pointer.instance)) is not None
    ]
    return PhantomQuestion(
        text=worded(thing, timing.words, procedure, rng),
        thing=thing,
        kind=pointer.kind,
        phrase=LADDERS[pointer.name].specific[0],
        instance=pointer.instance,
        times_s=timing.times_s,
        size_wh=truths[0].size_wh,
        boxes=np.array(boxes, np.float32).reshape(-1, 4),
    )

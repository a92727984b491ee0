"""Words for pointers and times, and questions in MedVidBench's manner: role, scene, ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from refinerank_core.phantom.pointers import ANY, Pointer
from refinerank_core.phantom.vocabulary import ACTIONS, LADDERS, PROCEDURES

ROLES = (
    "You are an expert surgical video analyst.",
    "You are assisting in the review of a surgical recording.",
    "As an experienced surgeon, study the video closely.",
    "You are a careful annotator of operations.",
    "",
)
SCENES = MappingProxyType(
    {
        PROCEDURES[0]: (
            "The clip shows a laparoscopic cholecystectomy.",
            "This is a laparoscopic view of the gallbladder and liver.",
            "The video was recorded through a laparoscope.",
            "",
        ),
        PROCEDURES[1]: (
            "The clip shows an endoscopic submucosal dissection.",
            "This is an endoscopic view of a lesion being removed.",
            "The video was recorded through a flexible endoscope.",
            "",
        ),
        PROCEDURES[2]: (
            "The clip shows open surgery seen by the surgeon.",
            "This is an egocentric view of an open operation.",
            "The video was recorded by a camera on the surgeon's head.",
            "",
        ),
    }
)
ASKS = (
    "Provide the bounding boxes for {thing} {when}.",
    "Give the bounding box of {thing} {when}.",
    "Where is {thing} {when}?",
    "Locate {thing} {when}.",
    "{When}, where is {thing}?",
    "{When}, locate {thing}.",
    "Please identify {thing} {when}.",
)
SPAN_ASKS = (
    *ASKS,
    "Track {thing} {when}.",
    "Track {thing} {when} and give one box for each time.",
)
SPAN_FORMS = (
    "every {step} seconds from {first} to {last} seconds",
    "from {first} to {last} seconds, every {step} seconds",
    "every {step} seconds between {first} and {last} seconds",
    "between {first} and {last} seconds, every {step} seconds",
    "between {first} seconds and {last} seconds, every {step} seconds",
)
PLURALS = ("scissors", "tweezers", "forceps")
WHOSE = MappingProxyType(
    {
        "own": ("the surgeon's own {}", "the surgeon's {}", "the camera wearer's {}"),
        "other": ("the assistant's {}", "the other person's {}", "the other {}"),
    }
)


@dataclass(frozen=True)
class Timing:
    """Requested times and how they are said.

    Attributes:
        times_s: rising.
        words: such as "every 4 seconds from 2 to 14 seconds".
    """

    times_s: tuple[float, ...]
    words: str


def draw_timing(
    rng: np.random.Generator,
    duration_s: float,
    *,
    grid_s: float = 0.2,
    most: int = 6,
    single_share: float = 0.4,
) -> Timing:
    """Draw requested times inside a clip.

    Args:
        rng: drawn from.
        duration_s: of the clip.
        grid_s: every time is a multiple of this.
        most: times at most.
        single_share: how often one time is asked for alone.
    """
    cells = int(duration_s / grid_s) - 1
    if rng.random() < single_share or duration_s < 4.0:
        time = round(int(rng.integers(0, cells + 1)) * grid_s, 3)
        return Timing((time,), _single(rng, time))
    steps = [step for step in (2, 3, 4, 5, 2.4, 1.6, 1.2, 0.8) if _fits(step, grid_s)]
    odds = np.array([4.0 if step == int(step) else 1.0 for step in steps])
    step = float(rng.choice(steps, p=odds / odds.sum()))
    fitting = int((duration_s - grid_s) / step) + 1
    count = int(rng.integers(2, max(2, min(most, fitting)) + 1))
    room = duration_s - grid_s - (count - 1) * step
    first = round(int(rng.integers(0, max(0, int(room / grid_s)) + 1)) * grid_s, 3)
    if (
        rng.random() < 0.6
        and int(first) + (count - 1) * step <= duration_s - grid_s
        and _fits(1.0, grid_s)
    ):
        first = float(int(first))
    times = tuple(round(first + step * place, 3) for place in range(count))
    last = times[-1]
    loose = round(last + grid_s * int(rng.integers(1, max(2, int(step / grid_s)))), 3)
    if rng.random() < 0.2 and loose < min(last + step, duration_s):
        last = loose  # an end off the step's grid is not a requested time
    form = SPAN_FORMS[int(rng.integers(len(SPAN_FORMS)))]
    return Timing(times, form.format(step=f"{step:g}", first=f"{first:g}", last=f"{last:g}"))


def _fits(step: float, grid_s: float) -> bool:
    return abs(step / grid_s - round(step / grid_s)) < 1e-9


def _single(rng: np.random.Generator, time_s: float) -> str:
    if time_s == int(time_s) and rng.random() < 0.2:
        return f"at {int(time_s) // 60:02d}:{int(time_s) % 60:02d}"
    return f"at {time_s:.1f} seconds" if rng.random() < 0.7 else f"at {time_s:g} seconds"


def said(pointer: Pointer, rng: np.random.Generator) -> str:
    """Return words for a pointer, such as "the grasper that is retracting the liver"."""
    if pointer.kind in ("name", "structure", "negative", "owner") and not pointer.facts:
        return _named(pointer.noun, rng)
    if pointer.kind == "category":
        return f"the {pointer.noun}"
    noun = pointer.noun
    if noun == ANY:
        noun = _pick(rng, ("instrument", "surgical instrument", "tool"))
    elif noun in LADDERS:
        noun = _pick(rng, LADDERS[noun].specific)
    if pointer.kind == "action":
        return _pick(rng, _action_forms(noun, pointer.facts[0]))
    if pointer.kind == "target":
        return _pick(rng, _target_forms(noun, pointer.facts))
    if pointer.kind == "side":
        side = pointer.facts[0]
        where = f"the {side}" if side in ("left", "right") else f"the {side} of the view"
        forms = ("the {} entering from {}", "the {} coming from {}", "the {} that enters from {}")
        return _pick(rng, forms).format(noun, where)
    if pointer.noun == "hand":
        held = _pick(rng, LADDERS[pointer.facts[0]].specific)
        return _pick(rng, ("the hand holding the {}", "the hand with the {}")).format(held)
    hand = f"{pointer.facts[1]} hand" if len(pointer.facts) == 2 else "hands"
    whose = _pick(rng, WHOSE[pointer.facts[0]]).format(hand)
    return _pick(rng, ("the {} in {}", "the {} held in {}")).format(noun, whose)


def _action_forms(noun: str, action: str) -> tuple[str, ...]:
    return (
        f"the {noun} that {_be(noun)} {action}",
        f"the {noun} used to {ACTIONS[action]}",
        f"the {action} {noun}",
    )


def _target_forms(noun: str, facts: Sequence[str]) -> tuple[str, ...]:
    if len(facts) == 1:
        return (
            f"the {noun} working on the {facts[0]}",
            f"the {noun} acting on the {facts[0]}",
            f"the {noun} touching the {facts[0]}",
        )
    action, target = facts
    return (
        f"the {noun} {action} the {target}",
        f"the {noun} that {_be(noun)} {action} the {target}",
        f"the {noun} used to {ACTIONS[action]} the {target}",
    )


def _be(noun: str) -> str:
    return "are" if noun.endswith(PLURALS) else "is"


def _named(name: str, rng: np.random.Generator) -> str:
    owner, _, hand = name.partition(" ")
    if owner in WHOSE and hand.endswith("hand"):
        return _pick(rng, WHOSE[owner]).format(hand)
    return f"the {_pick(rng, LADDERS[name].specific)}"


def worded(thing: str, when: str, procedure: str, rng: np.random.Generator) -> str:
    """Return the whole question about thing at the times when."""
    asks = ASKS if when.startswith("at ") else SPAN_ASKS
    ask = _pick(rng, asks).format(thing=thing, when=when, When=when[0].upper() + when[1:])
    parts = (_pick(rng, ROLES), _pick(rng, SCENES[procedure]), ask)
    return " ".join(part for part in parts if part)


def _pick(rng: np.random.Generator, forms: Sequence[str]) -> str:
    return forms[int(rng.integers(len(forms)))]

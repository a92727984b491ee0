"""Who is at work over the wound: the surgeon's own hands, and the assistant's."""

from __future__ import annotations

from functools import partial

import numpy as np

from refinerank_core.phantom import open_tools as tools
from refinerank_core.phantom.cast import Actor, Body, Role, Schedule
from refinerank_core.phantom.geometry import VIEW_WIDTH
from refinerank_core.phantom.hands import Glove, hand
from refinerank_core.phantom.looks import Look, draw_look
from refinerank_core.phantom.motion import Sway
from refinerank_core.phantom.shapes import Patch

ROLES = {
    "tweezers": Role(
        (("grasping", ("wound edge", "skin")), ("retracting", ("wound edge",))),
        stays=0.65,
        pull=0.05,
    ),
    "scalpel": Role((("cutting", ("wound edge", "wound")), ("dissecting", ("wound",))), stays=0.6),
    "needle holder": Role((("suturing", ("wound edge",)),), stays=0.75),
    "gauze": Role((("wiping", ("wound", "skin")),), stays=0.6),
    "nothing": Role((("retracting", ("skin", "wound edge")),), pull=0.04, hover=0.08),
}
LENGTHS = {
    "tweezers": (0.20, 0.28),
    "scalpel": (0.18, 0.24),
    "needle holder": (0.20, 0.28),
    "gauze": (0.15, 0.21),
    "nothing": (0.1, 0.1),
}
MAIN = {
    "right": ("scalpel", "needle holder", "tweezers"),
    "left": ("tweezers", "gauze", "tweezers"),
}
SPARE = ("tweezers", "gauze", "nothing", "needle holder", "scalpel")
SPARE_ODDS = np.array([0.36, 0.2, 0.2, 0.14, 0.1])


def draw_tool(name: str, look: Look, opening: float, light: float) -> list[Patch]:
    return tools.DRAWERS[name](look, opening, light)


def draw_hand(
    glove: Glove, side: str, held: str, length: float, opening: float, light: float
) -> list[Patch]:
    pose = "spread" if held in ("nothing", "gauze") else "pinch"
    grip = {"nothing": -0.03, "gauze": -0.45 * length}.get(held, -length)
    return hand(glove, side, pose, light, grip)


def draw_cast(
    rng: np.random.Generator, anchors: dict[str, list[np.ndarray]], duration_s: float
) -> list[Actor]:
    """Draw the own hands and one or two others; two hold tools of one class in most scenes."""
    own, other = Glove.draw(rng), Glove.draw(rng)
    lead = "right" if rng.random() < 0.85 else "left"
    off = "left" if lead == "right" else "right"
    hands = [("own", off, MAIN["left"][int(rng.integers(3))])]
    hands.append(("own", lead, MAIN["right"][int(rng.integers(3))]))
    for hand_side in rng.permutation(["left", "right"])[: int(rng.choice([1, 2], p=[0.55, 0.45]))]:
        hands.append(("other", str(hand_side), str(rng.choice(SPARE, p=SPARE_ODDS))))
    schedule = Schedule(anchors, duration_s)
    from_side = rng.random() < 0.35
    order = rng.permutation(len(hands))
    actors = []
    for index in (int(number) for number in order):
        owner, side, held = hands[index]
        pivot = _shoulder(rng, owner, side, from_side=bool(from_side))
        look = draw_look(rng, width=(0.036, 0.05), length=LENGTHS[held], opening=(0.4, 0.8))
        glove = own if owner == "own" else other
        late = owner == "other" and rng.random() < 0.4
        course = schedule.course(rng, ROLES[held], pivot, late=late, home=_home(pivot))
        bodies = [
            Body(
                11 + index,
                f"{owner} {side} hand",
                "hand",
                partial(draw_hand, glove, side, held, look.length),
                side,
                softness=0.007,
            )
        ]
        if held != "nothing":
            soft = 0.006 if held == "gauze" else 0.0
            tool = Body(1 + index, held, "tool", partial(draw_tool, held, look), side, soft)
            bodies.insert(0, tool)
        actors.append(
            Actor(
                bodies=tuple(bodies),
                pivot=pivot,
                tip=course.tip,
                opening=course.opening,
                sway=Sway.draw(rng, [0.008, 0.008], (1.1, 4.0)),
                depth=Sway.draw(rng, [0.04], (4.0, 12.0)),
                phases=course.phases,
                size=float(rng.uniform(0.95, 1.2)) * (1.0 if owner == "own" else 0.92),
                rest_opening=look.opening,
                owner=owner,
            )
        )
    return actors


def _home(pivot: np.ndarray) -> np.ndarray:
    """Return the part of the field nearest to where an arm comes from."""
    return np.array([VIEW_WIDTH / 2, 0.5]) + (pivot - (VIEW_WIDTH / 2, 0.5)) * (0.55, 0.08)


def _shoulder(rng: np.random.Generator, owner: str, side: str, *, from_side: bool) -> np.ndarray:
    """Return where an arm comes from; an assistant stands opposite or at one side."""
    middle = VIEW_WIDTH / 2
    if owner == "own":
        x = middle + (0.62 if side == "right" else -0.62) + rng.normal(0, 0.12)
        return np.array([x, rng.uniform(1.7, 2.0)])
    if from_side:
        x = -0.8 if side == "left" else VIEW_WIDTH + 0.8
        return np.array([x, rng.uniform(0.1, 0.4)])
    x = middle + (-0.55 if side == "right" else 0.55) + rng.normal(0, 0.12)
    return np.array([x, -rng.uniform(0.8, 1.0)])

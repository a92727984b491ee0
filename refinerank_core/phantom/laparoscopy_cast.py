"""Who is at work in the belly."""

from __future__ import annotations

from functools import partial

import numpy as np

from refinerank_core.phantom import laparoscopic_tools as tools
from refinerank_core.phantom.cast import Actor, Body, Role, Schedule, draw_pivot
from refinerank_core.phantom.geometry import Colour
from refinerank_core.phantom.looks import Look, draw_look
from refinerank_core.phantom.motion import Sway
from refinerank_core.phantom.shapes import Patch

BLUES: tuple[Colour, ...] = ((48, 92, 206), (30, 120, 210), (72, 70, 190))
GRASP = ("gallbladder", "omentum", "liver", "cystic duct")
ROLES: dict[str, Role] = {
    "grasper": Role((("grasping", GRASP), ("retracting", ("gallbladder", "liver", "omentum")))),
    "bipolar": Role(
        (("coagulating", ("omentum", "liver", "cystic duct")), ("grasping", GRASP[:2]))
    ),
    "hook": Role((("dissecting", ("gallbladder", "cystic duct")), ("coagulating", ("liver",)))),
    "scissors": Role((("cutting", ("cystic duct", "omentum")), ("dissecting", ("gallbladder",)))),
    "clipper": Role((("clipping", ("cystic duct",)),), stays=0.5),
    "irrigator": Role((("rinsing", ("liver", "gallbladder", "omentum")),), stays=0.7),
    "specimen bag": Role((("collecting", ("gallbladder",)),), stays=0.3, hover=0.05),
}
GUESTS = ("bipolar", "hook", "scissors", "clipper", "irrigator", "grasper", "specimen bag")
GUEST_ODDS = np.array([0.18, 0.2, 0.16, 0.14, 0.16, 0.09, 0.07])


def draw_tool_look(rng: np.random.Generator, name: str) -> Look:
    """Draw the build of one instrument of a class."""
    if name == "specimen bag":
        return draw_look(rng, width=(0.05, 0.07), length=(0.24, 0.31), opening=(0.3, 0.8))
    accents = BLUES if name != "clipper" else ((60, 140, 96), (200, 120, 40), (90, 96, 104))
    length = {"irrigator": (0.2, 0.28), "clipper": (0.19, 0.25), "bipolar": (0.19, 0.25)}
    return draw_look(
        rng,
        width=(0.058, 0.084),
        length=length.get(name, (0.21, 0.29)),
        opening=(0.35, 0.75),
        accents=accents,
        black_shaft=0.2 if name == "irrigator" else 0.55,
    )


def draw_patches(name: str, look: Look, opening: float, light: float) -> list[Patch]:
    return tools.shaft(look, light) + tools.DRAWERS[name](look, opening, light)


def draw_cast(
    rng: np.random.Generator, anchors: dict[str, list[np.ndarray]], duration_s: float
) -> list[Actor]:
    """Draw three to five instruments; most scenes hold at least two graspers."""
    names = ["grasper"] * int(rng.choice([1, 2, 3], p=[0.25, 0.55, 0.2]))
    names += [str(n) for n in rng.choice(GUESTS, 2, replace=False, p=GUEST_ODDS)]
    rng.shuffle(names)
    sides = [str(side) for side in rng.permutation(["left", "right", "top", "bottom"])]
    sides += [str(side) for side in rng.choice(["left", "right"], len(names))]
    schedule = Schedule(anchors, duration_s, room=0.28)
    actors = []
    for place, (name, side) in enumerate(zip(names, sides, strict=False)):
        look, pivot = draw_tool_look(rng, name), draw_pivot(rng, side)
        course = schedule.course(rng, ROLES[name], pivot, late=place > 2 and rng.random() < 0.5)
        actors.append(
            Actor(
                bodies=(Body(place + 1, name, "tool", partial(draw_patches, name, look)),),
                pivot=pivot,
                tip=course.tip,
                opening=course.opening,
                sway=Sway.draw(rng, [0.008, 0.008], (1.1, 4.0)),
                depth=Sway.draw(rng, [0.07], (4.0, 12.0)),
                phases=course.phases,
                size=float(rng.uniform(1.15, 1.55)),
                rest_opening=look.opening,
            )
        )
    return actors

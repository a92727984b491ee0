"""Who is at work in the gut: forceps and knives out of one channel, or out of two arms."""

from __future__ import annotations

from functools import partial

import numpy as np

from refinerank_core.phantom import endoscopic_tools as tools
from refinerank_core.phantom.cast import Actor, Body, Role, Schedule
from refinerank_core.phantom.geometry import VIEW_WIDTH, Colour
from refinerank_core.phantom.looks import Look, draw_look, plastic
from refinerank_core.phantom.motion import Sway
from refinerank_core.phantom.shapes import Metal, Patch

RINGS: tuple[Colour, ...] = ((44, 96, 200), (40, 150, 110), (210, 120, 40))
SHEATHS: tuple[Colour, ...] = ((40, 84, 168), (196, 200, 206), (212, 178, 70), (70, 74, 82))
ROLES = {
    "forceps": Role(
        (("grasping", ("lesion", "mucosa")), ("retracting", ("lesion", "mucosa"))), pull=0.07
    ),
    "knife": Role(
        (
            ("dissecting", ("submucosa",)),
            ("cutting", ("mucosa", "lesion")),
            ("coagulating", ("submucosa",)),
            ("marking", ("mucosa",)),
        )
    ),
}


def draw_patches(name: str, look: Look, metal: Metal, opening: float, light: float) -> list[Patch]:
    shaft = tools.sheath(look, light, metal, coiled=name == "forceps")
    return shaft + tools.DRAWERS[name](look, opening, light)


def draw_cast(
    rng: np.random.Generator, anchors: dict[str, list[np.ndarray]], duration_s: float
) -> list[Actor]:
    """Draw two to four instruments; most scenes hold two of a class."""
    names = ["knife", "forceps"]
    names += [["forceps"], ["forceps", "knife"], ["knife"], []][
        int(rng.choice(4, p=[0.45, 0.25, 0.15, 0.15]))
    ]
    rng.shuffle(names)
    pivots = _pivots(rng, len(names))
    schedule = Schedule(anchors, duration_s, room=0.26)
    actors = []
    for place, (name, pivot) in enumerate(zip(names, pivots, strict=True)):
        sizes = {"forceps": (0.20, 0.27), "knife": (0.20, 0.28)}[name]
        look = draw_look(rng, width=(0.066, 0.094), length=sizes, opening=(0.5, 1.0), accents=RINGS)
        metal = plastic(SHEATHS[int(rng.integers(len(SHEATHS)))])
        course = schedule.course(rng, ROLES[name], pivot, late=place > 1 and rng.random() < 0.5)
        actors.append(
            Actor(
                bodies=(Body(place + 1, name, "tool", partial(draw_patches, name, look, metal)),),
                pivot=pivot,
                tip=course.tip,
                opening=course.opening,
                sway=Sway.draw(rng, [0.010, 0.010], (1.3, 5.0)),
                depth=Sway.draw(rng, [0.08], (4.0, 12.0)),
                phases=course.phases,
                size=float(rng.uniform(1.15, 1.5)),
                rest_opening=look.opening,
            )
        )
    return actors


def _pivots(rng: np.random.Generator, count: int) -> list[np.ndarray]:
    """Return where the shafts come from: side by side at the channel, or from both sides."""
    if rng.random() < 0.45:
        channel = rng.uniform(0.6, VIEW_WIDTH - 0.6)
        steps = (np.arange(count) - (count - 1) / 2) * rng.uniform(0.3, 0.5)
        return [
            np.array([channel + step, rng.uniform(1.45, 1.7)]) for step in rng.permutation(steps)
        ]
    spots = [(-0.45, 0.8), (VIEW_WIDTH + 0.45, 0.8), (VIEW_WIDTH / 2, 1.6), (-0.4, 0.25)]
    order = rng.permutation(len(spots))[:count]
    return [np.array(spots[i]) + rng.normal(0, 0.09, 2) for i in order]

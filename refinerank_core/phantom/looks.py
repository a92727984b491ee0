"""How one instrument differs from the next of its kind: sizes, metals, plastics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from refinerank_core.phantom.geometry import Colour
from refinerank_core.phantom.shapes import Metal

BLACK = Metal((14, 15, 18), (52, 54, 60), (150, 154, 162))


@dataclass(frozen=True)
class Look:
    """The build of one instrument.

    Attributes:
        width: of the shaft, view units.
        length: of the working end, view units.
        opening: how wide its jaws open at rest, radians.
        steel: of the working end.
        shaft: of the shaft.
        accent: its coloured plastic.
        flipped: mirrored about its axis.
        marks: rings on the shaft.
        curve: how bent a curved end is, 0..1.
    """

    width: float
    length: float
    opening: float
    steel: Metal
    shaft: Metal
    accent: Colour
    flipped: bool
    marks: int
    curve: float


def steel(rng: np.random.Generator) -> Metal:
    """Draw a steel: its brightness and a slight tint."""
    bright, tint = rng.uniform(0.82, 1.08), rng.uniform(-8, 8)
    body = (150 * bright + tint, 154 * bright, 160 * bright - tint)
    return Metal(
        (body[0] * 0.30, body[1] * 0.30, body[2] * 0.33), body, (250.0, 251.0, 253.0 - tint)
    )


def plastic(colour: Colour) -> Metal:
    """Return the ramp of a coloured plastic."""
    r, g, b = colour
    return Metal(
        (r * 0.34, g * 0.34, b * 0.36),
        colour,
        (min(255, r * 0.6 + 110), min(255, g * 0.6 + 110), min(255, b * 0.6 + 110)),
    )


def tinted(rng: np.random.Generator, colour: Colour, spread: float = 18.0) -> Colour:
    """Return colour moved a little, as makers differ."""
    r, g, b = np.clip(np.array(colour) + rng.uniform(-spread, spread, 3), 0, 255)
    return (float(r), float(g), float(b))


def draw_look(
    rng: np.random.Generator,
    *,
    width: tuple[float, float],
    length: tuple[float, float],
    opening: tuple[float, float] = (0.3, 0.6),
    accents: tuple[Colour, ...] = ((90, 110, 200),),
    black_shaft: float = 0.5,
) -> Look:
    """Draw one instrument's build from the ranges of its kind."""
    metal = steel(rng)
    dark = rng.random() < black_shaft
    grey = rng.uniform(0.55, 0.95)
    shaft = (
        BLACK if dark else Metal((30, 32, 36), (128 * grey, 132 * grey, 138 * grey), metal.shine)
    )
    return Look(
        width=float(rng.uniform(*width)),
        length=float(rng.uniform(*length)),
        opening=float(rng.uniform(*opening)),
        steel=metal,
        shaft=shaft,
        accent=tinted(rng, accents[int(rng.integers(len(accents)))]),
        flipped=bool(rng.random() < 0.5),
        marks=int(rng.integers(0, 4)),
        curve=float(rng.uniform(0.2, 1.0)),
    )

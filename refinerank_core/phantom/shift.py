"""Another hospital: the same scenes with instruments of other makes and tissue of other colours.

A shift is drawn from a seed of its own. Who does what, where and when stays as the scene's seed
says; each class of instrument gets one new build (longer or broader, bent, with a wire guard around
its working end) and one new colour, and the tissue another cast. Boxes follow the drawn shapes.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from refinerank_core.phantom.cast import Actor, Body, Drawer
from refinerank_core.phantom.geometry import Colour, stream
from refinerank_core.phantom.shapes import Metal, Part, Patch, chain
from refinerank_core.phantom.tissue import Tissue

_LUMA = np.array([0.30, 0.59, 0.11])
_STRAIGHT = 0.5  # view units behind the tip from which a bent shaft goes on straight
_SALT = 71


@dataclass(frozen=True, eq=False)
class Build:
    """How one class is built under a shift.

    Attributes:
        along, across: stretch of its length and breadth.
        bend: curvature across the axis, 1 / view units.
        guard: length and breadth of the guard around the working end, in shares of that end's.
        tint: RGB about 1 that its brightness is coloured with.
        strength: 0 keeps its own colours, 1 takes the tint alone.
    """

    along: float
    across: float
    bend: float
    guard: tuple[float, float]
    tint: np.ndarray
    strength: float

    def coloured(self, colour: Colour) -> Colour:
        """One colour under the tint."""
        plain = np.asarray(colour)
        mixed = (1 - self.strength) * plain + self.strength * float(plain @ _LUMA) * self.tint
        r, g, b = np.clip(mixed, 0, 255)
        return float(r), float(g), float(b)


@dataclass(frozen=True)
class Shift:
    """A shift of looks; equal seeds are equal shifts."""

    seed: int

    def build_of(self, name: str) -> Build:
        """The build of a class, the same in every scene."""
        return _build(self.seed, name)

    def dressed(self, actors: Sequence[Actor]) -> list[Actor]:
        """The same actors in other looks."""
        return [
            replace(actor, bodies=tuple(self._dressed(body) for body in actor.bodies))
            for actor in actors
        ]

    def _dressed(self, body: Body) -> Body:
        build = self.build_of(body.name)
        return replace(body, draw=_drawer(body.draw, build, hand=body.kind == "hand"))

    def stained(self, tissue: Tissue) -> Tissue:
        """The same field under another cast of colour."""
        mix = _tissue_mix(self.seed)
        picture = tissue.picture.copy()
        picture[..., :3] = np.clip(picture[..., :3] @ mix.T, 0, 255).astype(np.uint8)
        return replace(tissue, picture=picture)


@lru_cache(maxsize=256)
def _build(seed: int, name: str) -> Build:
    rng = stream(seed, _SALT, zlib.crc32(name.encode()))
    tint = rng.uniform(0.45, 1.45, 3)
    tint /= float(tint @ _LUMA)
    return Build(
        along=float(rng.uniform(1.0, 1.25)),
        across=float(rng.uniform(1.05, 1.35)),
        bend=float(rng.uniform(0.1, 0.3) * rng.choice([-1, 1])),
        guard=(float(rng.uniform(1.35, 1.6)), float(rng.uniform(1.7, 2.3))),
        tint=tint,
        strength=float(rng.uniform(0.35, 0.6)),
    )


@lru_cache(maxsize=16)
def _tissue_mix(seed: int) -> np.ndarray:
    """(3, 3) that takes RGB to RGB: part of each channel's strength goes to the others."""
    rng = stream(seed, _SALT)
    mix = np.eye(3) * rng.uniform(0.70, 0.95, (3, 1)) + rng.uniform(0.0, 0.28, (3, 3))
    return np.asarray(mix / mix.sum(axis=1, keepdims=True) * rng.uniform(0.85, 1.1, (3, 1)))


def _drawer(draw: Drawer, build: Build, *, hand: bool) -> Drawer:
    """Draw as before, then stretch, bend and colour; a hand is coloured alone."""

    def drawn(opening: float, light: float) -> list[Patch]:
        patches = draw(opening, light)
        if not hand:
            patches = [*_guard(patches, build, light), *patches]
            patches = [p._replace(points=_bent(p.points, build)) for p in patches]
        return [p._replace(colour=build.coloured(p.colour)) for p in patches]

    return drawn


def _bent(points: np.ndarray, build: Build) -> np.ndarray:
    x, y = points[:, 0] * build.along, points[:, 1] * build.across
    back = np.clip(-x, 0, None)
    near = np.minimum(back, _STRAIGHT)
    off = build.bend * (near**2 + 2 * _STRAIGHT * np.clip(back - _STRAIGHT, 0, None))
    return np.stack((x, y + off), axis=1)


def _guard(patches: Sequence[Patch], build: Build, light: float) -> list[Patch]:
    """A wire loop around the working end; it counts as part of it."""
    boxed = [patch.points for patch in patches if patch.part is Part.WORKING]
    if not boxed:
        return []
    joined = np.concatenate(boxed)
    low, high = joined.min(axis=0), joined.max(axis=0)
    reach = (high - low) / 2 * build.guard
    turns = np.linspace(0, 2 * np.pi, 25)
    loop = (low + high) / 2 + np.stack((np.cos(turns), np.sin(turns)), axis=1) * reach
    thickness = np.full(len(loop), max(0.006, 0.05 * float(reach.min())))
    wire = Metal((60.0, 60.0, 64.0), (170.0, 172.0, 178.0), (245.0, 246.0, 250.0))
    return chain(loop, thickness, wire, np.array([-0.2, light]), Part.WORKING)

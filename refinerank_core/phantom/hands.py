"""Gloved hands, drawn with what they hold at -x and +x to the fingers; the grip at the origin."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from refinerank_core.phantom.geometry import Colour, ribbon, smooth_closed, smooth_open
from refinerank_core.phantom.looks import plastic, tinted
from refinerank_core.phantom.shapes import Metal, Part, Patch, chain, nested

W = Part.WORKING
GLOVES: tuple[Colour, ...] = (
    (58, 112, 196),
    (226, 214, 192),
    (112, 168, 150),
    (118, 100, 178),
    (214, 220, 226),
)
GOWNS: tuple[Colour, ...] = ((34, 92, 136), (30, 110, 104), (60, 124, 96), (70, 106, 160))


@dataclass(frozen=True)
class Glove:
    """The look of one person's hand.

    Attributes:
        latex: of the glove.
        gown: of the sleeve.
        plump: finger thickness about 1.
        curl: how far the outer fingers are bent, 0..1.
    """

    latex: Metal
    gown: Metal
    plump: float
    curl: float

    @staticmethod
    def draw(rng: np.random.Generator) -> Glove:
        latex = plastic(tinted(rng, GLOVES[int(rng.integers(len(GLOVES)))], 14))
        gown = plastic(tinted(rng, GOWNS[int(rng.integers(len(GOWNS)))], 12))
        return Glove(latex, gown, float(rng.uniform(0.9, 1.15)), float(rng.uniform(0.3, 1.0)))

    @property
    def skin(self) -> Metal:
        """The ramp of its broad forms: a rim less dark than a finger's."""
        shine = self.latex.at(0.8)
        return Metal(self.latex.at(0.3), self.latex.at(0.55), shine)


# right hand from above: knuckle, middle joint, tip of each finger; -y is the thumb's side
PINCH = {
    "little": ((-0.26, 0.10), (-0.165, 0.135), (-0.125, 0.085)),
    "ring": ((-0.24, 0.055), (-0.115, 0.085), (-0.075, 0.035)),
    "middle": ((-0.225, 0.005), (-0.095, 0.035), (-0.012, 0.016)),
    "index": ((-0.225, -0.045), (-0.105, -0.062), (0.012, -0.004)),
    "thumb": ((-0.285, -0.10), (-0.135, -0.115), (-0.012, -0.026)),
}
SPREAD = {
    "little": ((-0.24, 0.10), (-0.13, 0.145), (-0.045, 0.165)),
    "ring": ((-0.22, 0.055), (-0.09, 0.075), (0.012, 0.085)),
    "middle": ((-0.21, 0.005), (-0.07, 0.01), (0.045, 0.01)),
    "index": ((-0.215, -0.045), (-0.09, -0.055), (0.015, -0.06)),
    "thumb": ((-0.29, -0.10), (-0.19, -0.15), (-0.10, -0.165)),
}
GIRTH = {"little": 0.024, "ring": 0.028, "middle": 0.030, "index": 0.029, "thumb": 0.034}
PALM = (
    (-0.47, -0.065), (-0.40, -0.085), (-0.30, -0.125), (-0.235, -0.085), (-0.205, -0.03),
    (-0.205, 0.03), (-0.22, 0.085), (-0.255, 0.13), (-0.36, 0.115), (-0.47, 0.07),
)  # fmt: skip


def hand(glove: Glove, side: str, pose: str, light: float, grip_x: float) -> list[Patch]:
    """A hand and its sleeve.

    Args:
        glove: its look.
        side: "left" or "right".
        pose: "pinch" to hold something, "spread" to press.
        light: light_across of the arm.
        grip_x: where the fingertips meet, in the frame of the held thing.
    """
    patches, still, tilt, ends = _template(glove, side, pose, grip_x)
    moved = still + light * tilt
    starts = (0, *ends[:-1])
    return [
        Patch(moved[start:end], patch.colour, patch.part)
        for patch, start, end in zip(patches, starts, ends, strict=True)
    ]


@lru_cache(maxsize=64)
def _template(
    glove: Glove, side: str, pose: str, grip_x: float
) -> tuple[list[Patch], np.ndarray, np.ndarray, tuple[int, ...]]:
    """Return the hand's patches, all their points under light 0, and how light 1 moves each.

    The shading moves linearly with the light, so a hand is shaped once. The last value holds
    where each patch ends among the points.
    """
    dark, lit = (_shaped(glove, side, pose, light, grip_x) for light in (0.0, 1.0))
    still = np.concatenate([patch.points for patch in dark])
    tilt = np.concatenate([patch.points for patch in lit]) - still
    ends = np.cumsum([len(patch.points) for patch in dark])
    return dark, still, tilt, tuple(int(end) for end in ends)


def _shaped(glove: Glove, side: str, pose: str, light: float, grip_x: float) -> list[Patch]:
    mirror = 1.0 if side == "right" else -1.0
    lamp = np.array([-0.25, light])
    fingers = PINCH if pose == "pinch" else SPREAD
    shift = np.array([grip_x, 0.0])
    patches = _sleeve(glove, lamp, shift)
    order = ["thumb", "palm", "little", "ring", "middle", "index"]
    if pose == "pinch":
        order = ["palm", "little", "ring", "middle", "thumb", "index"]
    for name in order:
        if name == "palm":
            patches += _palm(glove, lamp, shift, mirror)
            continue
        joints = np.array(fingers[name]) * (1.0, mirror)
        if pose == "pinch" and name in ("little", "ring"):
            joints[2] += (joints[0] - joints[2]) * 0.35 * glove.curl
        path = smooth_open(joints, 6) + shift
        girth = GIRTH[name] * glove.plump
        thick = girth * np.interp(
            np.linspace(0, 1, len(path)), [0, 0.5, 0.9, 1], [1.1, 1, 0.86, 0.72]
        )
        patches += chain(path, thick, glove.latex, lamp, W, levels=4)
        patches += _creases(path, girth, glove)
    return patches


def _palm(glove: Glove, lamp: np.ndarray, shift: np.ndarray, mirror: float) -> list[Patch]:
    """The back of the hand, rounded by nested outlines, with tendons and knuckles."""
    outline = smooth_closed(np.array(PALM) * (1.0, mirror * (0.5 + 0.5 * glove.plump)), 5) + shift
    centre = outline.mean(axis=0)
    share = np.linspace(0.0, 1.0, 5)[:, None, None]
    patches = nested(
        centre + (outline - centre) * (1 - 0.7 * share) + lamp * 0.034 * share, glove.skin, W
    )
    for y in (0.10, 0.055, 0.005, -0.045):
        line = np.array([[-0.37, y * 0.75], [-0.29, y * 0.93], [-0.225, y]]) * (1.0, mirror) + shift
        patches.append(
            Patch(ribbon(line - lamp * 0.010, [0.003, 0.006, 0.009]), glove.latex.at(0.3))
        )
        patches.append(
            Patch(ribbon(line + lamp * 0.004, [0.002, 0.005, 0.010]), glove.latex.at(0.85))
        )
    return patches


def _creases(path: np.ndarray, girth: float, glove: Glove) -> list[Patch]:
    """Folds of the glove at the middle joint, and the wet line along the finger."""
    place = len(path) // 2
    way = path[place + 1] - path[place - 1]
    way = way / np.hypot(*way)
    side = np.array([-way[1], way[0]]) * girth * 0.8
    fold = glove.latex.at(0.28)
    return [
        Patch(
            np.stack((at - side, at - side * 0.2 + way * w, at + side, at - side * 0.2 - way * w)),
            fold,
        )
        for at, w in ((path[place] - way * 0.012, 0.004), (path[place] + way * 0.006, 0.005))
    ]


def _sleeve(glove: Glove, lamp: np.ndarray, shift: np.ndarray) -> list[Patch]:
    """The gown's arm, and the glove's rolled cuff over it."""
    arm = np.array([[-2.6, 0.0], [-1.2, 0.0], [-0.58, 0.0], [-0.50, 0.0]]) + shift
    patches = chain(arm, [0.26, 0.17, 0.105, 0.10], glove.gown, lamp, Part.BODY, levels=5)
    for x, lean in ((-0.72, 0.05), (-0.86, -0.04), (-1.05, 0.06), (-1.3, -0.05)):
        fold = np.array([[x - lean, -0.09], [x, 0.0], [x + lean, 0.10]]) + shift
        crease = ribbon(smooth_open(fold, 5), np.linspace(0.010, 0.002, 11))
        patches.append(Patch(crease, glove.gown.at(0.25)))
        patches.append(Patch(crease + lamp * 0.014, glove.gown.at(0.75)))
    cuff = np.array([[-0.57, 0.0], [-0.52, 0.0], [-0.43, 0.0]]) + shift
    patches += chain(cuff, [0.098, 0.088, 0.070], glove.skin, lamp, W, levels=3)
    roll = ribbon(np.array([[-0.565, -0.094], [-0.575, 0.0], [-0.565, 0.094]]) + shift, [0.008] * 3)
    patches.append(Patch(roll, glove.latex.at(0.85)))
    return patches

"""Instruments of open surgery, held at (-length, 0): tip at the origin, pointing along +x."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import numpy as np

from refinerank_core.phantom.geometry import ribbon, smooth_closed, smooth_open
from refinerank_core.phantom.looks import Look
from refinerank_core.phantom.shapes import (
    Metal,
    Part,
    Patch,
    bevelled,
    box_points,
    chain,
    disc,
    tube,
    turned,
)

W = Part.WORKING
BODY = Part.BODY
CLOTH = Metal((150, 150, 146), (226, 226, 222), (255, 255, 254))
THREAD = Metal((30, 30, 60), (56, 56, 110), (120, 120, 190))


def tweezers(look: Look, opening: float, light: float) -> list[Patch]:
    """Two springy legs that meet at the tip; their joined end leaves the hand behind."""
    half, length = look.width / 2, look.length
    lamp = np.array([-0.2, light])
    patches = []
    for side in (1, -1):
        legs = np.array([[-length * 2.0, 0.1], [-length, 1.15], [-length * 0.4, 0.8], [0.0, 0.14]])
        path = smooth_open(legs * (1.0, half * side), 6)
        path[:, 1] += side * opening * 0.16 * np.clip(1 + path[:, 0] / length, 0, 1) * length * 0.5
        thick = half * np.interp(path[:, 0], [-length * 2, -length, 0], [0.5, 0.62, 0.22])
        held = int(np.searchsorted(path[:, 0], -length))
        patches += chain(path[: held + 2], thick[: held + 2], look.steel, lamp, BODY)
        patches += chain(path[held:], thick[held:], look.steel, lamp, W)
    for groove in np.linspace(0.75, 0.95, 4):
        for side in (1, -1):
            x, y = -length * groove, side * half * 1.1
            patches.append(
                Patch(box_points(x, x + 0.005, y - half * 0.4, y + half * 0.4), (70, 72, 76))
            )
    return patches


def scalpel(look: Look, opening: float, light: float) -> list[Patch]:
    """A flat handle and a bright belly-edged blade."""
    half, length = look.width / 2, look.length
    lamp = np.array([-0.2, light])
    side = -1.0 if look.flipped else 1.0
    patches = tube(
        (-length * 0.98, -length * 2.4), (half * 0.9, half * 0.7), look.steel, light, BODY
    )
    patches += tube(
        (-length * 1.02, -length * 0.52), (half * 0.9, half * 0.66), look.steel, light, W
    )
    for rib in np.linspace(0.62, 0.92, 5):
        patches.append(
            Patch(
                box_points(-length * rib, -length * rib + 0.005, -half * 0.6, half * 0.6),
                (84, 86, 92),
            )
        )
    blade = np.array(
        [
            [-0.56, -0.5],
            [-0.2, -0.56],
            [0.0, -0.5],
            [-0.06, 0.3],
            [-0.2, 0.85],
            [-0.34, 0.9],
            [-0.56, 0.5],
        ]
    ) * (length, half * side * 1.25)
    patches += bevelled(blade, look.steel, lamp, W)
    edge = np.array([[0.0, -0.5], [-0.06, 0.3], [-0.2, 0.85], [-0.34, 0.9]]) * (
        length,
        half * side * 1.25,
    )
    patches.append(Patch(ribbon(smooth_open(edge, 4), np.full(13, half * 0.14)), (252, 253, 255)))
    slot = np.array([[-0.5, -0.1], [-0.24, -0.14], [-0.24, 0.14], [-0.5, 0.16]]) * (
        length,
        half * side,
    )
    patches.append(Patch(slot, look.steel.at(0.2)))
    return patches


def needle_holder(look: Look, opening: float, light: float) -> list[Patch]:
    """Two crossed shanks, a screw, short stout jaws, and a curved needle with its thread."""
    half, length = look.width / 2, look.length
    hinge = -length * 0.36
    lamp = np.array([-0.2, light])
    patches = []
    for side in (1, -1):
        shank = np.array([[-length * 2.2, 1.5], [-length, 0.8], [hinge, 0.1]]) * (1.0, half * side)
        path = smooth_open(shank, 6)
        held = len(path) // 2
        patches += chain(path[: held + 1], np.full(held + 1, half * 0.34), look.steel, lamp, BODY)
        rest = path[held:]
        patches += chain(rest, np.full(len(rest), half * 0.36), look.steel, lamp, W)
        jaw = np.array(
            [[hinge - half * 0.5, 0.5], [hinge * 0.5, 0.62], [0.0, 0.3], [0.0, 0.02], [hinge, 0.0]]
        )
        jaw = turned(jaw * (1.0, half * side), side * opening * 0.3, (hinge, 0.0))
        patches += bevelled(jaw, look.steel, lamp, W)
    patches.append(Patch(disc(hinge, 0.0, half * 0.56), look.steel.at(0.2), W))
    patches.append(Patch(disc(hinge, half * 0.14 * light, half * 0.34), look.steel.at(0.95)))
    sweep = np.linspace(-0.5, 2.3, 12)
    hand_side = -1.0 if look.flipped else 1.0
    ring = np.stack(
        (np.cos(sweep) * 0.034 - 0.022, hand_side * (np.sin(sweep) * 0.034 - 0.004)), axis=1
    )
    patches += chain(ring, np.full(12, 0.0042), look.steel, lamp, W, levels=3)
    thread = np.array(
        [ring[-1], ring[-1] + (-0.06, hand_side * 0.07), ring[-1] + (-0.02, hand_side * 0.17)]
    )
    patches += chain(smooth_open(thread, 5), np.full(11, 0.0028), THREAD, lamp, Part.DECORATION)
    return patches


def gauze(look: Look, opening: float, light: float) -> list[Patch]:
    """A crumpled white swab under the fingertips."""
    size = look.length
    lamp = np.array([-0.2, light])
    turns = np.linspace(0, 2 * np.pi, 11, endpoint=False)
    uneven = 1 + 0.13 * np.sin(turns * 3 + look.curve * 6) + 0.08 * np.cos(turns * 5 + look.marks)
    ring = np.stack((np.cos(turns) * 0.62, np.sin(turns) * 0.52), axis=1) * uneven[:, None] * size
    outline = smooth_closed(ring - (size * 0.5, 0.0), 5)
    centre = outline.mean(axis=0)
    patches = []
    for level in range(4):
        inner = centre + (outline - centre) * (1 - 0.22 * level) + lamp * 0.008 * level
        patches.append(
            Patch(inner, CLOTH.at(0.15 + 0.22 * level), W if level == 0 else Part.DECORATION)
        )
    for fold in range(6):
        turn = fold * 1.05 + look.curve * 5
        start = centre + np.array([np.cos(turn), np.sin(turn)]) * size * 0.52
        bend = centre + np.array([np.cos(turn + 0.5), np.sin(turn + 0.5)]) * size * 0.26
        crease = ribbon(
            smooth_open(np.stack((start, bend, centre)), 4), np.linspace(0.012, 0.002, 9)
        )
        tone = CLOTH.rim if fold % 2 else CLOTH.shine
        patches.append(Patch(crease, tone, opacity=0.55))
    if look.marks:
        stain = disc(float(centre[0] + size * 0.2), float(size * 0.1 * look.curve), size * 0.2)
        patches.append(Patch(stain, (150, 20, 22), opacity=0.6))
    return patches


DRAWERS: MappingProxyType[str, Callable[[Look, float, float], list[Patch]]] = MappingProxyType(
    {"tweezers": tweezers, "scalpel": scalpel, "needle holder": needle_holder, "gauze": gauze}
)

"""The seven laparoscopic instruments, drawn tip at the origin and pointing along +x."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import numpy as np

from refinerank_core.phantom.geometry import ribbon, smooth_closed, smooth_open
from refinerank_core.phantom.looks import Look, plastic
from refinerank_core.phantom.shapes import (
    Metal,
    Part,
    Patch,
    bevelled,
    box_points,
    chain,
    collar,
    disc,
    tube,
    turned,
)

W = Part.WORKING
GOLD = Metal((84, 58, 10), (206, 160, 60), (255, 240, 190))
REACH = 2.6  # how far back a shaft is drawn, view units


def shaft(look: Look, light: float) -> list[Patch]:
    """The round shaft behind the working end, wider towards the trocar."""
    half = look.width / 2
    patches = tube(
        (-look.length, -REACH), (half, half * 2.1), look.shaft, light, Part.BODY, levels=7
    )
    patches += collar(look.shaft, -look.length, half)
    for ring in range(look.marks):
        x = -look.length - (0.10 + 0.035 * ring)
        wide = half * (1 + 0.44 * (0.10 + 0.035 * ring))
        patches += [
            Patch(box_points(x - 0.012, x, -wide, wide), look.shaft.at(0.30)),
            Patch(box_points(x - 0.012, x, -wide * 0.5, wide * 0.62), look.shaft.at(0.80)),
        ]
    return patches


def _towards_lamp(light: float) -> np.ndarray:
    return np.array([-0.2, light])


def _jaw(points: np.ndarray, side: int, opening: float, hinge: float) -> np.ndarray:
    """Mirror a jaw drawn on the +y side and swing it open about the hinge."""
    return turned(points * (1.0, side), side * opening / 2, (hinge, 0.0))


def grasper(look: Look, opening: float, light: float) -> list[Patch]:
    """Two long straight jaws with a window in each, and teeth."""
    half, length = look.width / 2, look.length
    hinge, span = -length * 0.86, length * 0.86
    lamp = _towards_lamp(light)
    patches = tube((-length, hinge + half), (half, half * 0.92), look.steel, light, W)
    for side in (1, -1):
        path = np.array([[hinge, 0.3], [hinge + span * 0.5, 0.56], [0.0, 0.42]])
        path = smooth_open(path * (1.0, half), 5)
        jaw = _jaw(path, side, opening, hinge)
        patches += chain(jaw, np.linspace(half * 0.56, half * 0.36, len(jaw)), look.steel, lamp, W)
        slot = box_points(hinge + span * 0.3, hinge + span * 0.74, half * 0.38, half * 0.66)
        patches.append(Patch(_jaw(slot, side, opening, hinge), (34, 20, 20)))
        for tooth in np.linspace(0.35, 0.95, 6):
            x = hinge + span * tooth
            bite = np.array([[x, 0.02], [x + span * 0.05, 0.02], [x + span * 0.025, half * 0.26]])
            patches.append(Patch(_jaw(bite, side, opening, hinge), look.steel.at(0.15)))
    patches.append(Patch(disc(hinge + half * 0.2, 0.0, half * 0.34), look.steel.at(0.2)))
    patches.append(
        Patch(disc(hinge + half * 0.15, half * 0.1 * light, half * 0.2), (240, 242, 245))
    )
    return patches


def bipolar(look: Look, opening: float, light: float) -> list[Patch]:
    """Two bowed jaws in coloured insulation with bare metal ends."""
    half, length = look.width / 2, look.length
    hinge = -length * 0.8
    lamp = _towards_lamp(light)
    cover = plastic(look.accent)
    patches = tube((-length, hinge + half * 0.4), (half, half * 0.9), cover, light, W)
    for side in (1, -1):
        bow = np.array([[hinge, 0.2], [hinge * 0.7, 1.0], [hinge * 0.34, 1.02], [0.0, 0.34]])
        path = _jaw(smooth_open(bow * (1.0, half), 5), side, opening, hinge)
        patches += chain(path, np.linspace(half * 0.4, half * 0.26, len(path)), look.steel, lamp, W)
        covered = path[: len(path) * 3 // 4]
        patches += chain(covered, np.full(len(covered), half * 0.46), cover, lamp, W)
    return patches


def hook(look: Look, opening: float, light: float) -> list[Patch]:
    """A thin wire out of a pale ceramic collar, bent to an L."""
    half, length = look.width / 2, look.length
    lamp = _towards_lamp(light)
    side = -1.0 if look.flipped else 1.0
    reach = length * (0.34 + 0.12 * look.curve)
    ceramic = plastic((232, 214, 176))
    patches = tube((-length, -length * 0.52), (half, half * 0.7), ceramic, light, W)
    patches += tube((-length * 1.02, -length * 0.92), (half * 1.04,) * 2, BRASS, light, W)
    bend = np.array([[-length * 0.55, 0], [-half * 0.9, 0], [-half * 0.2, side * half * 0.35]])
    path = np.concatenate((bend, [[0.0, side * half], [-half * 0.1, side * reach]]))
    wire = smooth_open(path, 5)
    patches += chain(wire, np.full(len(wire), half * 0.33), look.steel, lamp, W, levels=4)
    return patches


BRASS = Metal((70, 44, 20), (168, 120, 66), (250, 220, 170))


def scissors(look: Look, opening: float, light: float) -> list[Patch]:
    """Two crossing pointed blades that curve the same way."""
    half, length = look.width / 2, look.length
    hinge = -length * 0.72
    lamp = _towards_lamp(light)
    bow = half * 0.9 * look.curve * (-1.0 if look.flipped else 1.0)
    patches = tube((-length, hinge - half * 0.2), (half, half * 0.8), look.steel, light, W)
    for side in (1, -1):
        edge = np.array([[hinge - half, -0.5], [hinge, -0.62], [hinge * 0.45, -0.3], [0.0, 0.12]])
        back = np.array([[hinge * 0.45, 0.62], [hinge, 0.74], [hinge - half, 0.5]])
        blade = np.concatenate((edge, back)) * (1.0, half)
        blade[:, 1] += bow * np.clip(1 - blade[:, 0] / hinge, 0, 1) ** 2 * side
        blade = _jaw(blade, side, opening * 1.25, hinge)
        patches += bevelled(blade, look.steel, lamp, W)
        patches.append(Patch(_jaw(edge * (1.0, half * 0.8), side, opening * 1.25, hinge), WHITE, W))
    patches.append(Patch(disc(hinge, 0.0, half * 0.46), look.steel.at(0.1), W))
    patches.append(Patch(disc(hinge, half * 0.1 * light, half * 0.28), look.steel.at(0.9)))
    return patches


WHITE = (246.0, 248.0, 250.0)


def clipper(look: Look, opening: float, light: float) -> list[Patch]:
    """A broad head with two blunt parallel jaws and a clip between them."""
    half, length = look.width * 0.62, look.length
    lamp = _towards_lamp(light)
    collar = plastic(look.accent)
    patches = tube((-length, -length * 0.62), (half * 0.9, half * 1.15), collar, light, W)
    for side in (1, -1):
        gap = 0.30 + opening * 0.5
        jaw = np.array(
            [[-0.64, 0.2], [-0.5, gap], [-0.12, gap], [0.0, gap + 0.2], [0.0, gap + 0.7]]
        )
        back = np.array([[-0.14, gap + 0.86], [-0.5, gap + 0.8], [-0.64, 1.1]])
        outline = np.concatenate((jaw, back)) * (length, half * side)
        patches += bevelled(outline, look.steel, lamp, W)
        leg = np.array([[-0.46, 0.06], [-0.4, gap * 0.72], [-0.02, gap * 0.9]]) * (
            length,
            half * side,
        )
        patches += chain(leg, np.full(3, half * 0.17), GOLD, lamp, W, levels=3)
    return patches


def irrigator(look: Look, opening: float, light: float) -> list[Patch]:
    """A plain pale tube, round at the end, with two rows of holes."""
    half, length = look.width * 0.46, look.length
    pale = plastic((198, 204, 208))
    patches = tube((-length, -half * 0.5), (half, half), pale, light, W, levels=7)
    patches += [
        Patch(disc(-half * 0.5, 0.0, half * 0.62, half), pale.at(0.5), W),
        Patch(disc(-half * 0.34, 0.0, half * 0.42, half * 0.74), (30, 24, 26)),
    ]
    for place in (0.22, 0.42, 0.62):
        for row in (-0.42, 0.42):
            hole = disc(-length * (place + 0.06 * row), row * half, half * 0.24, half * 0.2)
            patches.append(Patch(hole, (52, 42, 46)))
    return patches


def specimen_bag(look: Look, opening: float, light: float) -> list[Patch]:
    """A pale clear pouch on a wire rim."""
    size = look.length
    side = -1.0 if look.flipped else 1.0
    rim = np.stack(
        (np.cos(np.linspace(0, 2 * np.pi, 16)[:-1]), np.sin(np.linspace(0, 2 * np.pi, 16)[:-1])),
        axis=1,
    )
    mouth = rim * (size * 0.46, size * (0.16 + 0.25 * opening)) - (size * 0.46, 0.0)
    sack = np.array(
        [[-0.92, 0], [-0.86, 0.5], [-0.64, 0.92], [-0.36, 1.0], [-0.08, 0.72], [0.02, 0.2], [0, 0]]
    )
    sack = smooth_closed(sack * (size, size * side), 6)
    patches = [Patch(sack, (206, 212, 214), W, 0.88)]
    for fold in (0.25, 0.45, 0.62, 0.8):
        line = np.array([[-0.9 * fold, 0.1], [-0.5 - 0.3 * (fold - 0.5), 0.55], [-0.42, 0.9]])
        crease = ribbon(
            smooth_open(line * (size, size * side), 5), np.linspace(0.014, 0.003, 11) * 1
        )
        patches.append(
            Patch(crease, (250, 252, 252) if fold != 0.45 else (140, 148, 152), opacity=0.5)
        )
    patches += [
        Patch(mouth, (168, 174, 176), W, 0.85),
        Patch(mouth * (0.86, 0.8) - (size * 0.06, 0.0), (92, 84, 86), opacity=0.7),
    ]
    wire = np.concatenate((mouth, mouth[:1]))
    patches += chain(wire, np.full(len(wire), size * 0.016), plastic(look.accent), np.zeros(2), W)
    return patches


DRAWERS: MappingProxyType[str, Callable[[Look, float, float], list[Patch]]] = MappingProxyType(
    {
        "grasper": grasper,
        "bipolar": bipolar,
        "hook": hook,
        "scissors": scissors,
        "clipper": clipper,
        "irrigator": irrigator,
        "specimen bag": specimen_bag,
    }
)

"""Instruments of a flexible endoscope, drawn tip at the origin and pointing along +x."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import numpy as np

from refinerank_core.phantom.geometry import ribbon, smooth_open
from refinerank_core.phantom.looks import Look, plastic
from refinerank_core.phantom.shapes import (
    Metal,
    Part,
    Patch,
    box_points,
    chain,
    collar,
    disc,
    tube,
    turned,
)

W = Part.WORKING
REACH = 2.4
CERAMIC = Metal((150, 146, 140), (236, 234, 228), (255, 255, 255))


def sheath(look: Look, light: float, metal: Metal, *, coiled: bool) -> list[Patch]:
    """The flexible shaft behind the working end, gently bowed; coiled ones show their wire."""
    half, start = look.width / 2, -look.length
    along = np.linspace(start, -REACH, 9)
    bow = (look.curve - 0.6) * 0.22 * (start - along) ** 2
    path = np.stack((along, bow), axis=1)
    widths = half * np.linspace(1.0, 1.7, 9)
    patches = chain(path, widths, metal, np.array([0.0, light]), Part.BODY, levels=6)
    patches += collar(metal, start, half)
    if coiled:
        for place in np.linspace(0.02, 0.85, 26):
            x = start - place
            y = (look.curve - 0.6) * 0.22 * place**2
            wide = half * (1 + 0.7 * place / (REACH + start))
            ring = box_points(x - 0.007, x, y - wide, y + wide)
            patches.append(Patch(ring, metal.at(0.05), opacity=0.45))
    return patches


def forceps(look: Look, opening: float, light: float) -> list[Patch]:
    """Two short toothed cups on a steel joint."""
    half, length = look.width / 2, look.length
    hinge = -length * 0.66
    lamp = np.array([-0.2, light])
    patches = tube((-length, hinge), (half, half * 0.86), look.steel, light, W)
    for side in (1, -1):
        cup = np.array([[hinge, 0.24], [hinge * 0.66, 0.8], [hinge * 0.25, 0.86], [0.0, 0.36]])
        path = smooth_open(cup * (1.0, half * side), 5)
        path = turned(path, side * opening / 2, (hinge, 0.0))
        bulk = np.interp(np.linspace(0, 1, len(path)), [0, 0.6, 1], [0.42, 0.62, 0.34]) * half
        patches += chain(path, bulk, look.steel, lamp, W)
        hollow = ribbon(path[5:-2] - (0.0, side * half * 0.14), bulk[5:-2] * 0.36)
        patches.append(Patch(hollow, look.steel.at(0.08)))
        for tooth in np.linspace(0.2, 0.9, 5):
            x = hinge * (1 - tooth)
            bite = np.array([[x, 0.1], [x + 0.014, 0.1], [x + 0.007, 0.34]]) * (1.0, half * side)
            patches.append(
                Patch(turned(bite, side * opening / 2, (hinge, 0.0)), look.steel.at(0.85))
            )
    patches.append(Patch(disc(hinge, 0.0, half * 0.4), look.steel.at(0.1)))
    patches.append(Patch(disc(hinge, half * 0.12 * light, half * 0.24), look.steel.at(0.95)))
    return patches


def knife(look: Look, opening: float, light: float) -> list[Patch]:
    """A bare wire out of a pale sleeve; it ends in a ceramic ball or in a small hook."""
    half, length = look.width / 2, look.length
    lamp = np.array([-0.2, light])
    sleeve = plastic(look.accent)
    patches = tube((-length, -length * 0.58), (half, half * 0.82), CERAMIC, light, W)
    patches += tube((-length * 0.72, -length * 0.60), (half * 0.92, half * 0.86), sleeve, light, W)
    if look.marks % 2:
        path = np.array([[-length * 0.6, 0.0], [-half * 0.9, 0.0]])
        patches += chain(path, np.full(2, half * 0.28), look.steel, lamp, W)
        for share, tone in ((1.0, 0.25), (0.8, 0.6), (0.45, 0.95)):
            ball = disc(-half * 0.5, 0.12 * half * light * (1 - share), half * 0.56 * share)
            patches.append(Patch(ball, CERAMIC.at(tone), W if share == 1.0 else Part.DECORATION))
    else:
        side = -1.0 if look.flipped else 1.0
        bend = np.array([[-length * 0.6, 0], [-half * 0.6, 0], [0.0, side * 0.2 * half]])
        path = np.concatenate((bend, [[-half * 0.05, side * half * 1.1]]))
        path = smooth_open(path, 4)
        patches += chain(path, np.full(len(path), half * 0.30), look.steel, lamp, W)
    return patches


DRAWERS: MappingProxyType[str, Callable[[Look, float, float], list[Patch]]] = MappingProxyType(
    {"forceps": forceps, "knife": knife}
)

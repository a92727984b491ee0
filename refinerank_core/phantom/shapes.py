"""Drawn things as lists of flat patches, and the shaded forms they are built from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

import cv2
import numpy as np

from refinerank_core.phantom.geometry import LIGHT, Colour, rotation, stroke_outlines


class Part(Enum):
    """What a patch counts as in the truth."""

    BODY = 1  # shaft, sleeve: hides what lies below, is itself not boxed
    WORKING = 2  # the boxed part: tip, glove
    DECORATION = 3  # lies within a patch that was counted already


class Patch(NamedTuple):
    """One flat polygon (a tuple, because frames hold hundreds).

    Attributes:
        points: (N, 2) in the frame of the thing it belongs to.
        colour: RGB 0..255.
        part: how it counts.
        opacity: below 1 what lies below shines through (the truth ignores that).
    """

    points: np.ndarray
    colour: Colour
    part: Part = Part.DECORATION
    opacity: float = 1.0


@dataclass(frozen=True)
class Metal:
    """A shading ramp: colours from the dark rim of a round form to its highlight."""

    rim: Colour
    body: Colour
    shine: Colour

    def at(self, share: float) -> Colour:
        """Return the colour at share 0 (rim) to 1 (highlight)."""
        low, high = (self.rim, self.body) if share < 0.55 else (self.body, self.shine)
        mix = share / 0.55 if share < 0.55 else (share - 0.55) / 0.45
        r, g, b = (a + (c - a) * mix for a, c in zip(low, high, strict=True))
        return (r, g, b)


DARK_RING = Metal((14, 15, 18), (40, 42, 48), (110, 114, 122))
PALE_RING = Metal((130, 126, 120), (226, 222, 212), (255, 255, 255))


def collar(shaft: Metal, front: float, half: float) -> list[Patch]:
    """The ring that ends a shaft at x = front: what lies beyond it is the boxed working end."""
    ring = PALE_RING if sum(shaft.body) < 200 else DARK_RING
    return tube((front - 0.026, front), (half * 1.1, half * 1.1), ring, 0.0, Part.BODY, levels=4)


def light_across(angle: float) -> float:
    """Return how far the lamp lies to the +y side of a thing that points along angle: -1..1."""
    return float(-np.sin(angle) * LIGHT[0] + np.cos(angle) * LIGHT[1])


def box_points(x0: float, x1: float, y0: float, y1: float) -> np.ndarray:
    return np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])


def disc(x: float, y: float, radius: float, radius_y: float | None = None) -> np.ndarray:
    angles = np.linspace(0, 2 * np.pi, 14, endpoint=False)
    tall = radius if radius_y is None else radius_y
    return np.stack((x + radius * np.cos(angles), y + tall * np.sin(angles)), axis=1)


def turned(points: np.ndarray, angle: float, pivot: tuple[float, float]) -> np.ndarray:
    """Return points turned by angle about pivot."""
    return np.asarray((points - pivot) @ rotation(angle).T + pivot)


def tube(
    ends_x: tuple[float, float],
    half_widths: tuple[float, float],
    metal: Metal,
    light: float,
    part: Part,
    *,
    levels: int = 6,
) -> list[Patch]:
    """A straight round bar along x, shaded from rim to highlight.

    Args:
        ends_x: where it starts and ends.
        half_widths: at those ends.
        metal: its ramp.
        light: light_across of the thing, moves the highlight sideways.
        part: what the bar counts as.
        levels: shading steps.
    """
    share = np.linspace(0.0, 1.0, levels)
    reach = 1.0 - 0.92 * share**0.8
    middle = 0.5 * light * (1.0 - reach)
    across = np.stack((middle - reach, middle - reach, middle + reach, middle + reach), axis=1)
    start, end = half_widths
    corners = np.empty((levels, 4, 2))
    corners[:, :, 0] = (ends_x[0], ends_x[1], ends_x[1], ends_x[0])
    corners[:, :, 1] = across * (start, end, end, start)
    return nested(corners, metal, part)


def nested(outlines: np.ndarray, metal: Metal, part: Part) -> list[Patch]:
    """Outlines (L, N, 2) one inside the other, coloured from rim to highlight."""
    colours = ramp(metal, len(outlines))
    patches = [Patch(points, colour) for points, colour in zip(outlines, colours, strict=True)]
    patches[0] = Patch(outlines[0], colours[0], part)
    return patches


@lru_cache(maxsize=512)
def ramp(metal: Metal, levels: int) -> tuple[Colour, ...]:
    return tuple(metal.at(level / (levels - 1)) for level in range(levels))


def chain(
    path: np.ndarray,
    half_widths: Sequence[float] | np.ndarray,
    metal: Metal,
    light: np.ndarray,
    part: Part,
    *,
    levels: int = 4,
) -> list[Patch]:
    """A bent round form along a path: fingers, cords, curved jaws.

    Args:
        path: (N, 2) open path; its last end is rounded.
        half_widths: N half widths.
        metal: its ramp.
        light: (2,) direction of the lamp in this frame.
        part: what it counts as.
        levels: shading steps.
    """
    half = np.asarray(half_widths, dtype=np.float64)
    reaches = np.linspace(1.0, 0.18, levels)
    shifts = (0.42 * float(half.mean()) * (1.0 - reaches))[:, None] * light
    return nested(stroke_outlines(path, half, reaches, shifts), metal, part)


def bevelled(points: np.ndarray, metal: Metal, light: np.ndarray, part: Part) -> list[Patch]:
    """A flat plate with a dark rim below and a bright one towards the lamp."""
    centre = points.mean(axis=0)
    size = float(np.ptp(points, axis=0).min())
    inner = centre + (points - centre) * 0.80
    core = centre + (points - centre) * 0.50
    return [
        Patch(points, metal.at(0.12), part),
        Patch(inner + light * size * 0.06, metal.at(0.58)),
        Patch(core + light * size * 0.11, metal.at(0.92)),
    ]


def placed(patches: Sequence[Patch], angle: float, at: np.ndarray, scale: float) -> list[Patch]:
    """Turn, scale and move patches from their own frame into view units."""
    if not patches:
        return []
    joined = np.concatenate([patch.points for patch in patches])
    moved = joined @ (rotation(angle).T * scale) + at
    result, start = [], 0
    for patch in patches:
        end = start + len(patch.points)
        result.append(Patch(moved[start:end], patch.colour, patch.part, patch.opacity))
        start = end
    return result


def paint_patches(image: np.ndarray, patches: Sequence[Patch]) -> None:
    """Draw patches in view units on a (H, W, 3) uint8 picture, antialiased."""
    height, width = image.shape[:2]
    scale = np.array([width * 9 / 16, height]) * 16.0
    _paint_scaled(image, patches, scale, np.zeros(2))


def _paint_scaled(
    image: np.ndarray, patches: Sequence[Patch], scale: np.ndarray, origin: np.ndarray
) -> None:
    if not patches:
        return
    joined = np.concatenate([patch.points for patch in patches])
    corners = np.rint((joined - origin) * scale - 8.0).astype(np.int32)
    start = 0
    for patch in patches:
        points = corners[start : start + len(patch.points)]
        start += len(patch.points)
        if patch.opacity >= 1.0:
            cv2.fillPoly(image, [points], patch.colour, cv2.LINE_AA, 4)
        else:
            _blend(image, points, patch)


def paint_soft(image: np.ndarray, patches: Sequence[Patch], softness: float) -> None:
    """Draw patches as one soft thing: shading blurred by softness (view units), edges sharp."""
    height, width = image.shape[:2]
    solid = [patch for patch in patches if patch.part is not Part.DECORATION]
    if not solid:
        return
    scale = np.array([width * 9 / 16, height]) * 16.0
    corners = [np.rint(patch.points * scale - 8.0).astype(np.int32) for patch in solid]
    joined = np.concatenate(corners)
    x0, y0 = np.clip(joined.min(axis=0) // 16 - 2, 0, (width, height))
    x1, y1 = np.clip(joined.max(axis=0) // 16 + 3, 0, (width, height))
    if x1 - x0 < 2 or y1 - y0 < 2:
        return
    layer = np.empty((y1 - y0, x1 - x0, 3), np.uint8)
    layer[:] = np.asarray(solid[-1].colour, np.uint8)
    shift = np.array([x0, y0]) / (scale / 16.0)
    _paint_scaled(layer, patches, scale, shift)
    layer = np.asarray(cv2.GaussianBlur(layer, (0, 0), max(0.35, softness * height)))
    mask = np.zeros(layer.shape[:2], np.uint8)
    for points in corners:
        cv2.fillPoly(mask, [points - np.array([x0, y0], np.int32) * 16], 255, cv2.LINE_AA, 4)
    under = image[y0:y1, x0:x1]
    share = cv2.merge([mask] * 3)
    kept = cv2.multiply(under, cv2.bitwise_not(share), scale=1 / 255)
    image[y0:y1, x0:x1] = cv2.add(kept, cv2.multiply(layer, share, scale=1 / 255))


def _blend(image: np.ndarray, points: np.ndarray, patch: Patch) -> None:
    height, width = image.shape[:2]
    x0, y0 = np.clip(points.min(axis=0) // 16 - 1, 0, (width, height))
    x1, y1 = np.clip(points.max(axis=0) // 16 + 2, 0, (width, height))
    if x1 <= x0 or y1 <= y0:
        return
    under = image[y0:y1, x0:x1]
    over = under.copy()
    shifted = points - np.array([x0 * 16, y0 * 16], np.int32)
    cv2.fillPoly(over, [shifted], patch.colour, cv2.LINE_AA, 4)
    cv2.addWeighted(over, patch.opacity, under, 1.0 - patch.opacity, 0.0, under)

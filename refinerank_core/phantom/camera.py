"""The eye: how it drifts over the field, and what its glass lets through."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from refinerank_core.phantom.geometry import MARGIN, VIEW_CENTRE, VIEW_WIDTH
from refinerank_core.phantom.motion import Sway, eased


@dataclass(frozen=True, eq=False)
class Camera:
    """A hand-held camera.

    Attributes:
        drift: of 4 axes: right, down (view units), turn (radians), zoom (share).
    """

    drift: Sway

    @staticmethod
    def draw(rng: np.random.Generator) -> Camera:
        reach = rng.uniform(0.5, 1.0, 4) * (0.055, 0.045, 0.05, 0.045)
        return Camera(Sway.draw(rng, list(reach), (5.0, 17.0)))

    def to_view(self, time_s: float) -> np.ndarray:
        """Return the (2, 3) map from field points to view points."""
        right, down, turn, zoom = self.drift.at(time_s)
        size = 1.03 + zoom
        c, s = size * np.cos(turn), size * np.sin(turn)
        linear = np.array([[c, -s], [s, c]])
        centre = np.array(VIEW_CENTRE)
        shift = centre - linear @ centre + np.array([right, down])
        return np.concatenate((linear, shift[:, None]), axis=1)


def apply(affine: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Map (N, 2) or (2,) points through a (2, 3) affine."""
    return np.asarray(points @ affine[:, :2].T + affine[:, 2])


@dataclass(frozen=True, eq=False)
class Lens:
    """What one scope does to light.

    Attributes:
        circle: centre x, y and radius of the lit circle in view units; radius 9 means none.
        falloff: how much darker the rim is, 0..1.
        balance: (3,) gain of R, G, B.
        flicker: slow changes of exposure, one axis.
        flare: (start_s, length_s, gain) of one automatic-gain swing.
        blur: (start_s, length_s, sigma) of a spell out of focus; sigma in view units.
        softness: sigma always there.
    """

    circle: tuple[float, float, float]
    falloff: float
    balance: np.ndarray
    flicker: Sway
    flare: tuple[float, float, float]
    blur: tuple[float, float, float]
    softness: float

    @staticmethod
    def draw(rng: np.random.Generator, duration_s: float, *, circle_chance: float) -> Lens:
        has_circle = rng.random() < circle_chance
        radius = float(rng.uniform(0.56, 0.86)) if has_circle else 9.0
        x, y = np.array(VIEW_CENTRE) + rng.normal(0, 0.02, 2)
        return Lens(
            circle=(float(x), float(y), radius),
            falloff=float(rng.uniform(0.25, 0.55)),
            balance=rng.uniform(0.94, 1.06, 3) * rng.uniform(0.92, 1.1),
            flicker=Sway.draw(rng, [float(rng.uniform(0.02, 0.08))], (2.0, 9.0)),
            flare=(
                float(rng.uniform(0, duration_s)),
                float(rng.uniform(1.5, 4.0)),
                float(rng.uniform(-0.25, 0.3)),
            ),
            blur=(
                float(rng.uniform(0, duration_s)),
                float(rng.uniform(1.0, 2.5)),
                float(rng.uniform(0.001, 0.006)),
            ),
            softness=float(rng.uniform(0.0, 0.0012)),
        )

    def exposure(self, time_s: float) -> float:
        start, length, gain = self.flare
        swing = eased((time_s - start) / 0.6) * eased((start + length - time_s) / 0.9)
        return float(1.0 + self.flicker.at(time_s)[0] + gain * swing)

    def defocus(self, time_s: float) -> float:
        """Return the blur's sigma in view units."""
        start, length, sigma = self.blur
        spell = eased((time_s - start) / 0.5) * eased((start + length - time_s) / 0.5)
        return self.softness + sigma * spell

    def half_wh(self) -> tuple[float, float]:
        """Return half the width and height of what shows."""
        radius = self.circle[2]
        return min(radius, VIEW_WIDTH / 2), min(radius, 0.5)

    def within(self, places: dict[str, list[np.ndarray]]) -> dict[str, list[np.ndarray]]:
        """Return of each list the places that the circle shows, or else the one nearest to it."""
        middle, reach = np.array(self.circle[:2]), self.circle[2] - 0.14
        kept = {}
        for name, points in places.items():
            apart = [float(np.hypot(*(point - middle))) for point in points]
            seen = [point for point, far in zip(points, apart, strict=True) if far < reach]
            kept[name] = seen or [points[int(np.argmin(apart))]]
        return kept

    def gains(self, size_wh: tuple[int, int]) -> np.ndarray:
        """Return the (H, W, 3) float32 gain of every pixel: falloff, colour and circle."""
        width, height = size_wh
        cx, cy, radius = self.circle
        x = (np.arange(width, dtype=np.float32) + 0.5) * (VIEW_WIDTH / width) - cx
        y = (np.arange(height, dtype=np.float32) + 0.5) / height - cy
        distance = np.sqrt(x[None] ** 2 + y[:, None] ** 2)
        rim = distance / min(radius, 0.98)
        gain = 1.0 - self.falloff * np.clip(rim, 0, 1.2) ** 2.4
        edge = np.clip((radius - distance) * height / 1.4 + 0.5, 0, 1)
        glow = np.clip(gain, 0.1, 1) * (0.012 + 0.988 * edge)
        return np.asarray(glow[..., None] * self.balance.astype(np.float32))

    def hidden(self, size_wh: tuple[int, int]) -> np.ndarray | None:
        """Return (H, W) uint8, 255 where the circle's rim hides the view; None without a circle."""
        cx, cy, radius = self.circle
        if radius > 2:
            return None
        width, height = size_wh
        x = (np.arange(width, dtype=np.float32) + 0.5) * (VIEW_WIDTH / width) - cx
        y = (np.arange(height, dtype=np.float32) + 0.5) / height - cy
        return np.asarray(((x[None] ** 2 + y[:, None] ** 2) > radius**2).astype(np.uint8) * 255)


def field_maps(
    to_view: np.ndarray, size_wh: tuple[int, int], pulls: list[tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return where on the tissue canvas each frame pixel looks: two (H, W) float32 maps.

    Args:
        to_view: the camera's map from field to view.
        size_wh: of the frame.
        pulls: (place, offset) of tissue that a tool has drawn along, field units.
    """
    width, height = size_wh
    x_scale, y_scale = width / VIEW_WIDTH, float(height)
    inverse = cv2.invertAffineTransform(to_view)
    x = ((np.arange(width) + 0.5) / x_scale).astype(np.float32)[None]
    y = ((np.arange(height) + 0.5) / y_scale).astype(np.float32)[:, None]
    field_x = (inverse[0, 0] * x + (inverse[0, 1] * y + inverse[0, 2])).astype(np.float32)
    field_y = (inverse[1, 0] * x + (inverse[1, 1] * y + inverse[1, 2])).astype(np.float32)
    for place, offset in pulls:
        _drag(field_x, field_y, place, offset)
    return (field_x + MARGIN) * x_scale - 0.5, (field_y + MARGIN) * y_scale - 0.5


def _drag(field_x: np.ndarray, field_y: np.ndarray, place: np.ndarray, offset: np.ndarray) -> None:
    """Shift the look-up near place + offset back towards place, in place."""
    step = max(1, field_x.shape[0] // 64)
    dx = field_x[::step, ::step] - np.float32(place[0] + offset[0])
    dy = field_y[::step, ::step] - np.float32(place[1] + offset[1])
    weight = np.exp(-(dx**2 + dy**2) / np.float32(2 * 0.11**2))
    if step > 1:
        height, width = field_x.shape
        grow = np.array([[step, 0, 0], [0, step, 0]], np.float32)  # keeps cell 0 on pixel 0
        weight = cv2.warpAffine(
            weight, grow, (width, height), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
        )
    field_x -= weight * np.float32(offset[0])
    field_y -= weight * np.float32(offset[1])

"""A still field of tissue: organs painted one over the other, then lit once."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from refinerank_core.phantom.geometry import LIGHT, MARGIN, VIEW_WIDTH, Colour
from refinerank_core.phantom.noise import Field, fractal, softened

SUBPIXEL = 16  # cv2 takes polygon corners in sixteenths of a pixel (shift=4)


@dataclass(frozen=True)
class Material:
    """How a kind of tissue looks.

    Attributes:
        dark, light: RGB 0..255 at the two ends of its tone.
        gloss: 0 dry to 1 wet; wet tissue catches the lamp.
        bulge: how high it swells at its middle, in view units.
        reach: from the edge to the full swell, in view units.
        relief: strength of the small unevenness, in view units.
    """

    dark: Colour
    light: Colour
    gloss: float = 0.6
    bulge: float = 0.05
    reach: float = 0.12
    relief: float = 0.004


@dataclass(frozen=True, eq=False)
class Tissue:
    """A lit field, larger than the view by MARGIN on each side.

    Attributes:
        picture: (H, W, 4) uint8, RGB and how soon blood would reach the pixel (0 first).
        glint: (H, W) uint8, wet highlights, to be added with a parallax of their own.
        labels: (H, W) uint8, 0 or 1 + the index of the structure there.
    """

    picture: np.ndarray
    glint: np.ndarray
    labels: np.ndarray


class TissueCanvas:
    """Paints tissue at the pixel density of one frame size."""

    def __init__(self, size_wh: tuple[int, int]) -> None:
        self.x_scale, self.y_scale = size_wh[0] / VIEW_WIDTH, float(size_wh[1])
        self.size_wh = (
            round((VIEW_WIDTH + 2 * MARGIN) * self.x_scale),
            round((1 + 2 * MARGIN) * self.y_scale),
        )
        width, height = self.size_wh
        self.albedo = np.zeros((height, width, 3), np.float32)
        self.relief = np.zeros((height, width), np.float32)
        self.gloss = np.full((height, width), 0.4, np.float32)
        self.labels = np.zeros((height, width), np.uint8)

    def noise(
        self, rng: np.random.Generator, cells: float, octaves: int, stretch: float = 1.0
    ) -> Field:
        return fractal(rng, self.size_wh, cells=cells, octaves=octaves, stretch=stretch)

    def pixels(self, points: np.ndarray) -> np.ndarray:
        """Return view points (N, 2) as canvas pixel centres, in sixteenths, int32."""
        scaled = (points + MARGIN) * (self.x_scale, self.y_scale) - 0.5
        return np.asarray(np.rint(scaled * SUBPIXEL).astype(np.int32))

    def base(self, tone: Field, material: Material, relief: Field) -> None:
        """Cover the whole canvas with one material."""
        self.albedo[:] = _ramp(tone, material)
        self.relief[:] = relief * material.relief
        self.gloss[:] = material.gloss

    def paint(
        self,
        outline: np.ndarray,
        tone: Field,
        material: Material,
        relief: Field,
        *,
        label: int = 0,
        softness: float = 0.004,
        shade: float = 0.55,
        sunk: bool = False,
    ) -> None:
        """Lay one organ over what is there.

        Args:
            outline: (N, 2) view units.
            tone: canvas field, about -1.5..1.5, that runs from dark to light.
            material: of the organ.
            relief: canvas field of small unevenness.
            label: written into labels where the organ lies; 0 leaves them.
            softness: width of the blended edge, in view units.
            shade: how dark the crease around it is, 0..1.
            sunk: a hollow instead of a swelling.
        """
        pad = round(0.06 * self.y_scale) + 2
        corner_px = self.pixels(outline) / SUBPIXEL
        x0, y0 = np.maximum(np.floor(corner_px.min(axis=0)).astype(int) - pad, 0)
        x1, y1 = np.minimum(np.ceil(corner_px.max(axis=0)).astype(int) + pad, self.size_wh)
        if x1 - x0 < 4 or y1 - y0 < 4:
            return
        area = (slice(y0, y1), slice(x0, x1))
        solid = np.zeros((y1 - y0, x1 - x0), np.uint8)
        points = self.pixels(outline) - np.array([x0, y0], np.int32) * SUBPIXEL
        cv2.fillPoly(solid, [points], 255, cv2.LINE_AA, 4)
        alpha = softened(solid.astype(np.float32) / 255, softness * self.y_scale)

        crease = softened(solid.astype(np.float32) / 255, 0.025 * self.y_scale)
        self.albedo[area] *= (1.0 - shade * crease)[..., None]
        colour = _ramp(tone[area], material)
        self.albedo[area] += (colour - self.albedo[area]) * alpha[..., None]
        swell = material.bulge * self._dome(solid, material.reach)
        height = (-swell if sunk else swell) + relief[area] * material.relief
        self.relief[area] += (height - self.relief[area] * 0.85) * alpha
        self.gloss[area] += (material.gloss - self.gloss[area]) * alpha
        if label:
            self.labels[area][solid > 127] = label

    def _dome(self, solid: np.ndarray, reach: float) -> Field:
        """Return 0 at the rim to 1 further in than reach, rounded like a cushion."""
        height, width = solid.shape
        factor = max(1, round(self.y_scale / 90))
        small = cv2.resize(solid, (-(-width // factor), -(-height // factor)))
        bordered = cv2.copyMakeBorder(small, 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=0)
        bordered[[0, -1]] = bordered[[1, -2]]  # organs go on past the canvas
        bordered[:, [0, -1]] = bordered[:, [1, -2]]
        depth = cv2.distanceTransform((bordered > 127).astype(np.uint8), cv2.DIST_L2, 5)
        depth = depth[1:-1, 1:-1] * (factor / self.y_scale / reach)
        dome = np.sqrt(1.0 - (1.0 - np.clip(depth, 0, 1)) ** 2).astype(np.float32)
        dome = cv2.GaussianBlur(dome, (0, 0), 0.012 * self.y_scale / factor + 0.6)
        full = cv2.resize(dome, (width, height), interpolation=cv2.INTER_LINEAR)
        return softened(full, 0.7 * factor)  # without the steps of the small copy

    def strokes(
        self,
        paths: list[np.ndarray],
        widths: list[float],
        colour: Colour,
        *,
        strength: float,
        raised: float = 0.0,
        softness: float = 0.002,
    ) -> None:
        """Tint fine open paths: vessels, fibres, stitches (widths in view units)."""
        mask = np.zeros(self.labels.shape, np.uint8)
        for path, width in zip(paths, widths, strict=True):
            width_px = max(1, round(width * self.y_scale))
            faint = min(1.0, max(0.35, width * self.y_scale))  # finer than a pixel: weaker
            cv2.polylines(
                mask, [self.pixels(path)], False, int(255 * faint), width_px, cv2.LINE_AA, 4
            )
        x, y, width_box, height_box = cv2.boundingRect(mask)
        if not width_box:
            return
        area = (slice(y, y + height_box), slice(x, x + width_box))
        alpha = softened(mask[area].astype(np.float32) / 255, softness * self.y_scale) * strength
        self.albedo[area] += (np.asarray(colour, np.float32) - self.albedo[area]) * alpha[..., None]
        if raised:
            self.relief[area] += alpha * (raised / max(strength, 1e-6))

    def lit(self, rng: np.random.Generator, *, lamp_height: float = 0.85) -> Tissue:
        """Light the canvas with the scope's lamp and freeze it."""
        fine = self.noise(rng, 40, 2)
        uneven = self.relief + fine * 0.0004
        slope_x = cv2.Sobel(uneven, cv2.CV_32F, 1, 0, ksize=3, scale=self.x_scale / 8)
        slope_y = cv2.Sobel(uneven, cv2.CV_32F, 0, 1, ksize=3, scale=self.y_scale / 8)
        length = np.sqrt(1.0 + slope_x**2 + slope_y**2)
        lamp = np.array([LIGHT[0] * 0.55, LIGHT[1] * 0.55, lamp_height])
        lamp /= np.linalg.norm(lamp)
        facing = (-slope_x * lamp[0] - slope_y * lamp[1] + lamp[2]) / length
        picture = self.albedo * (0.30 + 0.86 * np.clip(facing, 0, 1.15))[..., None]
        half = lamp + np.array([0.0, 0.0, 1.0])
        half /= np.linalg.norm(half)
        mirror = (-slope_x * half[0] - slope_y * half[1] + half[2]) / length
        sheen = np.clip(mirror, 0, 1) ** 24 * 26.0
        shine = np.clip((mirror - 0.962) / 0.038, 0, 1) ** 2
        patchy = np.clip(self.noise(rng, 4, 3) * 0.9 + fine * 0.15 - 0.45, 0, 1)
        glint = self.gloss * shine * patchy * 420.0
        picture += (self.gloss * sheen * np.clip(0.6 + patchy, 0, 1.3))[..., None]
        reach = np.clip(128 + 50 * self.noise(rng, 3, 4), 1, 255)
        stacked = np.dstack((picture, reach))
        return Tissue(
            picture=np.clip(stacked, 0, 255).astype(np.uint8),
            glint=np.clip(glint, 0, 255).astype(np.uint8),
            labels=self.labels,
        )


def _ramp(tone: Field, material: Material) -> np.ndarray:
    """Return (H, W, 3): dark where tone is -1.3, light where it is 1.3."""
    share = np.clip(tone * 0.38 + 0.5, 0, 1)[..., None]
    dark, light = np.asarray(material.dark, np.float32), np.asarray(material.light, np.float32)
    return np.asarray(dark + (light - dark) * share)


def branching(
    rng: np.random.Generator,
    start: np.ndarray,
    heading: float,
    length: float,
    width: float,
    depth: int = 2,
) -> tuple[list[np.ndarray], list[float]]:
    """Grow a small tree of vessel paths: (paths in view units, their widths)."""
    steps = 10
    turns = heading + np.cumsum(rng.normal(0, 0.22, steps))
    path = start + np.cumsum(
        np.stack((np.cos(turns), np.sin(turns)), axis=1) * length / steps, axis=0
    )
    path = np.concatenate((start[None], path))
    paths, widths = [path], [width]
    forks = rng.integers(3, steps, 2)
    leans = rng.uniform(0.4, 0.9, 2)
    if depth > 0:
        for fork, lean, side in zip(forks, leans, (-1, 1), strict=True):
            more = branching(
                rng, path[fork], turns[fork] + side * lean, length * 0.55, width * 0.6, depth - 1
            )
            paths += more[0]
            widths += more[1]
    return paths, widths

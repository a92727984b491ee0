"""What comes between the field and the picture: shadow, blood, smoke, water, the sensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from refinerank_core.phantom.cast import Actor
from refinerank_core.phantom.geometry import VIEW_WIDTH, Colour
from refinerank_core.phantom.motion import Phase, eased, phase_at, swell
from refinerank_core.phantom.noise import fractal
from refinerank_core.phantom.shapes import Part, Patch

HOT = ("coagulating", "dissecting", "marking")
BLOODY = ("cutting", "dissecting")
BLOOD: Colour = (112.0, 8.0, 10.0)
SHADOW_SHIFT = np.array([0.022, 0.040])  # view units: the lamp sits up and to the left


@dataclass(frozen=True, eq=False)
class Weather:
    """Smoke and blood of one scene.

    Attributes:
        smoke: (h, w) float32 0..1, a cloud larger than the view.
        smoke_gain: how much smoke hot tools make; 0 none.
        haze: smoke that is always there, 0..1.
        bleeding: how far blood spreads by the end, 0..1.
        wind: (2,) cells per second.
    """

    smoke: np.ndarray
    smoke_gain: float
    haze: float
    bleeding: float
    wind: np.ndarray

    @staticmethod
    def draw(rng: np.random.Generator, *, smoky: float, bloody: float) -> Weather:
        cloud = fractal(rng, (128, 72), cells=3, octaves=3)
        return Weather(
            smoke=np.clip(0.5 + 0.32 * cloud, 0, 1).astype(np.float32),
            smoke_gain=smoky * float(rng.uniform(0.0, 0.42)),
            haze=smoky * float(rng.choice([0.0, rng.uniform(0.02, 0.12)], p=[0.65, 0.35])),
            bleeding=bloody * float(rng.uniform(0.05, 0.5)),
            wind=rng.uniform(-5, 5, 2),
        )

    def density(self, phases: Sequence[Phase], time_s: float) -> float:
        """Return how thick the smoke is, 0..1."""
        made = sum(
            eased((time_s - phase.start_s) / 2.0) * eased((phase.end_s + 4.0 - time_s) / 4.0)
            for phase in phases
            if phase.action in HOT and phase.start_s < time_s < phase.end_s + 4.0
        )
        return min(0.6, self.haze + self.smoke_gain * min(made, 1.4))

    def blood_level(self, phases: Sequence[Phase], time_s: float) -> float:
        """Return which reach values blood has come to, 0..255."""
        cut = sum(
            eased((time_s - phase.start_s) / (phase.end_s - phase.start_s))
            for phase in phases
            if phase.action in BLOODY
        )
        return float(255.0 * self.bleeding * (0.45 + 0.55 * (1.0 - 0.6 ** float(cut))))


def bleed(image: np.ndarray, reach: np.ndarray, level: float) -> None:
    """Wet the pixels whose reach lies below level with blood, in place."""
    wet = cv2.convertScaleAbs(
        cv2.subtract(np.full_like(reach, min(255, int(level))), reach), alpha=9
    )
    if not cv2.countNonZero(wet):
        return
    x, y, width, height = cv2.boundingRect(wet)
    area = (slice(y, y + height), slice(x, x + width))
    share = cv2.merge([wet[area]] * 3)
    under = image[area]
    dark = cv2.multiply(under, np.array([0.62, 0.16, 0.17, 0.0]))
    dark = cv2.add(dark, np.array([22.0, 2.0, 3.0, 0.0]))
    kept = cv2.multiply(under, cv2.bitwise_not(share), scale=1 / 255)
    image[area] = cv2.add(kept, cv2.multiply(dark, share, scale=1 / 255))


def cast_shadow(image: np.ndarray, patches: Sequence[Patch], strength: float) -> None:
    """Darken the field where the instruments keep the lamp off it, in place."""
    height, width = image.shape[:2]
    factor = max(2, round(height / 72))
    dark = np.zeros((-(-height // factor), -(-width // factor)), np.uint8)
    scale = np.array([width / VIEW_WIDTH, height]) / factor * 16
    for patch in patches:
        if patch.part is not Part.DECORATION:
            points = np.rint((patch.points + SHADOW_SHIFT) * scale - 8).astype(np.int32)
            cv2.fillPoly(dark, [points], 255, cv2.LINE_AA, 4)
    if not dark.any():
        return
    soft = cv2.GaussianBlur(dark, (0, 0), 0.020 * height / factor)
    shade = cv2.bitwise_not(cv2.convertScaleAbs(soft, alpha=strength))
    light = cv2.resize(shade, (width, height), interpolation=cv2.INTER_LINEAR)
    cv2.multiply(image, cv2.merge([light] * 3), image, 1 / 255)


def spread_smoke(
    image: np.ndarray, weather: Weather, density: float, time_s: float, tint: Colour
) -> None:
    """Veil the picture with drifting smoke, in place."""
    if density < 0.01:
        return
    height, width = image.shape[:2]
    shift = np.sin(time_s * 0.11 + np.arange(2)) * 12 + weather.wind
    crop = np.array([[1, 0, -14 - shift[0]], [0, 1, -8 - shift[1] * 0.5]], np.float32)
    cloud = cv2.warpAffine(weather.smoke, crop, (100, 56), borderMode=cv2.BORDER_REFLECT)
    thin = (cloud * (255 * density)).astype(np.uint8)
    veil = cv2.resize(thin, (width, height), interpolation=cv2.INTER_CUBIC)
    veil3 = cv2.merge([veil] * 3)
    kept = cv2.multiply(image, cv2.bitwise_not(veil3), scale=1 / 255)
    cv2.add(kept, cv2.multiply(veil3, np.array([*tint, 0.0]), scale=1 / 255), image)


def water(actor: Actor, time_s: float, tip: np.ndarray, angle: float) -> list[Patch]:
    """Return the jets of an irrigator that rinses."""
    phase = phase_at(actor.phases, time_s)
    if phase is None or phase.action != "rinsing":
        return []
    force = swell(time_s, phase.start_s, phase.end_s)
    patches = []
    for jet in range(5):
        beat = np.sin(time_s * 9.0 + jet * 2.1)
        lean = angle + (jet - 2) * 0.12 + 0.05 * beat
        reach = force * (0.10 + 0.025 * np.cos(time_s * 7 + jet))
        along = np.array([np.cos(lean), np.sin(lean)])
        side = np.array([-along[1], along[0]]) * 0.004
        far = tip + along * reach
        points = np.array([tip - side * 0.5, tip + side * 0.5, far + side * 1.6, far - side * 1.6])
        patches.append(Patch(points, (226, 236, 244), opacity=0.34 * force))
    return patches


def smear(image: np.ndarray, step_px: np.ndarray) -> np.ndarray:
    """Blur the picture along the way the camera moved during the exposure."""
    length = float(np.hypot(*step_px))
    if length < 1.2:
        return image
    size = int(np.ceil(length)) | 1
    kernel = np.zeros((size, size), np.float32)
    middle = (size - 1) / 2
    half = step_px / 2
    ends = np.rint((np.stack((-half, half)) + middle) * 16).astype(int)
    cv2.line(kernel, tuple(ends[0]), tuple(ends[1]), 1.0, 1, cv2.LINE_AA, 4)
    return np.asarray(cv2.filter2D(image, -1, kernel / max(float(kernel.sum()), 1e-6)))


@dataclass(frozen=True)
class Sensor:
    """How the picture is taken down, for stills that should look recorded.

    Attributes:
        noise: grain in grey levels.
        jpeg_quality: 1..100, or None for no compression.
    """

    noise: float = 0.0
    jpeg_quality: int | None = None

    def record(self, image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the picture with grain and compression."""
        if self.noise > 0:
            grain = rng.integers(0, 256, (*image.shape[:2], 1), dtype=np.uint8)
            spread = grain.astype(np.float32) * (self.noise * 3.4 / 255) - self.noise * 1.7
            image = np.clip(image + spread, 0, 255).astype(np.uint8)
        if self.jpeg_quality is not None:
            settings = [cv2.IMWRITE_JPEG_QUALITY, self.jpeg_quality]
            _, coded = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), settings)
            image = np.asarray(cv2.imdecode(coded, cv2.IMREAD_COLOR_RGB))
        return image

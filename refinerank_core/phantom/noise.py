"""Smooth random fields that look the same at every size they are asked for."""

from __future__ import annotations

import cv2
import numpy as np

Field = np.ndarray  # (H, W) float32


def fractal(
    rng: np.random.Generator,
    size_wh: tuple[int, int],
    *,
    cells: float,
    octaves: int,
    stretch: float = 1.0,
) -> Field:
    """Sum octaves of value noise to about zero mean and unit spread.

    Args:
        rng: drawn from in the same order whatever the size.
        size_wh: of the field, in pixels.
        cells: lattice cells over the field's height in the coarsest octave.
        octaves: each twice as fine and 0.55 times as strong as the one before.
        stretch: cells are this many times as wide as high.
    """
    width, height = size_wh
    total = np.zeros((height, width), np.float32)
    strength, power = 1.0, 0.0
    for octave in range(octaves):
        rows = max(2, round(cells * 2**octave))
        columns = max(2, round(cells * 2**octave * 1.7 / stretch))
        lattice = rng.standard_normal((rows, columns)).astype(np.float32)
        if rows < 2 * height:  # finer than the pixels would only alias
            layer = cv2.resize(lattice, (width, height), interpolation=cv2.INTER_CUBIC)
            cv2.scaleAdd(layer, strength, total, total)
        power += strength**2
        strength *= 0.55
    total *= 1.25 / np.sqrt(power)
    return total


def lobules(
    rng: np.random.Generator, size_wh: tuple[int, int], *, per_height: float
) -> tuple[Field, Field]:
    """Return packed rounded cells: (relief in 0..1, a value in -1..1 held by each cell)."""
    width, height = size_wh
    rows, columns = round(per_height), round(per_height * 1.7)
    shift = rng.uniform(-0.42, 0.42, (2, rows, columns))
    values = rng.uniform(-1, 1, rows * columns).astype(np.float32)
    ys, xs = np.mgrid[:rows, :columns]
    x_px = np.clip((xs + 0.5 + shift[0]) / columns * width, 0, width - 1).astype(int).ravel()
    y_px = np.clip((ys + 0.5 + shift[1]) / rows * height, 0, height - 1).astype(int).ravel()
    seeds = np.full((height, width), 255, np.uint8)
    seeds[y_px, x_px] = 0
    distance, nearest = cv2.distanceTransformWithLabels(
        seeds, cv2.DIST_L2, 3, labelType=cv2.DIST_LABEL_PIXEL
    )
    of_label = np.zeros(int(nearest.max()) + 1, np.float32)
    of_label[nearest[y_px, x_px]] = values
    radius = height / rows * 0.75
    relief = np.sqrt(np.clip(1.0 - (distance / radius) ** 2, 0.0, 1.0)).astype(np.float32)
    return relief, of_label[nearest]


def softened(field: Field, sigma_px: float) -> Field:
    """Return field under a Gaussian blur; wide ones are taken on a smaller copy."""
    if sigma_px < 0.3:
        return field
    if sigma_px <= 4:
        return np.asarray(cv2.GaussianBlur(field, (0, 0), sigma_px))
    factor = int(sigma_px / 2)
    height, width = field.shape[:2]
    small_wh = (max(2, width // factor), max(2, height // factor))
    small = cv2.resize(field, small_wh, interpolation=cv2.INTER_AREA)
    small = cv2.GaussianBlur(small, (0, 0), sigma_px * small_wh[1] / height)
    return np.asarray(cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR))

"""Stills as the small MedVLM sees them: varied, resized and cut by its own image processor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from torch import Tensor

from refinerank_core.phantom.medvlm_cells import mirrored
from refinerank_core.phantom.stills import Still
from refinerank_core.phantom.truth import FrameTruth


def cut_patches(
    image_processor: Any, images: Sequence[np.ndarray]
) -> tuple[Tensor, tuple[int, int]]:
    """Prepare pictures of one size.

    Args:
        image_processor: of the checkpoint.
        images: (H, W, 3) uint8 RGB each.

    Returns:
        (B, P, 3 * patch^2) float32 in the processor's order, a still's two equal time steps
        given once; and the grid (h, w) of patches.
    """
    cut = image_processor(images=list(images), return_tensors="pt")
    _, rows, columns = cut["image_grid_thw"][0].tolist()
    values = cut["pixel_values"].reshape(len(images), rows * columns, 3, 2, -1)
    return values[:, :, :, 0].flatten(2), (int(rows), int(columns))


def varied(still: Still, rng: np.random.Generator) -> tuple[np.ndarray, FrameTruth]:
    """Return a still in another light and, half of the time, in a mirror."""
    image, truth = still.image, still.truth
    if rng.random() < 0.5:
        image, truth = image[:, ::-1], mirrored(truth)
    gain = rng.uniform(0.8, 1.2) * rng.uniform(0.95, 1.05, 3)
    ramp = np.linspace(0, 1, 256)[:, None] ** rng.uniform(0.85, 1.2)
    table = np.clip(255 * ramp * gain, 0, 255).astype(np.uint8)[None]  # (1, 256, 3)
    return np.asarray(cv2.LUT(np.ascontiguousarray(image), table)), truth

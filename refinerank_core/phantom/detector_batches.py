"""Batches for the detector: varied stills under one caption, and what each picture owes to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

from refinerank_core.phantom.detector_captions import CaptionTokens, draw_caption, read_caption
from refinerank_core.phantom.detector_loss import Wanted
from refinerank_core.phantom.stills import Still
from refinerank_core.phantom.truth import FrameTruth

MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)
_LEAST_SHARE = 0.15  # a thing of which less shows is not asked for
_LEAST_PX = 3.0
_MIRRORED = {"left": "right", "right": "left"}


@dataclass(frozen=True, eq=False)
class Batch:
    """Pictures under one caption: the library's classes want one text for all."""

    pixels: Tensor
    caption: CaptionTokens
    wanted: tuple[Wanted, ...]


def prepare(
    rng: np.random.Generator, picked: Sequence[Still], processor: Any, size_wh: tuple[int, int]
) -> Batch:
    """Vary the pictures, draw a caption, and say what each picture owes to it."""
    varied = [vary(rng, still, size_wh) for still in picked]
    present = [name for _, names, _ in varied for name in names]
    caption = read_caption(processor.tokenizer, draw_caption(rng, present))
    wanted = []
    for _, names, boxes in varied:
        owed = caption.owed_by(names)
        asked = owed.sum(dim=1) > 0
        wanted.append(Wanted(torch.from_numpy(boxes)[asked], owed[asked]))
    pixels = np.stack([(image.astype(np.float32) / 255 - MEAN) / STD for image, _, _ in varied])
    return Batch(torch.from_numpy(pixels.transpose(0, 3, 1, 2).copy()), caption, tuple(wanted))


def vary(
    rng: np.random.Generator, still: Still, size_wh: tuple[int, int]
) -> tuple[np.ndarray, list[str], np.ndarray]:
    """One picture at the model's size, cropped, mirrored and relit at random, and its things.

    Returns:
        (H, W, 3) uint8, M class names, and (M, 4) float32 cx cy w h as fractions.
    """
    height, width = still.image.shape[:2]
    zoom = float(rng.uniform(0.72, 1.0)) if rng.random() < 0.5 else 1.0
    left = float(rng.uniform(0, (1 - zoom) * width))
    top = float(rng.uniform(0, (1 - zoom) * height))
    scale = np.array([size_wh[0] / (width * zoom), size_wh[1] / (height * zoom)])
    matrix = np.array([[scale[0], 0, -left * scale[0]], [0, scale[1], -top * scale[1]]])
    whole = zoom == 1.0
    image = (
        cv2.resize(still.image, size_wh, interpolation=cv2.INTER_AREA)
        if whole
        else cv2.warpAffine(still.image, matrix, size_wh, flags=cv2.INTER_LINEAR)
    )
    names, boxes = things_of(still.truth, (left, top, width * zoom, height * zoom))
    if rng.random() < 0.5:
        image = image[:, ::-1]
        boxes[:, 0] = 1 - boxes[:, 0]
        names = [" ".join(_MIRRORED.get(word, word) for word in name.split()) for name in names]
    return _relit(rng, image), names, boxes


def _relit(rng: np.random.Generator, image: np.ndarray) -> np.ndarray:
    gain = rng.uniform(0.75, 1.25) * rng.uniform(0.94, 1.06, 3)
    table = np.arange(256)[:, None] / 255
    curve = 255 * table ** rng.uniform(0.8, 1.25) * gain[None]
    curves = np.clip(curve, 0, 255).astype(np.uint8)[None]  # (1, 256, 3)
    return np.asarray(cv2.LUT(np.ascontiguousarray(image), curves))


def things_of(
    truth: FrameTruth, view: tuple[float, float, float, float]
) -> tuple[list[str], np.ndarray]:
    """The things that show in a part of the frame.

    Args:
        view: x, y, width, height of the part in pixels.

    Returns:
        M class names and (M, 4) float32 cx cy w h as fractions of the part.
    """
    left, top, width, height = view
    names: list[str] = []
    rows: list[tuple[float, float, float, float]] = []
    for thing in truth.objects:
        x0, y0, x1, y1 = (float(edge) for edge in thing.box)
        whole = max((x1 - x0) * (y1 - y0), 1e-6)
        x0, x1 = (min(max((x - left) / width, 0.0), 1.0) for x in (x0, x1))
        y0, y1 = (min(max((y - top) / height, 0.0), 1.0) for y in (y0, y1))
        share = thing.visible_share * (x1 - x0) * (y1 - y0) * width * height / whole
        small = (x1 - x0) * width < _LEAST_PX or (y1 - y0) * height < _LEAST_PX
        if small or share < _LEAST_SHARE:
            continue
        names.append(thing.name)
        rows.append(((x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0))
    return names, np.array(rows, np.float32).reshape(-1, 4)

"""Pictures and short videos after the small MedVLM's tower, with what is true of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from refinerank_core.phantom.batched_qwen import see, vision_angles
from refinerank_core.phantom.medvlm_pictures import cut_patches, varied
from refinerank_core.phantom.stills import Still, StillSet
from refinerank_core.phantom.truth import FrameTruth

MOST_FRAMES = 6


@dataclass(frozen=True, eq=False)
class Seen:
    """Pictures of a step after the tower.

    Attributes:
        truths: of the pictures.
        procedures: of the pictures.
        blocks: block outputs.
        merged: (B, cells, D).
        grid_hw: of patches.
    """

    truths: Sequence[FrameTruth]
    procedures: Sequence[str]
    blocks: dict[int, Tensor]
    merged: Tensor
    grid_hw: tuple[int, int]


class Viewer:
    """Shows stills to one small Qwen2.5-VL."""

    def __init__(self, model: Any, processor: Any, blocks: tuple[int, ...]) -> None:
        self._visual = model.model.visual
        self._image_processor = processor.image_processor
        self._blocks = blocks

    def look(self, stills: Sequence[Still], rng: np.random.Generator | None) -> Seen:
        """Pass stills through the tower, varied when a stream is given."""
        pairs = [
            (still.image, still.truth) if rng is None else varied(still, rng) for still in stills
        ]
        return self._see(pairs, [still.procedure for still in stills])

    def look_at_video(
        self, stills: StillSet, rng: np.random.Generator
    ) -> tuple[Seen, list[float], float]:
        """Pass some stills of one scene through the tower: seen, their times, mean distance."""
        places = stills.scene_places(int(rng.integers(len(stills))))
        count = int(rng.integers(2, min(MOST_FRAMES, len(places)) + 1))
        start = int(rng.integers(len(places) - count + 1))
        frames = [stills[place] for place in places[start : start + count]]
        look = int(rng.integers(1 << 30))  # one light and one mirror for all
        pairs = [varied(frame, np.random.default_rng(look)) for frame in frames]
        times = [round(frame.truth.time_s, 1) for frame in frames]
        return self._see(pairs, [frames[0].procedure]), times, float(np.mean(np.diff(times)))

    def _see(
        self, pairs: Sequence[tuple[np.ndarray, FrameTruth]], procedures: Sequence[str]
    ) -> Seen:
        patches, grid_hw = cut_patches(self._image_processor, [image for image, _ in pairs])
        angles = vision_angles(self._visual, grid_hw)
        blocks, merged = see(self._visual, patches, angles, self._blocks)
        return Seen([truth for _, truth in pairs], procedures, blocks, merged, grid_hw)

"""Draw a scene of the study again from its video's name: one frame, or a clip to look at."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from refinerank_core.phantom.clip import encode
from refinerank_core.phantom.scene import Scene
from refinerank_core.phantom.seeds import purpose_of
from refinerank_core.phantom.vocabulary import PROCEDURES
from refinerank_core.structures import Image

CLIP_FPS = 5
"""Questions ask on a grid of 0.2 s, so that a clip of so few frames has every asked one."""

_NAME = re.compile(r"phantom-([a-z-]+)-(\d{1,9})")


def scene_named(video: str) -> Scene | None:
    """The scene whose video has this name (`rows.video_id`), None where it is no such name."""
    found = _NAME.fullmatch(video)
    if found is None:
        return None
    procedure, seed = found[1].replace("-", " "), int(found[2])
    try:
        purpose_of(seed)
        return Scene.from_seed(seed, procedure) if procedure in PROCEDURES else None
    except ValueError:
        return None


def frame_at(scene: Scene, time_s: float, size_wh: tuple[int, int]) -> Image:
    """The picture that the study's models were shown at a time, without its grain."""
    return np.asarray(scene.render(time_s, size_wh)[0])


def write_short_clip(scene: Scene, path: Path, *, size_wh: tuple[int, int], until_s: float) -> None:
    """Write a scene's first seconds as a video of few frames a second.

    Args:
        scene: what to draw.
        path: the file to write.
        size_wh: of the frames; both even.
        until_s: the clip goes on a second longer than this, where the scene does.

    Raises:
        RefineRankError: an odd size.
    """
    last_s = min(until_s + 1.0, scene.duration_s - 1 / CLIP_FPS)
    frames = (
        frame_at(scene, index / CLIP_FPS, size_wh) for index in range(int(last_s * CLIP_FPS) + 1)
    )
    options = {"crf": "20", "preset": "veryfast"}
    encode(frames, path, size_wh=size_wh, fps=CLIP_FPS, options=options)

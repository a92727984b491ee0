"""Draw a scene of the study again from its video's name: one frame, or a clip to look at."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from refinerank_core.errors import RefineRankError
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
    width, height = size_wh
    if width % 2 or height % 2:
        raise RefineRankError(f"A clip needs an even size, got {width}x{height}.")
    last_s = min(until_s + 1.0, scene.duration_s - 1 / CLIP_FPS)
    with av.open(str(path), "w", options={"fflags": "+bitexact"}) as container:
        stream = container.add_stream("libx264", rate=CLIP_FPS)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.codec_context.thread_count = 1
        stream.time_base = Fraction(1, CLIP_FPS)
        stream.options = {"crf": "20", "preset": "veryfast"}
        for index in range(int(last_s * CLIP_FPS) + 1):
            image = frame_at(scene, index / CLIP_FPS, size_wh)
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts = index
            container.mux(stream.encode(frame))
        container.mux(stream.encode())

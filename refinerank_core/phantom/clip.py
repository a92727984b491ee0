"""A scene as an H.264 file."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av

from refinerank_core.phantom.scene import Scene
from refinerank_core.phantom.truth import FrameTruth

PRESET = "slow"


def write_clip(
    scene: Scene, path: Path, *, size_wh: tuple[int, int] = (480, 270), crf: int = 27
) -> list[FrameTruth]:
    """Render every frame of a scene into a video file.

    One encoder thread and no clock in the header: the same scene gives the same file.

    Args:
        scene: what to render.
        path: the file to write; its ending names the container.
        size_wh: of the frames; both even.
        crf: x264's constant quality, higher is smaller.

    Returns:
        The truth of each frame.

    Raises:
        ValueError: an odd size, which yuv420p cannot hold.
    """
    width, height = size_wh
    if width % 2 or height % 2:
        raise ValueError(f"size_wh must be even for yuv420p, got {size_wh}")
    truths = []
    with av.open(str(path), "w", options={"fflags": "+bitexact"}) as container:
        stream = container.add_stream("libx264", rate=scene.fps)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.codec_context.thread_count = 1
        stream.time_base = Fraction(1, scene.fps)
        stream.options = {"crf": str(crf), "preset": PRESET, "tune": "animation"}
        for index in range(scene.frame_count):
            image, truth = scene.render(index / scene.fps, size_wh)
            truths.append(truth)
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts = index
            for packet in stream.encode(frame):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)
    return truths

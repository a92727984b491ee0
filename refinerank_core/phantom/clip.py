"""A scene, or other drawn frames, as an H.264 file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path

import av

from refinerank_core.errors import RefineRankError
from refinerank_core.phantom.scene import Scene
from refinerank_core.phantom.truth import FrameTruth
from refinerank_core.structures import Image

PRESET = "slow"


def write_clip(
    scene: Scene, path: Path, *, size_wh: tuple[int, int] = (480, 270), crf: int = 27
) -> list[FrameTruth]:
    """Render every frame of a scene into a video file.

    Args:
        scene: what to render.
        path: the file to write; its ending names the container.
        size_wh: of the frames; both even.
        crf: x264's constant quality, higher is smaller.

    Returns:
        The truth of each frame.

    Raises:
        RefineRankError: an odd size.
    """
    truths: list[FrameTruth] = []

    def frames() -> Iterator[Image]:
        for index in range(scene.frame_count):
            image, truth = scene.render(index / scene.fps, size_wh)
            truths.append(truth)
            yield image

    options = {"crf": str(crf), "preset": PRESET, "tune": "animation"}
    encode(frames(), path, size_wh=size_wh, fps=scene.fps, options=options)
    return truths


def encode(
    frames: Iterable[Image],
    path: Path,
    *,
    size_wh: tuple[int, int],
    fps: int,
    options: Mapping[str, str],
) -> None:
    """Write frames as H.264.

    One encoder thread and no clock in the header: the same frames give the same file.

    Args:
        frames: one after the other, of one size.
        path: the file to write; its ending names the container.
        size_wh: of the frames; both even.
        fps: frames a second.
        options: of x264.

    Raises:
        RefineRankError: an odd size, which yuv420p cannot hold.
    """
    width, height = size_wh
    if width % 2 or height % 2:
        raise RefineRankError(f"A clip needs an even size, got {width}x{height}.")
    with av.open(str(path), "w", options={"fflags": "+bitexact"}) as container:
        stream = container.add_stream("libx264", rate=fps)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.codec_context.thread_count = 1
        stream.time_base = Fraction(1, fps)
        stream.options = dict(options)
        for index, image in enumerate(frames):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts = index
            container.mux(stream.encode(frame))
        container.mux(stream.encode())

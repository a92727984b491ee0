"""Writing RGB pictures as a video that browsers play."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
from av import VideoFrame
from av import open as open_container
from av.error import FFmpegError
from av.video.reformatter import ColorRange, Colorspace

from refinerank_core.errors import VideoError
from refinerank_core.structures import Float64, Image
from refinerank_core.whole_file import whole_file

_TICKS = 90_000  # per second: 25, 30000/1001 and milliseconds-to-11-microseconds all fit
_BT709 = 1  # ITU-T H.273: primaries, transfer curve and matrix of high-definition video


def write_video(path: Path, images: Iterable[Image], times_s: Sequence[float] | Float64) -> None:
    """Write pictures as H.264 in MP4: yuv420p, BT.709, index first, for any browser.

    An odd width or height is padded by repeating the last column or row, so that boxes on the
    pictures stay where they are. The file appears whole or not at all.

    Args:
        path: file to write; an older one is replaced.
        images: T pictures (H, W, 3) uint8 RGB of one size; taken one at a time.
        times_s: T presentation times in seconds, rising, kept to 1/90000 s.

    Raises:
        ValueError: no pictures, as many times as pictures are not given, sizes differ, or times
            do not rise.
        VideoError: the file cannot be written.
    """
    ticks = [round(time_s * _TICKS) for time_s in times_s]
    if not ticks or any(later <= earlier for earlier, later in pairwise(ticks)):
        raise ValueError(f"times_s must be at least one rising time, got {len(ticks)}")
    try:
        with whole_file(path) as fresh:
            _encode(fresh, images, ticks)
    except (FFmpegError, OSError) as error:
        raise VideoError(
            f"{path.name}: the video cannot be written. Check the folder's rights and space."
        ) from error


def _encode(path: Path, images: Iterable[Image], ticks: Sequence[int]) -> None:
    gaps = np.diff(ticks)
    usual_gap = int(np.median(gaps)) if len(gaps) else _TICKS
    with open_container(
        f"file:{path}", "w", format="mp4", options={"movflags": "faststart"}
    ) as container:
        stream = container.add_stream(
            "libx264", rate=Fraction(_TICKS, usual_gap), options={"crf": "18", "preset": "fast"}
        )
        stream.pix_fmt = "yuv420p"
        stream.time_base = stream.codec_context.time_base = Fraction(1, _TICKS)
        context = stream.codec_context
        context.color_primaries = context.color_trc = context.colorspace = _BT709
        context.color_range = ColorRange.MPEG
        size_hw: tuple[int, int] | None = None
        for tick, image in zip(ticks, images, strict=True):
            if size_hw is None:
                size_hw = image.shape[0], image.shape[1]
                stream.height, stream.width = (
                    size_hw[0] + size_hw[0] % 2,
                    size_hw[1] + size_hw[1] % 2,
                )
            elif size_hw != image.shape[:2]:
                raise ValueError(
                    f"pictures must be of one size, got {size_hw} and {image.shape[:2]}"
                )
            frame = VideoFrame.from_ndarray(_even(image), format="rgb24").reformat(
                format="yuv420p",
                dst_colorspace=Colorspace.ITU709,
                dst_color_range=ColorRange.MPEG,
            )
            frame.pts, frame.time_base, frame.duration = tick, Fraction(1, _TICKS), usual_gap
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def _even(image: Image) -> Image:
    """Repeat the last row and column where a side is odd."""
    height, width = image.shape[:2]
    padded = np.pad(image, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    return np.ascontiguousarray(padded)

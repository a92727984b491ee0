"""Clips whose every frame shows its own number, so that any reader can be checked by looking."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from av.video.stream import VideoStream

from refinerank_core.structures import Image

SIZE_WH = (96, 64)
_SIDE = 4  # cells along each side: white, 14 bits from high to low, black
_BITS = _SIDE * _SIDE - 2
X264 = {"preset": "ultrafast", "bf": "3", "g": "12", "sc_threshold": "0"}  # B-frames


def numbered(number: int, size_wh: tuple[int, int] = SIZE_WH) -> Image:
    """Draw a picture (H, W, 3) that shows a number from 0 to 16383 as a grid of cells."""
    width, height = size_wh
    bits = [1, *(number >> (_BITS - 1 - k) & 1 for k in range(_BITS)), 0]
    rows = np.arange(height) * _SIDE // height
    columns = np.arange(width) * _SIDE // width
    cells = np.array(bits, np.uint8).reshape(_SIDE, _SIDE) * np.uint8(200) + np.uint8(28)
    return np.repeat(cells[rows][:, columns][..., None], 3, axis=2)


def number_shown(image: Image) -> int | None:
    """Read the number back off a picture; None when the white and black corners are not there."""
    height, width = image.shape[:2]
    grey = image.astype(np.float64).mean(axis=2)
    means = [
        grey[
            int((row + 0.3) * height / _SIDE) : int((row + 0.7) * height / _SIDE),
            int((column + 0.3) * width / _SIDE) : int((column + 0.7) * width / _SIDE),
        ].mean()
        for row in range(_SIDE)
        for column in range(_SIDE)
    ]
    if means[0] < 170 or means[-1] > 85:
        return None
    return sum(int(mean > 128) << (_BITS - 1 - k) for k, mean in enumerate(means[1:-1]))


def encode(
    path: Path,
    images: Iterable[Image],
    *,
    codec: str = "libx264",
    rate: Fraction | int = 25,
    pts: Sequence[int] | None = None,
    time_base: Fraction | None = None,
    pix_fmt: str = "yuv420p",
    options: Mapping[str, str] | None = None,
    container_format: str | None = None,
    container_options: Mapping[str, str] | None = None,
    sample_aspect: Fraction | None = None,
) -> Path:
    """Encode pictures of one size; without pts they follow each other at the rate."""
    time_base = time_base or 1 / Fraction(rate)
    with av.open(
        f"file:{path}", "w", format=container_format, options=dict(container_options or {})
    ) as container:
        stream = container.add_stream(codec, rate=rate, options=dict(options or {}))
        assert isinstance(stream, VideoStream)
        stream.pix_fmt = pix_fmt
        stream.time_base = stream.codec_context.time_base = time_base
        for index, image in enumerate(images):
            if index == 0:
                stream.height, stream.width = image.shape[:2]
                if sample_aspect is not None:
                    stream.codec_context.sample_aspect_ratio = sample_aspect
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts = index if pts is None else pts[index]
            frame.time_base = time_base
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def numbered_clip(path: Path, count: int, **settings: object) -> Path:
    """Encode count numbered pictures; settings as for encode."""
    return encode(path, (numbered(index) for index in range(count)), **settings)  # type: ignore[arg-type]


def set_box(path: Path, name: bytes, offset: int, values: list[int]) -> None:
    """Overwrite 32-bit numbers at an offset behind the name of an MP4 box."""
    content = bytearray(path.read_bytes())
    at = content.index(name) + 4 + offset
    numbers = np.array(values, ">i4").tobytes()
    content[at : at + len(numbers)] = numbers
    path.write_bytes(bytes(content))

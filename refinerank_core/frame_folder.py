"""A folder of numbered frames, opened as a video."""

import re
from pathlib import Path

import numpy as np
from av.error import FFmpegError

from refinerank_core.errors import VideoError
from refinerank_core.footage import Footage
from refinerank_core.frame_display import read_display, show
from refinerank_core.frame_stream import PICTURE_SUFFIXES, open_input
from refinerank_core.structures import Image

_NUMBERED = re.compile(r"(?P<stem>.*_)?(?P<number>[0-9]+)")


class FolderPictures:
    """The pictures of a folder, each decoded when asked for."""

    def __init__(self, files: tuple[Path, ...], size_wh: tuple[int, int]) -> None:
        self._files = files
        self._size_wh = size_wh

    def read(self, index: int) -> Image | None:
        """Give the picture of a frame index, None when its file is damaged."""
        image = _read_picture(self._files[index])
        if image is None or image.shape[1::-1] != self._size_wh:
            return None
        return image

    def close(self) -> None:
        """Nothing is held open."""


def open_folder(folder: Path, name: str, fps: float) -> Footage:
    """Open a folder of pictures named by frame number, in the order of the numbers.

    Args:
        folder: holds pictures such as frame_9.jpg, frame_10.jpg or 00009.png; other files and
            folders inside are passed over.
        name: what to call it in messages.
        fps: numbers per second.

    Raises:
        VideoError: no numbered picture, a number twice, pictures of several videos or sizes, or
            none that can be decoded.
    """
    numbers, files, warnings = _numbered(folder, name)
    sizes = {size for path in files if (size := _stored_size_wh(path)) is not None}
    if len(sizes) > 1:
        found = ", ".join(f"{width}x{height}" for width, height in sorted(sizes)[:3])
        raise VideoError(
            f"{name}: the frames differ in size ({found}). Keep frames of one size in a folder."
        )
    first = next((image for path in files if (image := _read_picture(path)) is not None), None)
    if first is None:
        raise VideoError(f"{name}: none of its {len(files)} pictures can be read. Copy them again.")
    size_wh = (first.shape[1], first.shape[0])
    times_s = (np.array(numbers, dtype=np.float64) - numbers[0]) / fps
    period_s = float(times_s[-1] - times_s[-2]) if len(files) > 1 else 1 / fps
    return Footage(
        files=files,
        hash_names=True,
        times_s=times_s,
        end_s=float(times_s[-1]) + period_s,
        key_frames=tuple(range(len(files))),
        size_wh=size_wh,
        stored_size_wh=next(iter(sizes)),
        codec="frames",
        warnings=warnings,
        source=FolderPictures(files, size_wh),
    )


def read_picture(path: Path) -> Image:
    """Read one picture file as it is shown: (H, W, 3) uint8 RGB.

    Raises:
        VideoError: it is missing or damaged.
    """
    image = _read_picture(path)
    if image is None:
        raise VideoError(f"The picture {path.name} is missing or damaged. Copy it again.")
    return image


def _numbered(folder: Path, name: str) -> tuple[list[int], tuple[Path, ...], tuple[str, ...]]:
    """List a folder's numbered pictures: numbers rising, their files, and notes."""
    try:
        pictures = [
            path
            for path in folder.iterdir()
            if path.suffix.lower() in PICTURE_SUFFIXES
            and not path.name.startswith(".")
            and path.is_file()
        ]
    except OSError as error:
        raise VideoError(f"{name}: the folder cannot be read. Check its rights.") from error
    found: dict[int, Path] = {}
    stems: set[str] = set()
    for path in pictures:
        match = _NUMBERED.fullmatch(path.stem)
        if match is None:
            continue
        number = int(match["number"])
        if number in found and (match["stem"] or "") in stems:
            raise VideoError(f"{name}: two pictures have the frame number {number}. Keep one.")
        found[number] = path
        stems.add(match["stem"] or "")
    if not found:
        raise VideoError(
            f"{name}: the folder holds no numbered frames. Name them such as frame_000001.jpg."
        )
    if len(stems) > 1:
        raise VideoError(
            f"{name}: frames of {len(stems)} videos are mixed. Keep one video in a folder."
        )
    left_out = len(pictures) - len(found)
    notes = (f"{left_out} pictures without a frame number are left out",) if left_out else ()
    numbers = sorted(found)
    return numbers, tuple(found[number] for number in numbers), notes


def _stored_size_wh(path: Path) -> tuple[int, int] | None:
    """Size of a picture as its head tells, None when it tells none."""
    try:
        with open_input(path) as container:
            context = container.streams.video[0].codec_context
            return (context.width, context.height) if context.width else None
    except (FFmpegError, OSError, IndexError, ValueError):
        return None


def _read_picture(path: Path) -> Image | None:
    try:
        with open_input(path) as container:
            stream = container.streams.video[0]
            frame = next(container.decode(stream), None)
            if frame is None or frame.is_corrupt:
                return None
            return show(frame, read_display(frame, stream.sample_aspect_ratio)[0])
    except (FFmpegError, OSError, IndexError, ValueError):
        return None

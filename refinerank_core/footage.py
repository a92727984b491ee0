"""What the openers of files and of folders hand to the door: facts, and a source of pictures."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from refinerank_core.structures import Float64, Image


class FrameSource(Protocol):
    """Where a video's pictures come from. One caller at a time."""

    def read(self, index: int) -> Image | None:
        """Give the shown picture of a frame index, None when the bytes do not give it."""
        ...

    def close(self) -> None:
        """Let files and memory go; a later read takes them again."""
        ...


@dataclass(frozen=True, eq=False)
class Footage:
    """An opened file or folder.

    Attributes:
        files: what is hashed, in frame order.
        hash_names: whether the files' names are part of what is hashed (a folder's frames).
        times_s: (T,) float64, rising from 0.
        end_s: end of the last frame.
        key_frames: frame indices where decoding can start.
        size_wh: pixels as shown.
        stored_size_wh: pixels as coded.
        codec: FFmpeg's short name.
        warnings: sentences for a person.
        source: the pictures.
    """

    files: tuple[Path, ...]
    hash_names: bool
    times_s: Float64
    end_s: float
    key_frames: tuple[int, ...]
    size_wh: tuple[int, int]
    stored_size_wh: tuple[int, int]
    codec: str
    warnings: tuple[str, ...]
    source: FrameSource

"""The door to video: open a file or a folder of frames, ask for times and exact pictures."""

import hashlib
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Protocol, Self

import numpy as np
from av.container import InputContainer
from av.error import FFmpegError
from av.stream import Disposition
from av.video.stream import VideoStream
from numpy.typing import NDArray

from refinerank_core.errors import VideoError
from refinerank_core.frame_display import Display, read_display, show
from refinerank_core.frame_stream import FrameStream, open_input
from refinerank_core.frame_table import FrameTable, read_table
from refinerank_core.gop_cache import CACHE_BYTES, GopCache
from refinerank_core.structures import Float64, Frame, Image

_HASH_CHUNK_BYTES = 2**20
_TAIL_KEYS = 3  # groups of pictures tried from the end of a cut file
_HDR_CURVES = {16: "PQ", 18: "HLG"}


class FrameSource(Protocol):
    """Where a video's pictures come from."""

    def read(self, index: int) -> Image | None:
        """Give the shown picture of a frame index, None when the bytes do not give it."""
        ...

    def close(self) -> None:
        """Let files and memory go."""
        ...


class Video:
    """An open video: a table of times and a way to read exactly the picture asked for.

    Made by open_video. May be shared between threads: one lock per video. Closes itself as a
    context manager.

    Attributes:
        name: file or folder name, composed Unicode (NFC), never a path.
        times_s: (T,) float64, rising, seconds from the first frame; read-only.
        duration_s: from the first frame to the end of the last one.
        key_frames: frame indices where decoding can start, rising.
        size_wh: width and height as shown: square pixels, upright. Boxes live in this space.
        stored_size_wh: width and height as coded.
        codec: FFmpeg's short name of the codec, such as "h264".
        warnings: sentences a person should see, such as frames missing at the end.
    """

    def __init__(
        self,
        name: str,
        files: Sequence[Path],
        table: FrameTable,
        size_wh: tuple[int, int],
        stored_size_wh: tuple[int, int],
        codec: str,
        warnings: Sequence[str],
        source: FrameSource,
    ) -> None:
        self.name = name
        self.times_s: Float64 = table.times_s
        self.duration_s = table.end_s
        self.key_frames = tuple(int(index) for index in np.flatnonzero(table.key))
        self.size_wh = size_wh
        self.stored_size_wh = stored_size_wh
        self.codec = codec
        self.warnings = tuple(warnings)
        self._files = tuple(files)
        self._source = source
        self._lock = RLock()
        self._sha256: str | None = None

    def __len__(self) -> int:
        return len(self.times_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the file and the decoded pictures go; a later read opens it again."""
        with self._lock:
            self._source.close()

    @property
    def sha256(self) -> str:
        """Hash of the content, hex, read through the whole file once, when first asked for.

        A file: of its bytes. A folder: over each frame's name and bytes in frame order.
        """
        with self._lock:
            if self._sha256 is None:
                self._sha256 = _hash_files(self._files)
            return self._sha256

    def read_frame(self, index: int) -> Frame:
        """Read one frame, exactly that one.

        Args:
            index: 0-based position in presentation order.

        Returns:
            The frame, its image (H, W, 3) uint8 RGB in display size and orientation.

        Raises:
            IndexError: there is no such frame.
            VideoError: the file's bytes do not give this picture; others may still be read.
        """
        if not 0 <= index < len(self):
            raise IndexError(f"frame {index} of {len(self)}: indices are 0 to {len(self) - 1}")
        with self._lock:
            try:
                image = self._source.read(index)
            except (FFmpegError, OSError) as error:
                raise VideoError(
                    f"{self.name}: frame {index} cannot be read. Open the clip again."
                ) from error
        if image is None:
            raise VideoError(
                f"{self.name}: frame {index} of {len(self)} is damaged. Ask for another frame."
            )
        return Frame(image=image, index=index, time_s=float(self.times_s[index]))

    def nearest(self, time_s: float) -> tuple[int, float]:
        """Find the frame nearest to a time: (index, distance in seconds, never negative).

        Raises:
            VideoError: the time is farther than half a sampling period outside the video. The
                period is the gap between the two frames nearest to that end.
        """
        indices, errors_s = self.locate([time_s])
        return int(indices[0]), float(errors_s[0])

    def locate(self, times_s: Sequence[float] | Float64) -> tuple[NDArray[np.int64], Float64]:
        """Find the frames nearest to many times; of two equally near, the earlier.

        Args:
            times_s: N times in any order, seconds from the first frame.

        Returns:
            (N,) int64 frame indices and (N,) float64 distances in seconds, never negative.

        Raises:
            ValueError: a time is not a finite number.
            VideoError: as for nearest, naming the first such time.
        """
        asked = np.asarray(times_s, dtype=np.float64).reshape(-1)
        if not np.isfinite(asked).all():
            raise ValueError("times must be finite numbers of seconds")
        table = self.times_s
        after = np.clip(np.searchsorted(table, asked), 0, len(table) - 1)
        before = np.maximum(after - 1, 0)
        indices = np.where(
            np.abs(table[before] - asked) <= np.abs(table[after] - asked), before, after
        )
        errors_s = np.abs(table[indices] - asked)
        head_s, tail_s = self._end_periods_s()
        slack_s = 1e-6  # times that went through text have lost digits
        outside = (asked < -head_s / 2 - slack_s) | (asked > table[-1] + tail_s / 2 + slack_s)
        if outside.any():
            first = float(asked[outside][0])
            raise VideoError(
                f"{self.name}: no frame at {first:g} s; frames run from 0 to {table[-1]:.3f} s. "
                "Ask for a time inside the video."
            )
        return indices.astype(np.int64), errors_s

    def shown_at(self, time_s: float) -> int:
        """Index of the frame a player shows at a time: the last one that has begun.

        Times before the first frame give 0, times past the end the last frame.
        """
        index = int(np.searchsorted(self.times_s, time_s + 1e-9, side="right")) - 1
        return min(max(index, 0), len(self) - 1)

    def _end_periods_s(self) -> tuple[float, float]:
        if len(self) > 1:
            return float(self.times_s[1]), float(self.times_s[-1] - self.times_s[-2])
        return self.duration_s, self.duration_s


def _hash_files(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        if len(files) > 1:
            digest.update(unicodedata.normalize("NFC", path.name).encode() + b"\0")
        with path.open("rb") as file:
            while chunk := file.read(_HASH_CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()


class _ShownStream:
    """A decoded stream seen through its display."""

    def __init__(self, stream: FrameStream, display: Display, cache: GopCache) -> None:
        self._stream = stream
        self._display = display
        self._cache = cache

    def read(self, index: int) -> Image | None:
        frame = self._stream.read(index)
        return None if frame is None else show(frame, self._display)

    def close(self) -> None:
        self._stream.close()
        self._cache.clear()


def open_video(path: str | Path, *, cache_bytes: int = CACHE_BYTES) -> Video:
    """Open a video file for exact reading of any of its frames.

    Args:
        path: the file.
        cache_bytes: most memory held for decoded frames.

    Returns:
        The open video, with at least one frame.

    Raises:
        VideoError: missing, empty, unreadable, not a video, or no frame of it can be decoded.
    """
    path = Path(path)
    name = unicodedata.normalize("NFC", path.name)
    try:
        with open_input(path) as container:
            return _open_stream(path, name, container, cache_bytes)
    except (FFmpegError, OSError) as error:
        raise VideoError(
            f"{name}: not a video that can be read. Export the clip again as MP4, H.264."
        ) from error


def _open_stream(path: Path, name: str, container: InputContainer, cache_bytes: int) -> Video:
    stream, warnings = _choose_stream(name, container)
    by_pts = container.format.name.startswith("matroska")
    table, cut, notes = read_table(container, stream, by_pts)
    warnings += notes
    if table is None:
        raise VideoError(f"{name}: the video has no pictures. Export the clip again as MP4, H.264.")
    cache = GopCache(cache_bytes)
    frames = FrameStream(path, stream.index, table, cache)
    first = frames.first()
    if first is None:
        raise VideoError(f"{name}: no picture can be decoded. Export the clip again as MP4, H.264.")
    index, picture = first
    if index > 0:
        table = table.keep(slice(index, None))
        cache.clear()
        frames.close()
        frames = FrameStream(path, stream.index, table, cache)
    del cut
    display, notes = read_display(picture, stream.sample_aspect_ratio)
    warnings += notes
    return Video(
        name=name,
        files=[path],
        table=table,
        size_wh=display.size_wh,
        stored_size_wh=display.stored_size_wh,
        codec=stream.codec_context.codec.canonical_name,
        warnings=warnings,
        source=_ShownStream(frames, display, cache),
    )


def _choose_stream(name: str, container: InputContainer) -> tuple[VideoStream, list[str]]:
    """Pick the picture stream: the default one, then the largest, then the first."""
    streams = [
        stream
        for stream in container.streams.video
        if not stream.disposition & (Disposition.attached_pic | Disposition.timed_thumbnails)
    ]
    if not streams:
        reject_without_video(name, [stream.type for stream in container.streams])
    best = max(
        streams,
        key=lambda stream: (
            bool(stream.disposition & Disposition.default),
            stream.codec_context.width * stream.codec_context.height,
        ),
    )
    notes = []
    if len(streams) > 1:
        notes.append(f"{len(streams)} video streams: number {streams.index(best) + 1} is used")
    return best, notes


def reject_without_video(name: str, kinds: Sequence[str]) -> None:
    """Raise VideoError for a container that holds no picture stream."""
    found = ", ".join("cover picture" if kind == "video" else kind for kind in kinds)
    raise VideoError(
        f"{name}: no video stream ({found or 'no streams'}). Export the clip again as MP4, H.264."
    )

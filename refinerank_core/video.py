"""The door to video: open a file or a folder of frames, ask for times and exact pictures."""

import hashlib
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Self

import numpy as np
from av.error import FFmpegError
from numpy.typing import NDArray

from refinerank_core.errors import VideoError
from refinerank_core.footage import Footage
from refinerank_core.frame_folder import open_folder
from refinerank_core.gop_cache import CACHE_BYTES
from refinerank_core.structures import Float64, Frame
from refinerank_core.video_file import open_file

_HASH_CHUNK_BYTES = 2**20


class Video:
    """An open video: a table of times and a way to read exactly the picture asked for.

    Made by open_video. May be shared between threads: one lock per video. Closes itself as a
    context manager.

    Attributes:
        name: file or folder name, composed Unicode (NFC), never a path.
        path: where it lies on this machine, to open it again; it is never shown.
        times_s: (T,) float64, rising, seconds from the first frame; read-only.
        duration_s: from the first frame to the end of the last one.
        key_frames: frame indices where decoding can start, rising.
        size_wh: width and height as shown: square pixels, upright. Boxes live in this space.
        stored_size_wh: width and height as coded.
        codec: FFmpeg's short name of the codec, such as "h264".
        warnings: sentences a person should see, such as frames missing at the end.
    """

    def __init__(self, name: str, path: Path, footage: Footage, sha256: str | None = None) -> None:
        self.name = name
        self.path = path
        self.times_s: Float64 = footage.times_s
        self.times_s.setflags(write=False)
        self.duration_s = footage.end_s
        self.key_frames = footage.key_frames
        self.size_wh = footage.size_wh
        self.stored_size_wh = footage.stored_size_wh
        self.codec = footage.codec
        self.warnings = footage.warnings
        self._files = footage.files
        self._hash_names = footage.hash_names
        self._source = footage.source
        self._lock = RLock()
        self._sha256 = sha256

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

        Raises:
            VideoError: the file is gone or cannot be read any more.
        """
        with self._lock:
            if self._sha256 is None:
                try:
                    self._sha256 = _hash_files(self._files, self._hash_names)
                except OSError as error:
                    raise VideoError(
                        f"{self.name}: the file can no longer be read. Open the clip again."
                    ) from error
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


def open_video(
    path: str | Path,
    *,
    fps: float | None = None,
    cache_bytes: int = CACHE_BYTES,
    sha256: str | None = None,
) -> Video:
    """Open a video file, or a folder of numbered frames, for exact reading of any frame.

    A file's own time stamps are the clock. A folder has none: a frame's number (the digits after
    the last "_" of its name, or the whole name) counts source frames at fps per second, so its
    time is (number - first number) / fps.

    Args:
        path: the file or folder. A name in another Unicode form than on the disk is found.
        fps: for a folder: numbers per second; 1 when not given.
        cache_bytes: most memory held for decoded frames.
        sha256: the hash that the video goes by, where it is known; else that of its content.

    Returns:
        The open video, with at least one frame.

    Raises:
        ValueError: fps is given for a file, or is not above 0.
        VideoError: missing, empty, unreadable, not a video, or no frame of it can be decoded; a
            folder without numbered frames, or with frames of several sizes or videos.
    """
    if fps is not None and not fps > 0:
        raise ValueError(f"fps must be above 0, got {fps}")
    path = Path(path)
    name = unicodedata.normalize("NFC", path.name or path.absolute().name) or "video"
    place = _on_disk(path, name)
    if place.is_dir():
        return Video(name, place, open_folder(place, name, fps or 1.0), sha256)
    if fps is not None:
        raise ValueError("fps is for folders of frames: a file has its own time stamps")
    return Video(name, place, open_file(place, name, cache_bytes), sha256)


def _on_disk(path: Path, name: str) -> Path:
    """Find a path as the disk spells it (macOS decomposes accents); VideoError when missing."""
    try:
        path.stat()
        return path
    except (FileNotFoundError, NotADirectoryError) as error:
        for form in ("NFC", "NFD"):
            twin = path.with_name(unicodedata.normalize(form, path.name)) if path.name else path
            if twin.exists():
                return twin
        raise VideoError(f"{name}: no such file or folder. Check the path.") from error
    except (OSError, ValueError) as error:  # no permission, a name too long, a null character
        raise VideoError(f"{name}: the path cannot be read. Check it and its rights.") from error


def _hash_files(files: Sequence[Path], with_names: bool) -> str:
    digest = hashlib.sha256()
    for path in files:
        if with_names:
            digest.update(unicodedata.normalize("NFC", path.name).encode() + b"\0")
        with path.open("rb") as file:
            while chunk := file.read(_HASH_CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()

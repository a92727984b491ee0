"""The sampled frames of a MedVidBench row and the local times at which they lie."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from pathlib import Path, PurePosixPath
from typing import Any

from refinerank_core.formats.medvidbench_space import Convention
from refinerank_core.formats.rows import RowError

SERVER_ROOT = PurePosixPath("/root/data")
"""Where the benchmark's authors kept the frames; rows may name them so."""

_NUMBER = re.compile(r"(?:.*_)?(\d{1,12})")
_SUPPORT = 10  # a gap counts as the cadence when at least one gap in ten has it
_SLACK_S = 1e-6


@dataclass(frozen=True)
class Timeline:
    """Sampled frames of one clip, in order.

    Attributes:
        paths: T paths as the row has them.
        numbers: T frame numbers, rising.
        start: number at local time 0.
        cadence: numbers from one sampled frame to the next.
        rate_hz: numbers a second.
    """

    paths: tuple[str, ...]
    numbers: tuple[int, ...]
    start: int
    cadence: int
    rate_hz: float

    @property
    def times_s(self) -> tuple[float, ...]:
        """T local times in seconds."""
        return tuple((number - self.start) / self.rate_hz for number in self.numbers)

    @property
    def period_s(self) -> float:
        """Seconds between two sampled frames."""
        return self.cadence / self.rate_hz

    def nearest(self, time_s: float) -> int:
        """Place of the sampled frame nearest to a local time; of two equally near, the earlier.

        Raises:
            RowError: it is farther away than half a sampling period.
        """
        wanted = self.start + time_s * self.rate_hz
        after = min(bisect_left(self.numbers, wanted), len(self.numbers) - 1)
        places = range(max(after - 1, 0), after + 1)
        place = min(places, key=lambda at: (abs(self.numbers[at] - wanted), at))
        apart_s = abs(self.numbers[place] - wanted) / self.rate_hz
        if apart_s > self.period_s / 2 + _SLACK_S:
            raise RowError(
                f"{time_s:g} s has no sampled frame: the nearest lies {apart_s:.3f} s away, more "
                f"than half the sampling period of {self.period_s:g} s"
            )
        return place

    def holds(self, times_s: Sequence[float]) -> bool:
        """Whether each of these times has a sampled frame."""
        try:
            for time_s in times_s:
                self.nearest(time_s)
        except RowError:
            return False
        return True


def timeline_of(
    item: Mapping[str, Any], convention: Convention, wanted_s: Sequence[float]
) -> Timeline:
    """Read the timeline of a row.

    `metadata.fps` of the benchmark is the rate of sampling: frames 0, 25, 50 at fps 1 lie one
    second apart. Where that leaves a wanted time without a frame, and fps as the rate of frame
    numbers leaves none, the latter holds.

    Args:
        item: the row.
        convention: of its data set.
        wanted_s: the times that the row asks for or annotates.

    Raises:
        RowError: frames are missing, unnumbered, out of order, or nothing says how fast they come.
    """
    paths, numbers = _frames(item)
    metadata = item.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    start = _start(metadata, numbers[0])
    rate = _rate(metadata)
    if convention.rate_hz is not None:
        return Timeline(paths, numbers, start, _cadence(numbers, rate), convention.rate_hz)
    if rate is None:
        raise RowError("metadata.fps is missing")
    cadence = _cadence(numbers, rate)
    sampled = Timeline(paths, numbers, start, cadence, cadence * rate)
    counted = Timeline(paths, numbers, start, cadence, rate)
    return counted if not sampled.holds(wanted_s) and counted.holds(wanted_s) else sampled


def frame_number(path: str) -> int:
    """The number after the last "_" of a frame's file name.

    Raises:
        RowError: there is none.
    """
    stem = PurePosixPath(path.replace("\\", "/")).stem
    match = _NUMBER.fullmatch(stem)
    if match is None:
        raise RowError(f"the frame {stem[:60]!r} has no number after its last '_'")
    return int(match[1])


def local_path(path: str, data: Path) -> Path:
    """Where a frame lies on this machine.

    Args:
        path: as the row has it: below /root/data, or relative.
        data: the folder that stands for /root/data and from which relative paths start.

    Raises:
        RowError: the path leads out of that folder.
    """
    pure = PurePosixPath(path.replace("\\", "/"))
    if pure.is_relative_to(SERVER_ROOT):
        pure = pure.relative_to(SERVER_ROOT)
    if pure.is_absolute() or ".." in pure.parts or "\0" in path:
        raise RowError("a frame path leads out of the data folder. Name frames below /root/data")
    return data / pure


def _frames(item: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Paths and numbers of the sampled frames."""
    video, sampled = item.get("video"), item.get("sampled_video_frames")
    listed = video if isinstance(video, list) and video else sampled
    if not isinstance(listed, list) or not listed:
        raise RowError("the row lists no frames in video")
    if not all(isinstance(path, str) and path for path in listed):
        raise RowError("video is not a list of frame paths")
    paths = tuple(listed)
    numbers = tuple(frame_number(path) for path in paths)
    if any(after <= before for before, after in pairwise(numbers)):
        raise RowError("the frame numbers do not rise")
    if isinstance(sampled, list) and sampled and sampled is not listed:
        told = tuple(_told_number(one) for one in sampled)
        if told != numbers:
            raise RowError(
                f"video and sampled_video_frames differ ({len(numbers)} and {len(told)} frames)"
            )
    return paths, numbers


def _told_number(value: Any) -> int:
    if isinstance(value, str):
        return frame_number(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise RowError(f"sampled_video_frames holds {str(value)[:40]!r}, which is no frame number")
    return int(value)


def _start(metadata: Mapping[str, Any], first: int) -> int:
    told = metadata.get("input_video_start_frame")
    if told is None:
        return first
    try:
        start = int(float(told))
    except (TypeError, ValueError, OverflowError) as error:
        raise RowError("metadata.input_video_start_frame is no number") from error
    if isinstance(told, bool) or start != float(told):
        raise RowError("metadata.input_video_start_frame is no whole number")
    if start > first:
        raise RowError(f"the clip starts at frame {start}, after its first sampled frame {first}")
    return start


def _rate(metadata: Mapping[str, Any]) -> float | None:
    told = metadata.get("fps")
    if told is None:
        return None
    try:
        rate = float(told)
    except (TypeError, ValueError, OverflowError) as error:
        raise RowError("metadata.fps is no number") from error
    if isinstance(told, bool) or not isfinite(rate) or rate <= 0:
        raise RowError("metadata.fps is not above 0")
    return rate


def _cadence(numbers: Sequence[int], rate: float | None) -> int:
    """The base gap between frames: the commonest, or a common divisor of it among the gaps.

    Source: the released code of RefineRank (primary source frame cadence).
    """
    gaps = Counter(after - before for before, after in pairwise(numbers))
    if not gaps:
        return max(1, round(1 / rate)) if rate is not None else 1
    most = max(gaps.values())
    usual = min(gap for gap, count in gaps.items() if count == most)
    total = sum(gaps.values())
    return min(
        gap
        for gap, count in gaps.items()
        if gap == usual or (usual % gap == 0 and count * _SUPPORT >= total)
    )

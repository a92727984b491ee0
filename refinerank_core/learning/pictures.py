"""Find the video of each reviewed case and take the frame that was reviewed out of it.

Frames are kept as PNG files, which hold exactly the pixels that were decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2

from refinerank_core.errors import RefineRankError
from refinerank_core.learning.targets import DECIDED_AGAIN, LeftOut, Target
from refinerank_core.reviews.names import VIDEO_SUFFIXES, video_stem
from refinerank_core.reviews.records import Case
from refinerank_core.video import Video, open_video


@dataclass(frozen=True)
class Picture:
    """A target with the file of its frame.

    Attributes:
        target: what is to be learned.
        path: of the frame.
        frame: its number in the video.
        time_s: the requested time, that of the frame where none was requested.
    """

    target: Target
    path: Path
    frame: int
    time_s: float


def take_pictures(
    targets: Sequence[Target],
    folders: Sequence[Path],
    home: Path,
    *,
    told: Callable[[int, int], None] = lambda *_: None,
) -> tuple[list[Picture], list[LeftOut]]:
    """The reviewed frames, one video after the other.

    Args:
        targets: what was reviewed.
        folders: where the videos lie; a video counts by its name, its bytes and its size.
        home: gets the frames; those that are there already are kept.
        told: called with the targets done and their number.

    Returns:
        The pictures in the order of the targets' videos, and the targets without one. From here on
        a target's video goes by its content, so that a video that was reviewed under two names, or
        with and without its hash, is one; of the same picture the last decision counts.
    """
    groups: dict[tuple[str, int, int], list[Target]] = {}
    for target in targets:
        key = target.video, target.case.width, target.case.height
        groups.setdefault(key, []).append(target)
    pictures: list[Picture] = []
    left_out: list[LeftOut] = []
    done = 0
    for mine in groups.values():
        video = find_video([one.case for one in mine], folders)
        if video is None:
            why = "its video is in none of the folders of videos"
            left_out += [LeftOut.of(one.case, why) for one in mine]
        else:
            with video:
                for one in mine:
                    found = _take(one, video, home)
                    if isinstance(found, Picture):
                        pictures.append(found)
                    else:
                        left_out.append(LeftOut.of(one.case, found))
        done += len(mine)
        told(done, len(targets))
    last = _last_decisions(pictures)
    left_out += [
        LeftOut.of(one.target.case, DECIDED_AGAIN) for one in pictures if one.target.seq not in last
    ]
    return [one for one in pictures if one.target.seq in last], left_out


def find_video(cases: Sequence[Case], folders: Sequence[Path]) -> Video | None:
    """The open video that cases of one hash and frame size are about, under any of their names.

    A file of the right name, and of the right bytes where they are known, whose frames have another
    size is given only where there is no better one. None: not there.
    """
    first = cases[0]
    other: Path | None = None
    for path in _named({video_stem(case.video_name) for case in cases}, folders):
        try:
            video = open_video(path)
        except RefineRankError:
            continue  # another file of this name may be the one
        if not first.video_sha256 or video.sha256 == first.video_sha256:
            if video.size_wh == (first.width, first.height):
                return video
            other = other or path
        video.close()
    return None if other is None else open_video(other)


def _named(stems: set[str], folders: Sequence[Path]) -> Iterator[Path]:
    """Videos of these names, and folders of frames."""
    for folder in folders:
        if folder.is_dir():
            for path in sorted(folder.iterdir()):
                readable = path.is_dir() or path.suffix.lower() in VIDEO_SUFFIXES
                if readable and video_stem(path.name) in stems:
                    yield path


def _take(target: Target, video: Video, home: Path) -> Picture | str:
    """One frame on disk, or the sentence that says why there is none."""
    case = target.case
    if (case.width, case.height) != video.size_wh:
        width, height = video.size_wh
        return (
            f"its video has frames of {width}x{height}, "
            f"but a frame of {case.width}x{case.height} was reviewed"
        )
    index = case.frame_index
    try:
        if index is None:
            index = video.nearest(case.requested_s or 0.0)[0]
        if not 0 <= index < len(video):
            return f"frame {index} is not in its video of {len(video)} frames"
        target = replace(target, content=video.sha256)
        path = home / target.video / f"{target.video}_{index:08d}.png"
        if not path.is_file():
            _write_png(video, index, path)
    except RefineRankError as error:
        return str(error)
    time_s = float(video.times_s[index]) if case.requested_s is None else case.requested_s
    return Picture(target, path, index, time_s)


def _last_decisions(pictures: Sequence[Picture]) -> set[int]:
    """Number of the last decision about each question and picture, whatever its video is called."""
    ordered = sorted(pictures, key=lambda one: one.target.seq)
    return set(
        {
            (one.target.video, one.target.case.question, one.time_s): one.target.seq
            for one in ordered
        }.values()
    )


def _write_png(video: Video, index: int, path: Path) -> None:
    image = video.read_frame(index).image
    _, coded = cv2.imencode(".png", cv2.cvtColor(image, cv2.COLOR_RGB2BGR))
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".part")
    scratch.write_bytes(coded.tobytes())
    scratch.replace(path)

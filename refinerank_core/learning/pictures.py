"""Find the video of each reviewed case and take the frame that was reviewed out of it.

Frames are kept as PNG files, which hold exactly the pixels that were decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2

from refinerank_core.errors import RefineRankError
from refinerank_core.learning.targets import LeftOut, Target
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
        The pictures in the order of the targets' videos, and the targets without one.
    """
    by_video: dict[str, list[Target]] = {}
    for target in targets:
        by_video.setdefault(target.video, []).append(target)
    pictures: list[Picture] = []
    left_out: list[LeftOut] = []
    done = 0
    for name, mine in by_video.items():
        video = find_video([one.case for one in mine], folders)
        if video is None:
            why = "its video is in none of the folders of videos"
            left_out += [LeftOut(one.case.case_id, one.case.video_name, why) for one in mine]
        else:
            with video:
                for one in mine:
                    found = _take(one, video, home / _file_name(name))
                    if isinstance(found, Picture):
                        pictures.append(found)
                    else:
                        left_out.append(LeftOut(one.case.case_id, one.case.video_name, found))
        done += len(mine)
        told(done, len(targets))
    return pictures, left_out


def find_video(cases: Sequence[Case], folders: Sequence[Path]) -> Video | None:
    """The open video that cases are about, under any name they have for it; None: not there."""
    first = cases[0]
    for path in _named({video_stem(case.video_name) for case in cases}, folders):
        try:
            video = open_video(path)
        except RefineRankError:
            continue  # another file of this name may be the one
        same = not first.video_sha256 or video.sha256 == first.video_sha256
        if same and video.size_wh == (first.width, first.height):
            return video
        video.close()
    return None


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
    index = case.frame_index
    try:
        if index is None:
            index = video.nearest(case.requested_s or 0.0)[0]
        if not 0 <= index < len(video):
            return f"frame {index} is not in its video of {len(video)} frames"
        path = home / f"{home.name}_{index:08d}.png"
        if not path.is_file():
            _write_png(video, index, path)
    except RefineRankError as error:
        return str(error)
    time_s = float(video.times_s[index]) if case.requested_s is None else case.requested_s
    return Picture(target, path, index, time_s)


def _write_png(video: Video, index: int, path: Path) -> None:
    image = video.read_frame(index).image
    _, coded = cv2.imencode(".png", cv2.cvtColor(image, cv2.COLOR_RGB2BGR))
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".part")
    scratch.write_bytes(coded.tobytes())
    scratch.replace(path)


def _file_name(video: str) -> str:
    """A video's name as that of a folder."""
    return "".join(letter if letter.isalnum() or letter in "-." else "-" for letter in video)

"""A visitor's own clip on its way in: looked at before it is kept, then stripped or masked."""

from __future__ import annotations

from pathlib import Path

from refinerank_core.deidentify import looked_at, masked_copy, outside_note, without_metadata
from refinerank_core.errors import VideoError
from refinerank_core.video import Video, open_video

_LOOKS = 40
_SAME_S = 2e-3  # a container may count in milliseconds
UNSTRIPPED = (
    "The metadata of this clip could not be removed without changing its frames: it stays in the "
    "copy that is kept for this session."
)


def outside_words(path: Path) -> str:
    """A warning where a clip may show the room or a face; "" where nothing was found.

    Raises:
        VideoError: the file is no video.
    """
    with open_video(path) as video:
        return outside_note(looked_at(video, every_s=max(1.0, video.duration_s / _LOOKS)))


def kept_copy(path: Path, *, mask: bool) -> Video:
    """Open what is kept of an uploaded file: a copy without metadata, the border black on demand.

    The copy takes the file's place in a folder of its own. Without the mask it has the same
    pictures and carries the file's own hash, so that cases about the file are found.

    Args:
        path: the file, alone in its folder.
        mask: black out what stands outside an endoscope's round picture.

    Raises:
        VideoError: the file is no video, or a mask is wanted and no round picture was found.
    """
    with open_video(path) as video:
        folder = path.parent / "kept"
        folder.mkdir()
        if mask:
            target = folder / f"{path.stem}.mp4"
            masked_copy(video, target)
            path.unlink()
            return open_video(target)
        target = folder / path.name
        if not _stripped(video, target):
            target.unlink(missing_ok=True)
            whole = open_video(path)
            whole.warnings = (*whole.warnings, UNSTRIPPED)
            return whole
        digest = video.sha256
    path.unlink()
    return open_video(target, sha256=digest)


def _stripped(video: Video, target: Path) -> bool:
    """Write a copy without metadata; whether its frames and times are the video's."""
    try:
        without_metadata(video.path, target)
        with open_video(target) as copy:
            return (
                copy.size_wh == video.size_wh
                and len(copy) == len(video)
                and bool((abs(copy.times_s - video.times_s) <= _SAME_S).all())
            )
    except VideoError:
        return False

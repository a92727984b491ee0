"""Where a clip changes shot: frames that look unlike the one before, found on small pictures.

Hard cuts only. A dissolve, a wipe or one flashed frame is no change of shot here.
"""

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from refinerank_core.errors import VideoError
from refinerank_core.structures import Image
from refinerank_core.video import Video, open_video

LOOKED_AT = 3000  # frames: a shorter clip is looked at whole
_COARSE = 1000  # key frames looked at in a longer one
_SMALL_WH = (32, 18)
_MOST = 40.0  # a pixel's difference counts up to this, of 255: one thing that jumps is no cut
_LEAST = 10.0  # mean difference of the small pictures
_STANDS_OUT = 2.0  # times the largest difference around it
_AROUND = 3  # frames before and after a cut that it has to stand out from

Small = NDArray[np.float32]


def shot_changes(path: Path | str, *, looked_at: int = LOOKED_AT) -> tuple[int, ...]:
    """Find the frames that begin a new shot.

    A clip of up to `looked_at` frames is decoded whole. Of a longer one the key frames are compared
    first, and only the stretches between unlike ones are decoded, the most unlike first, until
    `looked_at` frames were seen: a cut there and back between two key frames is not found.

    Args:
        path: a file or frame folder; it is opened anew, so that its other readers keep their place.
        looked_at: most frames to decode, besides the key frames of a long clip.

    Returns:
        Frame indices, rising; frame 0 is never one of them.

    Raises:
        VideoError: the clip cannot be opened.
    """
    with open_video(path, cache_bytes=0) as video:
        last = len(video) - 1
        stretches = [(0, last)] if last < looked_at else _unlike_stretches(video, looked_at)
        found: set[int] = set()
        for first, stop in stretches:
            begin = max(first - _AROUND, 0)
            ahead = min(stop + _AROUND, last)
            steps = differences(_small_frames(video, range(begin, ahead + 1)))
            found |= {begin + at for at in standing_out(steps) if first < begin + at <= stop}
    return tuple(sorted(found))


def differences(pictures: Iterable[Small | None]) -> NDArray[np.float32]:
    """Mean difference of each small picture from the one before; 0 for the first and the lost."""
    steps = [0.0]
    for before, after in pairwise(pictures):
        if before is None or after is None:
            steps.append(0.0)
        else:
            steps.append(float(np.minimum(np.abs(after - before), _MOST).mean()))
    return np.array(steps, np.float32)


def standing_out(steps: NDArray[np.float32]) -> list[int]:
    """Places whose difference is large, and much larger than any near it."""
    padded = np.pad(steps, _AROUND)
    shifts = [k for k in range(2 * _AROUND + 1) if k != _AROUND]
    around = np.max([padded[k : k + len(steps)] for k in shifts], axis=0)
    large = (steps >= _LEAST) & (steps >= _STANDS_OUT * around)
    return [int(at) for at in np.flatnonzero(large)]


def _unlike_stretches(video: Video, budget: int) -> list[tuple[int, int]]:
    """Stretches between key frames that differ, the most unlike first, `budget` frames in all."""
    keys = np.array(video.key_frames or (0,))
    keys = keys[np.linspace(0, len(keys) - 1, min(_COARSE, len(keys))).round().astype(int)]
    places = np.unique([0, *keys, len(video) - 1]).tolist()
    steps = differences(_small_frames(video, places))
    chosen = []
    for at in np.argsort(-steps, kind="stable"):
        if steps[at] < _LEAST:
            break
        first, stop = places[at - 1], places[at]
        if stop - first <= budget:
            budget -= stop - first
            chosen.append((first, stop))
    return chosen


def _small_frames(video: Video, indices: Iterable[int]) -> Iterable[Small | None]:
    for index in indices:
        try:
            yield _small(video.read_frame(index).image)
        except VideoError:
            yield None


def _small(image: Image) -> Small:
    step = max(1, image.shape[0] // (_SMALL_WH[1] * 8))  # every nth pixel is plenty for a mean
    return cv2.resize(image[::step, ::step], _SMALL_WH, interpolation=cv2.INTER_AREA).astype(
        np.float32
    )

"""Cuts are found where they were made, and nowhere else."""

from pathlib import Path

import numpy as np
import pytest

from refinerank_core.errors import VideoError
from refinerank_core.shots import shot_changes
from refinerank_core.structures import Image
from tests.clips import encode

RED, GREEN = (150, 60, 55), (70, 120, 90)


def picture(colour: tuple[int, int, int], number: int) -> Image:
    """A coloured ground with a bright bar that moves, and jumps back after 40 frames."""
    image = np.empty((64, 96, 3), np.uint8)
    image[:] = colour
    left = number * 2 % 80
    image[20:44, left : left + 16] = (215, 212, 205)
    return image


def clip(folder: Path, colours: list[tuple[int, int, int]], **options: str) -> Path:
    images = (picture(colour, k) for k, colour in enumerate(colours))
    return encode(folder / "clip.mp4", images, options=options)


def test_a_hard_cut_is_found_on_its_frame(tmp_path: Path) -> None:
    path = clip(tmp_path, [RED] * 37 + [GREEN] * 20 + [RED] * 13)

    assert shot_changes(path) == (37, 57)


def test_a_thing_that_moves_or_jumps_is_no_cut(tmp_path: Path) -> None:
    assert shot_changes(clip(tmp_path, [RED] * 60)) == ()


def test_a_flash_of_one_frame_is_no_cut(tmp_path: Path) -> None:
    assert shot_changes(clip(tmp_path, [RED] * 20 + [(250, 250, 250)] + [RED] * 20)) == ()


def test_a_slow_fade_is_no_cut(tmp_path: Path) -> None:
    fade = [(150 - 2 * k, 60 + k, 55) for k in range(40)]

    assert shot_changes(clip(tmp_path, [RED] * 5 + fade)) == ()


@pytest.mark.parametrize("at", [100, 107])
def test_in_a_long_clip_the_cut_is_sought_between_unlike_key_frames(
    tmp_path: Path, at: int
) -> None:
    steady = {"x264-params": "keyint=20:min-keyint=20:scenecut=0"}
    path = clip(tmp_path, [RED] * at + [GREEN] * (200 - at), **steady)

    assert shot_changes(path, looked_at=40) == (at,)
    assert shot_changes(path, looked_at=10) == ()


def test_one_frame_has_no_cut(tmp_path: Path) -> None:
    assert shot_changes(clip(tmp_path, [RED])) == ()


def test_what_is_no_video_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.mp4"
    path.write_text("no video")

    with pytest.raises(VideoError, match=r"notes\.mp4"):
        shot_changes(path)

"""Times and frames: each frame has its own time, each time its nearest frame."""

import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from refinerank_core.errors import VideoError
from refinerank_core.video import open_video
from tests.clips import X264, number_shown, numbered_clip

VFR_MS = [0, 40, 80, 120, 1000, 1033, 1066, 1100, 3000, 3040, 3500, 3541, 7000, 7010, 7020, 9999]
READS = 200


@pytest.mark.parametrize("name", ["vfr.mkv", "vfr.mp4"])
def test_variable_rate_keeps_each_frame_at_its_own_millisecond(tmp_path: Path, name: str) -> None:
    path = numbered_clip(
        tmp_path / name, len(VFR_MS), pts=VFR_MS, time_base=Fraction(1, 1000), options=X264
    )
    order = random.Random(7).choices(range(len(VFR_MS)), k=READS)

    with open_video(path) as video:
        assert video.times_s * 1000 == pytest.approx(VFR_MS, abs=1)
        assert [number_shown(video.read_frame(index).image) for index in order] == order
        assert [video.shown_at(time_s) for time_s in (2.5, 3.2, 6.9)] == [7, 9, 11]
        assert [video.nearest(time_s)[0] for time_s in (2.5, 3.2, 6.9)] == [8, 9, 12]


def test_ntsc_times_are_exact(tmp_path: Path) -> None:
    path = numbered_clip(tmp_path / "a.mp4", 31, rate=Fraction(30000, 1001), options=X264)

    with open_video(path) as video:
        assert video.times_s[30] == pytest.approx(1.001, abs=1e-9)
        assert video.duration_s == pytest.approx(31 * 1001 / 30000, abs=1e-6)


def test_times_go_to_the_nearest_frame_with_its_distance(tmp_path: Path) -> None:
    path = numbered_clip(tmp_path / "a.mp4", 100, options=X264)

    with open_video(path) as video:
        indices, errors_s = video.locate([0.0, 1.013, 3.97, 0.02])
        assert indices.tolist() == [0, 25, 99, 0]
        assert errors_s == pytest.approx([0.0, 0.013, 0.01, 0.02], abs=1e-9)
        assert video.locate([])[0].tolist() == []


@pytest.mark.parametrize("time_s", [3.99, 4.0, 1e9, -0.03])
def test_times_outside_by_more_than_half_a_frame_are_refused(tmp_path: Path, time_s: float) -> None:
    path = numbered_clip(tmp_path / "a.mp4", 100, options=X264)

    with open_video(path) as video, pytest.raises(VideoError, match=r"a\.mp4: no frame at .* s"):
        video.nearest(time_s)


def test_a_time_that_is_no_number_is_a_value_error(tmp_path: Path) -> None:
    with (
        open_video(numbered_clip(tmp_path / "a.mp4", 5, options=X264)) as video,
        pytest.raises(ValueError, match="finite"),
    ):
        video.nearest(float("nan"))


@pytest.mark.parametrize(("count", "samples"), [(100, 4), (101, 5)])
def test_one_sample_a_second_is_every_25th_frame(tmp_path: Path, count: int, samples: int) -> None:
    path = numbered_clip(tmp_path / "a.mp4", count, options=X264)

    with open_video(path) as video:
        times_s = np.arange(0.0, video.duration_s, 1.0)[:samples]
        indices, errors_s = video.locate(times_s)
        assert indices.tolist() == [25 * k for k in range(samples)]
        assert errors_s.max() < 1e-9
        assert number_shown(video.read_frame(int(indices[-1])).image) == indices[-1]

"""What write_video writes can be read back: same pictures, same times, playable by browsers."""

from pathlib import Path

import av
import numpy as np
import pytest

from refinerank_core.errors import VideoError
from refinerank_core.frame_writer import write_video
from refinerank_core.video import open_video
from tests.clips import number_shown, numbered


def test_pictures_and_uneven_times_come_back(tmp_path: Path) -> None:
    times_s = [0.0, 0.04, 0.5, 2.0, 2.01]

    write_video(tmp_path / "out.mp4", [numbered(k) for k in range(5)], times_s)

    with open_video(tmp_path / "out.mp4") as video:
        assert video.times_s == pytest.approx(times_s, abs=1e-4)
        assert [number_shown(video.read_frame(k).image) for k in range(5)] == [0, 1, 2, 3, 4]


def test_the_file_is_h264_yuv420p_with_its_index_first(tmp_path: Path) -> None:
    path = tmp_path / "out.mp4"

    write_video(path, [numbered(k) for k in range(20)], np.arange(20) / 25)

    content = path.read_bytes()
    assert content.index(b"moov") < content.index(b"mdat")
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        assert stream.frames == 20
        assert stream.average_rate == 25


def test_an_odd_size_is_padded_right_and_below(tmp_path: Path) -> None:
    image = np.full((243, 321, 3), 60, np.uint8)
    image[100:140, 200:260] = 250

    write_video(tmp_path / "odd.mp4", [image] * 3, [0.0, 0.1, 0.2])

    with open_video(tmp_path / "odd.mp4") as video:
        shown = video.read_frame(1).image
        assert video.size_wh == (322, 244)
        rows, columns = np.nonzero(shown[..., 0] > 155)
        assert (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1) == (
            200,
            100,
            260,
            140,
        )


def test_colours_come_back_within_a_few_levels(tmp_path: Path) -> None:
    colours = [(200, 40, 40), (40, 180, 40), (40, 60, 200), (230, 230, 230), (30, 30, 30)]
    image = np.repeat(np.array(colours, np.uint8), 32, axis=0)[None].repeat(64, axis=0)

    write_video(tmp_path / "colours.mp4", [image], [0.0])

    with open_video(tmp_path / "colours.mp4") as video:
        shown = video.read_frame(0).image[32, 16::32]
    assert np.abs(shown.astype(int) - np.array(colours)).max() <= 5


@pytest.mark.parametrize(
    "times_s",
    [
        pytest.param([], id="no pictures"),
        pytest.param([0.0, 0.0], id="two at one time"),
        pytest.param([0.0], id="fewer times than pictures"),
        pytest.param([0.0, 0.1, 0.2], id="more times than pictures"),
    ],
)
def test_times_that_do_not_fit_the_pictures_are_refused(
    tmp_path: Path, times_s: list[float]
) -> None:
    with pytest.raises(ValueError, match=r"time|zip"):
        write_video(tmp_path / "out.mp4", [numbered(0), numbered(1)], times_s)

    assert list(tmp_path.iterdir()) == []


def test_pictures_of_two_sizes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one size"):
        write_video(tmp_path / "out.mp4", [numbered(0), numbered(1, (64, 64))], [0.0, 1.0])


def test_a_folder_that_is_not_there_is_a_video_error(tmp_path: Path) -> None:
    with pytest.raises(VideoError, match=r"^out\.mp4: the video cannot be written"):
        write_video(tmp_path / "nowhere" / "out.mp4", [numbered(0)], [0.0])

"""A folder of numbered pictures is a video in the order of its numbers."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

from refinerank_core.errors import VideoError
from refinerank_core.video import open_video
from tests.clips import number_shown, numbered


def write_frames(folder: Path, names_and_numbers: dict[str, int]) -> Path:
    """Write pictures that show their numbers under these names."""
    folder.mkdir(exist_ok=True)
    for name, number in names_and_numbers.items():
        Pillow.fromarray(numbered(number)).save(folder / name, quality=95)
    return folder


def test_frames_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    names = {f"frame_{number}.jpg": number for number in (1, 2, 9, 10, 100)}
    folder = write_frames(tmp_path / "clip", names)

    with open_video(folder) as video:
        shown = [number_shown(video.read_frame(k).image) for k in (4, 0, 1, 2, 3)]
        assert shown == [100, 1, 2, 9, 10]
        assert (len(video), video.name, video.size_wh) == (5, "clip", (96, 64))
        assert video.times_s.tolist() == [0, 1, 8, 9, 99]


def test_numbers_count_source_frames_at_the_given_rate(tmp_path: Path) -> None:
    names = {f"v01_{number:06d}.png": number for number in (27550, 27575, 27600)}

    with open_video(write_frames(tmp_path / "clip", names), fps=25) as video:
        assert video.times_s.tolist() == [0.0, 1.0, 2.0]
        assert video.duration_s == 3.0
        index, error_s = video.nearest(1.1)
        frame = video.read_frame(1)

    assert index == 1
    assert error_s == pytest.approx(0.1)
    assert (frame.index, frame.time_s, number_shown(frame.image)) == (1, 1.0, 27575 % 16384)


def test_whole_number_names_and_capital_endings_are_frames(tmp_path: Path) -> None:
    folder = write_frames(tmp_path / "clip", {"00002.PNG": 2, "00010.bmp": 10})

    with open_video(folder) as video:
        assert [number_shown(video.read_frame(k).image) for k in range(2)] == [2, 10]


def test_other_files_are_passed_over_and_unnumbered_pictures_are_named(tmp_path: Path) -> None:
    folder = write_frames(tmp_path / "clip", {"f_1.png": 1, "f_2.png": 2, "cover.png": 3})
    (folder / "notes.txt").write_text("no frame")
    (folder / ".f_3.png").write_bytes(b"a hidden file")
    (folder / "f_4.png").mkdir()

    with open_video(folder) as video:
        assert len(video) == 2
        assert video.warnings == ("1 pictures without a frame number are left out",)


def test_one_frame_is_a_video(tmp_path: Path) -> None:
    with open_video(write_frames(tmp_path / "clip", {"f_7.png": 7})) as video:
        assert (video.times_s.tolist(), video.duration_s) == ([0.0], 1.0)
        assert video.nearest(0.0) == (0, 0.0)


def test_a_damaged_frame_leaves_the_others_readable(tmp_path: Path) -> None:
    folder = write_frames(tmp_path / "clip", {f"f_{k}.png": k for k in range(3)})
    (folder / "f_1.png").write_bytes(b"not a picture")

    with open_video(folder) as video:
        assert number_shown(video.read_frame(2).image) == 2
        with pytest.raises(VideoError, match=r"^clip: frame 1 of 3 is damaged"):
            video.read_frame(1)


def test_the_hash_follows_names_and_bytes(tmp_path: Path) -> None:
    one = write_frames(tmp_path / "one", {"f_1.png": 1, "f_2.png": 2})
    same = write_frames(tmp_path / "same", {"f_2.png": 2, "f_1.png": 1})
    renamed = write_frames(tmp_path / "renamed", {"f_1.png": 1, "f_3.png": 2})
    redrawn = write_frames(tmp_path / "redrawn", {"f_1.png": 1, "f_2.png": 3})

    hashes = [open_video(folder).sha256 for folder in (one, same, renamed, redrawn)]

    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3


def test_a_grey_and_a_see_through_picture_have_three_channels(tmp_path: Path) -> None:
    folder = tmp_path / "clip"
    folder.mkdir()
    Pillow.fromarray(np.full((64, 96), 77, np.uint8)).save(folder / "f_0.png")
    Pillow.new("RGBA", (96, 64), (10, 200, 10, 0)).save(folder / "f_1.png")
    Pillow.fromarray(np.full((64, 96), 300, np.uint16)).save(folder / "f_2.png")

    with open_video(folder) as video:
        assert video.read_frame(0).image[5, 5].tolist() == [77, 77, 77]
        assert video.read_frame(1).image[5, 5].tolist() == [0, 0, 0]
        assert video.read_frame(2).image.shape == (64, 96, 3)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        pytest.param({}, "no numbered frames", id="empty"),
        pytest.param({"cover.png": 1, "v2.png": 2}, "no numbered frames", id="no numbers"),
        pytest.param({"f_1.png": 1, "f_01.jpg": 1}, "two pictures", id="a number twice"),
        pytest.param({"a_1.png": 1, "b_2.png": 2}, "2 videos are mixed", id="two videos"),
    ],
)
def test_folders_that_are_no_video_say_why(
    tmp_path: Path, names: dict[str, int], words: str
) -> None:
    folder = write_frames(tmp_path / "clip", names)

    with pytest.raises(VideoError, match=rf"^clip: .*{words}"):
        open_video(folder)


def test_frames_of_two_sizes_are_refused(tmp_path: Path) -> None:
    folder = write_frames(tmp_path / "clip", {"f_1.png": 1})
    Pillow.fromarray(numbered(2, (64, 64))).save(folder / "f_2.png")

    with pytest.raises(VideoError, match=r"^clip: the frames differ in size \(64x64, 96x64\)"):
        open_video(folder)


def test_a_folder_of_broken_pictures_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "clip"
    folder.mkdir()
    (folder / "f_1.png").write_bytes(b"not a picture")

    with pytest.raises(VideoError, match=r"^clip: none of its 1 pictures can be read"):
        open_video(folder)

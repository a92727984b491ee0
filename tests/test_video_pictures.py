"""What a frame looks like: upright, of square pixels, whole to its edges, of the same colours."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

from refinerank_core.structures import Image
from refinerank_core.video import open_video
from tests.clips import X264, encode, set_box


def corner_picture(size_wh: tuple[int, int] = (96, 64)) -> Image:
    """Dark, with a green block in the top left corner."""
    image = np.full((size_wh[1], size_wh[0], 3), 60, np.uint8)
    image[: size_wh[1] // 4, : size_wh[0] // 4] = (0, 200, 0)
    return image


MATRICES = [
    pytest.param((0, 1, -1, 0), (64, 96), "top right", id="90 clockwise"),
    pytest.param((-1, 0, 0, -1), (96, 64), "bottom right", id="180"),
    pytest.param((0, -1, 1, 0), (64, 96), "bottom left", id="90 counter-clockwise"),
    pytest.param((1, 0, 0, 1), (96, 64), "top left", id="not turned"),
    pytest.param((-1, 0, 0, 1), (96, 64), "top right", id="mirrored"),
]


@pytest.mark.parametrize(("matrix", "size_wh", "corner"), MATRICES)
def test_turned_clips_come_upright(
    tmp_path: Path, matrix: tuple[int, int, int, int], size_wh: tuple[int, int], corner: str
) -> None:
    path = encode(tmp_path / "turned.mp4", [corner_picture()] * 3, options=X264)
    a, b, c, d = (value << 16 for value in matrix)
    set_box(path, b"tkhd", 40, [a, b, 0, c, d, 0])  # version 0: the matrix is at byte 40

    with open_video(path) as video:
        image = video.read_frame(1).image
        assert video.size_wh == size_wh == image.shape[1::-1]
        assert video.stored_size_wh == (96, 64)
    corners = {
        "top left": image[4, 4],
        "top right": image[4, -5],
        "bottom left": image[-5, 4],
        "bottom right": image[-5, -5],
    }
    green = [name for name, colour in corners.items() if colour[1] > 150 and colour[0] < 60]
    assert green == [corner]


def test_an_exif_rotation_of_a_still_is_applied(tmp_path: Path) -> None:
    picture = Pillow.fromarray(corner_picture())
    exif = picture.getexif()
    exif[0x0112] = 6  # orientation: show turned 90 degrees clockwise
    picture.save(tmp_path / "a.jpg", exif=exif)

    with open_video(tmp_path / "a.jpg") as video:
        image = video.read_frame(0).image

    assert image.shape == (96, 64, 3)
    assert image[4, -5, 1] > 150
    assert image[4, 4, 1] < 90


def test_non_square_pixels_are_squared(tmp_path: Path) -> None:
    rows, columns = np.mgrid[0:576, 0:720] + 0.5
    inside = ((columns - 360) / 140.625) ** 2 + ((rows - 288) / 200) ** 2 <= 1
    image = np.where(inside[..., None], 240, 50).astype(np.uint8).repeat(3, axis=2)
    path = encode(
        tmp_path / "wide.mp4", [image] * 2, sample_aspect=Fraction(64, 45), options={"crf": "12"}
    )

    with open_video(path) as video:
        assert (video.size_wh, video.stored_size_wh) == ((1024, 576), (720, 576))
        assert "64:45" in video.warnings[0]
        lit = video.read_frame(1).image[..., 0] > 145

    columns_lit, rows_lit = np.flatnonzero(lit.any(axis=0)), np.flatnonzero(lit.any(axis=1))
    box = [columns_lit[0], rows_lit[0], columns_lit[-1] + 1, rows_lit[-1] + 1]
    assert box == pytest.approx([312, 88, 712, 488], abs=1)


def test_narrow_pixels_on_a_turned_clip_keep_the_turned_size(tmp_path: Path) -> None:
    path = encode(
        tmp_path / "a.mp4", [corner_picture()] * 2, sample_aspect=Fraction(1, 2), options=X264
    )
    set_box(path, b"tkhd", 40, [0, 1 << 16, 0, -(1 << 16), 0, 0])

    with open_video(path) as video:
        assert video.size_wh == (64, 48)
        assert video.read_frame(0).image.shape == (48, 64, 3)


@pytest.mark.parametrize(
    ("name", "size_wh", "settings"),
    [
        pytest.param("a.mkv", (321, 243), {"codec": "ffv1", "pix_fmt": "yuv444p"}, id="FFV1"),
        pytest.param("a.mp4", (321, 243), {"pix_fmt": "yuv444p"}, id="H.264 4:4:4"),
        pytest.param("b.mp4", (646, 482), {}, id="no multiple of 8"),
    ],
)
def test_odd_sizes_keep_their_right_and_bottom_edges(
    tmp_path: Path, name: str, size_wh: tuple[int, int], settings: dict[str, object]
) -> None:
    image = np.full((size_wh[1], size_wh[0], 3), 90, np.uint8)
    image[:, -6:] = (220, 20, 20)
    image[-4:] = (20, 20, 220)
    options = {} if name.endswith("mkv") else {"crf": "8"}
    path = encode(tmp_path / name, [image] * 3, options=options, **settings)  # type: ignore[arg-type]

    with open_video(path) as video:
        shown = video.read_frame(2).image.astype(int)

    assert shown.shape == (size_wh[1], size_wh[0], 3)
    assert np.abs(shown[:-6, -4:] - (220, 20, 20)).mean() < 12
    assert np.abs(shown[-3:, :-6] - (20, 20, 220)).mean() < 12
    assert np.abs(shown[:-8, :-8] - 90).mean() < 6


PATCHES = [
    *((230, 230, 230), (128, 128, 128), (40, 40, 40), (200, 40, 40)),
    *((40, 180, 40), (40, 60, 200), (220, 200, 40), (180, 90, 70)),
]


def patches() -> Image:
    return np.repeat(np.array(PATCHES, np.uint8), 24, axis=0)[None].repeat(64, axis=0)


def test_ten_bits_become_eight_of_the_same_colour(tmp_path: Path) -> None:
    options = {"x265-params": "log-level=error:crf=10:pools=1"}
    path = encode(
        tmp_path / "a.mp4", [patches()] * 3, codec="libx265", pix_fmt="yuv420p10le", options=options
    )

    with open_video(path) as video:
        shown = video.read_frame(2).image[32, 12::24].astype(int)

    assert np.abs(shown - PATCHES).max() <= 30
    assert np.abs(shown[:3] - PATCHES[:3]).max() <= 8


def test_hlg_is_read_in_order_of_brightness_and_said_not_to_be_tone_mapped(tmp_path: Path) -> None:
    tags = "colorprim=bt2020:transfer=arib-std-b67:colormatrix=bt2020nc"
    options = {"x265-params": f"log-level=error:crf=10:pools=1:{tags}"}
    path = encode(
        tmp_path / "a.mp4", [patches()] * 3, codec="libx265", pix_fmt="yuv420p10le", options=options
    )

    with open_video(path) as video:
        grey = video.read_frame(1).image[32, 12:72:24, 1].astype(int)
        assert "not tone-mapped" in video.warnings[0]

    assert grey[0] > grey[1] > grey[2]


def test_gif_keeps_its_delays_and_lies_over_black(tmp_path: Path) -> None:
    pages = []
    for k in range(3):
        page = np.zeros((120, 160, 4), np.uint8)
        page[40:80, 20 + 40 * k : 50 + 40 * k] = (220, 30, 30, 255)
        pages.append(Pillow.fromarray(page))
    pages[0].save(
        tmp_path / "a.gif",
        save_all=True,
        append_images=pages[1:],
        duration=[2000, 100, 100],
        disposal=2,
    )

    with open_video(tmp_path / "a.gif") as video:
        assert video.times_s == pytest.approx([0.0, 2.0, 2.1])
        for k in (2, 0, 1):
            image = video.read_frame(k).image
            red = image[60, 35::40].astype(int)
            assert [bool(colour[0] > 180) for colour in red[:3]] == [k == j for j in range(3)]
            assert image[5, 5].tolist() == [0, 0, 0]


def test_a_still_with_alpha_is_a_video_of_one_frame_over_black(tmp_path: Path) -> None:
    Pillow.new("RGBA", (161, 121), (10, 200, 10, 128)).save(tmp_path / "still %03d.png")

    with open_video(tmp_path / "still %03d.png") as video:
        assert (len(video), video.times_s.tolist(), video.size_wh) == (1, [0.0], (161, 121))
        assert video.read_frame(0).image[60, 80] == pytest.approx([5, 100, 5], abs=1)
        assert video.nearest(0.0) == (0, 0.0)


def test_interlaced_frames_are_shown_as_stored_and_said_so(tmp_path: Path) -> None:
    stripes = np.zeros((64, 96, 3), np.uint8)
    stripes[::2] = 200  # one field bright, the other dark
    path = encode(
        tmp_path / "a.mp4",
        [stripes] * 3,
        options={"flags": "+ildct+ilme", "x264-params": "interlaced=1:tff=1", "crf": "5"},
    )

    with open_video(path) as video:
        image = video.read_frame(1).image
        assert any("interlaced" in sentence for sentence in video.warnings)

    assert image[10:50:2].mean() > 180
    assert image[11:51:2].mean() < 20

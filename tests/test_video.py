"""Every frame of every kind of clip is the one asked for: each clip shows its own numbers."""

import hashlib
import random
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image as Pillow

from refinerank_core.errors import VideoError
from refinerank_core.structures import Image
from refinerank_core.video import open_video
from tests.clips import SIZE_WH, encode, number_shown, numbered, numbered_clip

READS = 200
COUNT = 70
X264 = {"preset": "ultrafast", "bf": "3", "g": "12", "sc_threshold": "0"}
OPEN_GOP = {
    "preset": "veryfast",
    "x264-params": "open-gop=1:keyint=12:min-keyint=12:bframes=3:b-adapt=0:scenecut=0",
}
X265 = {
    "preset": "ultrafast",
    "x265-params": "log-level=error:keyint=12:bframes=3:b-adapt=0:open-gop=1:pools=1",
}
VP9 = {"deadline": "realtime", "cpu-used": "8", "g": "12"}
HIDDEN = {"auto-alt-ref": "1", "lag-in-frames": "16"}
VP9_ALT_REF = {"deadline": "good", "cpu-used": "5", "g": "24", **HIDDEN}
VFR_MS = [0, 40, 80, 120, 1000, 1033, 1066, 1100, 3000, 3040, 3500, 3541, 7000, 7010, 7020, 9999]

KINDS = [
    pytest.param("25.mp4", X264, {}, id="H.264 with B-frames, 25 a second"),
    pytest.param("ntsc.mp4", X264, {"rate": Fraction(30000, 1001)}, id="30000/1001 a second"),
    pytest.param("one_key.mp4", X264 | {"g": "9999"}, {}, id="a single key frame"),
    pytest.param("open_gop.mp4", OPEN_GOP, {}, id="open GOP in MP4"),
    pytest.param("open_gop.mkv", OPEN_GOP, {}, id="open GOP in Matroska"),
    pytest.param("open_gop.ts", OPEN_GOP, {}, id="open GOP in a transport stream"),
    pytest.param("late.mkv", X264, {"pts": [k + 77 for k in range(COUNT)]}, id="start above 0"),
    pytest.param("late.mp4", X264, {"pts": [k + 77 for k in range(COUNT)]}, id="empty edit first"),
    pytest.param("b.ts", X264, {}, id="transport stream"),
    pytest.param("b.avi", X264, {}, id="H.264 B-frames in AVI"),
    pytest.param("open_gop.avi", OPEN_GOP, {}, id="open GOP in AVI"),
    pytest.param("bare.h264", X264, {}, id="bare H.264"),
    pytest.param("plain.avi", X264 | {"bf": "0"}, {}, id="H.264 without B-frames in AVI"),
    pytest.param("asp.avi", {"bf": "2", "g": "12"}, {"codec": "mpeg4"}, id="MPEG-4 in AVI"),
    pytest.param(
        "old.mpg",
        {"bf": "2", "g": "15", "b": "1500000"},
        {"codec": "mpeg2video", "container_format": "mpeg"},
        id="MPEG-2 program stream",
    ),
    pytest.param(
        "old.ts", {"bf": "2", "g": "15"}, {"codec": "mpeg2video"}, id="MPEG-2 transport stream"
    ),
    pytest.param("hevc.mp4", X265, {"codec": "libx265"}, id="HEVC with leading pictures"),
    pytest.param("hevc.mkv", X265, {"codec": "libx265"}, id="HEVC in Matroska"),
    pytest.param(
        "ten.mp4", X265, {"codec": "libx265", "pix_fmt": "yuv420p10le"}, id="HEVC with 10 bits"
    ),
    pytest.param("vp9.webm", VP9, {"codec": "libvpx-vp9"}, id="VP9"),
    pytest.param("alt9.webm", VP9_ALT_REF, {"codec": "libvpx-vp9"}, id="VP9 with hidden frames"),
    pytest.param("alt8.webm", VP9_ALT_REF, {"codec": "libvpx"}, id="VP8 with hidden frames"),
    pytest.param(
        "av1.mp4",
        {"preset": "9", "crf": "12", "svtav1-params": "keyint=12:lp=1"},
        {"codec": "libsvtav1"},
        id="AV1",
    ),
    pytest.param("jpeg.avi", {}, {"codec": "mjpeg", "pix_fmt": "yuvj420p"}, id="MJPEG in AVI"),
    pytest.param("moving.gif", {}, {"codec": "gif", "pix_fmt": "rgb8"}, id="GIF"),
    pytest.param("lossless.mkv", {}, {"codec": "ffv1", "pix_fmt": "yuv444p"}, id="FFV1 4:4:4"),
]


@pytest.mark.parametrize(("name", "options", "settings"), KINDS)
def test_random_reads_show_the_asked_number(
    tmp_path: Path, name: str, options: dict[str, str], settings: dict[str, object]
) -> None:
    path = numbered_clip(tmp_path / name, COUNT, options=options, **settings)
    order = random.Random(7).choices(range(COUNT), k=READS)

    with open_video(path) as video:
        assert len(video) == COUNT
        assert [number_shown(video.read_frame(index).image) for index in order] == order
        assert video.warnings == () or name.startswith("bare")


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


def test_frames_carry_their_index_and_time(tmp_path: Path) -> None:
    path = numbered_clip(tmp_path / "a.mp4", 30, options=X264)

    with open_video(path) as video:
        frame = video.read_frame(20)

    assert (frame.index, frame.size_wh) == (20, SIZE_WH)
    assert frame.time_s == pytest.approx(0.8)


def test_a_closed_video_reads_on(tmp_path: Path) -> None:
    video = open_video(numbered_clip(tmp_path / "a.mp4", 30, options=X264))
    video.read_frame(3)
    video.close()

    assert number_shown(video.read_frame(17).image) == 17
    video.close()


@pytest.mark.parametrize("index", [-1, 30])
def test_an_index_outside_is_an_index_error(tmp_path: Path, index: int) -> None:
    with (
        open_video(numbered_clip(tmp_path / "a.mp4", 30, options=X264)) as video,
        pytest.raises(IndexError, match="indices are 0 to 29"),
    ):
        video.read_frame(index)


def test_threads_share_a_video(tmp_path: Path) -> None:
    path = numbered_clip(tmp_path / "a.mp4", COUNT, options=X264)
    order = random.Random(3).choices(range(COUNT), k=READS)

    with open_video(path) as video, ThreadPoolExecutor(4) as pool:
        shown = list(pool.map(lambda index: number_shown(video.read_frame(index).image), order))

    assert shown == order


def test_a_cache_of_two_pictures_still_reads_right(tmp_path: Path) -> None:
    path = numbered_clip(tmp_path / "a.mp4", COUNT, options=X264 | {"g": "9999"})
    order = [40, 39, 38, 37, 41, 0, 69, 68]

    with open_video(path, cache_bytes=2 * SIZE_WH[0] * SIZE_WH[1] * 3 // 2) as video:
        assert [number_shown(video.read_frame(index).image) for index in order] == order


def test_the_hash_is_that_of_the_bytes(tmp_path: Path) -> None:
    path = numbered_clip(tmp_path / "a.mp4", 5, options=X264)

    with open_video(path) as video:
        assert video.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_codec_key_frames_and_name_are_told(tmp_path: Path) -> None:
    path = numbered_clip(tmp_path / "clip one.mp4", 30, options=X264 | {"bf": "0"})

    with open_video(path) as video:
        assert (video.codec, video.key_frames, video.name) == ("h264", (0, 12, 24), "clip one.mp4")


def set_box(path: Path, name: bytes, offset: int, values: list[int]) -> None:
    """Overwrite 32-bit numbers at an offset behind the name of an MP4 box."""
    content = bytearray(path.read_bytes())
    at = content.index(name) + 4 + offset
    numbers = np.array(values, ">i4").tobytes()
    content[at : at + len(numbers)] = numbers
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("trimmed", [5, 12, 17])
def test_frames_before_an_edit_list_are_no_frames(tmp_path: Path, trimmed: int) -> None:
    path = numbered_clip(tmp_path / "cut.mp4", 40, options=X264)
    content = path.read_bytes()
    start = int.from_bytes(content[(at := content.index(b"elst") + 16) : at + 4], "big")
    set_box(path, b"elst", 12, [start + trimmed * 512])  # a frame lasts 512 ticks of 1/12800 s

    with open_video(path) as video:
        assert video.times_s == pytest.approx(np.arange(40 - trimmed) / 25)
        shown = [number_shown(video.read_frame(k).image) for k in range(len(video))]
    assert shown == list(range(trimmed, 40))


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


def test_the_default_stream_of_several_is_read_and_named(tmp_path: Path) -> None:
    path = tmp_path / "two.mkv"
    with av.open(str(path), "w") as container:
        streams = [container.add_stream("libx264", rate=25, options=X264) for _ in range(2)]
        for stream, size_wh in zip(streams, [(64, 64), (128, 64)], strict=True):
            stream.width, stream.height = size_wh
            stream.pix_fmt = "yuv420p"
        for k in range(10):
            for stream, size_wh in zip(streams, [(64, 64), (128, 64)], strict=True):
                picture = av.VideoFrame.from_ndarray(numbered(k, size_wh), format="rgb24")
                picture.pts, picture.time_base = k, Fraction(1, 25)
                container.mux(stream.encode(picture))
        for stream in streams:
            container.mux(stream.encode())

    with open_video(path) as video:
        assert "2 video streams" in video.warnings[0]
        assert len(video) == 10
        assert number_shown(video.read_frame(7).image) == 7


@pytest.mark.parametrize(
    "name",
    [
        "Ärzte vidéo é.mp4",
        "手术 视频.mp4",
        "cas n°3 (copie) #1 %20 & 'x'.mp4",
        "emoji_🩺.mp4",
        "clip.with.dots.MP4",
        "%03d.mp4",
        "http:x.mp4",
        "-y.mp4",
        "x" * 180 + ".mp4",
    ],
)
def test_any_file_name_opens(tmp_path: Path, name: str) -> None:
    with open_video(numbered_clip(tmp_path / name, 3, options=X264)) as video:
        assert (video.name, number_shown(video.read_frame(2).image)) == (name, 2)


def test_a_decomposed_name_is_found_by_its_composed_form_and_named_alike(tmp_path: Path) -> None:
    composed, decomposed = "\u00e9.mp4", "e\u0301.mp4"
    numbered_clip(tmp_path / decomposed, 3, options=X264)

    with open_video(tmp_path / composed) as one, open_video(tmp_path / decomposed) as two:
        assert one.name == two.name == composed


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

"""Every frame of every kind of clip is the one asked for: each clip shows its own numbers."""

import hashlib
import random
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from refinerank_core.video import open_video
from tests.clips import SIZE_WH, X264, number_shown, numbered, numbered_clip, set_box

READS = 200
COUNT = 70
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

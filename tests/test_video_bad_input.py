"""What is no video gives one clear sentence; what is damaged gives the frames it still has."""

import os
import subprocess
import sys
import wave
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from refinerank_core.errors import VideoError
from refinerank_core.video import Video, open_video
from tests.clips import encode, number_shown, numbered, numbered_clip

X264 = {"preset": "ultrafast", "g": "20", "sc_threshold": "0"}
FASTSTART = {"movflags": "faststart"}


def assert_one_sentence(message: str, name: str) -> None:
    """The name, what is wrong, what to do: one line, no path, no traceback words."""
    assert message.startswith(f"{name}: ")
    assert "\n" not in message
    assert message.endswith(".")
    assert not any(word in message for word in ("/", "Error", "errno", "Traceback", "0x"))


def readable(video: Video) -> list[int]:
    """Indices of the frames that can be read; each must show its own number."""
    shown, messages = [], []
    for index in range(len(video)):
        try:
            assert number_shown(video.read_frame(index).image) == index
            shown.append(index)
        except VideoError as error:
            messages.append(str(error))
    for message in messages:
        assert_one_sentence(message, video.name)
        assert f" of {len(video)} is damaged" in message
    return shown


def cut_pictures(path: Path, part: float) -> None:
    """Keep the head of a file and this part of its pictures."""
    content = path.read_bytes()
    start = max(content.find(b"mdat"), content.find(b"movi"), 0)
    path.write_bytes(content[: start + int((len(content) - start) * part)])


def write_audio(path: Path) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(16000))


def write_covered_audio(path: Path) -> None:
    """Sound with a cover picture: FFmpeg calls the picture a video stream."""
    with av.open(str(path), "w", format="mp4") as container:
        sound = container.add_stream("aac", rate=8000)
        cover = container.add_stream("mjpeg", rate=1)
        assert isinstance(cover, av.VideoStream)
        cover.width, cover.height, cover.pix_fmt = 96, 64, "yuvj420p"
        cover.disposition = av.stream.Disposition.attached_pic
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
        frame.sample_rate = 8000
        container.mux(sound.encode(frame))
        picture = av.VideoFrame.from_ndarray(numbered(1), format="rgb24")
        picture.pts = 0
        container.mux(cover.encode(picture))
        container.mux(sound.encode())
        container.mux(cover.encode())


def write_without_index(path: Path) -> None:
    content = numbered_clip(path, 100, options=X264).read_bytes()
    path.write_bytes(content[: int(len(content) * 0.7)])


WRITERS: dict[str, Callable[[Path], object]] = {
    "empty.mp4": lambda path: path.write_bytes(b""),
    "notes.mp4": lambda path: path.write_text("patient notes, no pictures\n" * 40),
    "login.mp4": lambda path: path.write_text("<!doctype html><title>Sign in</title>" * 50),
    "noise.mp4": lambda path: path.write_bytes(np.random.default_rng(1).bytes(50_000)),
    "zeros.mp4": lambda path: path.write_bytes(bytes(50_000)),
    "sound.wav": write_audio,
    "sound.mp4": write_audio,
    "cover.m4a": write_covered_audio,
    "unfinished.mp4": write_without_index,
    "list.m3u8": lambda path: path.write_text("#EXTM3U\n#EXTINF:1,\n/etc/hostname\n"),
    "list.mp4": lambda path: path.write_text("ffconcat version 1.0\nfile secret.mp4\n"),
    "pipe.mp4": lambda path: os.mkfifo(path),
    "folder.mp4": lambda path: path.mkdir(),
    "nothing.mp4": lambda path: None,
    "long" * 70 + ".mp4": lambda path: None,
}


@pytest.mark.parametrize("name", WRITERS)
def test_what_is_no_video_gives_one_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    WRITERS[name](tmp_path / name)
    capfd.readouterr()

    with pytest.raises(VideoError) as caught:
        open_video(tmp_path / name)

    assert_one_sentence(str(caught.value), name)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("empty.mp4", "empty"),
        ("login.mp4", "not a video"),
        ("sound.wav", r"no video stream \(audio\)"),
        ("cover.m4a", "audio, cover picture"),
        ("unfinished.mp4", "unfinished or cut off"),
        ("nothing.mp4", "no such file"),
        ("folder.mp4", "no numbered frames"),
        ("pipe.mp4", "not a file"),
    ],
)
def test_the_sentence_says_what_is_wrong(tmp_path: Path, name: str, words: str) -> None:
    WRITERS[name](tmp_path / name)

    with pytest.raises(VideoError, match=words):
        open_video(tmp_path / name)


def test_a_path_with_a_null_character_is_a_video_error() -> None:
    with pytest.raises(VideoError, match="path cannot be read"):
        open_video("clip\0.mp4")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_that_may_not_be_read_is_a_video_error(tmp_path: Path) -> None:
    path = numbered_clip(tmp_path / "a.mp4", 3, options=X264)
    path.chmod(0)

    with pytest.raises(VideoError, match="cannot be read"):
        open_video(path)


def test_fps_is_refused_for_a_file_and_below_zero(tmp_path: Path) -> None:
    path = numbered_clip(tmp_path / "a.mp4", 3, options=X264)

    with pytest.raises(ValueError, match="folders"):
        open_video(path, fps=25)
    with pytest.raises(ValueError, match="above 0"):
        open_video(tmp_path, fps=0)


@pytest.mark.parametrize("part", [0.3, 0.6, 0.9])
def test_a_file_cut_in_the_middle_opens_with_its_leading_frames(
    tmp_path: Path, part: float
) -> None:
    path = numbered_clip(tmp_path / "cut.mp4", 100, options=X264, container_options=FASTSTART)
    cut_pictures(path, part)

    with open_video(path) as video:
        assert 0 < len(video) < 100
        assert video.warnings == (f"truncated: {len(video)} of 100 frames can be read",)
        assert readable(video) == list(range(len(video)))
        assert video.duration_s == pytest.approx(len(video) / 25)


@pytest.mark.parametrize("name", ["cut.mkv", "cut.ts", "cut.mpg", "cut.avi", "cut.webm"])
def test_every_container_cut_in_the_middle_keeps_its_leading_frames(
    tmp_path: Path, name: str
) -> None:
    codec = {"cut.mpg": "mpeg2video", "cut.webm": "libvpx-vp9"}.get(name, "libx264")
    options = {"bf": "2", "g": "12"} if codec == "mpeg2video" else X264 | {"bf": "3"}
    if codec == "libvpx-vp9":
        options = {"deadline": "realtime", "cpu-used": "8"}
    container_format = "mpeg" if name == "cut.mpg" else None
    path = numbered_clip(
        tmp_path / name, 100, codec=codec, options=options, container_format=container_format
    )
    cut_pictures(path, 0.55)

    with open_video(path) as video:
        assert 20 < len(video) < 90
        assert len(readable(video)) >= len(video) - 1


def test_bit_rot_spoils_only_its_group_of_pictures(tmp_path: Path) -> None:
    path = numbered_clip(tmp_path / "rot.mp4", 100, options=X264, container_options=FASTSTART)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 30] = bytes(value ^ 0x5A for value in content[middle : middle + 30])
    path.write_bytes(content)

    with open_video(path) as video:
        assert len(video) == 100
        lost = set(range(100)) - set(readable(video))

    assert 0 < len(lost) <= 40
    assert len({index // 20 for index in lost}) <= 2


def test_frames_before_the_first_key_picture_are_left_out_and_said_so(tmp_path: Path) -> None:
    path = numbered_clip(tmp_path / "late.ts", 60, options=X264 | {"bf": "0"})
    content = path.read_bytes()
    packets = [content[at : at + 188] for at in range(0, len(content), 188)]
    starts = [k for k, packet in enumerate(packets) if packet[1] & 0x40 and packet[3] & 0x20]
    path.write_bytes(b"".join(packets[:2] + packets[starts[len(starts) // 3] :]))

    with open_video(path) as video:
        first = number_shown(video.read_frame(0).image)
        last = number_shown(video.read_frame(len(video) - 1).image)

    assert first in (20, 40)
    assert last == 59
    assert video.times_s[0] == 0.0


def test_two_recordings_joined_by_bytes_end_where_the_time_stamps_start_over(
    tmp_path: Path,
) -> None:
    path = numbered_clip(tmp_path / "joined.ts", 60, options=X264)
    path.write_bytes(path.read_bytes() * 2)

    with open_video(path) as video:
        assert len(video) == 60
        assert "start over" in video.warnings[0]
        assert readable(video) == list(range(60))


def test_a_file_that_vanishes_says_so_when_read(tmp_path: Path) -> None:
    path = numbered_clip(tmp_path / "a.mp4", 30, options=X264)
    video = open_video(path)
    path.unlink()

    with pytest.raises(VideoError, match=r"frame 3 cannot be read"):
        video.read_frame(3)
    with pytest.raises(VideoError, match="no longer"):
        _ = video.sha256


def test_absurd_pixel_shapes_are_ignored_and_said_so(tmp_path: Path) -> None:
    path = encode(tmp_path / "a.mp4", [numbered(0)] * 2, sample_aspect=Fraction(9), options=X264)

    with open_video(path) as video:
        assert video.size_wh == (96, 64)
        assert "ignored" in video.warnings[0]


def test_damage_prints_nothing(tmp_path: Path) -> None:
    path = numbered_clip(tmp_path / "rot.mp4", 60, options=X264, container_options=FASTSTART)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 600] = bytes(600)
    path.write_bytes(content)
    script = (
        "import sys\n"
        "from refinerank_core.errors import RefineRankError\n"
        "from refinerank_core.video import open_video\n"
        "video = open_video(sys.argv[1])\n"
        "for index in range(len(video)):\n"
        "    try:\n"
        "        video.read_frame(index)\n"
        "    except RefineRankError:\n"
        "        pass\n"
    )
    root = Path(__file__).parent.parent

    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], cwd=root, capture_output=True, check=True
    )

    assert (done.stdout, done.stderr) == (b"", b"")

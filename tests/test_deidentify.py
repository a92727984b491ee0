"""Aids against showing whom a video is of: border text, metadata, frames outside the body."""

from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from refinerank_core.__main__ import main
from refinerank_core.deidentify import (
    content_circle,
    mask_border,
    may_be_outside,
    tissue_share,
    without_metadata,
)
from refinerank_core.errors import VideoError
from refinerank_core.frame_writer import write_video
from refinerank_core.structures import Image
from refinerank_core.video import open_video


def endoscope(centre: tuple[int, int] = (160, 120), radius: int = 100) -> Image:
    """A red disc on black, 320x240, with a name written into the border."""
    image = np.zeros((240, 320, 3), np.uint8)
    cv2.circle(image, centre, radius, (180, 60, 50), -1)
    cv2.putText(image, "DOE J", (4, 14), cv2.FONT_HERSHEY_PLAIN, 0.8, (255, 255, 255), 1)
    return image


@pytest.mark.parametrize(
    ("centre", "radius"), [((160, 120), 100), ((190, 125), 90), ((160, 120), 140)]
)
def test_the_circle_of_an_endoscope_is_found(centre: tuple[int, int], radius: int) -> None:
    found = content_circle(endoscope(centre, radius))

    assert found is not None
    assert found == pytest.approx((centre[0], centre[1], radius), abs=2)


def test_border_text_is_blacked_out_and_the_picture_stays() -> None:
    image = endoscope()
    assert image[:16, :60].any()

    masked, found = mask_border(image)

    assert found
    assert not masked[:16, :60].any()
    assert (masked[40:200, 100:220] == image[40:200, 100:220]).all()
    assert image[:16, :60].any()  # the given picture is not changed


@pytest.mark.parametrize(
    "image",
    [
        np.full((240, 320, 3), 120, np.uint8),
        np.zeros((240, 320, 3), np.uint8),
        cv2.rectangle(np.zeros((240, 320, 3), np.uint8), (40, 40), (280, 200), (200, 90, 80), -1),
    ],
    ids=["full frame", "black", "rectangle"],
)
def test_a_picture_without_a_circle_is_left_as_it_is(image: Image) -> None:
    masked, found = mask_border(image)

    assert not found
    assert masked is image


def test_tissue_is_told_from_drapes_and_walls() -> None:
    tissue = np.full((40, 60, 3), (170, 60, 50), np.uint8)
    drape = np.full((40, 60, 3), (40, 120, 150), np.uint8)
    wall = np.full((40, 60, 3), (190, 188, 185), np.uint8)

    assert tissue_share(tissue) == 1.0
    assert not may_be_outside(tissue)
    assert may_be_outside(drape)
    assert may_be_outside(wall)
    assert tissue_share(np.zeros((4, 4, 3), np.uint8)) == 0.0


def test_a_border_does_not_count_as_no_tissue() -> None:
    assert tissue_share(endoscope()) > 0.9


def test_a_copy_has_the_same_frames_and_none_of_the_metadata(
    clip_path: Path, tmp_path: Path
) -> None:
    named, bare = tmp_path / "named.mp4", tmp_path / "bare.mp4"
    with av.open(str(clip_path)) as old, av.open(str(named), "w") as new:
        new.metadata["title"] = "Doe, Jane 1970-01-01"
        new.metadata["comment"] = "theatre 4"
        copy = new.add_stream_from_template(old.streams.video[0])
        for packet in old.demux(video=0):
            if packet.dts is not None:
                packet.stream = copy
                new.mux(packet)
    assert b"Doe, Jane" in named.read_bytes()

    without_metadata(named, bare)

    assert b"Doe, Jane" not in bare.read_bytes()
    assert b"theatre 4" not in bare.read_bytes()
    with open_video(named) as before, open_video(bare) as after:
        assert after.times_s == pytest.approx(before.times_s)
        assert (after.read_frame(7).image == before.read_frame(7).image).all()


def test_what_is_no_video_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    source, target = tmp_path / "notes.mp4", tmp_path / "out.mp4"
    source.write_text("no video")

    with pytest.raises(VideoError, match=r"notes\.mp4 cannot be copied without its metadata"):
        without_metadata(source, target)
    assert not target.exists()


@pytest.fixture
def endoscopy(tmp_path: Path) -> Path:
    """Three seconds inside the body, one outside; a name in the border."""
    room = np.full((240, 320, 3), (60, 130, 160), np.uint8)
    pictures = [endoscope() for _ in range(6)] + [room, room]
    write_video(tmp_path / "operation.mp4", pictures, np.arange(8) / 2)
    return tmp_path / "operation.mp4"


def test_the_command_masks_the_border_and_warns_of_the_room(
    endoscopy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.mp4"

    assert main(["deidentify", str(endoscopy), str(out), "--mask-border"]) == 0

    said = capsys.readouterr()
    assert "1 of 4 frames looked at show little red tissue, the first at 3.0 s" in said.err
    assert "it may miss" in said.out
    with open_video(out) as video:
        assert len(video) == 8
        assert video.read_frame(2).image[:16, :60].max() < 30
        assert video.read_frame(2).image[120, 160, 0] > 120


def test_a_video_without_a_circle_is_not_masked_in_silence(
    clip_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.mp4"

    assert main(["deidentify", str(clip_path), str(out), "--mask-border"]) == 1

    assert "no content circle was found" in capsys.readouterr().err
    assert not out.exists()

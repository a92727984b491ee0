"""What is kept of an upload: no metadata, no border on demand, nothing before a warning is read."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import cv2
import numpy as np
import pytest

from demo import uploads
from demo.explore import Explore
from demo.frames import FrameImages
from demo.runs import Pace
from demo.services import Limits
from demo.sessions import Sessions
from demo.uploads import UNSTRIPPED, kept_copy, outside_words
from refinerank_core.errors import VideoError
from refinerank_core.frame_writer import write_video
from refinerank_core.video import open_video
from tests.browser.fakes import FakeCore, fake_services, tissue
from tests.clips import encode

ROOM = np.full((64, 96, 3), (60, 130, 160), np.uint8)


def named(path: Path, **told: str) -> Path:
    """A clip that names a patient in its metadata."""
    plain = encode(path.with_name("plain.mp4"), (tissue(k, (96, 64)) for k in range(10)))
    with av.open(str(plain)) as old, av.open(str(path), "w") as new:
        new.metadata["title"] = "Doe, Jane 1970-01-01"
        copy = new.add_stream_from_template(old.streams.video[0])
        for packet in old.demux(video=0):
            if packet.dts is not None:
                packet.stream = copy
                new.mux(packet)
    plain.unlink()
    return path


def alone(folder: Path, name: str = "mine.mp4") -> Path:
    folder.mkdir()
    return named(folder / name)


def test_the_kept_copy_has_no_metadata_and_goes_by_the_files_own_hash(tmp_path: Path) -> None:
    path = alone(tmp_path / "home")
    with open_video(path) as before:
        digest, times, picture = before.sha256, before.times_s, before.read_frame(3).image

    with kept_copy(path, mask=False) as kept:
        assert (kept.name, kept.sha256) == ("mine.mp4", digest)
        assert kept.times_s == pytest.approx(times)
        assert (kept.read_frame(3).image == picture).all()
        assert b"Doe, Jane" not in kept.path.read_bytes()
    assert not path.exists()


def test_a_clip_that_cannot_be_stripped_says_so_and_can_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = alone(tmp_path / "home")

    def refuse(source: Path, target: Path) -> None:
        raise VideoError("no")

    monkeypatch.setattr(uploads, "without_metadata", refuse)

    with kept_copy(path, mask=False) as kept:
        assert UNSTRIPPED in kept.warnings
        assert kept.path == path
        assert len(kept) == 10


def test_the_border_is_black_on_demand(tmp_path: Path) -> None:
    image = np.zeros((120, 160, 3), np.uint8)
    cv2.circle(image, (80, 60), 50, (180, 60, 50), -1)
    cv2.putText(image, "DOE", (2, 12), cv2.FONT_HERSHEY_PLAIN, 0.8, (255, 255, 255), 1)
    home = tmp_path / "home"
    home.mkdir()
    write_video(home / "mine.mp4", [image] * 4, np.arange(4) / 5)

    with kept_copy(home / "mine.mp4", mask=True) as kept:
        assert kept.read_frame(2).image[:14, :40].max() < 30
        assert kept.read_frame(2).image[60, 80, 0] > 120


def test_a_mask_without_a_round_picture_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(VideoError, match="no content circle was found"):
        kept_copy(alone(tmp_path / "home"), mask=True)


def test_a_clip_of_the_room_is_warned_of(tmp_path: Path) -> None:
    outside = encode(tmp_path / "room.mp4", [ROOM] * 10)

    assert "little red tissue" in outside_words(outside)
    assert "may miss" in outside_words(outside)
    assert outside_words(encode(tmp_path / "in.mp4", (tissue(k) for k in range(10)))) == ""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The handlers of the Explore tab; every path passes for one of the upload folder."""
    (tmp_path / "samples").mkdir()
    monkeypatch.setattr("demo.explore.uploaded_file", Path)
    services = fake_services(FakeCore(), tmp_path / "samples", Limits(upload_mb=1, duration_s=9.0))
    sessions = Sessions(services)
    yield Explore(services, sessions, FrameImages(), Pace(), {})
    sessions.close()


def send(desk: Any, **told: object) -> dict[str, Any]:
    """What the page hears after an upload."""
    request = SimpleNamespace(session_hash="a")
    answer = desk.on_upload(SimpleNamespace(_data=told), request)
    return dict(answer.props)


def kept_by(desk: Any) -> int:
    return len(desk._sessions.of("a").clips)


def test_nothing_of_a_clip_of_the_room_is_kept_before_the_visitor_decides(
    desk: Any, tmp_path: Path
) -> None:
    path = encode(tmp_path / "room.mp4", [ROOM] * 10)

    heard = send(desk, path=str(path))["progress"]

    assert heard["state"] == "outside"
    assert "may miss" in heard["words"]
    assert kept_by(desk) == 0
    send(desk, path=str(path), confirmed=True)
    assert kept_by(desk) == 1
    assert not path.exists()


def test_a_clip_that_the_visitor_does_not_want_kept_is_removed(desk: Any, tmp_path: Path) -> None:
    path = encode(tmp_path / "room.mp4", [ROOM] * 10)

    assert send(desk, path=str(path), drop=True)["progress"]["state"] == "dropped"

    assert kept_by(desk) == 0
    assert not path.exists()


def test_what_is_no_clip_is_removed(desk: Any, tmp_path: Path) -> None:
    path = tmp_path / "notes.mp4"
    path.write_text("notes")

    with pytest.raises(Exception, match="not a video"):
        send(desk, path=str(path))
    assert not path.exists()


def test_where_uploads_are_off_a_sent_clip_is_removed(desk: Any, tmp_path: Path) -> None:
    desk._services = fake_services(FakeCore(), tmp_path / "samples", Limits(uploads=False))
    path = encode(tmp_path / "mine.mp4", (tissue(k) for k in range(5)))

    with pytest.raises(Exception, match="Uploads are off here"):
        send(desk, path=str(path))
    assert not path.exists()
    assert kept_by(desk) == 0

"""An upload through the page's own door: limited, kept apart, gone afterwards, never mentioned."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from demo import ui
from demo.explore import uploaded_file
from demo.services import Limits
from demo.sessions import Sessions
from refinerank_core.errors import VideoError
from tests.browser.fakes import FakeCore, fake_services, tissue
from tests.browser.reviewing import launched
from tests.clips import encode

NAME = "jones-born-1953.mp4"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Sessions]]:
    """A page that takes clips of a megabyte and of two seconds."""
    limits = Limits(upload_mb=1, duration_s=2.0)
    services = fake_services(FakeCore(), tmp_path_factory.mktemp("samples"), limits)
    sessions = Sessions(services)
    blocks = ui.build(services, sessions)
    yield launched(blocks, ui.launch_settings(services)), sessions
    blocks.close()
    sessions.close()


def send(url: str, name: str, content: bytes) -> httpx.Response:
    """What the browser does with a file that is chosen."""
    return httpx.post(f"{url}gradio_api/upload", files={"files": (name, content)}, timeout=60)


def test_no_folder_is_opened_to_the_browser(served: tuple[str, Sessions]) -> None:
    assert ui.launch_settings(served[1].services)["allowed_paths"] == []


def test_a_file_over_the_limit_is_not_let_in(served: tuple[str, Sessions]) -> None:
    reply = send(served[0], NAME, b"0" * (2 << 20))

    assert reply.status_code == 413


def test_an_upload_leaves_no_word_and_no_file(
    served: tuple[str, Sessions],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    url, sessions = served
    caplog.set_level(logging.INFO)
    clip = encode(tmp_path / NAME, (tissue(k) for k in range(20))).read_bytes()
    long = encode(tmp_path / "long.mp4", (tissue(k) for k in range(80))).read_bytes()
    visitor = sessions.of("me")

    came = uploaded_file(send(url, NAME, clip).json()[0])
    taken = sessions.add_upload(visitor, came)
    refused = uploaded_file(send(url, NAME, long).json()[0])
    with pytest.raises(VideoError, match="lasts 3 s; at most 2 s"):
        sessions.add_upload(visitor, refused)
    folder = visitor.folder
    kept = [one.name for one in folder.rglob("*.mp4")]
    sessions.end("me")

    assert kept == [NAME]
    assert not any(place.exists() for place in (came, refused, folder))
    assert taken.video.name == NAME
    said = capfd.readouterr()
    assert "jones" not in said.out + said.err + caplog.text

"""A clip of the visitor's own: shown, kept from others, removed, refused."""

from __future__ import annotations

import time
from pathlib import Path

from demo.sessions import Sessions
from tests.browser.conftest import OpenPage, ask, part, state, wait_for
from tests.browser.fakes import tissue
from tests.clips import encode


def test_an_upload_is_shown_and_never_gets_into_a_link(open_page: OpenPage, tmp_path: Path) -> None:
    path = encode(tmp_path / "my <b>clip & co.mp4", (tissue(k) for k in range(12)))
    page = open_page()

    page.set_input_files(part("file"), path)
    wait_for(page, "r.stage.clip.sample === null && r.dataset.frame === '0'")
    ask(page, "Where is the <img src=x onerror=\"document.title='owned'\"> hook?")
    page.click(part("link"))

    assert "No link for an upload" in page.text_content("dialog")
    assert page.evaluate("location.search") == ""
    assert page.title() == "RefineRank"
    assert page.locator(".rr img, .rr b b").count() == 0


def test_one_can_go_back_to_an_upload(open_page: OpenPage, tmp_path: Path) -> None:
    path = encode(tmp_path / "mine.mp4", (tissue(k) for k in range(12)))
    page = open_page()
    page.set_input_files(part("file"), path)
    wait_for(page, "r.stage.clip.sample === null && r.dataset.frame === '0'")

    page.select_option(part("clips"), "sample:beta")
    wait_for(page, "r.stage.clip.sample === 'beta'")
    page.select_option(part("clips"), label="Your upload: mine.mp4")

    wait_for(page, "r.stage.clip.title === 'mine.mp4'")


def test_an_upload_is_removed_when_the_page_is_closed(
    open_page: OpenPage, tmp_path: Path, sessions: Sessions
) -> None:
    path = encode(tmp_path / "mine.mp4", (tissue(k) for k in range(12)))
    page = open_page()
    page.set_input_files(part("file"), path)
    wait_for(page, "r.stage.clip.sample === null")
    token = state(page, "s.clip.token")
    home = sessions.clip(token).home
    assert home is not None

    page.close()

    for _ in range(100):
        if not home.exists():
            break
        time.sleep(0.1)
    assert not home.exists()


def test_a_file_that_is_no_video_is_one_sentence_and_changes_nothing(open_page: OpenPage) -> None:
    page = open_page()
    file = {"name": "notes.mp4", "mimeType": "video/mp4", "buffer": b"not a video"}

    page.set_input_files(part("file"), file)
    page.wait_for_selector(".toast-body")

    assert "notes.mp4: not a video" in page.text_content(".toast-body")
    assert state(page, "s.clip.sample") == "alpha"
    wait_for(page, "r.querySelector('[data-id=notice]').hidden")


def test_a_file_over_the_limit_is_refused_before_it_is_sent(open_page: OpenPage) -> None:
    page = open_page()
    file = {"name": "big.mp4", "mimeType": "video/mp4", "buffer": b"0" * (3 << 20)}

    page.set_input_files(part("file"), file)

    assert "at most 2 MB" in page.text_content(part("notice"))

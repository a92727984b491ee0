"""On a Space visitors look; who logged in at the Hub decides, under the name known there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gradio import oauth

from demo import ui
from demo.identity import Identity
from demo.review_services import Reviews
from demo.sessions import Sessions
from refinerank_core.reviews.pictures import Pictures
from refinerank_core.reviews.store import Store
from tests.browser.conftest import DESKTOP, PATIENCE_MS
from tests.browser.fakes import FakeCore, fake_services
from tests.browser.hub import CLIENT_ID, CLIENT_SECRET, Hub, hub
from tests.browser.reviewing import Record, inside, launched, ready, search, told, until, visit

QUESTION = "Where is the hook of the Space?"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """What a Space with `hf_oauth: true` finds in its environment; Gradio read it long ago."""
    with hub() as opened:
        monkeypatch.setattr(oauth, "get_space", lambda: "someone/refinerank")
        monkeypatch.setattr(oauth, "OAUTH_CLIENT_ID", CLIENT_ID)
        monkeypatch.setattr(oauth, "OAUTH_CLIENT_SECRET", CLIENT_SECRET)
        monkeypatch.setattr(oauth, "OAUTH_SCOPES", "openid profile")
        monkeypatch.setattr(oauth, "OPENID_PROVIDER_URL", opened.address)
        yield opened


@pytest.fixture
def space(provider: Hub, samples: Path, tmp_path: Path) -> Iterator[tuple[str, Record]]:
    """The address of a Space without storage, and its record."""
    sessions = Sessions(fake_services(FakeCore(), samples))
    with Store(tmp_path / "reviews.db") as store:
        reviews = Reviews(store, Identity("hub"), ephemeral=True, videos=None)
        blocks = ui.build(sessions.services, sessions, reviews)
        yield (
            launched(blocks, ui.launch_settings(sessions.services)),
            Record(store, sessions, Pictures(tmp_path)),
        )
        blocks.close()
    sessions.close()


def test_the_hubs_name_is_the_reviewers(
    browser: Any, space: tuple[str, Record], provider: Hub
) -> None:
    address, record = space
    (case,) = record.put(QUESTION, 1.0)
    context = browser.new_context(viewport=DESKTOP)
    try:
        page = visit(context, "Dr Pretender", address)  # a name that was stated counts for nothing
        assert page.is_visible(inside("ephemeral"))
        search(page, QUESTION)
        page.keyboard.press("a")
        page.wait_for_selector("#review dialog[open]")
        assert record.now(case).state.status == "new"

        page.click(inside("hubgo"))
        page.wait_for_url(f"{address}**", timeout=PATIENCE_MS)
        until(page, "r && r.querySelector('[data-id=who]').textContent === 'dr-hub'")
        search(page, QUESTION)
        page.keyboard.press("a")
        until(page, "r.dataset.saved === 'yes' && r.open.facts.state.mine")
        current = record.now(case).state.current
        assert current is not None
        assert current.reviewer == "dr-hub"

        page.reload()
        until(page, "r && r.querySelector('[data-id=who]').textContent === 'dr-hub'")
        page.wait_for_function(
            "document.querySelector('#hub-login').textContent.includes('Logout')"
        )
        page.click(inside("who"))
        page.click(inside("hubgo"))
        until(page, "r && r.querySelector('[data-id=who]').textContent === 'Log in to decide'")
        search(page, QUESTION)
        ready(page)
        assert told(page, "r.open.facts.state.opinions.length") == 1  # anyone may look
        page.keyboard.press("r")
        page.wait_for_selector("#review dialog[open]")
        assert record.now(case).state.status == "accepted"
    finally:
        context.close()

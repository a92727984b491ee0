"""How the page looks: no sideways scroll, no serious accessibility fault, light and dark."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import OpenPage, part, wait_for


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The text of axe-core, fetched from the npm registry."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("the accessibility check needs npm: apt-get install -y npm")
    folder = tmp_path_factory.mktemp("axe")
    command = [npm, "install", "--silent", "--no-save", "--prefix", str(folder), "axe-core@4"]
    if subprocess.run(command, check=False, timeout=120, cwd=folder).returncode:
        pytest.skip("the npm registry cannot be reached")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


@pytest.mark.parametrize("width", [360, 768, 1024, 1440])
def test_the_page_never_scrolls_sideways(open_page: OpenPage, width: int) -> None:
    page = open_page(viewport={"width": width, "height": 800})
    page.wait_for_selector(".map canvas")

    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_on_a_phone_candidates_open_and_close_as_a_drawer(open_page: OpenPage) -> None:
    page = open_page(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    wait_for(page, "r.stage.k !== null")
    assert not page.is_visible(part("list"))

    page.tap(part("drawer"))
    page.wait_for_selector(part("list"), state="visible")
    page.tap(part("undrawer"))

    page.wait_for_selector(part("list"), state="hidden")
    for name in ("pick", "link", "go", "play"):
        assert page.locator(part(name)).bounding_box()["height"] >= 40


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_accessibility_fault(open_page: OpenPage, axe: str, scheme: str) -> None:
    page = open_page(color_scheme=scheme)
    page.wait_for_selector(".map canvas")
    page.evaluate(axe)

    found: list[dict[str, Any]] = page.evaluate(
        "axe.run('#stage', { resultTypes: ['violations'] }).then((all) => all.violations)"
    )

    serious = [one for one in found if one["impact"] in {"serious", "critical"}]
    assert [(one["id"], one["nodes"][0]["html"]) for one in serious] == []


def test_without_clips_the_page_invites_to_upload(browser: Any, tmp_path: Path) -> None:
    from demo import ui
    from demo.sessions import Sessions
    from tests.browser.fakes import FakeCore, fake_services

    services = fake_services(FakeCore(), tmp_path)
    sessions = Sessions(services)
    blocks = ui.build(services, sessions)
    settings = ui.launch_settings(services)
    _, url, _ = blocks.launch(
        server_name="127.0.0.1", prevent_thread_lock=True, quiet=True, **settings
    )
    page = browser.new_page()
    try:
        page.goto(url)
        page.wait_for_selector("text=Start with a clip", timeout=30_000)

        assert page.is_visible(part("empty"))
        assert page.is_disabled(part("scrub"))
    finally:
        page.close()
        blocks.close()
        sessions.close()

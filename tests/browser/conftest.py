"""One page server and one Chromium for all browser tests."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from demo import ui
from demo.services import Limits
from demo.sessions import Sessions
from refinerank_core.video import open_video
from tests.browser.fakes import FakeCore, fake_services, grounding_of, tissue
from tests.clips import encode

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync"
).split()
INSTALL = "browser tests need: apt-get install -y chromium && pip install playwright"
DESKTOP = {"width": 1440, "height": 900}
PATIENCE_MS = 90_000  # a fault shows at once; this is for machines that are busy with other things
QUESTION = "Where is the grasper at 1, 2 and 3 seconds?"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark this folder's tests, and skip them where there is no browser."""
    try:
        import playwright  # noqa: F401
    except ImportError:
        missing = True
    else:
        missing = CHROMIUM is None
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if missing:
                item.add_marker(pytest.mark.skip(reason=INSTALL))


@pytest.fixture(scope="session")
def core() -> FakeCore:
    """The pretended models, to slow down or to question."""
    return FakeCore()


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two bundled clips; the first has kept answers and truth, the second a cut at frame 20."""
    folder = tmp_path_factory.mktemp("samples")
    path = encode(folder / "alpha.mp4", (tissue(k) for k in range(100)))
    encode(folder / "beta.mp4", (tissue(k) if k < 20 else 255 - tissue(k) for k in range(30)))
    with open_video(path) as video:
        kept = grounding_of(video, QUESTION, "grasper", ["grasper"], [1.0, 2.0, 3.0])
        second = grounding_of(video, "Where is the hook?", "hook", ["hook"], [2.4])
    (folder / "alpha.grounding.json").write_text(kept.to_json())
    (folder / "alpha.q2.grounding.json").write_text(second.to_json())
    truth = {str(index): [40, 30, 120, 90] for index in (25, 50, 75)}
    facts = {
        "title": "Alpha clip",
        "questions": [{"text": QUESTION, "truth": truth}, "Where is the hook?"],
    }
    (folder / "alpha.json").write_text(json.dumps(facts))
    return folder


@pytest.fixture(scope="session")
def sessions(core: FakeCore, samples: Path) -> Iterator[Sessions]:
    """Who is looking at what."""
    opened = Sessions(fake_services(core, samples, Limits(upload_mb=2, duration_s=60)))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def address(sessions: Sessions) -> Iterator[str]:
    """Where the page is served."""
    services = sessions.services
    blocks = ui.build(services, sessions)
    settings = ui.launch_settings(services)
    _, url, _ = blocks.launch(
        server_name="127.0.0.1", prevent_thread_lock=True, quiet=True, **settings
    )
    yield url
    blocks.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


OpenPage = Callable[..., Any]


@pytest.fixture(scope="session")
def desktop(browser: Any) -> Any:
    """A context that keeps the page's scripts; each page in it is a visitor of its own."""
    return browser.new_context(viewport=DESKTOP)


@pytest.fixture
def open_page(browser: Any, desktop: Any, address: str) -> Iterator[OpenPage]:
    """Open the page as a new visitor; its console must stay free of errors."""
    opened: list[Any] = []
    faults: list[str] = []

    def open_one(
        query: str = "", before: Callable[[Any], None] | None = None, **settings: Any
    ) -> Any:
        context = browser.new_context(**{"viewport": DESKTOP, **settings}) if settings else desktop
        page = context.new_page()
        opened.append(context if settings else page)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda said: faults.extend([said.text] * (said.type == "error")))
        page.set_viewport_size(settings.get("viewport", DESKTOP))
        if before is not None:
            before(page)
        page.goto(address + query, timeout=PATIENCE_MS)
        page.wait_for_selector(".rr[data-frame]", timeout=PATIENCE_MS)
        return page

    yield open_one
    for one in opened:
        one.close()
    assert faults == []


def wait_for(page: Any, condition: str, timeout: int = PATIENCE_MS) -> None:
    """Wait until a JavaScript condition on `r`, the stage's root, holds."""
    page.wait_for_function(
        f"(() => {{ const r = document.querySelector('.rr'); return {condition}; }})()",
        timeout=timeout,
    )


def state(page: Any, expression: str) -> Any:
    """The value of an expression on `s`, what is on the stage."""
    return page.evaluate(
        f"(() => {{ const s = document.querySelector('.rr').stage; return {expression}; }})()"
    )


def part(name: str) -> str:
    """Selector of a named part of the stage."""
    return f'[data-id="{name}"]'


# An answer may come and go between two looks at the page: what happens in between is noted.
NOTE_BUSY = """() => {
  const r = document.querySelector('.rr');
  window.wasBusy = false;
  new MutationObserver((_, observer) => {
    if (r.dataset.busy !== 'yes') return;
    window.wasBusy = true;
    observer.disconnect();
  }).observe(r, { attributes: true, attributeFilter: ['data-busy'] });
}"""


def ask(page: Any, text: str) -> None:
    """Type a question, ask it, wait for its answer."""
    page.fill(part("question"), text)
    page.evaluate(NOTE_BUSY)
    page.click(part("go"))
    answered = f"r.dataset.busy === 'no' && r.stage.answer.text === {json.dumps(text)}"
    wait_for(page, f"window.wasBusy && {answered}")

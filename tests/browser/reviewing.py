"""What the tests of the Review and Failures tabs share: a served record, reviewers, a way in."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from demo import ui
from demo.identity import Identity
from demo.review_services import Reviews
from demo.sessions import Sessions
from refinerank_core.reviews.pictures import Pictures
from refinerank_core.reviews.records import Case
from refinerank_core.reviews.sources import cases_of
from refinerank_core.reviews.store import CaseView, Store
from tests.browser.conftest import DESKTOP, PATIENCE_MS
from tests.browser.fakes import grounding_of

ROOT = Path(__file__).resolve().parent.parent.parent
NAMED = "localStorage.setItem('refinerank-name', '{name}')"
IN_REVIEW = "document.querySelector('#review .rr.review')"

Enter = Callable[..., Any]


class Record:
    """A store that a page server reads too, and cases to put into it."""

    def __init__(self, store: Store, sessions: Sessions, pictures: Pictures) -> None:
        self.store = store
        self.pictures = pictures
        self._sessions = sessions

    def put(self, question: str, *times_s: float) -> list[Case]:
        """Cases of a question of one's own, so that each test has its own."""
        video = self._sessions.sample("alpha").video
        grounding = grounding_of(video, question, "grasper", ["grasper"], list(times_s))
        cases = cases_of(grounding)
        self.store.add(cases, by="import", grounding=grounding)
        return cases

    def now(self, case: Case) -> CaseView:
        """Where a case stands."""
        return self.store.case(case.case_id)


@pytest.fixture(scope="session")
def record(sessions: Sessions, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Record]:
    """An empty record."""
    folder = tmp_path_factory.mktemp("reviews")
    with Store(folder / "reviews.db") as store:
        yield Record(store, sessions, Pictures(folder / "pictures"))


@pytest.fixture(scope="session")
def review_address(sessions: Sessions, record: Record) -> Iterator[str]:
    """Where the page with all tabs is served."""
    pictures = record.pictures
    reviews = Reviews(record.store, Identity(), ephemeral=False, videos=None, pictures=pictures)
    blocks = ui.build(sessions.services, sessions, reviews)
    yield launched(blocks, ui.launch_settings(sessions.services))
    blocks.close()


def launched(blocks: Any, settings: dict[str, Any]) -> str:
    """Serve a page; Gradio gives its own first request 3 s, which a busy machine may miss."""
    for _ in range(20):
        try:
            _, url, _ = blocks.launch(
                server_name="127.0.0.1", prevent_thread_lock=True, quiet=True, **settings
            )
        except ValueError:
            continue
        return str(url)
    raise AssertionError("the page server does not answer")


@pytest.fixture
def enter(browser: Any, review_address: str) -> Iterator[Enter]:
    """Come as a reviewer with a browser of one's own; its console must stay free of errors."""
    opened: list[Any] = []
    faults: list[str] = []

    def enter_one(name: str, question: str = "", **settings: Any) -> Any:
        context = browser.new_context(**{"viewport": DESKTOP, **settings})
        opened.append(context)
        page = visit(context, name, review_address)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda said: faults.extend([said.text] * (said.type == "error")))
        if question:
            search(page, question)
        return page

    yield enter_one
    for one in opened:
        one.close()
    assert faults == []


def visit(context: Any, name: str, address: str) -> Any:
    """Open the Review tab in a new page."""
    if name:
        context.add_init_script(NAMED.format(name=name))
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(address, timeout=PATIENCE_MS)
    turn_to(page, "Review")
    until(page, "r && r.dataset.view !== 'loading'")
    return page


def turn_to(page: Any, tab: str) -> None:
    """Choose a tab."""
    page.click(f'#tabs button[role="tab"]:has-text("{tab}")', timeout=PATIENCE_MS)


def search(page: Any, question: str) -> None:
    """Show the cases of one question and open the first."""
    page.fill(inside("text"), question)
    until(page, f"r.querySelector('.asks') && r.querySelector('.asks').title === '{question}'")
    page.click("#review .caseline >> nth=0")
    until(page, f"r.querySelector('[data-id=question]').textContent === '{question}'")
    ready(page)


def inside(name: str) -> str:
    """Selector of a named part of the Review tab."""
    return f'#review [data-id="{name}"]'


def until(page: Any, condition: str, timeout: int = PATIENCE_MS) -> None:
    """Wait until a JavaScript condition on `r`, the tab's root, holds."""
    page.wait_for_function(
        f"(() => {{ const r = {IN_REVIEW}; return {condition}; }})()", timeout=timeout
    )


def told(page: Any, expression: str) -> Any:
    """The value of an expression on `r`, the tab's root."""
    return page.evaluate(f"(() => {{ const r = {IN_REVIEW}; return {expression}; }})()")


def ready(page: Any) -> None:
    """Wait until everything is confirmed and the asked frame of the open case is on show."""
    until(page, "r.dataset.saved === 'yes' && r.open.facts && r.stage.image")
    until(page, "r.open.facts.case_id === r.open.id && r.stage.index === r.open.frame")


def opened_at(page: Any, case: Case) -> None:
    """Wait until this case is open."""
    until(page, f"r.open.facts && r.open.facts.case_id === '{case.case_id}'")
    ready(page)


def on_screen(page: Any, x: float, y: float) -> tuple[float, float]:
    """Where a source pixel lies on the screen."""
    place = told(
        page,
        f"""(() => {{
          const c = r.querySelector('[data-id="canvas"]'), b = c.getBoundingClientRect();
          const clip = r.stage.clip;
          const k = Math.min(c.clientWidth / clip.width, c.clientHeight / clip.height);
          return [b.left + (c.clientWidth - clip.width * k) / 2 + {x} * k,
                  b.top + (c.clientHeight - clip.height * k) / 2 + {y} * k];
        }})()""",
    )
    return float(place[0]), float(place[1])


def drag(page: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drag from one source pixel to another."""
    page.mouse.move(*on_screen(page, *start))
    page.mouse.down()
    page.mouse.move(*on_screen(page, (start[0] + end[0]) / 2, (start[1] + end[1]) / 2))
    page.mouse.move(*on_screen(page, *end))
    page.mouse.up()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def server(samples: Path, db: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A page server in a process of its own; it is killed at the end, if it still runs."""
    command = [sys.executable, "-m", "tests.browser.review_server", str(samples), str(db)]
    process = subprocess.Popen(
        [*command, str(port)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for_server(process, port)
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for_server(process: subprocess.Popen[bytes], port: int) -> None:
    """Wait until it answers."""
    until_s = time.monotonic() + 4 * PATIENCE_MS / 1000
    while time.monotonic() < until_s:
        assert process.poll() is None, "the page server ended"
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10).close()
            return
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            time.sleep(0.5)
    raise AssertionError("the page server did not start")

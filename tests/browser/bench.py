"""How quick the page is: `python -m tests.browser.bench` prints medians over repeats.

Pretended models, so the figures are the page's own; headless Chromium on this machine.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from demo import ui
from demo.sessions import Sessions
from refinerank_core.video import open_video
from tests.browser.conftest import CHROMIUM, FLAGS, INSTALL, part, wait_for
from tests.browser.fakes import FakeCore, fake_services, grounding_of, tissue
from tests.clips import encode

TARGETS_MS = {
    "first answered view": 3000,
    "next frame, fetched ahead, key to paint": 80,
    "filter redraw, 256 boxes": 50,
}
STEP = """() => new Promise((done) => {
  const root = document.querySelector('.rr');
  const start = performance.now();
  new MutationObserver((_, watcher) => {
    watcher.disconnect();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
  }).observe(root, { attributes: true, attributeFilter: ['data-frame'] });
  document.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight' }));
})"""
FILTER = """(value) => new Promise((done) => {
  const floor = document.querySelector('[data-id="floor"]');
  const start = performance.now();
  floor.value = value;
  floor.dispatchEvent(new Event('input'));
  requestAnimationFrame(() => setTimeout(() => {
    document.querySelector('[data-id="canvas"]').getContext('2d').getImageData(0, 0, 1, 1);
    done(performance.now() - start);
  }));
})"""


def make_samples(folder: Path) -> None:
    """One 720p clip of four seconds with a kept answer."""
    path = encode(folder / "alpha.mp4", (tissue(k, (1280, 720)) for k in range(100)))
    with open_video(path) as video:
        kept = grounding_of(video, "Where is the grasper?", "grasper", ["grasper"], [2.0])
    (folder / "alpha.grounding.json").write_text(kept.to_json())


def measure(browser: Any, address: str, repeats: int = 5) -> dict[str, list[float]]:
    """Milliseconds of each thing, over repeats."""
    spent: dict[str, list[float]] = {name: [] for name in TARGETS_MS}
    for _ in range(repeats):
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        started = time.perf_counter()
        page.goto(address, wait_until="commit")
        wait_for(page, "r && r.stage && r.stage.image && r.stage.k !== null", timeout=60_000)
        spent["first answered view"].append((time.perf_counter() - started) * 1000)
        page.click('[data-layer="refined"]')
        for value in (3, 9, 1):
            spent["filter redraw, 256 boxes"].append(page.evaluate(FILTER, value))
        page.wait_for_timeout(1500)
        page.focus(part("view"))
        for _ in range(3):
            spent["next frame, fetched ahead, key to paint"].append(page.evaluate(STEP))
        page.close()
    return spent


def growth(browser: Any, address: str) -> tuple[int, int]:
    """DOM nodes after 20 and after 300 changes of what is shown."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(address)
    wait_for(page, "r && r.stage && r.stage.image && r.stage.k !== null", timeout=60_000)
    counts = []
    for changes in (20, 280):
        for k in range(changes):
            page.evaluate(FILTER, k % 30)
            page.keyboard.press("m")
        counts.append(page.evaluate("document.querySelectorAll('*').length"))
    page.close()
    return counts[0], counts[1]


def main() -> int:
    """Print the table. 0 all targets met, 1 not, 2 no browser."""
    if CHROMIUM is None:
        print(INSTALL, file=sys.stderr)
        return 2
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        make_samples(Path(folder))
        services = fake_services(FakeCore(), Path(folder))
        sessions = Sessions(services)
        blocks = ui.build(services, sessions)
        settings = ui.launch_settings(services)
        _, url, _ = blocks.launch(
            server_name="127.0.0.1", prevent_thread_lock=True, quiet=True, **settings
        )
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        medians = {k: statistics.median(v) for k, v in measure(browser, url).items()}
        nodes = growth(browser, url)
        browser.close()
        blocks.close()
        sessions.close()
    for name, limit in TARGETS_MS.items():
        print(f"{name:45}{medians[name]:9.0f} ms   target {limit} ms")
    print(f"{'nodes after 20 and 300 changes':45}{nodes[0]:6} {nodes[1]:6}")
    print(json.dumps({k: round(v, 1) for k, v in medians.items()}), file=sys.stderr)
    return int(any(medians[name] > limit for name, limit in TARGETS_MS.items()))


if __name__ == "__main__":
    sys.exit(main())

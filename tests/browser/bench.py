"""How quick the page is: `python -m refinerank_core bench --ui` prints medians over repeats.

Pretended models, so the figures are the page's own; headless Chromium on this machine.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from demo import ui
from demo.sessions import Sessions
from refinerank_core.video import open_video
from tests.browser.conftest import CHROMIUM, FLAGS, INSTALL, part, wait_for
from tests.browser.fakes import FakeCore, fake_services, grounding_of, tissue
from tests.clips import encode

AIMS_MS = {
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


def measure(browser: Any, address: str, repeats: int) -> dict[str, list[float]]:
    """Milliseconds of each thing, over repeats."""
    spent: dict[str, list[float]] = {name: [] for name in AIMS_MS}
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


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table. 0 measured, 1 no browser."""
    parser = argparse.ArgumentParser(prog="python -m tests.browser.bench", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="visits to the page")
    repeats = parser.parse_args(argv).repeats
    if CHROMIUM is None:
        print(INSTALL, file=sys.stderr)
        return 1
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
        spent = measure(browser, url, repeats)
        nodes = growth(browser, url)
        browser.close()
        blocks.close()
        sessions.close()
    for name, aim in AIMS_MS.items():
        median = statistics.median(spent[name])
        verdict = "met" if median <= aim else "MISSED"
        print(f"{name:<44}{median:>10.1f} ms {len(spent[name]):>4} runs  {verdict} (at most {aim})")
    print(f"{'nodes after 20 changes, after 300':<44}{nodes[0]:>10} {nodes[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

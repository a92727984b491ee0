"""Whoever sees no red, green or blue tells the roles apart: by dash, by corners, by tag."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.browser.conftest import OpenPage, part, wait_for

KINDS = ["none", "protanopia", "deuteranopia", "tritanopia", "achromatopsia"]
SIDE = 60  # source pixels of each test box
PLACES = {
    name: (10 + 80 * (at % 4), 25 + 85 * (at // 4))
    for at, name in enumerate(["R1", "R2", "V", "D", "H", "G", "pool"])
}
BOXES = {name: [x, y, x + SIDE, y + SIDE] for name, (x, y) in PLACES.items()}

# Every role on a place of its own; then drawn anew. Gives the view: scale, left, top.
SPREAD = """(boxes) => {
  const s = document.querySelector('.rr').stage;
  const time = s.answer.times[s.k];
  const members = s.pools.get(s.k).members;
  members.forEach((one, at) => { one.box = boxes[['R1', 'R2'][at] || 'pool']; });
  time.medvlm.box = boxes.V;
  time.detector.box = boxes.D;
  time.truth = boxes.G;
  s.human = new Map([[s.index, { frame: s.index, box: boxes.H, status: 'fixed' }]]);
  s.selected = null;
  s.hover = null;
  const field = document.querySelector('[data-id="topk"]');
  field.value = 2;
  field.dispatchEvent(new Event('input'));
  const c = document.querySelector('[data-id="canvas"]');
  const k = Math.min(c.clientWidth / s.clip.width, c.clientHeight / s.clip.height);
  const left = (c.clientWidth - s.clip.width * k) / 2;
  return [k, left, (c.clientHeight - s.clip.height * k) / 2];
}"""
# What is written on the stage, and where.
LISTEN = """(() => {
  window.written = [];
  const plain = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...more) {
    if (this.canvas.dataset.id === 'canvas') window.written.push([text, x, y]);
    return plain.call(this, text, x, y, ...more);
  };
})()"""


@dataclass(frozen=True)
class Look:
    """How a box looks without its hue: brightness alone was measured."""

    dashes: tuple[int, ...]  # lengths of the dashes along an edge that occur; () is a solid line
    dark_core: bool
    corners: bool


EXPECTED = {
    "R1": Look((), False, False),
    "R2": Look((), False, False),
    "V": Look((14,), False, False),
    "D": Look((2, 10), False, False),
    "H": Look((), False, True),
    "G": Look((), True, False),
}


def brightness(png: bytes) -> NDArray[np.float64]:
    """(H, W) relative luminance as WCAG defines it."""
    colours = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)
    assert colours is not None
    channels = colours[..., ::-1] / 255.0
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    light: NDArray[np.float64] = linear @ np.array([0.2126, 0.7152, 0.0722])
    return light


def runs_of(on: NDArray[np.bool_]) -> list[int]:
    """Lengths of the stretches that are on, those cut by an end left out."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], on.astype(int), [0]])))
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return [int(b - a) for a, b in pairs if a > 0 and b < len(on)]


def look_of(light: NDArray[np.float64], box: list[int], view: list[float]) -> Look:
    """Measure a box in a picture of the stage."""
    scale, left, top = view
    x0, x1 = (floor(left + x * scale) for x in (box[0], box[2]))
    y0 = floor(top + box[1] * scale)
    across = light[y0 - 5 : y0 + 6, x0 + 14 : x1 - 14]  # the upper edge, between its corners
    half = across.max() / 2
    line = across[3:8].max(axis=0) > half  # a double line has its light edges two pixels out
    dark_core = bool(line.all() and np.median(across[5]) < half / 2)
    dashes = sorted({round_to(run, (2, 10, 14)) for run in runs_of(line)})
    # A square corner reaches farther out than the line, where a double line has its light edge.
    corners = bool(not dark_core and light[y0 - 2, x0 - 2] > half)
    return Look(tuple(dashes), dark_core, corners)


def round_to(length: int, known: tuple[int, ...]) -> int:
    """The known length that a measured one, blurred by a pixel each side, stands for."""
    nearest = min(known, key=lambda one: abs(one - length))
    return nearest if abs(nearest - length) <= 2 else length


@pytest.fixture
def spread(open_page: OpenPage) -> tuple[Any, list[float]]:
    """A page with each role on a place of its own, and how its stage shows source pixels."""
    page = open_page(before=lambda page: page.add_init_script(LISTEN))
    wait_for(page, "r.stage.k !== null && r.stage.pools.get(r.stage.k)?.members")
    page.wait_for_selector(".map canvas")
    page.evaluate("window.written.length = 0")
    view = page.evaluate(SPREAD, BOXES)
    page.wait_for_timeout(300)
    return page, view


@pytest.mark.parametrize("kind", KINDS)
def test_each_role_is_told_apart_without_its_hue(
    spread: tuple[Any, list[float]], kind: str, tmp_path: Path
) -> None:
    page, view = spread
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setEmulatedVisionDeficiency", {"type": kind})
    png = page.locator(part("view")).screenshot(path=tmp_path / f"{kind}.png")
    light = brightness(png)

    found = {name: look_of(light, BOXES[name], view) for name in EXPECTED}

    assert found == EXPECTED


def test_each_role_has_its_tag_at_its_own_box(spread: tuple[Any, list[float]]) -> None:
    page, (scale, left, top) = spread

    written = page.evaluate("window.written")

    for name in EXPECTED:
        x0, y0, x1, _ = BOXES[name]
        places = [(x, y) for text, x, y in written if text == name]
        assert places
        for x, y in places:
            assert left + x0 * scale - 2 <= x <= left + x1 * scale
            assert abs(y - (top + y0 * scale)) < 24


def test_a_simulated_deficiency_changes_the_picture(spread: tuple[Any, list[float]]) -> None:
    page, _ = spread
    session = page.context.new_cdp_session(page)
    shots = []
    for kind in KINDS:
        session.send("Emulation.setEmulatedVisionDeficiency", {"type": kind})
        shots.append(page.locator(part("view")).screenshot())

    assert len(set(shots)) == len(KINDS)

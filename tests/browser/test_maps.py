"""Response maps lie on the frame cell on cell."""

from __future__ import annotations

from tests.browser.conftest import OpenPage, part, wait_for

# Colours at the corners of the hot cell, just inside, and just beside it.
CELL = """() => {
  const s = document.querySelector('.rr').stage;
  const t = s.answer.times[s.k].refinerank.box;
  const c = document.querySelector('[data-id="canvas"]');
  const ratio = window.devicePixelRatio;
  const [w, h] = [s.clip.width, s.clip.height];
  const k = Math.min(c.clientWidth / w, c.clientHeight / h);
  const left = (c.clientWidth - w * k) / 2;
  const top = (c.clientHeight - h * k) / 2;
  const pen = c.getContext('2d');
  const at = (x, y) => {
    return [...pen.getImageData(ratio * (left + x * k), ratio * (top + y * k), 1, 1).data];
  };
  const col = Math.floor(((t[0] + t[2]) / 2 / w) * 10);
  const row = Math.floor(((t[1] + t[3]) / 2 / h) * 6);
  const cell = (a, b) => at(((col + a) * w) / 10, ((row + b) * h) / 6);
  const corners = [[0.06, 0.06], [0.94, 0.06], [0.06, 0.94], [0.94, 0.94]];
  const beside = col < 9 ? 1.06 : -0.06;
  return { inside: corners.map(([a, b]) => cell(a, b)), outside: cell(beside, 0.5) };
}"""


SLIDE = "([f, v]) => { f.value = v; f.dispatchEvent(new Event('input')); }"


def test_a_map_lies_over_the_stage_cell_on_cell(open_page: OpenPage) -> None:
    page = open_page()
    page.wait_for_selector(".map canvas")
    for layer in ("pool", "rank", "medvlm", "detector", "truth"):
        page.click(f'[data-layer="{layer}"]')
    page.evaluate(SLIDE, [page.query_selector(part("opacity")), 100])

    page.keyboard.press("m")
    wait_for(page, "r.stage.overlay === 'block5'")
    page.wait_for_timeout(200)

    hot = page.evaluate(CELL)

    assert all(one[0] > 220 and one[1] > 200 and one[2] < 90 for one in hot["inside"])
    assert hot["outside"][1] < 150

"""Boxes on the stage: hovered, picked, filtered, zoomed; never moved, never asked for again."""

from __future__ import annotations

from tests.browser.conftest import DESKTOP, OpenPage, part, state, wait_for

REDRAW = """() => {
  const r = document.querySelector('.rr');
  const floor = r.querySelector('[data-id="floor"]');
  floor.value = 5;
  floor.dispatchEvent(new Event('input'));
  return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
    const pen = r.querySelector('[data-id="canvas"]').getContext('2d');
    pen.getImageData(0, 0, 1, 1);
    done(Number(r.dataset.redraw));
  })));
}"""


# Source coordinates of everything that is drawn, every bit of them.
BOXES = "JSON.stringify([s.pools.get(s.k).rows, s.answer.times])"
SLIDE = "([f, v]) => { f.value = v; f.dispatchEvent(new Event('input')); }"


def test_hovering_a_row_lights_its_box_and_picking_a_box_its_row(open_page: OpenPage) -> None:
    page = open_page()
    wait_for(page, "r.stage.k !== null")

    page.hover(".row >> nth=2")
    assert state(page, "s.hover") == page.get_attribute(".row >> nth=2", "data-key")
    page.click(".row >> nth=2")

    assert page.get_attribute(".row >> nth=2", "aria-selected") == "true"
    assert "Behind R1" in page.text_content(part("detail"))


def test_filters_redraw_without_asking_the_server(open_page: OpenPage) -> None:
    page = open_page()
    page.wait_for_selector(".map canvas")
    wait_for(page, "r.stage.clip.shots !== null")
    page.wait_for_timeout(1500)  # what is fetched ahead has come
    calls: list[str] = []
    page.on("request", lambda request: calls.append(request.url))

    page.fill(part("topk"), "2")
    page.evaluate(SLIDE, [page.query_selector(part("floor")), 90])
    page.click('[data-layer="pool"]')
    page.click('[data-layer="refined"]')

    assert state(page, "[s.topk, s.layers.has('pool'), s.layers.has('refined')]") == [
        2,
        False,
        True,
    ]
    assert page.locator(".row").count() < 10
    assert calls == []


def test_a_filter_redraws_within_50_ms(open_page: OpenPage) -> None:
    page = open_page()
    wait_for(page, "r.stage.k !== null")
    page.click('[data-layer="refined"]')

    spent = page.evaluate(REDRAW)

    assert state(page, "s.pools.get(s.k).members.length") == 256
    assert spent <= 50


def test_zoom_resize_and_full_screen_never_touch_the_boxes(open_page: OpenPage) -> None:
    page = open_page(viewport=DESKTOP)
    wait_for(page, "r.stage.k !== null")
    before = state(page, BOXES)
    full = 0

    page.focus(part("view"))
    for k in range(50):
        if k % 10 == 9:
            page.click('[data-zoom="full"]')
            full += page.evaluate("document.fullscreenElement !== null")
        elif k % 5 == 0:
            page.set_viewport_size({"width": 900 + 37 * k % 700, "height": 700 + 11 * k % 200})
        else:
            page.keyboard.press("+" if k % 3 else "-")
        assert state(page, BOXES) == before
    page.keyboard.press("0")

    assert full >= 2
    assert state(page, BOXES) == before

"""The story of a visit: open, step, ask, look closer, take away."""

from __future__ import annotations

import json
import time
from pathlib import Path
from threading import Semaphore
from typing import Any

import gradio

from demo.sessions import Sessions
from refinerank_core.grounding import Grounding
from tests.browser.conftest import DESKTOP, PATIENCE_MS, QUESTION, OpenPage, part, state, wait_for
from tests.browser.fakes import FakeCore, tissue
from tests.clips import encode

# Where the bright bar of the picture on the stage starts: it tells the frame's number.
BAR = """(() => {
  const image = document.querySelector('.rr').stage.image;
  const c = document.createElement('canvas');
  [c.width, c.height] = [image.naturalWidth, image.naturalHeight];
  const pen = c.getContext('2d');
  pen.drawImage(image, 0, 0);
  const row = pen.getImageData(0, Math.floor(c.height / 2), c.width, 1).data;
  for (let x = 0; x < c.width; x += 1) if (row[4 * x + 2] > 150) return x;
  return -1;
})()"""
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


# How many requested times the figure over time shows.
POINTS = "(document.querySelector('#plot-time .js-plotly-plot')?.data?.[0].x.length ?? 0)"

# Ask without scrolling back to the question.
SUBMIT = """(text) => {
  const r = document.querySelector('.rr');
  r.querySelector('[data-id="question"]').value = text;
  r.querySelector('[data-id="go"]').click();
}"""


def click_in_the_figure_over_time(page: Any, seconds: float) -> None:
    page.locator("#figures").scroll_into_view_if_needed()
    page.mouse.wheel(0, 2000)
    page.wait_for_selector("#plot-time .js-plotly-plot[data-wired]", timeout=PATIENCE_MS)
    page.evaluate(
        "(x) => document.querySelector('#plot-time .js-plotly-plot')"
        ".emit('plotly_click', { points: [{ x }] })",
        seconds,
    )


def ask(page: Any, text: str) -> None:
    page.fill(part("question"), text)
    page.click(part("go"))
    wait_for(page, "r.dataset.busy === 'yes'")
    wait_for(page, f"r.dataset.busy === 'no' && r.stage.answer.text === {json.dumps(text)}")


def test_the_first_view_is_an_answer_and_asks_nothing(open_page: OpenPage, core: FakeCore) -> None:
    page = open_page()

    wait_for(page, "r.stage.answer !== null && r.stage.k !== null")

    assert page.input_value(part("question")) == QUESTION
    assert "over rank 2" in page.text_content(part("why"))
    assert "UNTRAINED random weights" in page.text_content(part("badge"))
    assert page.is_visible("text=Research use only. Do not upload patient data.")
    page.wait_for_selector(".map canvas")
    assert page.locator(".map").count() == 5
    assert core.asked == []


def test_everything_that_matters_fits_1440_by_900(open_page: OpenPage) -> None:
    page = open_page()
    page.wait_for_selector(".map canvas")

    for selector in ('[data-id="view"]', ".panel canvas", ".verdict", ".row", ".map .colourbar"):
        for box in [one.bounding_box() for one in page.query_selector_all(selector)][:3]:
            assert box["y"] + box["height"] <= 900, selector


def test_twenty_fast_key_presses_end_on_the_right_frame(open_page: OpenPage) -> None:
    page = open_page("?clip=alpha&frame=10")
    page.focus(part("view"))

    for _ in range(20):
        page.keyboard.press("ArrowRight")
    wait_for(page, "r.dataset.frame === '30'")

    assert page.input_value(part("number")) == "30"
    assert page.input_value(part("pts")) == "1.200"
    assert abs(page.evaluate(BAR) - (30 * 7) % (320 - 24)) <= 2


def test_keys_and_fields_reach_any_frame(open_page: OpenPage) -> None:
    page = open_page()
    page.focus(part("view"))

    for key, frame in (("End", 99), ("Shift+ArrowLeft", 89), ("ArrowLeft", 88), ("Home", 0)):
        page.keyboard.press(key)
        wait_for(page, f"r.dataset.frame === '{frame}'")
    page.fill(part("pts"), "0:02")
    page.keyboard.press("Tab")

    wait_for(page, "r.dataset.frame === '50'")


def test_playing_keeps_the_clock_and_stops_at_the_end(open_page: OpenPage) -> None:
    page = open_page("?clip=beta")
    page.focus(part("view"))

    page.keyboard.press(" ")
    wait_for(page, "r.dataset.frame === '29'", timeout=15_000)

    assert page.get_attribute(part("play"), "aria-label") == "Play"


def test_a_question_is_read_asked_and_answered(open_page: OpenPage) -> None:
    page = open_page()
    page.fill(part("question"), "Where is the suction at 0:01 and 2 seconds?")
    page.wait_for_selector(".chip.time")
    wait_for(page, "r.querySelectorAll('.chip.time').length === 2")

    page.keyboard.press("Enter")
    wait_for(page, "r.stage.answer.text.includes('suction') && r.stage.k !== null")

    assert page.get_attribute(".rr", "data-frame") == "25"
    assert "no box" in page.text_content('[data-method="medvlm"]')
    assert "cache" in page.text_content(part("origin"))


def test_times_can_be_changed_before_asking(open_page: OpenPage) -> None:
    page = open_page()
    page.fill(part("question"), "Where is the hook at 1 second?")
    page.wait_for_selector(".chip.time")
    wait_for(page, "r.querySelectorAll('.chip.time').length === 1")

    page.fill(".chip.time input", "2.4")
    page.keyboard.press("Tab")
    page.click(part("go"))
    wait_for(page, "r.stage.answer.text.includes('hook')")

    assert state(page, "s.answer.times.map((one) => one.requested_s)") == [2.4]


def test_many_times_come_group_by_group(open_page: OpenPage, core: FakeCore) -> None:
    page = open_page()
    core.pause_s = 0.2
    try:
        page.fill(part("question"), "Where is the hook from 1 to 3 seconds every 0.2 seconds?")
        page.click(part("go"))

        wait_for(page, "r.stage.answer.times.length === 4 && r.dataset.busy === 'yes'")
    finally:
        core.pause_s = 0.0
    wait_for(page, "r.stage.answer.times.length === 11 && r.dataset.busy === 'no'")

    assert page.locator(".shot").count() == 11


def test_a_click_in_the_figure_over_time_goes_to_its_frame(open_page: OpenPage) -> None:
    page = open_page()
    wait_for(page, "r.stage.k !== null")

    click_in_the_figure_over_time(page, seconds=2)

    wait_for(page, "r.dataset.frame === '50'")


def test_figures_that_load_after_the_stage_are_followed_too(open_page: OpenPage) -> None:
    parts = Path(gradio.__file__).parent / "templates" / "frontend" / "assets"
    late: list[str] = []

    def figures_last(page: Any) -> None:
        def serve(route: Any) -> None:
            name = route.request.url.rsplit("/", 1)[-1]
            if "accordion-content" in (parts / name).read_text(encoding="utf-8"):
                page.wait_for_selector(".layer", state="attached", timeout=PATIENCE_MS)
                page.wait_for_timeout(300)
                late.append(name)
            route.continue_()

        page.route("**/assets/Index-*.js", serve)

    page = open_page(before=figures_last, viewport=DESKTOP)
    wait_for(page, "r.stage.k !== null")
    assert len(late) == 1

    click_in_the_figure_over_time(page, seconds=2)

    wait_for(page, "r.dataset.frame === '50'")


def test_the_figure_over_time_grows_with_the_answer(open_page: OpenPage, core: FakeCore) -> None:
    page = open_page()
    wait_for(page, "r.stage.k !== null")
    click_in_the_figure_over_time(page, seconds=2)

    core.permits = Semaphore(1)  # the second group of times waits for the first one's figure
    try:
        page.evaluate(SUBMIT, "Where is the hook from 1 to 3 seconds every 0.4 seconds?")
        page.wait_for_function(POINTS + " === 4", timeout=PATIENCE_MS)
        core.permits.release()
    finally:
        core.permits = None

    page.wait_for_function(POINTS + " === 6", timeout=PATIENCE_MS)


def test_an_example_shows_its_kept_answer_and_can_be_run_again(
    open_page: OpenPage, core: FakeCore
) -> None:
    page = open_page()
    wait_for(page, "r.stage.k !== null")
    before = len(core.asked)

    page.click(".chip:has-text('Examples')")
    page.click(".chip.example:has-text('hook')")
    wait_for(page, "r.stage.answer.text === 'Where is the hook?' && r.stage.k !== null")

    assert page.get_attribute(".rr", "data-frame") == "60"
    assert page.is_visible(".chip.stored")
    assert len(core.asked) == before
    page.click(".chip:has-text('Run it now')")
    wait_for(page, "r.dataset.busy === 'no' && !r.stage.answer.stored")
    assert core.asked[before:] == ["Where is the hook?"]
    assert state(page, "s.answer.times.map((one) => one.frame)") == [60]


def test_a_link_to_a_kept_answer_runs_nothing(open_page: OpenPage, core: FakeCore) -> None:
    before = len(core.asked)

    page = open_page("?clip=alpha&q=Where+is+the+hook%3F&t=2.4&frame=60")
    wait_for(page, "r.stage.answer !== null && r.stage.k !== null")

    assert state(page, "[s.answer.text, s.answer.stored]") == ["Where is the hook?", True]
    assert len(core.asked) == before


def test_the_scrub_bar_marks_where_the_shot_changes(open_page: OpenPage) -> None:
    page = open_page("?clip=beta&frame=19")
    wait_for(page, "r.stage.clip.shots !== null")

    page.focus(part("view"))
    page.keyboard.press("ArrowRight")
    wait_for(page, "r.dataset.frame === '20'")

    assert state(page, "s.clip.shots") == [20]
    assert "a new shot" in page.get_attribute(part("scrub"), "aria-valuetext")
    assert page.is_visible(".mark.cut")


def test_a_running_question_can_be_cancelled(open_page: OpenPage, core: FakeCore) -> None:
    page = open_page()
    core.pause_s = 2.0
    try:
        page.fill(part("question"), "Where is the hook?")
        page.click(part("go"))
        page.wait_for_selector(".stagedot")

        page.click(part("stop"))
        wait_for(page, "r.dataset.busy === 'no'")
    finally:
        core.pause_s = 0.0

    assert state(page, "s.answer.text") == QUESTION
    assert page.is_enabled(part("go"))


def test_an_unanswerable_question_is_one_sentence(open_page: OpenPage) -> None:
    page = open_page()
    page.fill(part("question"), "Where is the hook at 0:50?")

    page.wait_for_selector(".fault")

    assert "past the end of the video" in page.text_content(".fault")
    page.click(part("go"))
    page.wait_for_selector(".toast-body")
    assert "past the end" in page.text_content(".toast-body")
    wait_for(page, "r.dataset.busy === 'no'")


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


def test_zooming_and_resizing_never_touch_the_boxes(open_page: OpenPage) -> None:
    page = open_page()
    wait_for(page, "r.stage.k !== null")
    before = state(page, "JSON.stringify([s.pools.get(s.k).rows, s.answer.times])")

    page.focus(part("view"))
    for k in range(50):
        if k % 5 == 0:
            page.set_viewport_size({"width": 900 + 37 * k % 700, "height": 700 + 11 * k % 200})
        else:
            page.keyboard.press("+" if k % 3 else "-")
    page.keyboard.press("0")

    assert state(page, "JSON.stringify([s.pools.get(s.k).rows, s.answer.times])") == before


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


def test_a_link_opens_the_same_case_again(open_page: OpenPage, address: str) -> None:
    page = open_page()
    ask(page, "Where is the hook at 3 seconds?")
    wait_for(page, "r.stage.k !== null")
    page.click('[data-layer="pool"]')
    page.keyboard.press("m")
    wait_for(page, "location.search.includes('map=')")
    link = page.evaluate("location.search")

    again = open_page(link)
    wait_for(
        again,
        "r.stage.answer !== null && r.stage.answer.text.includes('hook') && r.stage.k !== null",
    )

    assert again.get_attribute(".rr", "data-frame") == "75"
    assert state(again, "s.layers.has('pool')") is False
    assert state(again, "s.overlay") == "block5"


def test_the_answer_can_be_taken_away(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page()
    wait_for(page, "r.stage.k !== null")
    sizes = {}
    for kind in ("json", "csv", "npz", "png"):
        page.click(".menu summary")
        with page.expect_download() as coming:
            page.click(f'[data-take="{kind}"]')
        path = tmp_path / coming.value.suggested_filename
        coming.value.save_as(path)
        sizes[path.suffix] = path.stat().st_size
        assert "UNTRAINED" in path.name

    taken = Grounding.load(next(tmp_path.glob("*.json")))

    assert taken.question.text == QUESTION
    assert all(size > 500 for size in sizes.values())


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


def test_two_visitors_do_not_meet(open_page: OpenPage) -> None:
    one, two = open_page("?clip=alpha"), open_page("?clip=beta")

    ask(one, "Where is the hook at 1 second?")

    assert state(two, "[s.clip.sample, s.answer]") == ["beta", None]
    assert state(one, "s.clip.sample") == "alpha"


def test_the_whole_way_by_keyboard(open_page: OpenPage) -> None:
    page = open_page()
    wait_for(page, "r.stage.k !== null")

    page.keyboard.press("/")
    page.keyboard.press("Control+A")
    page.keyboard.type("Where is the hook at 2 seconds?")
    page.keyboard.press("Enter")
    wait_for(page, "r.stage.answer.text.includes('hook') && r.stage.k !== null")
    page.focus(part("list"))
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("?")

    assert page.locator('.row[aria-selected="true"] .rank').text_content() == "R3"
    assert page.is_visible("dialog .keytable")
    page.keyboard.press("Escape")
    assert not page.is_visible("dialog")

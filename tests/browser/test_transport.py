"""Stepping, playing, jumping: the frame asked for is the frame that stays."""

from __future__ import annotations

from tests.browser.conftest import OpenPage, part, state, wait_for

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


def test_the_scrub_bar_marks_where_the_shot_changes(open_page: OpenPage) -> None:
    page = open_page("?clip=beta&frame=19")
    wait_for(page, "r.stage.clip.shots !== null")

    page.focus(part("view"))
    page.keyboard.press("ArrowRight")
    wait_for(page, "r.dataset.frame === '20'")

    assert state(page, "s.clip.shots") == [20]
    assert "a new shot" in page.get_attribute(part("scrub"), "aria-valuetext")
    assert page.is_visible(".mark.cut")


def test_keys_go_to_the_next_clip_and_back(open_page: OpenPage) -> None:
    page = open_page()
    wait_for(page, "r.stage.k !== null")

    page.focus(part("view"))
    page.keyboard.press("n")
    wait_for(page, "r.stage.clip.sample === 'beta'")
    page.keyboard.press("p")

    wait_for(page, "r.stage.clip.sample === 'alpha'")

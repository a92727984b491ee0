"""The story of a reviewer: decide, edit, undo, come back, meet another, lose the server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from demo.frames import pack
from refinerank_core.reviews.store import Store
from refinerank_core.reviews.worklist import Wanted
from tests.browser.conftest import DESKTOP, PATIENCE_MS
from tests.browser.fakes import tissue
from tests.browser.reviewing import (
    Enter,
    Record,
    drag,
    enter,
    free_port,
    inside,
    opened_at,
    ready,
    record,
    review_address,
    search,
    server,
    told,
    until,
    visit,
)
from tests.stores import case

__all__ = ["enter", "record", "review_address"]  # fixtures


def test_decide_edit_undo_and_come_back(enter: Enter, record: Record) -> None:
    first, second = record.put("Where is the first hook?", 1.0, 2.0)
    page = enter("Dr A", "Where is the first hook?")

    page.keyboard.press("a")
    opened_at(page, second)
    assert record.now(first).state.status == "accepted"
    assert record.now(first).state.reviewed_box == first.box_of("refinerank")

    before = told(page, "[...r.edit.box]")
    page.keyboard.press("Enter")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Alt+ArrowDown")
    page.keyboard.press("Escape")
    page.keyboard.press("e")
    until(page, "r.dataset.saved === 'yes' && r.open.facts.state.mine")
    fixed = record.now(second).state.reviewed_box
    assert fixed is not None
    assert list(fixed) == pytest.approx(
        [before[0] + 3, before[1], before[2] + 3, before[3] + 1], abs=1e-3
    )

    page.keyboard.press("z")
    until(page, "r.dataset.saved === 'yes' && r.open.facts.state.redoable")
    ready(page)
    assert record.now(second).state.status == "new"
    assert told(page, "[...r.edit.box]") == pytest.approx(list(fixed))  # not the prediction

    page.reload()  # it comes back to this tab
    until(page, "r && r.dataset.view === 'case'")
    search(page, "Where is the first hook?")
    assert page.text_content("#review .caseline .status") == "accepted"
    page.click("#review .caseline >> nth=1")
    opened_at(page, second)
    assert told(page, "[...r.edit.box]") == pytest.approx(list(fixed))  # an unfinished change


def test_boxes_are_dragged_typed_and_drawn_in_source_pixels(enter: Enter, record: Record) -> None:
    (case,) = record.put("Where is the dragged hook?", 1.0)
    page = enter("Dr A", "Where is the dragged hook?")
    page.click(inside("draw"))
    drag(page, (40, 30), (120, 90))
    drawn = told(page, "[...r.edit.box]")
    assert drawn == pytest.approx([40, 30, 120, 90], abs=1.0)

    drag(page, (120, 90), (140, 100))  # the lower right handle
    resized = told(page, "[...r.edit.box]")
    assert resized[:2] == drawn[:2]
    assert resized[2:] == pytest.approx([140, 100], abs=1.0)

    page.fill('#review [data-corner="0"]', "44.25")
    page.keyboard.press("Tab")
    assert told(page, "[...r.edit.box]") == [44.25, *resized[1:]]

    for _ in range(3):  # zoom is a matter of looking
        page.click('#review [data-zoom="in"]')
    page.click('#review [data-decide="fix"]')
    until(page, "r.dataset.saved === 'yes' && r.open.facts.state.mine")

    assert record.now(case).state.reviewed_box == pytest.approx((44.25, *resized[1:]), abs=1e-3)


def test_a_decision_carries_all_that_was_said(enter: Enter, record: Record) -> None:
    (case,) = record.put("Where is the described hook?", 1.0)
    page = enter("Dr A", "Where is the described hook?")

    page.fill(inside("number"), "7")
    page.keyboard.press("Enter")
    until(page, "r.edit.base.shown.startsWith('candidate 7')")
    page.click('#review [data-id="best"] [data-value="V"]')
    page.click('#review [data-id="confidence"] [data-value="4"]')
    page.click('#review [data-tag="ranking miss"]')
    page.fill(inside("comment"), '<img src=x onerror="document.title=1"> = tip hidden')
    page.click('#review [data-decide="fix"]')
    until(page, "r.dataset.saved === 'yes' && r.open.facts.state.mine")

    current = record.now(case).state.current
    assert current is not None
    judged = current.judgement
    assert judged.shown.startswith("candidate 7")
    assert (judged.best, judged.confidence, judged.tags) == ("medvlm", 4, ("ranking miss",))
    assert judged.comment.endswith("tip hidden")
    assert judged.seconds > 0
    assert judged.models == case.models
    assert page.title() == "RefineRank"
    assert "ranking miss" in page.text_content(inside("history"))


def test_blind_hides_names_and_draw_first_hides_answers(enter: Enter, record: Record) -> None:
    (case,) = record.put("Where is the hidden hook?", 1.0)
    page = enter("Dr Blind", "Where is the hidden hook?")

    page.check(inside("blind"))
    until(page, "r.open.facts && r.open.facts.blind")
    until(page, "r.querySelector('[data-filter=method]').options.length === 1")
    ready(page)
    seen = page.text_content("#review .desk")
    assert not any(word in seen for word in ("RefineRank", "MedVLM", "GroundingDINO"))
    page.check(inside("drawfirst"))
    until(page, "r.open.facts && r.open.facts.hidden")
    ready(page)
    assert told(page, "r.open.facts.answers") == []
    page.keyboard.press("a")
    assert "Draw the box first" in page.text_content(inside("notice"))

    drag(page, (40, 30), (120, 90))
    page.click(inside("reveal"))
    until(page, "r.open.facts.answers.length === 3")
    page.click('#review [data-id="best"] [data-value="A"]')
    page.click('#review [data-decide="fix"]')
    until(page, "r.dataset.saved === 'yes' && r.open.facts.state.mine")

    current = record.now(case).state.current
    assert current is not None
    assert current.judgement.blind
    assert current.judgement.draw_first
    assert current.judgement.box_before is None
    assert current.judgement.best in {"refinerank", "medvlm", "medvlm_groundingdino"}


def test_two_on_one_case_see_both_and_choose(enter: Enter, record: Record) -> None:
    (case,) = record.put("Where is the shared hook?", 1.0)
    one = enter("Dr A", "Where is the shared hook?")
    two = enter("Dr B", "Where is the shared hook?")

    one.keyboard.press("a")
    until(one, "r.dataset.saved === 'yes' && r.open.facts.state.mine")
    two.click(inside("draw"))
    drag(two, (40, 30), (120, 90))
    two.keyboard.press("e")
    two.wait_for_selector("#review .conflict")

    panel = two.text_content("#review .conflict")
    assert "Dr A" in panel
    assert "Dr B" in panel
    assert record.now(case).state.status == "accepted"  # nothing was overwritten
    two.click('#review [data-settle="yours"]')
    until(two, "r.dataset.saved === 'yes' && !r.querySelector('.conflict')")

    state = record.now(case).state
    assert state.status == "fixed"
    assert state.open_conflicts == ()
    assert state.reviewed_box == pytest.approx((40, 30, 120, 90), abs=1.0)


def test_what_goes_out_comes_back(enter: Enter, record: Record, tmp_path: Path) -> None:
    (case,) = record.put("Where is the exported hook?", 1.0)
    page = enter("Dr A", "Where is the exported hook?")
    page.keyboard.press("a")
    until(page, "r.dataset.saved === 'yes' && r.open.facts.state.mine")

    page.click(inside("files"))
    page.select_option(inside("outformat"), "jsonl")
    with page.expect_download() as coming:
        page.click("#review .filesform button:has-text('Export')")
    path = tmp_path / coming.value.suggested_filename
    coming.value.save_as(path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    mine = next(row for row in rows if row["case_id"] == case.case_id)
    assert mine["box"] == pytest.approx(list(case.box_of("refinerank") or ()))
    assert mine["reviewer"] == "Dr A"

    path.write_text(json.dumps(mine) + "\nnot a line\n")
    page.select_option(inside("informat"), "jsonl")
    page.set_input_files(inside("infile"), path)
    page.click("#review .filesform button:has-text('Import')")
    page.wait_for_selector("#review .told li")

    assert "Line 2" in page.text_content(inside("intold"))
    assert record.now(case).state.truth == pytest.approx(case.box_of("refinerank"))


def test_a_kept_frame_is_shown_where_its_video_is_gone(enter: Enter, record: Record) -> None:
    gone = case(video_name="gone.mp4", question="Where is the hook of the gone clip?", width=320,
                height=180, box=(40.0, 30.0, 120.0, 90.0))  # fmt: skip
    record.store.add([gone], by="import")
    record.pictures.keep(gone.case_id, pack(tissue(25)))
    page = enter("Dr A", "Where is the hook of the gone clip?")

    assert told(page, "r.stage.image.tagName") == "IMG"
    assert told(page, "[r.stage.image.naturalWidth, r.stage.image.naturalHeight]") == [320, 180]
    page.keyboard.press("a")
    until(page, "r.dataset.saved === 'yes' && r.open.facts.state.mine")
    page.click(inside("forget"))
    until(page, "r.stage.image.tagName === 'CANVAS'")  # it says that the video is not here
    assert not page.is_visible(inside("forget"))
    assert not record.pictures.has(gone.case_id)
    assert record.now(gone).state.status == "accepted"


def test_the_whole_way_by_keyboard(enter: Enter, record: Record) -> None:
    cases = record.put("Where is the keyed hook?", 1.0, 2.0, 3.0)
    page = enter("")
    page.keyboard.press("/")
    page.keyboard.type("Where is the keyed hook?")
    until(page, "r.querySelectorAll('.caseline').length === 3")
    page.keyboard.press("Tab")  # to the status, the filters, the first case
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    opened_at(page, cases[0])

    page.keyboard.press("r")
    page.wait_for_selector("#review dialog[open]")
    page.keyboard.type("Dr Keys")
    page.keyboard.press("Enter")
    opened_at(page, cases[1])
    page.keyboard.press("v")
    page.keyboard.press("e")
    opened_at(page, cases[2])
    page.keyboard.press("q")
    page.keyboard.press("u")
    until(page, "r.dataset.saved === 'yes' && r.open.facts.state.mine")

    states = [record.now(one).state for one in cases]
    assert [one.status for one in states] == ["rejected", "fixed", "unsure"]
    assert {one.current.reviewer for one in states if one.current} == {"Dr Keys"}
    assert states[1].current is not None
    assert states[1].current.judgement.not_visible


def head_of_explore(page: Any, words: str) -> Any:
    """Wait until the head of the other tab says so too."""
    return page.wait_for_function(
        "(words) => document.querySelector('#stage [data-id=savedstate]')?.textContent === words",
        arg=words,
        timeout=PATIENCE_MS,
    )


def test_a_killed_server_loses_nothing_that_was_decided(
    browser: Any, samples: Path, tmp_path: Path
) -> None:
    port, db = free_port(), tmp_path / "reviews.db"
    context = browser.new_context(viewport=DESKTOP)
    try:
        with server(samples, db, port) as process:
            page = visit(context, "Dr A", f"http://127.0.0.1:{port}")
            page.click("#review .empty .primary")  # the empty queue is filled with one click
            until(page, "r.dataset.view === 'case'")
            ready(page)
            page.keyboard.press("a")
            until(page, "r.querySelectorAll('[data-status=accepted]').length === 1")
            process.kill()
            process.wait()
            page.keyboard.press("r")
            until(page, "r.dataset.saved === 'no'")
            assert "not saved yet" in page.text_content(inside("saved"))
            assert head_of_explore(page, "1 not saved yet")
        with server(samples, db, port):
            until(page, "r && r.dataset.view === 'case' && r.dataset.saved === 'yes'")
            assert head_of_explore(page, "All saved")
    finally:
        context.close()

    with Store(db) as store:
        statuses = [one.status for one in store.queue(Wanted()).items]
        assert statuses[:2] == ["accepted", "rejected"]
        assert set(statuses[2:]) == {"new"}
        assert store.counts()["decided"] == 2
        assert store.verify().sound

"""The commands: cases in, reviews out, and both back again."""

import json
from pathlib import Path

import pytest

from refinerank_core.__main__ import main
from refinerank_core.failures import CATEGORIES
from refinerank_core.formats.rows import Fault, Reading, Row
from refinerank_core.reviews.exchange import import_rows, rows_of
from refinerank_core.reviews.inspection import judged, method_views, reviewer_views
from refinerank_core.reviews.records import Judgement, Truth
from refinerank_core.reviews.sources import cases_of
from refinerank_core.reviews.store import Store
from refinerank_core.reviews.worklist import Wanted
from tests.groundings import grounding
from tests.stores import act, case, fix

Printed = pytest.CaptureFixture[str]


@pytest.fixture
def db(tmp_path: Path) -> str:
    """A database with a grounding of two times, one decided."""
    place = tmp_path / "reviews.db"
    cases = cases_of(grounding(), dataset="Phantom")
    with Store(place) as store:
        store.add(cases, by="import", grounding=grounding())
        store.record(act(cases[0], "decided", fix((0.0, 0.0, 100.5, 100.25), comment="=1+1")))
    return str(place)


def test_a_grounding_file_comes_in_once(tmp_path: Path, capsys: Printed) -> None:
    path, place = tmp_path / "out.json", str(tmp_path / "reviews.db")
    path.write_text(grounding().to_json(), encoding="utf-8")

    assert main(["import", "grounding", str(path), "--db", place]) == 0
    assert main(["import", "grounding", str(path), "--db", place]) == 0

    assert capsys.readouterr().out.splitlines() == [
        "2 new cases, 0 known, 0 truths, 0 lines left out",
        "0 new cases, 2 known, 0 truths, 0 lines left out",
    ]


@pytest.mark.parametrize("name", ["jsonl", "csv", "coco"])
def test_exported_reviews_come_back_as_truths(
    name: str, db: str, tmp_path: Path, capsys: Printed
) -> None:
    out, fresh = tmp_path / "out", str(tmp_path / "fresh.db")

    assert main(["export", name, str(out), "--db", db, "--decided"]) == 0
    assert "1 rows to out" in capsys.readouterr().out
    assert main(["import", name, str(out), "--db", fresh]) == 0

    with Store(fresh) as store:
        (view,) = store.views(Wanted())
    assert view.state.truth == (0.0, 0.0, 100.5, 100.25)
    assert (view.case.question, view.case.requested_s) == ("Where is the hook?", 1.0)


def test_the_same_export_meets_the_cases_it_came_from(db: str, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert main(["export", "jsonl", str(out), "--db", db, "--decided"]) == 0

    assert main(["import", "jsonl", str(out), "--db", db]) == 0

    with Store(db) as store:
        page = store.queue(Wanted(sort="iou"))
    assert page.total == 2
    assert page.items[0].iou == pytest.approx(100 * 100.25 / (110 * 100 + 0.25 * 100.5), abs=0.01)


def test_good_lines_come_in_and_bad_ones_are_listed(tmp_path: Path, capsys: Printed) -> None:
    table = tmp_path / "predictions.csv"
    table.write_text(
        "video,time_s,x0_px,y0_px,x1_px,y1_px,label\n"
        "clip,1.0,10,10,50,50,hook\n"
        "clip,2.0,50,10,10,50,hook\n"
        "clip,,10,10,50,50,hook\n"
        "clip,3.0,10,10,5e9,50,hook\n"
        "clip,4.0,900,10,950,50,hook\n",
        encoding="utf-8",
    )
    place = str(tmp_path / "reviews.db")
    argv = ["import", "csv", str(table), "--db", place, "--method", "yolo", "--size", "640x360"]

    assert main(argv) == 1

    printed = capsys.readouterr()
    assert printed.out == "2 new cases, 0 known, 0 truths, 3 lines left out\n"
    numbers = [line.split(":")[1] for line in printed.err.splitlines()]
    assert numbers == [" line 3", " line 4", " line 6"]
    with Store(place) as store:
        items = store.queue(Wanted(sort="video")).items
        assert {item.method for item in items} == {"yolo"}
        assert store.verify().sound


def test_a_video_gives_frames_hash_and_size(clip_path: Path, tmp_path: Path) -> None:
    table = tmp_path / "truth.csv"
    table.write_text(
        "video,time_s,x0,y0,x1,y1,label\nclip.mp4,2.0,0.1,0.1,0.5,0.5,hook\n", encoding="utf-8"
    )
    place = str(tmp_path / "reviews.db")
    argv = ["import", "csv", str(table), "--db", place, "--space", "unit"]

    assert main([*argv, "--video", str(clip_path)]) == 0

    with Store(place) as store:
        (view,) = store.views(Wanted())
    assert (view.case.frame_index, view.case.frame_s) == (10, 2.0)
    assert (view.case.width, view.case.height) == (280, 168)
    assert len(view.case.video_sha256) == 64
    assert view.state.truth == pytest.approx((28.0, 16.8, 140.0, 84.0), abs=1e-3)


def test_rows_without_a_size_are_listed_not_guessed(tmp_path: Path) -> None:
    rows = (Row(video="clip", frame_index=3, box=(1, 2, 3, 4), line=9),)
    with Store(tmp_path / "reviews.db") as store:
        found = import_rows(store, Reading(rows, (Fault(2, "no box"),)), by="import")

    assert [fault.line for fault in found.faults] == [2, 9]
    assert "size is not known" in found.faults[1].text
    assert found.added.new == 0


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["import", "coco", "missing.json"], "cannot be read"),
        (["import", "medvidbench-submission", "{file}"], "question rows"),
        (["import", "grounding", "{file}"], "Not a RefineRank grounding"),
        (["export", "coco", "nowhere/out.json"], "cannot be written"),
        (["reviews", "failures"], "No case has a truth"),
    ],
    ids=lambda argv: " ".join(argv) if isinstance(argv, list) else "",
)
def test_a_fault_is_one_sentence(
    argv: list[str], words: str, tmp_path: Path, capsys: Printed
) -> None:
    path = tmp_path / "file.json"
    path.write_text("[]", encoding="utf-8")
    argv = [word.format(file=path) for word in argv]

    assert main([*argv, "--db", str(tmp_path / "reviews.db")]) == 1

    printed = capsys.readouterr().err
    assert printed.startswith("refinerank: ")
    assert (words in printed, printed.count("\n")) == (True, 1)


def test_the_environment_names_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    monkeypatch.setenv("REFINERANK_DB", str(tmp_path / "by-name.db"))

    assert main(["reviews", "verify"]) == 0

    assert (tmp_path / "by-name.db").is_file()
    assert "0 events, 0 cases" in capsys.readouterr().out


def test_verify_and_rebuild_speak_of_the_record(db: str, capsys: Printed) -> None:
    assert main(["reviews", "verify", "--db", db]) == 0
    assert main(["reviews", "rebuild", "--db", db]) == 0

    printed = capsys.readouterr().out
    assert "3 events, 2 cases" in printed
    assert "2 cases folded" in printed


def test_failures_and_agreement_are_summed_up(db: str, capsys: Printed) -> None:
    assert main(["reviews", "failures", "--db", db]) == 0
    assert main(["reviews", "agreement", "--db", db]) == 0

    printed = capsys.readouterr().out
    assert "Phantom: 1 times, 1 against reviews" in printed
    assert all(category in printed for category in CATEGORIES)
    assert "oracle 0.99" in printed
    assert "Dr A and refinerank: IoU 0.91" in printed


def test_stress_prints_a_table(capsys: Printed) -> None:
    argv = ["reviews", "stress", "--reviewers", "1", "--decisions", "4", "--kills", "1"]

    code = main([*argv, "--events", "50"])

    printed = capsys.readouterr().out
    assert printed.count("\n") == 9
    assert "4 events, 0 lost, 0 doubled" in printed
    assert code in (0, 1)  # the times depend on the machine


def test_verdicts_use_the_truth_before_the_reviewed_box(tmp_path: Path) -> None:
    cases = cases_of(grounding())
    with Store(tmp_path / "reviews.db") as store:
        truths = [Truth(box=(0, 0, 110, 100)), None]
        store.add(cases, by="import", grounding=grounding(), truths=truths)
        for one in cases:
            store.record(act(one, "decided", fix((200, 100, 300, 200))))
        found = list(judged(store, Wanted()))
        none = list(judged(store, Wanted(), method="medvlm"))

    assert [(one.reviewed, one.verdict.category) for one in found] == [
        (False, "correct"),
        (True, "correct"),
    ]
    assert [one.verdict.category for one in none] == ["format", "format"]
    assert found[0].verdict.iou == pytest.approx(1.0)


def test_the_box_on_another_annotated_thing_is_the_wrong_instance(tmp_path: Path) -> None:
    """Both times chose another thing than the truth; at the first, that thing is annotated."""
    first, second = cases_of(grounding())
    chosen = [one.answers.refinerank.box for one in grounding().times]
    grasper = case(1.0, question="grasper", target="grasper", answers=())
    twin = case(1.0, question="left hook", target="left hook", answers=())
    truths = [Truth(box=(200, 100, 300, 200)), Truth(box=(0, 0, 110, 100))]
    with Store(tmp_path / "reviews.db") as store:
        store.add([first, second], by="import", grounding=grounding(), truths=truths)
        store.add([grasper, twin], by="import", truths=[Truth(box=chosen[0]), truths[0]])
        found = [one.verdict for one in judged(store, Wanted())]

    assert [(one.category, one.sub_tag) for one in found] == [
        ("ranking miss", "wrong instance"),
        ("ranking miss", "background"),
    ]


def test_a_reviewed_box_measures_the_other_runs_of_its_question(tmp_path: Path) -> None:
    reviewed, other = case(), case(grounding_id="another", box=(12.0, 11.0, 52.5, 49.25))
    unseen = case(grounding_id="a third")
    with Store(tmp_path / "reviews.db") as store:
        store.add([reviewed, other, unseen, case(3.0)], by="import")
        store.record(act(reviewed, "decided", fix()))
        gone = Judgement(decision="fix", not_visible=True)
        store.record(act(unseen, "decided", gone))
        found = {one.case_id: one for one in judged(store, Wanted())}

    assert set(found) == {reviewed.case_id, other.case_id}  # "not visible" is a word of its own
    assert found[other.case_id].reviewed
    assert found[other.case_id].verdict.iou == pytest.approx(1.0)


def test_views_and_rows_follow_the_state(tmp_path: Path) -> None:
    one = case()
    with Store(tmp_path / "reviews.db") as store:
        store.add([one], by="import")
        store.record(act(one, "decided", fix((1, 1, 9, 9), best="medvlm", confidence=4)))
        unsure = Judgement(decision="unsure")
        store.record(act(one, "decided", unsure, based_on=1, by="Dr B"))
        views = list(store.views(Wanted()))

    assert [(v.rater, v.decision, v.box) for v in reviewer_views(views)] == [
        ("Dr A", "fix", (1.0, 1.0, 9.0, 9.0)),
        ("Dr B", "unsure", None),
    ]
    assert [v.rater for v in method_views(views)] == ["refinerank", "medvlm"]
    (row,) = rows_of(views, "medvlm")
    assert (row.box, row.status, row.reviewer) == ((10.0, 10.0, 50.0, 30.0), "unsure", "Dr B")
    assert list(rows_of(views, "unknown")) == []
    assert json.loads(views[0].case.model_dump_json())["question"] == "Where is the hook?"

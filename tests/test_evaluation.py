"""Scores of submissions: worked out by hand, and against an evaluator written a second time."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinerank_core.__main__ import main
from refinerank_core.errors import FormatError
from refinerank_core.evaluation import compare, report
from refinerank_core.formats.medvidbench_rows import read_question_rows
from refinerank_core.formats.medvidbench_submission import overlay, read_predictions
from refinerank_core.intervals import bootstrap, paired_difference

HALF = "[0, 0, 100, 50]"  # IoU 0.5 with WHOLE
WHOLE: list[float] = [0, 0, 100, 100]


def row(
    row_id: str, dataset: str, boxes: dict[str, list[float]], video: str = ""
) -> dict[str, Any]:
    """A row whose frames lie one second apart."""
    return {
        "id": row_id,
        "qa_type": "stg",
        "data_source": dataset,
        "video": [f"{video or row_id}_{n}.jpg" for n in range(9)],
        "metadata": {"fps": 1.0, "video_id": video or row_id, "input_video_start_frame": 0},
        "question": "Where is the knife every 1 seconds from 0 to 2 seconds?",
        "struc_info": [{"bbox_dict": boxes}],
    }


def said(row_id: str, text: str) -> dict[str, Any]:
    return {"id": row_id, "qa_type": "stg", "prediction": text}


def scored(rows: list[Any], predictions: list[Any]) -> dict[str, Any]:
    known = read_question_rows(json.dumps(rows))
    return report(known, read_predictions(json.dumps(predictions), known))


ROWS = [
    row("a", "EgoSurgery", {"0.0": WHOLE, "1.0": WHOLE, "2.0": WHOLE}),
    row("b", "EgoSurgery", {"0.0": WHOLE}),
    row("c", "CoPESD", {"0.0": WHOLE}),
]
SAID = [
    said("a", f"0.0 seconds: [0, 0, 100, 100] 1.0 seconds: {HALF}"),
    said("b", "nothing there"),
    said("c", f"0.0 seconds: {HALF}"),
]


def test_figures_are_those_worked_out_by_hand() -> None:
    found = scored(ROWS, SAID)

    # a: strict 1, .5, 0 -> .5; leaderboard 1, .5, .5 -> 2/3. b: 0; skipped. c: .5 both.
    assert found["strict"]["datasets"] == {"CoPESD": 0.5, "EgoSurgery": 0.25}
    assert found["strict"]["average"] == pytest.approx(0.375)
    assert found["strict"]["mIoU"] == pytest.approx(1 / 3, abs=1e-6)
    assert found["leaderboard"]["datasets"]["EgoSurgery"] == pytest.approx(2 / 3, abs=1e-6)
    assert found["leaderboard"]["average"] == pytest.approx((0.5 + 2 / 3) / 2, abs=1e-6)
    assert found["leaderboard"]["mIoU"] == pytest.approx((2 / 3 + 0.5) / 2, abs=1e-6)
    assert found["acc"] == {"0.3": 0.6, "0.5": 0.6, "0.7": 0.2}
    assert found["counts"] == {"rows": 3, "times": 5, "predicted": 3, "leaderboard_rows": 2}
    assert [one["what"] for one in found["problems"]] == ["id b: the prediction holds no timed box"]


def test_a_row_without_prediction_scores_zero_and_is_named() -> None:
    found = scored(ROWS[:2], [SAID[0]])

    assert found["strict"]["mIoU"] == 0.25
    assert "id b has no prediction" in found["problems"][0]["what"]


def test_predictions_of_one_id_answer_its_rows_in_order() -> None:
    rows = [
        row("x", "EgoSurgery", {"0.0": WHOLE}),
        row("x", "EgoSurgery", {"0.0": [0, 0, 100, 50]}),
    ]
    predictions = [said("x", "0.0 seconds: [0, 0, 100, 100]"), said("x", f"0.0 seconds: {HALF}")]

    assert scored(rows, predictions)["strict"]["mIoU"] == 1.0
    assert scored(rows, predictions[::-1])["strict"]["mIoU"] == 0.5


def test_a_third_prediction_of_two_rows_and_an_unknown_id_are_named_by_line() -> None:
    rows = [row("x", "EgoSurgery", {"0.0": WHOLE})]
    predictions = [said("x", f"0.0 seconds: {HALF}")] * 2 + [said("y", "")]
    text = "[\n" + ",\n".join(map(json.dumps, predictions)) + "\n]"
    known = read_question_rows(json.dumps(rows))

    faults = read_predictions(text, known).faults

    assert [fault.line for fault in faults] == [3, 4]
    assert all("no question row is left" in fault.text for fault in faults)


def test_boxes_without_times_count_for_nothing() -> None:
    found = scored(ROWS[1:2], [said("b", "[0, 0, 100, 100]")])

    assert found["strict"]["mIoU"] == 0.0
    assert "no timed box" in found["problems"][0]["what"]


def test_a_time_may_be_a_twentieth_of_a_second_off_and_no_more() -> None:
    near, far = "0.05 seconds: [0, 0, 100, 100]", "0.06 seconds: [0, 0, 100, 100]"

    assert scored(ROWS[1:2], [said("b", near)])["strict"]["mIoU"] == 1.0
    assert scored(ROWS[1:2], [said("b", far)])["strict"]["mIoU"] == 0.0


def test_no_rows_give_no_figures() -> None:
    found = scored([], [])

    assert found["strict"]["mIoU"] is None
    assert found["strict"]["average"] is None
    assert found["acc"]["0.5"] is None


def _overlap(a: list[float], b: list[float]) -> float:
    """IoU by counting unit cells: integer boxes only, nothing shared with the product's code."""
    cells_a = {(x, y) for x in range(int(a[0]), int(a[2])) for y in range(int(a[1]), int(a[3]))}
    cells_b = {(x, y) for x in range(int(b[0]), int(b[2])) for y in range(int(b[1]), int(b[3]))}
    return len(cells_a & cells_b) / len(cells_a | cells_b)


def _evaluated_again(
    rows: list[dict[str, Any]], boxes: dict[str, dict[str, list[float]]]
) -> tuple[dict[str, float], dict[str, float]]:
    """Strict and leaderboard figures per data set, straight from their definitions."""
    strict: dict[str, list[float]] = {}
    board: dict[str, list[float]] = {}
    for one in rows:
        truth, mine = one["struc_info"][0]["bbox_dict"], boxes[one["id"]]
        values = [_overlap(mine[t], truth[t]) if t in mine else 0.0 for t in truth]
        strict.setdefault(one["data_source"], []).append(sum(values) / len(values))
        last, kept = None, []
        for t in truth:
            last = mine.get(t, last)
            if last is not None:
                kept.append(_overlap(last, truth[t]))
        if kept:
            board.setdefault(one["data_source"], []).append(sum(kept) / len(kept))
    return (
        {name: sum(values) / len(values) for name, values in strict.items()},
        {name: sum(values) / len(values) for name, values in board.items()},
    )


def test_an_evaluator_written_a_second_time_agrees() -> None:
    rng = np.random.default_rng(8)

    def box() -> list[float]:
        x, y = rng.integers(0, 20, 2)
        w, h = rng.integers(2, 20, 2)
        return [float(x), float(y), float(x + w), float(y + h)]

    rows, boxes = [], {}
    for k in range(60):
        name = ("CoPESD", "EgoSurgery", "CholecTrack20")[k % 3]
        times = [f"{t:.1f}" for t in range(int(rng.integers(1, 5)))]
        rows.append(row(f"r{k}", name, {t: box() for t in times}))
        boxes[f"r{k}"] = {t: box() for t in times if rng.random() < 0.7}
    predictions = [
        said(key, " ".join(f"{t} seconds: {[int(e) for e in b]}" for t, b in mine.items()))
        for key, mine in boxes.items()
    ]

    found = scored(rows, predictions)

    strict, board = _evaluated_again(rows, boxes)
    assert found["strict"]["datasets"] == pytest.approx(strict, abs=2e-6)
    assert found["leaderboard"]["datasets"] == pytest.approx(board, abs=2e-6)
    assert found["strict"]["average"] == pytest.approx(sum(strict.values()) / 3, abs=2e-6)


def test_an_interval_over_one_video_has_no_width_and_over_many_it_covers_the_mean() -> None:
    alone = bootstrap({"a": [("v", 0.2), ("v", 0.6)]})
    rng = np.random.default_rng(1)
    many = bootstrap({"a": [(f"v{k // 3}", float(s)) for k, s in enumerate(rng.random(120))]})

    assert (alone["a"].low, alone["a"].high) == pytest.approx((0.4, 0.4))
    assert many["a"].low < 0.5 < many["a"].high
    assert many["a"].videos == 40
    assert 0.08 < many["a"].high - many["a"].low < 0.14  # 4 * 0.289 / sqrt(120) = 0.105


def test_a_clear_difference_is_found_and_none_is_not() -> None:
    base = [(f"v{k}", 0.3 + 0.01 * (k % 5)) for k in range(12)]
    better = [(video, score + 0.1 + 0.01 * (k % 3)) for k, (video, score) in enumerate(base)]
    mixed = [(video, score + (0.1 if k % 2 else -0.1)) for k, (video, score) in enumerate(base)]

    clear = paired_difference({"a": better}, {"a": base})["average"]
    none = paired_difference({"a": mixed}, {"a": base})["average"]

    assert clear.mean == pytest.approx(0.11)
    assert 0.1 < clear.low <= clear.high < 0.12
    assert clear.p < 0.01
    assert none.p > 0.5


def test_equal_methods_differ_by_nothing_with_p_one() -> None:
    same = paired_difference({"a": [("v", 0.5), ("w", 0.1)]}, {"a": [("v", 0.5), ("w", 0.1)]})

    assert (same["a"].mean, same["a"].p) == (0.0, 1.0)


def test_methods_on_different_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="same rows"):
        paired_difference({"a": [("v", 0.5)]}, {"a": [("w", 0.5)]})


def test_two_submissions_are_compared_row_by_row() -> None:
    known = read_question_rows(json.dumps(ROWS))
    one = read_predictions(json.dumps(SAID), known)
    other = read_predictions("[]", known)

    gaps = compare(known, one, other)

    assert gaps["EgoSurgery"]["mean"] == 0.25
    assert gaps["average"]["mean"] == 0.375


SOURCE = [
    {"id": "a", "qa_type": "stg"},
    {"id": "a", "qa_type": "tal"},
    {"id": "a", "qa_type": "stg"},
]
FULL = [{**one, "prediction": f"old {k}"} for k, one in enumerate(SOURCE)]
STG = [
    {"source_index": 2, "id": "a", "qa_type": "stg", "prediction": "1.0 seconds: [1, 2, 3, 4]"},
    {"source_index": 0, "id": "a", "qa_type": "stg", "prediction": "2.5 seconds: [1, 2, 3, 4.5]"},
]


def test_an_overlay_changes_stg_rows_by_their_place_and_nothing_else() -> None:
    text = overlay(json.dumps(SOURCE), json.dumps(FULL), json.dumps(STG))

    assert json.loads(text) == [
        {"id": "a", "qa_type": "stg", "prediction": "2.5 seconds: [1, 2, 3, 4.5]"},
        {"id": "a", "qa_type": "tal", "prediction": "old 1"},
        {"id": "a", "qa_type": "stg", "prediction": "1.0 seconds: [1, 2, 3, 4]"},
    ]


@pytest.mark.parametrize(
    ("full", "stg", "what"),
    [
        (FULL[:2], STG, "2 predictions for 3 rows"),
        (FULL[::-1], STG[:0], "stg rows have no prediction"),
        ([FULL[1], FULL[0], FULL[2]], STG, "is not for row 0"),
        ([{**FULL[0], "more": 1}, *FULL[1:]], STG, "and no more"),
        (FULL, STG[:1], "1 stg rows have no prediction, such as row 0"),
        (FULL, [STG[0], STG[0]], "two STG predictions"),
        (FULL, [{**STG[0], "source_index": 1}], "not for a stg row"),
        (FULL, [{**STG[0], "id": "b"}], "not for a stg row"),
        (FULL, [said("a", "")], "no source_index"),
        (None, STG, "of another kind than stg"),
    ],
)
def test_an_overlay_that_does_not_fit_is_refused(
    full: list[Any] | None, stg: list[Any], what: str
) -> None:
    with pytest.raises(FormatError, match=what):
        overlay(json.dumps(SOURCE), None if full is None else json.dumps(full), json.dumps(stg))


def test_the_public_test_set_has_its_size() -> None:
    pairs = [(f"s{k % 700}", "stg") for k in range(780)]
    pairs += [(f"o{k % 4944}", "tal") for k in range(6245 - 780)]
    rows = [{"id": one, "qa_type": kind} for one, kind in pairs]
    full = [{**one, "prediction": ""} for one in rows]
    stg = [{**one, "source_index": k, "prediction": "1.0 seconds: [1, 2, 3, 4]"}
           for k, one in enumerate(rows[:780])]  # fmt: skip
    texts = [json.dumps(part) for part in (rows, full, stg)]

    assert len(json.loads(overlay(*texts, public_test=True))) == 6245
    with pytest.raises(FormatError, match="has 6245 rows, 780 of them stg"):
        overlay(json.dumps(SOURCE), json.dumps(FULL), json.dumps(STG), public_test=True)


def _files(folder: Path, **contents: Any) -> dict[str, str]:
    for name, content in contents.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return {name: str(folder / f"{name}.json") for name in contents}


def test_the_command_writes_the_contract(tmp_path: Path) -> None:
    paths = _files(tmp_path, rows=ROWS, said=SAID)
    out = tmp_path / "out.json"

    code = main(
        ["evaluate", "--rows", paths["rows"], "--predictions", paths["said"], "--json", str(out)]
    )

    figures = json.loads(out.read_text())
    assert code == 0
    assert {"mIoU", "datasets", "average"} <= set(figures["strict"])
    assert set(figures["leaderboard"]) == set(figures["strict"])
    assert set(figures["acc"]) == {"0.3", "0.5", "0.7"}
    assert {"line", "what"} <= set(figures["problems"][0])


def test_a_split_with_a_shared_video_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = _files(tmp_path, rows=ROWS, said=SAID, train=[ROWS[1]])

    code = main(
        ["evaluate", "--rows", paths["rows"], "--predictions", paths["said"],
         "--train-rows", paths["train"]]
    )  # fmt: skip

    assert code == 1
    assert "EgoSurgery/b" in capsys.readouterr().err


def test_a_submission_is_written_and_read_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stg = [{**one, "source_index": k} for k, one in enumerate(SAID)]
    paths = _files(tmp_path, rows=ROWS, stg=stg)
    out = tmp_path / "submission.json"

    code = main(["submit", "--rows", paths["rows"], "--stg", paths["stg"], "--out", str(out)])

    assert code == 0
    assert "3 stg predictions with 3 timed boxes" in capsys.readouterr().out
    assert json.loads(out.read_text())[0] == SAID[0]


@pytest.mark.parametrize(("content", "what"), [(b"\xff", "not UTF-8"), (None, "cannot be read")])
def test_an_input_that_cannot_be_read_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, what: str
) -> None:
    path = tmp_path / "rows.json"
    if content is not None:
        path.write_bytes(content)

    code = main(["rows", "check", str(path)])

    assert code == 1
    assert what in capsys.readouterr().err

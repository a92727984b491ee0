"""MedVidBench rows: conventions, timelines, and a reader that no bad row stops."""

import json
from pathlib import Path
from typing import Any

import pytest

from refinerank_core.__main__ import main
from refinerank_core.errors import FormatError
from refinerank_core.formats.medvidbench_rows import RowsRead, read_question_rows
from refinerank_core.formats.medvidbench_space import (
    convention_of,
    on_canvas,
    to_canvas,
    to_frame,
)
from refinerank_core.formats.medvidbench_time import local_path, timeline_of
from refinerank_core.formats.rows import RowError

ASKED = "Where is the knife every 4 seconds from 0 to 4 seconds?"


def row(**changed: Any) -> dict[str, Any]:
    """A good row: frames 100, 102, .. at half a frame a second, asked at 0 and 4 seconds."""
    item: dict[str, Any] = {
        "id": "13_1",
        "qa_type": "stg",
        "data_source": "EgoSurgery",
        "video": [f"/root/data/ego/13_1_{n:04d}.jpg" for n in (100, 102, 104, 106)],
        "sampled_video_frames": [100, 102, 104, 106],
        "metadata": {"fps": "0.5", "video_id": "13_1", "input_video_start_frame": 100},
        "conversations": [
            {"from": "human", "value": f"<video>\n{ASKED}"}
        ],
        "struc_info": [{"bbox_dict": {"0.0": [1, 2, 30, 40], "4.0": [5, 6, 70, 80]}}],
    }  # fmt: skip
    return {**item, **changed}


def read(*items: Any) -> RowsRead:
    return read_question_rows(json.dumps(list(items), indent=1))


def test_a_row_says_what_is_asked_when_and_where() -> None:
    (one,) = read(row()).rows

    assert (one.dataset, one.video, one.row_id) == ("EgoSurgery", "13_1", "13_1")
    assert one.question == ASKED
    assert one.requested_s == (0.0, 4.0)
    assert one.boxes == {0.0: (1, 2, 30, 40), 4.0: (5, 6, 70, 80)}
    assert one.timeline is not None
    assert [one.timeline.numbers[one.timeline.nearest(t)] for t in one.requested_s] == [100, 104]


@pytest.mark.parametrize(
    ("dataset", "fps", "numbers", "time_s", "wanted"),
    [
        ("CoPESD", 0.5, [1, 3, 5], 4.0, 5),
        ("CoPESD", 1.0, [101, 102, 103], 2.0, 103),
        ("EgoSurgery", 0.5, [501, 503, 505], 2.0, 503),
        ("CholecTrack20", 1.0, [34726, 34751, 34776, 37101, 37126, 37201], 99.0, 37201),
        ("CholecTrack20", None, [0, 25, 50], 2.0, 50),  # its 25 frames a second are fixed
        ("EgoSurgery", 25, [0, 25, 50], 2.0, 50),  # fps counts frame numbers here
        ("CoPESD", 0.5, [1295, 1297, 1299, 1302], 7.0, 1302),  # one gap off the cadence
    ],
)
def test_a_local_time_finds_its_frame(
    dataset: str, fps: float | None, numbers: list[int], time_s: float, wanted: int
) -> None:
    item = row(
        video=[f"v_{n}.jpg" for n in numbers],
        sampled_video_frames=numbers,
        metadata={"video_id": "v"} | ({} if fps is None else {"fps": fps}),
    )

    timeline = timeline_of(item, convention_of(dataset), [time_s])

    assert timeline.numbers[timeline.nearest(time_s)] == wanted


def test_a_time_halfway_takes_the_earlier_frame_and_a_farther_one_is_refused() -> None:
    timeline = timeline_of(row(), convention_of("EgoSurgery"), [0.0])

    assert timeline.nearest(1.0) == 0
    assert timeline.nearest(7.0) == 3
    with pytest.raises(RowError, match="more than half the sampling period of 2 s"):
        timeline.nearest(7.1)


def test_cholectrack_boxes_follow_the_canvas_and_not_the_frame() -> None:
    convention = convention_of("cholectrack20")

    box = to_frame((427, 240, 854, 480), convention, (1708, 960))

    assert box == (854.0, 480.0, 1708.0, 960.0)
    assert to_canvas(box, convention, (1708, 960)) == (427, 240, 854, 480)
    with pytest.raises(RowError, match="another shape than the 854x480"):
        to_frame((0, 0, 10, 10), convention, (640, 480))


def test_copesd_scales_both_axes_by_the_width() -> None:
    convention = convention_of("CoPESD")

    box = to_frame((100, 200, 300, 1000), convention, (653, 504))

    assert box == (50.0, 100.0, 150.0, 500.0)
    assert to_canvas((50, 100, 150, 500), convention, (653, 504)) == (100, 200, 300, 1000)


def test_pixels_stay_pixels() -> None:
    assert to_frame((1, 2, 3, 4), convention_of("EgoSurgery"), (640, 360)) == (1, 2, 3, 4)


@pytest.mark.parametrize(
    ("box", "what"),
    [
        ((9, 9, 1, 1), "no area"),
        ((0, 0, 1, 1), "Fractions are not read"),
        ((-9, 0, 20, 20), "outside its picture"),
        ((0, 0, 860, 20), "outside its picture"),
    ],
)
def test_a_box_that_cannot_be_is_refused(box: tuple[float, ...], what: str) -> None:
    with pytest.raises(RowError, match=what):
        on_canvas((box[0], box[1], box[2], box[3]), convention_of("CholecTrack20"))


def test_a_box_a_little_outside_is_cut() -> None:
    assert on_canvas((-2, 0, 856, 481), convention_of("CholecTrack20")) == (0, 0, 854, 480)


def test_a_frame_lies_below_the_data_folder_and_nowhere_else() -> None:
    data = Path("data")

    assert local_path("/root/data/ego/a_1.jpg", data) == data / "ego" / "a_1.jpg"
    assert local_path("ego/a_1.jpg", data) == data / "ego" / "a_1.jpg"
    for path in ("/etc/a_1.jpg", "../a_1.jpg", "/root/data/../../etc/a_1.jpg"):
        with pytest.raises(RowError, match="leads out"):
            local_path(path, data)


def test_rows_that_share_an_id_stay_apart() -> None:
    found = read(row(), {"id": "13_1", "qa_type": "tal"}, row(question="x"))

    assert [one.place for one in found.rows] == [0, 2]
    assert found.order["13_1", "stg"] == [0, 2]
    assert [remark.text for remark in found.remarks] == [
        "id 13_1 occurs again and is a row of its own"
    ]


def test_a_row_of_the_test_set_has_no_boxes_and_no_fault() -> None:
    item = row()
    del item["struc_info"]

    found = read(item)

    assert not found.faults
    assert found.rows[0].boxes == {}


BAD: tuple[Any, ...] = (
    "row",
    7,
    None,
    {},
    {"id": "a"},
    row(id=None),
    row(id=True),
    row(id=["a"]),
    row(id="half \ud800"),
    row(qa_type=3),
    row(question=4, conversations=[]),
    row(conversations=[{"value": 3}]),
    row(conversations=[{"value": "Where is it at 99:99?"}]),
    row(conversations=[{"value": ""}]),
    row(conversations=[{"value": "x" * 200_000}]),
    row(data_source=5),
    row(metadata=None),
    row(metadata={"fps": "fast", "video_id": "v"}),
    row(metadata={"fps": 0, "video_id": "v"}),
    row(metadata={"fps": 10**400, "video_id": "v"}),
    row(metadata={"fps": 0.5, "video_id": "v", "input_video_start_frame": "x"}),
    row(metadata={"fps": 0.5, "video_id": "v", "input_video_start_frame": 500}),
    row(video=None, sampled_video_frames=None),
    row(video=[], sampled_video_frames=[]),
    row(video="clip.mp4"),
    row(video=[1, 2]),
    row(video=["frame.jpg"]),
    row(video=["a_3.jpg", "a_1.jpg"]),
    row(sampled_video_frames=[100, 102]),
    row(sampled_video_frames=["x"]),
    row(sampled_video_frames=[1e400]),
    row(struc_info="boxes"),
    row(struc_info=[3]),
    row(struc_info=[{"bbox_dict": []}]),
    row(struc_info=[{"bbox_dict": {"0.0": None}}]),
    row(struc_info=[{"bbox_dict": {"0.0": [1, 2, 3]}}]),
    row(struc_info=[{"bbox_dict": {"0.0": [1, 2, "x", 4]}}]),
    row(struc_info=[{"bbox_dict": {"0.0": [True, 2, 30, 40]}}]),
    row(struc_info=[{"bbox_dict": {"0.0": [30, 40, 1, 2]}}]),
    row(struc_info=[{"bbox_dict": {"0.0": [float("nan"), 2, 30, 40]}}]),
    row(struc_info=[{"bbox_dict": {"0.0": [1, 2, float("inf"), 40]}}]),
    row(struc_info=[{"bbox_dict": {"0.0": [1, 2, 10**400, 40]}}]),
    row(struc_info=[{"bbox_dict": {"soon": [1, 2, 30, 40]}}]),
    row(struc_info=[{"bbox_dict": {"nan": [1, 2, 30, 40]}}]),
    row(struc_info=[{"bbox_dict": {"-1": [1, 2, 30, 40]}}]),
    row(struc_info=[{"bbox_dict": {"90.0": [1, 2, 30, 40]}}]),
    row(struc_info=[{"bbox_dict": {"0.0": [1, 2, 30, 40]}}, {"bbox_dict": {"0": [1, 2, 3, 4]}}]),
    row(id="纱布"),
    row(id="e\u0301-\u202e"),
    row(data_source=""),
)  # fmt: skip


def test_two_hundred_malformed_rows_are_each_reported_and_none_stops_the_reading() -> None:
    items = [json.loads(json.dumps(item)) for item in BAD] * 4
    text = "[\n" + ",\n".join(json.dumps(item) for item in [*items, row(id="last")]) + "\n]"

    found = read_question_rows(text)

    assert len(items) == 200
    reported = {fault.line for fault in (*found.faults, *found.remarks)}
    assert reported >= set(range(2, 202))
    assert found.rows[-1].row_id == "last"
    assert all(fault.text and "\n" not in fault.text for fault in found.faults)


@pytest.mark.parametrize("text", ["", "{", "{}", "3", '"a"', "[" * 100_000, "[" + "9" * 5000 + "]"])
def test_a_file_that_is_no_list_is_one_sentence(text: str) -> None:
    with pytest.raises(FormatError):
        read_question_rows(text)


def test_missing_frames_are_told_where_the_data_folder_is_known(tmp_path: Path) -> None:
    home = tmp_path / "ego"
    home.mkdir()
    for number in (100, 102, 104):
        (home / f"13_1_{number:04d}.jpg").write_bytes(b"")

    found = read_question_rows(json.dumps([row()]), data=tmp_path)

    assert "1 frames are missing, such as 13_1_0106.jpg" in found.faults[0].text
    assert found.rows[0].timeline is None


def test_the_check_lists_faults_by_line_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.json"
    path.write_text("[\n" + ",\n".join(map(json.dumps, [row(), row(id=None), row()])) + "\n]")

    code = main(["rows", "check", str(path)])

    told = capsys.readouterr().out
    assert code == 1
    assert "line 3: fault: the row has no id" in told
    assert "3 rows, 3 of the kind stg: 2 usable, 2 annotated; 1 faults, 1 notes" in told

"""Each export, re-read by a library or by a reader written here from the format's own rules."""

import csv
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
import yaml  # type: ignore[import-untyped]
from pycocotools.coco import COCO

from refinerank_core.formats.catalogue import FORMATS, pack, read_rows, unpack
from refinerank_core.formats.rows import Asked, Row, Written

WIDTH, HEIGHT = 854, 480
ROWS = [
    Row(
        video="operation 1.mp4",
        frame_index=index,
        time_s=index / 25,
        frame_s=index / 25,
        size_wh=(WIDTH, HEIGHT),
        frames=200,
        box=box,
        label=label,
        question=f"Where is the {label}?",
        method="review",
        dataset="CholecTrack20",
        row_id=row_id,
        qa_type="stg",
        case_id=f"case-{index}",
        status="fixed",
        reviewer="Dr Ä",
        tags=("small target",),
        comment="grasper & hook < clip",
    )
    for index, label, box, row_id in (
        (0, "hook", (0.0, 0.0, 854.0, 480.0), "q1"),
        (25, "hook", (171.53125, 306.259, 199.5, 349.2501), "q1"),
        (25, "clip applier", (5.0, 3.0, 15.0, 31.0), "q2"),
        (199, "hook", (700.1, 400.2, 853.3, 479.9), "q1"),
        (50, "hook", None, "q1"),
    )
]
BOXED = [row for row in ROWS if row.box is not None]


def _written(name: str, rows: list[Row] | None = None) -> Written:
    return FORMATS[name].write(ROWS if rows is None else rows)


def _text(name: str) -> str:
    ((_, content),) = _written(name).files.items()
    return content.decode("utf-8-sig")


def _close(found: object, row: Row) -> bool:
    return bool(np.allclose(np.array(found), np.array(row.box), atol=0.01))


def test_pycocotools_reads_the_coco_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "annotations.json"
    path.write_text(_text("coco"), encoding="utf-8")

    coco = COCO(str(path))

    capsys.readouterr()
    names = {one["id"]: one["name"] for one in coco.loadCats(coco.getCatIds())}
    assert names == {1: "clip applier", 2: "hook"}
    found = coco.loadAnns(coco.getAnnIds())
    assert [one["id"] for one in found] == [1, 2, 3, 4]
    for one, row in zip(found, BOXED, strict=True):
        x, y, width, height = one["bbox"]
        image = coco.loadImgs([one["image_id"]])[0]
        assert _close([x, y, x + width, y + height], row)
        assert one["area"] == pytest.approx(width * height)
        assert names[one["category_id"]] == row.label
        assert (image["width"], image["height"]) == (WIDTH, HEIGHT)
        assert image["file_name"] == f"operation 1/{row.frame_index:06d}.jpg"
    assert len(coco.getImgIds()) == 4  # frame 25 once, frame 50 without a box


def test_a_cvat_reader_sees_each_box_on_its_frame_alone() -> None:
    root = ElementTree.fromstring(_text("cvat"))

    assert root.findtext("version") == "1.1"
    assert root.findtext("meta/task/source") == "operation 1.mp4"
    assert root.findtext("meta/task/size") == "200"
    assert root.findtext("meta/task/original_size/width") == str(WIDTH)
    tracks = root.findall("track")
    for track, row in zip(tracks, BOXED, strict=True):
        boxes = track.findall("box")
        shown = [box for box in boxes if box.get("outside") == "0"]
        assert [int(box.get("frame", "-1")) for box in shown] == [row.frame_index]
        edges = [float(shown[0].get(name, "nan")) for name in ("xtl", "ytl", "xbr", "ybr")]
        assert _close(edges, row)
        assert track.get("label") == row.label
        comment = shown[0].find("attribute[@name='comment']")
        assert comment is not None
        assert comment.text == row.comment
        ends = [int(box.get("frame", "-1")) for box in boxes if box.get("outside") == "1"]
        assert ends == ([] if row.frame_index == 199 else [(row.frame_index or 0) + 1])


def test_a_label_studio_reader_turns_per_cent_into_the_boxes() -> None:
    (task,) = json.loads(_text("label-studio"))

    assert task["data"] == {"video": "operation 1.mp4"}
    regions = task["annotations"][0]["result"]
    for region, row in zip(regions, BOXED, strict=True):
        (frame,) = region["value"]["sequence"]
        x0, y0 = frame["x"] / 100 * WIDTH, frame["y"] / 100 * HEIGHT
        x1, y1 = x0 + frame["width"] / 100 * WIDTH, y0 + frame["height"] / 100 * HEIGHT
        assert _close([x0, y0, x1, y1], row)
        assert frame["frame"] == (row.frame_index or 0) + 1
        assert frame["enabled"] is False
        assert region["value"]["labels"] == [row.label]


def test_a_yolo_reader_finds_each_box_in_its_frames_file() -> None:
    files = _written("yolo").files
    names = yaml.safe_load(files["data.yaml"])["names"]

    found = {}
    for name, content in files.items():
        if name.startswith("labels/") and content:
            for line in np.loadtxt(io.BytesIO(content), ndmin=2):
                centre, half = line[1:3] * (WIDTH, HEIGHT), line[3:5] * (WIDTH, HEIGHT) / 2
                key = (Path(name).stem, names[int(line[0])])
                found[key] = np.concatenate((centre - half, centre + half))

    assert files["labels/operation 1_000050.txt"] == b""
    assert len(found) == len(BOXED)
    for row in BOXED:
        assert _close(found[f"operation 1_{row.frame_index:06d}", row.label], row)


def test_a_spreadsheet_reads_the_csv() -> None:
    lines = list(csv.DictReader(io.StringIO(_text("csv"), newline="")))

    for line, row in zip(lines, ROWS, strict=True):
        edges = [line[name] for name in ("x0_px", "y0_px", "x1_px", "y1_px")]
        assert edges == ([""] * 4 if row.box is None else [str(edge) for edge in row.box])
        assert (line["comment"], line["reviewer"]) == (row.comment, "Dr Ä")
        assert int(line["frame_index"]) == row.frame_index


def test_each_json_line_is_a_whole_row() -> None:
    lines = [json.loads(line) for line in _text("jsonl").splitlines()]

    assert [line["box"] for line in lines] == [row.box and list(row.box) for row in ROWS]
    assert lines[0]["tags"] == ["small target"]


def test_a_benchmark_reader_finds_the_submissions_boxes() -> None:
    documents = json.loads(_text("medvidbench-submission"))

    assert [(one["id"], one["qa_type"]) for one in documents] == [("q1", "stg"), ("q2", "stg")]
    pattern = re.compile(r"([\d.]+) seconds: \[([^\]]+)\]")
    found = {
        (one["id"], float(time)): [float(edge) for edge in edges.split(",")]
        for one in documents
        for time, edges in pattern.findall(one["prediction"])
    }
    assert len(found) == len(BOXED)
    assert all(_close(found[row.row_id, row.time_s or 0.0], row) for row in BOXED)


def test_benchmark_rows_hold_the_boxes_by_time() -> None:
    documents = json.loads(_text("medvidbench"))

    first = documents[0]
    assert first["metadata"]["video_id"] == "operation 1"
    assert first["conversations"][0]["value"] == "<video>\nWhere is the hook?"
    boxes = first["struc_info"][0]["bbox_dict"]
    assert set(boxes) == {"0.0", "1.0", "7.96"}
    assert boxes["1.0"] == list(ROWS[1].box or ())


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "medvidbench-submission"])
def test_ten_round_trips_move_no_edge(name: str) -> None:
    rows = BOXED
    for _ in range(10):
        _, content = pack(FORMATS[name].write(rows))
        asked = Asked(any_size=(WIDTH, HEIGHT))
        reading = read_rows(name, unpack("reviews.json", content), asked)
        assert reading.faults == ()
        rows = list(reading.rows)

    def key(row: Row) -> tuple[float, str]:
        time = row.time_s if row.frame_index is None else row.frame_index / 25
        return (time or 0.0, row.question or row.label)

    before, after = sorted(BOXED, key=key), sorted(rows, key=key)
    assert len(after) == len(before)
    for one, other in zip(before, after, strict=True):
        assert np.abs(np.array(one.box) - np.array(other.box)).max() <= 0.01


@pytest.mark.parametrize("name", list(FORMATS))
def test_no_rows_are_a_valid_file(name: str) -> None:
    written = _written(name, [])

    assert written.losses == ()
    if name == "coco":
        assert json.loads(written.files["annotations.json"])["annotations"] == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("yolo", "comment of 5 rows"),
        ("yolo", "frame sizes are not held"),
        ("cvat", "tags of 5 rows"),
        ("cvat", "1 rows without a box"),
        ("label-studio", "dataset of 5 rows"),
        ("medvidbench", "reviewer of 5 rows"),
        ("medvidbench-submission", "question of 5 rows"),
        ("coco", "1 rows without a box"),
    ],
)
def test_an_export_says_what_it_cannot_hold(name: str, words: str) -> None:
    assert any(words in sentence for sentence in _written(name).losses)


@pytest.mark.parametrize("name", ["jsonl", "csv"])
def test_a_full_format_loses_nothing(name: str) -> None:
    assert _written(name).losses == ()

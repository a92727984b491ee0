"""MedVidBench: question rows with annotated boxes, and submissions of predictions."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from refinerank_core.answers import format_answer, parse_answer
from refinerank_core.errors import FormatError
from refinerank_core.formats import strict_json
from refinerank_core.formats.medvidbench_space import convention_of
from refinerank_core.formats.medvidbench_time import timeline_of
from refinerank_core.formats.rows import (
    Asked,
    Fault,
    Reading,
    Row,
    RowError,
    Written,
    losses,
    numbers_of,
    placed,
    stem,
)

HELD = ("video", "time_s", "box", "question", "dataset", "row_id", "qa_type", "frame_index")
HELD_BY_SUBMISSION = ("row_id", "qa_type", "time_s", "box")
QA_TYPE = "stg"
_FRAME = re.compile(r"_(\d+)$")


def write(rows: list[Row]) -> Written:
    """Question rows with the boxes as annotation; times without a box have none."""
    documents = []
    for number, (key, mine) in enumerate(_questions(rows).items()):
        first = mine[0]
        boxes = {str(float(_time(row))): list(row.box) for row in mine if row.box}
        frames = [
            f"{stem(first.video)}/{stem(first.video)}_{row.frame_index:06d}.jpg"
            for row in mine
            if row.frame_index is not None
        ]
        indices = [row.frame_index for row in mine if row.frame_index is not None]
        documents.append(
            {
                "id": key[2] or f"{stem(first.video)}-{number}",
                "qa_type": first.qa_type or QA_TYPE,
                "data_source": first.dataset,
                "video": frames,
                "sampled_video_frames": frames,
                "metadata": {
                    "video_id": stem(first.video),
                    "input_video_start_frame": min(indices, default=None),
                    "input_video_end_frame": max(indices, default=None),
                },
                "conversations": [
                    {"from": "human", "value": f"<video>\n{first.question}"},
                    {"from": "gpt", "value": _prediction(mine)},
                ],
                "struc_info": [{"bbox_dict": boxes}],
            }
        )
    content = (strict_json.dumps(documents, indent=1) + "\n").encode()
    return Written({"rows.json": content}, losses(rows, HELD, *_untimed(rows)))


def write_submission(rows: list[Row]) -> Written:
    """One prediction a question row, in the order in which the rows came."""
    documents = [
        {
            "id": key[2] or f"{stem(mine[0].video)}-{number}",
            "qa_type": mine[0].qa_type or QA_TYPE,
            "prediction": _prediction(mine),
        }
        for number, (key, mine) in enumerate(_questions(rows).items())
    ]
    content = (strict_json.dumps(documents, indent=1) + "\n").encode()
    also = _untimed(rows)
    unnamed = sum(not row.row_id for row in rows)
    if unnamed:
        also.append(f"{unnamed} rows have no benchmark id and got one made up")
    return Written({"submission.json": content}, losses(rows, HELD_BY_SUBMISSION, *also))


def _untimed(rows: list[Row]) -> list[str]:
    count = sum(row.time_s is None for row in rows)
    return [f"{count} rows without a requested time are left out"] if count else []


def _questions(rows: list[Row]) -> dict[tuple[str, str, str], list[Row]]:
    """Rows of one question together, in order of time."""
    groups: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row.time_s is not None:
            groups[row.video, row.question, row.row_id].append(row)
    return {key: sorted(mine, key=_time) for key, mine in groups.items()}


def _time(row: Row) -> float:
    return row.time_s or 0.0


def _prediction(rows: list[Row]) -> str:
    return format_answer([_time(row) for row in rows], [row.box for row in rows])


def read(files: dict[str, bytes], asked: Asked) -> Reading:
    """Read question rows: one row for each annotated time. Others than "stg" are counted."""
    rows: list[Row] = []
    faults: list[Fault] = []
    other = 0
    for content in files.values():
        for line, item in strict_json.elements(content.decode("utf-8-sig")):
            try:
                strict_json.refuse_not_finite(item)
                if _is_other(item):
                    other += 1
                    continue
                rows += _annotated(item, line, asked, faults)
            except (RowError, FormatError) as error:
                faults.append(Fault(line, str(error)))
    notes = (f"{other} rows are of another kind than stg and were left out",) if other else ()
    return Reading(tuple(rows), tuple(faults), notes)


def read_submission(files: dict[str, bytes], asked: Asked, questions: dict[str, bytes]) -> Reading:
    """Read predictions against the question rows that they answer.

    Ids are not unique in this benchmark: the n-th prediction of an id and kind answers its n-th
    question row.

    Args:
        files: the submission.
        asked: what the importing person said.
        questions: the file of question rows.
    """
    about: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for content in questions.values():
        for _, item in strict_json.elements(content.decode("utf-8-sig")):
            if isinstance(item, dict) and not _is_other(item):
                about[_pair(item)].append(item)
    rows: list[Row] = []
    faults: list[Fault] = []
    seen: dict[tuple[str, str], int] = defaultdict(int)
    for content in files.values():
        for line, item in strict_json.elements(content.decode("utf-8-sig")):
            try:
                strict_json.refuse_not_finite(item)
                if _is_other(item):
                    continue
                pair = _pair(item)
                place = seen[pair]
                seen[pair] += 1
                if place >= len(about[pair]):
                    raise RowError(f"id {pair[0]}: no question row is left for this prediction")
                rows += _predicted(item, about[pair][place], line, asked, faults)
            except (RowError, FormatError) as error:
                faults.append(Fault(line, str(error)))
    doubled = sum(len(items) > 1 for items in about.values())
    notes = (f"{doubled} ids occur more than once; matched in order",) if doubled else ()
    return Reading(tuple(rows), tuple(faults), notes)


def _is_other(item: Any) -> bool:
    if not isinstance(item, dict):
        raise RowError("a row is an object")
    return str(item.get("qa_type", QA_TYPE)) != QA_TYPE


def _pair(item: Mapping[str, Any]) -> tuple[str, str]:
    return str(item.get("id", "")), str(item.get("qa_type", QA_TYPE))


def _facts(item: Mapping[str, Any]) -> dict[str, Any]:
    """What a question row says about all its times."""
    metadata = item.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    frames = item.get("sampled_video_frames") or item.get("video") or []
    video = metadata.get("video_id") or _video_of(frames)
    if not video:
        raise RowError("the row names no video")
    return {
        "video": str(video),
        "question": _question(item),
        "dataset": str(item.get("data_source") or ""),
        "row_id": _pair(item)[0],
        "qa_type": _pair(item)[1],
    }


def _video_of(frames: Any) -> str:
    first = frames[0] if isinstance(frames, list) and frames else frames
    return _FRAME.sub("", PurePath(first).stem) if isinstance(first, str) else ""


def _question(item: Mapping[str, Any]) -> str:
    spoken = item.get("conversations")
    text = item.get("question")
    if isinstance(spoken, list) and spoken and isinstance(spoken[0], dict):
        text = spoken[0].get("value", text)
    return str(text or "").replace("<video>", "").strip()


def _frame_at(item: Mapping[str, Any], time_s: float) -> int | None:
    """Number of the sampled frame nearest to a local time; None where the row does not tell."""
    convention = convention_of(str(item.get("data_source") or ""))
    try:
        timeline = timeline_of(item, convention, [time_s])
        return timeline.numbers[timeline.nearest(time_s)]
    except RowError:
        return None


def _annotated(
    item: Mapping[str, Any], line: int, asked: Asked, faults: list[Fault]
) -> Iterator[Row]:
    facts = _facts(item)
    info = item.get("struc_info")
    if not isinstance(info, list) or not info:
        raise RowError("the row has no struc_info: it is of the test set, without annotation")
    for part in info:
        boxes = part.get("bbox_dict") if isinstance(part, dict) else None
        for time, numbers in (boxes or {}).items():
            try:
                time_s = float(time)
                yield _made(facts, item, time_s, numbers_of(numbers), line, asked)
            except (RowError, ValueError) as error:
                faults.append(Fault(line, f"id {facts['row_id']}, time {time}: {error}"))


def _predicted(
    item: Mapping[str, Any],
    question: Mapping[str, Any],
    line: int,
    asked: Asked,
    faults: list[Fault],
) -> Iterator[Row]:
    facts = _facts(question)
    parsed = parse_answer(str(item.get("prediction", "")))
    if not parsed.timed:
        faults.append(Fault(line, f"id {facts['row_id']}: the prediction holds no timed box"))
    if parsed.untimed:
        count = len(parsed.untimed)
        faults.append(Fault(line, f"id {facts['row_id']}: {count} boxes without a time"))
    for time_s, corners in parsed.timed:
        try:
            yield _made(facts, question, time_s, list(corners), line, asked)
        except RowError as error:
            faults.append(Fault(line, f"id {facts['row_id']}, time {time_s:g}: {error}"))


def _made(
    facts: dict[str, Any],
    question: Mapping[str, Any],
    time_s: float,
    numbers: list[float],
    line: int,
    asked: Asked,
) -> Row:
    video = facts["video"]
    size_wh = asked.size_of(video, None)
    return Row(
        **facts,
        time_s=time_s,
        frame_index=_frame_at(question, time_s),
        size_wh=size_wh,
        box=placed(
            numbers, space=asked.space or "pixels", stated_wh=size_wh, asked=asked, video=video
        ),
        method=asked.method,
        line=line,
    )

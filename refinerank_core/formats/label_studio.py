"""Label Studio tasks for video: boxes in per cent of the frame, frames from 1."""

from collections.abc import Iterator
from typing import Any

from refinerank_core.errors import FormatError
from refinerank_core.formats import strict_json
from refinerank_core.formats.rows import (
    UNLABELLED,
    Asked,
    Fault,
    Reading,
    Row,
    RowError,
    Written,
    based,
    losses,
    numbers_of,
    placed,
)

_META = ("question", "method", "status", "reviewer", "comment", "case_id")
HELD = ("video", "frame_index", "frame_s", "size_wh", "frames", "box", "label", "score", *_META)


def write(rows: list[Row]) -> Written:
    """One task a video, one region a row, each shown on its own frame alone."""
    tasks: list[dict[str, Any]] = []
    left_out = 0
    for video in sorted({row.video for row in rows}):
        results: list[dict[str, Any]] = []
        for row in rows:
            if row.video != video:
                continue
            if row.box is None or row.frame_index is None or row.size_wh is None:
                left_out += 1
                continue
            results.append(_region(row, len(results) + 1))
        tasks.append(
            {
                "id": len(tasks) + 1,
                "data": {"video": video},
                "annotations": [{"id": len(tasks) + 1, "result": results}],
            }
        )
    also = (f"{left_out} rows without box, frame or frame size are left out",) if left_out else ()
    content = (strict_json.dumps(tasks, indent=1) + "\n").encode()
    return Written({"tasks.json": content}, losses(rows, HELD, *also))


def _region(row: Row, number: int) -> dict[str, Any]:
    width, height = row.size_wh or (1, 1)
    x0, y0, x1, y1 = row.box or (0.0, 0.0, 0.0, 0.0)
    frame: dict[str, Any] = {
        "frame": (row.frame_index or 0) + 1,
        "enabled": False,  # the region ends on this frame: nothing is interpolated after it
        "rotation": 0,
        "x": 100 * x0 / width,
        "y": 100 * y0 / height,
        "width": 100 * (x1 - x0) / width,
        "height": 100 * (y1 - y0) / height,
    }
    if row.frame_s is not None:
        frame["time"] = row.frame_s
    region: dict[str, Any] = {
        "id": f"r{number}",
        "type": "videorectangle",
        "from_name": "box",
        "to_name": "video",
        "original_width": width,
        "original_height": height,
        "meta": {name: getattr(row, name) for name in _META if getattr(row, name)},
        "value": {
            "framesCount": row.frames,
            "sequence": [frame],
            "labels": [row.label or UNLABELLED],
        },
    }
    if row.score is not None:
        region["score"] = row.score
    return region


def read(files: dict[str, bytes], asked: Asked) -> Reading:
    """Read the key frames of video rectangles."""
    rows: list[Row] = []
    faults: list[Fault] = []
    for content in files.values():
        for line, task in strict_json.elements(content.decode("utf-8-sig")):
            try:
                strict_json.refuse_not_finite(task)
                regions = list(_regions(task))
                video = str(task["data"]["video"])
            except (FormatError, KeyError, TypeError) as error:
                text = str(error) if isinstance(error, FormatError) else "it is no video task"
                faults.append(Fault(line, text))
                continue
            for region, frame in regions:
                try:
                    rows.append(_row(video, region, frame, line, asked))
                except RowError as error:
                    faults.append(Fault(line, str(error)))
    return Reading(tuple(rows), tuple(faults))


def _regions(task: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each region with each of its key frames."""
    for annotation in task.get("annotations") or ():
        for region in annotation.get("result") or ():
            if region.get("type") == "videorectangle":
                for frame in region["value"]["sequence"]:
                    yield region, frame


def _row(video: str, region: dict[str, Any], frame: dict[str, Any], line: int, asked: Asked) -> Row:
    if float(frame.get("rotation") or 0) != 0:
        raise RowError("the box is turned; only upright boxes can be read")
    try:
        per_cent = numbers_of([frame[name] for name in ("x", "y", "width", "height")])
        index = based(int(frame["frame"]), asked, own_base=1, video=video)
    except (KeyError, TypeError) as error:
        raise RowError("a key frame needs frame, x, y, width and height") from error
    width, height = region.get("original_width"), region.get("original_height")
    stated = (int(width), int(height)) if width and height else None
    x, y, across, down = (number / 100 for number in per_cent)
    made_on = stated or asked.size_of(video, None)
    if made_on is None:
        raise RowError("per cents need the frame's size. Give the video or --size")
    sides = (made_on[0], made_on[1])
    pixels = (x * sides[0], y * sides[1], (x + across) * sides[0], (y + down) * sides[1])
    meta = region.get("meta") or {}
    facts: dict[str, Any] = {name: str(meta[name]) for name in _META if meta.get(name)}
    labels = region["value"].get("labels") or [""]
    score = region.get("score")
    time = frame.get("time")
    return Row(
        video=video,
        frame_index=index,
        frame_s=float(time) if time is not None else None,
        size_wh=asked.size_of(video, stated),
        frames=int(region["value"].get("framesCount") or 0),
        box=placed(pixels, space="pixels", stated_wh=stated, asked=asked, video=video),
        label=str(labels[0]),
        score=float(score) if score is not None else None,
        line=line,
        **facts,
    )

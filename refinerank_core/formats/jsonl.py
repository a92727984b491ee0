"""Plain JSON lines: one row a line, with everything that a row knows."""

from dataclasses import asdict

from refinerank_core.errors import FormatError
from refinerank_core.formats import strict_json
from refinerank_core.formats.rows import (
    FIELDS,
    Asked,
    Fault,
    Reading,
    Row,
    RowError,
    Written,
    numbers_of,
    placed,
)

HELD = FIELDS


def write(rows: list[Row]) -> Written:
    """One object a line, UTF-8."""
    lines = []
    for row in rows:
        data = asdict(row)
        data.pop("line")
        lines.append(strict_json.dumps(data))
    return Written({"reviews.jsonl": "".join(f"{line}\n" for line in lines).encode()}, ())


def read(files: dict[str, bytes], asked: Asked) -> Reading:
    """Read what `write` wrote, or objects with some of its fields."""
    rows: list[Row] = []
    faults: list[Fault] = []
    for content in files.values():
        # Not splitlines: a line separator inside a text is no end of a line of JSON.
        for number, line in enumerate(content.decode("utf-8-sig").split("\n"), start=1):
            if line.strip():
                try:
                    rows.append(_row(strict_json.loads(line), number, asked))
                except (RowError, FormatError, TypeError) as error:
                    faults.append(Fault(number, str(error)))
    return Reading(tuple(rows), tuple(faults))


def _row(data: object, line: int, asked: Asked) -> Row:
    if not isinstance(data, dict) or not isinstance(data.get("video"), str):
        raise RowError("a row is an object with the video's name")
    known = {name: value for name, value in data.items() if name in FIELDS}
    size = known.get("size_wh")
    known["size_wh"] = (int(size[0]), int(size[1])) if size else None
    known["tags"] = tuple(known.get("tags") or ())
    if known.get("box") is not None:
        known["box"] = placed(
            numbers_of(known["box"]),
            space=asked.space or "pixels",
            stated_wh=known["size_wh"],
            asked=asked,
            video=data["video"],
        )
        known["size_wh"] = asked.size_of(data["video"], known["size_wh"])
    if known.get("frame_index") is None and known.get("time_s") is None:
        raise RowError("a row needs frame_index or time_s")
    return Row(**known, line=line)

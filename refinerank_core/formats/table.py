"""CSV for spreadsheets: formula-safe, numbers as numbers, read back exactly."""

import csv
import io

from refinerank_core.boxes import Space
from refinerank_core.formats.rows import (
    FIELDS,
    Asked,
    Fault,
    Reading,
    Row,
    RowError,
    Written,
    losses,
    numbers_of,
    placed,
)

EDGES = ("x0_px", "y0_px", "x1_px", "y1_px")
_OTHERS = tuple(name for name in FIELDS if name not in ("box", "size_wh", "tags"))
COLUMNS = (*_OTHERS[:3], *EDGES, "width_px", "height_px", *_OTHERS[3:], "tags")
HELD = FIELDS

_RUNS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_INTEGERS = ("frame_index", "frames", "confidence")
_FLOATS = ("time_s", "frame_s", "score", "seconds")
_LOOSE_EDGES = (("x0", "y0", "x1", "y1"), ("x", "y", "w", "h"), ("xmin", "ymin", "xmax", "ymax"))


def neutral(text: str) -> str:
    """A cell that no spreadsheet runs: an apostrophe before what starts like a formula."""
    return f"'{text}" if text.lstrip("'").startswith(_RUNS) else text


def original(cell: str) -> str:
    """The text that `neutral` was given."""
    return cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(_RUNS) else cell


def write(rows: list[Row]) -> Written:
    """A header and one line a row, UTF-8 with byte order mark; texts quoted, numbers bare."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(COLUMNS)
    for row in rows:
        edges = row.box or ("", "", "", "")
        cells: dict[str, object] = dict(zip(EDGES, edges, strict=True))
        cells["width_px"], cells["height_px"] = row.size_wh or ("", "")
        cells["tags"] = neutral("; ".join(row.tags))
        for name in _OTHERS:
            value = getattr(row, name)
            cells[name] = neutral(value) if isinstance(value, str) else value
        writer.writerow(["" if cells[name] is None else cells[name] for name in COLUMNS])
    return Written(
        {"reviews.csv": b"\xef\xbb\xbf" + buffer.getvalue().encode()}, losses(rows, HELD)
    )


def read(files: dict[str, bytes], asked: Asked) -> Reading:
    """Read what `write` wrote, or a table with video, frame_index or time_s, and four edges.

    Edges named x0_px to y1_px are pixels. For others (x0 y0 x1 y1, xmin ymin xmax ymax, x y w h)
    the space must be stated: four small numbers could be pixels or fractions.
    """
    rows: list[Row] = []
    faults: list[Fault] = []
    for content in files.values():
        reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""))
        header = [name.strip() for name in next(reader, [])]
        start = reader.line_num + 1
        for cells in reader:
            if cells:
                try:
                    rows.append(_row(header, cells, start, asked))
                except (RowError, ValueError) as error:
                    faults.append(Fault(start, str(error)))
            start = reader.line_num + 1
    return Reading(tuple(rows), tuple(faults))


def _row(header: list[str], cells: list[str], line: int, asked: Asked) -> Row:
    if len(cells) != len(header):
        raise RowError(f"{len(cells)} cells, the header has {len(header)}")
    given = dict(zip(header, cells, strict=True))
    known: dict[str, object] = {name: original(given[name]) for name in _OTHERS if given.get(name)}
    for names, kind in ((_INTEGERS, int), (_FLOATS, float)):
        for name in names:
            if name in known:
                known[name] = _number(str(known[name]), name, kind)
    video = str(known.get("video", ""))
    if not video:
        raise RowError("there is no video name in this line")
    if "frame_index" not in known and "time_s" not in known:
        raise RowError("a line needs frame_index or time_s")
    width, height = given.get("width_px", ""), given.get("height_px", "")
    stated = (int(float(width)), int(float(height))) if width and height else None
    box = _edges(given, stated, asked, video)
    tags = original(given.get("tags", ""))
    return Row(
        **known,  # type: ignore[arg-type]
        size_wh=asked.size_of(video, stated),
        box=box,
        tags=tuple(tags.split("; ")) if tags else (),
        line=line,
    )


def _number(text: str, name: str, kind: type[int] | type[float]) -> int | float:
    try:
        return kind(float(text))
    except (ValueError, OverflowError) as error:
        raise RowError(f"{name} is no number: {text[:40]}") from error


def _edges(
    given: dict[str, str], stated: tuple[int, int] | None, asked: Asked, video: str
) -> tuple[float, float, float, float] | None:
    names = next((some for some in (EDGES, *_LOOSE_EDGES) if set(some) <= given.keys()), None)
    if names is None:
        raise RowError("there are no columns for the box, such as x0_px y0_px x1_px y1_px")
    cells = [given[name].strip() for name in names]
    if not any(cells):
        return None
    space: Space | None = "pixels" if names == EDGES else asked.space
    if space is None:
        raise RowError("the columns do not say how to read the box. Give --space")
    return placed(
        numbers_of([cell.replace("\u2212", "-") for cell in cells]),
        space=space,
        stated_wh=stated,
        asked=asked,
        video=video,
    )

"""YOLO: one text a frame, class and centre, width, height as fractions."""

import json
import re
from pathlib import PurePath

from refinerank_core.errors import FormatError
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
    stem,
)

HELD = ("frame_index", "box", "label")
_PLACE = re.compile(r"(?P<video>.+)_(?P<frame>\d+)$")


def write(rows: list[Row]) -> Written:
    """`labels/<video>_<frame>.txt`, an empty one where the target is not there, and `data.yaml`."""
    usable = [row for row in rows if row.frame_index is not None and row.size_wh]
    labels = sorted({row.label or UNLABELLED for row in usable if row.box})
    texts: dict[str, list[str]] = {}
    for row in usable:
        lines = texts.setdefault(f"labels/{stem(row.video)}_{row.frame_index:06d}.txt", [])
        if row.box is not None and row.size_wh is not None:
            (x0, y0, x1, y1), (width, height) = row.box, row.size_wh
            shares = (
                (x0 + x1) / 2 / width,
                (y0 + y1) / 2 / height,
                (x1 - x0) / width,
                (y1 - y0) / height,
            )
            number = labels.index(row.label or UNLABELLED)
            lines.append(" ".join([str(number), *(f"{share:.9f}" for share in shares)]))
    files = {name: "".join(f"{line}\n" for line in lines) for name, lines in texts.items()}
    files["data.yaml"] = (
        "path: .\ntrain: images\nval: images\n"
        f"nc: {len(labels)}\nnames: {json.dumps(labels, ensure_ascii=False)}\n"
    )
    left_out = len(rows) - len(usable)
    also = [f"{left_out} rows without a frame or its size are left out"] if left_out else []
    if usable:
        also.append("videos keep the stem of their name only, frame sizes are not held")
    held = (*HELD, "video", "size_wh")
    return Written(
        {name: text.encode() for name, text in sorted(files.items())}, losses(rows, held, *also)
    )


def read(files: dict[str, bytes], asked: Asked) -> Reading:
    """Read label texts and `data.yaml` (or `classes.txt`); the frame sizes come from `asked`."""
    names = _names(files)
    rows: list[Row] = []
    faults: list[Fault] = []
    for name in sorted(files):
        path = PurePath(name)
        if path.suffix != ".txt" or path.name == "classes.txt":
            continue
        place = _PLACE.match(path.stem)
        if place is None:
            faults.append(Fault(1, f"{path.name}: the name does not end in _ and a frame number"))
            continue
        for number, line in enumerate(files[name].decode("utf-8-sig").splitlines(), start=1):
            try:
                if line.strip():
                    rows.append(_row(line, place, names, number, asked))
            except RowError as error:
                faults.append(Fault(number, f"{path.name}: {error}"))
    return Reading(tuple(rows), tuple(faults))


def _names(files: dict[str, bytes]) -> list[str]:
    """Class names in order: a list, or lines of the form `- name` or `0: name`."""
    by_name = {PurePath(name).name: content for name, content in files.items()}
    if "classes.txt" in by_name:
        return by_name["classes.txt"].decode("utf-8-sig").splitlines()
    if "data.yaml" not in by_name:
        raise FormatError("There is no data.yaml or classes.txt with the names of the classes.")
    text = by_name["data.yaml"].decode("utf-8-sig")
    inline = re.search(r"^names:\s*(\[.*\])\s*$", text, re.MULTILINE)
    if inline:
        try:
            return [str(name) for name in json.loads(inline[1])]
        except json.JSONDecodeError:
            return [name.strip().strip("'\"") for name in inline[1][1:-1].split(",")]
    block = re.search(r"^names:\s*\n((?:\s*(?:-|\d+:)\s*.+\n?)+)", text, re.MULTILINE)
    if block is None:
        raise FormatError("data.yaml does not list the names of the classes.")
    lines = re.findall(r"^\s*(?:-|\d+:)\s*(.+?)\s*$", block[1], re.MULTILINE)
    return [name.strip("'\"") for name in lines]


def _row(line: str, place: re.Match[str], names: list[str], number: int, asked: Asked) -> Row:
    words = line.split()
    if len(words) not in (5, 6):
        raise RowError(f"a line has a class and four numbers, got {len(words)} words")
    if not words[0].isdigit() or int(words[0]) >= len(names):
        raise RowError(f"class {words[0]} is not named in data.yaml")
    video = place["video"]
    size_wh = asked.size_of(video, None)
    cx, cy, across, down = numbers_of(words[1:5])
    if size_wh is None:
        raise RowError("fractions need the frame's size. Give the video or --size")
    width, height = size_wh
    corners = (
        (cx - across / 2) * width,
        (cy - down / 2) * height,
        (cx + across / 2) * width,
        (cy + down / 2) * height,
    )
    return Row(
        video=video,
        frame_index=based(int(place["frame"]), asked, own_base=0, video=video),
        size_wh=size_wh,
        box=placed(corners, space="pixels", stated_wh=size_wh, asked=asked, video=video),
        label=names[int(words[0])],
        score=numbers_of(words[5:])[0] if len(words) == 6 else None,
        line=number,
    )

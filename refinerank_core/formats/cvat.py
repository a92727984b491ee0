"""CVAT for video 1.1: one XML a video, a track a row, frames from 0."""

from collections.abc import Iterable
from typing import Any
from xml.parsers.expat import ExpatError, ParserCreate
from xml.sax.saxutils import escape, quoteattr

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

_ATTRIBUTES = ("question", "method", "status", "reviewer", "comment", "case_id")
HELD = ("video", "frame_index", "size_wh", "frames", "box", "label", *_ATTRIBUTES)


def write(rows: list[Row]) -> Written:
    """One file a video. A box that is followed by none is ended by an outside box."""
    files: dict[str, bytes] = {}
    for video in sorted({row.video for row in rows}):
        mine = [row for row in rows if row.video == video]
        files[f"{stem(video)}.xml"] = _document(video, mine).encode()
    unplaced = sum(row.frame_index is None for row in rows)
    empty = sum(row.box is None and row.frame_index is not None for row in rows)
    also = [f"{unplaced} rows have a time but no frame and are left out"] if unplaced else []
    also += [f"{empty} rows without a box are left out"] if empty else []
    return Written(files, losses(rows, HELD, *also))


def _document(video: str, rows: list[Row]) -> str:
    placed_rows = [row for row in rows if row.frame_index is not None and row.box is not None]
    width, height = next((row.size_wh for row in rows if row.size_wh), (0, 0))
    known = [row.frame_index + 1 for row in rows if row.frame_index is not None]
    frames = max([row.frames for row in rows] + known)
    labels = sorted({row.label or UNLABELLED for row in placed_rows})
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        "<annotations>",
        "  <version>1.1</version>",
        "  <meta><task>",
        f"    <name>{_text(stem(video))}</name>",
        f"    <size>{frames}</size><mode>interpolation</mode><overlap>0</overlap>",
        f"    <start_frame>0</start_frame><stop_frame>{max(frames - 1, 0)}</stop_frame>",
        "    <labels>",
        *(_label(label) for label in labels),
        "    </labels>",
        f"    <original_size><width>{width}</width><height>{height}</height></original_size>",
        f"    <source>{_text(video)}</source>",
        "  </task></meta>",
    ]
    for number, row in enumerate(placed_rows):
        lines += _track(number, row, frames)
    return "\n".join([*lines, "</annotations>", ""])


def _label(label: str) -> str:
    attributes = "".join(
        f"<attribute><name>{name}</name><mutable>False</mutable><input_type>text</input_type>"
        "<default_value></default_value><values></values></attribute>"
        for name in _ATTRIBUTES
    )
    return f"      <label><name>{_text(label)}</name><attributes>{attributes}</attributes></label>"


def _track(number: int, row: Row, frames: int) -> Iterable[str]:
    label = _attribute(row.label or UNLABELLED)
    yield f'  <track id="{number}" label={label} source="manual">'
    index = row.frame_index or 0
    yield from _box(row, index, outside=False)
    if index + 1 < frames:
        yield from _box(row, index + 1, outside=True)
    yield "  </track>"


def _box(row: Row, frame: int, *, outside: bool) -> Iterable[str]:
    names = ("xtl", "ytl", "xbr", "ybr")
    edges = " ".join(f'{name}="{edge!r}"' for name, edge in zip(names, row.box or (), strict=False))
    yield (
        f'    <box frame="{frame}" keyframe="1" outside="{int(outside)}" occluded="0" '
        f'{edges} z_order="0">'
    )
    for name in _ATTRIBUTES:
        if getattr(row, name):
            yield f'      <attribute name="{name}">{_text(getattr(row, name))}</attribute>'
    yield "    </box>"


def _text(text: str) -> str:
    return escape(_visible(text), {"\r": "&#13;"})


def _attribute(text: str) -> str:
    return quoteattr(_visible(text), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def _visible(text: str) -> str:
    """Without the control characters that XML cannot hold."""
    return "".join(one for one in text if one >= " " or one in "\n\r\t")


def read(files: dict[str, bytes], asked: Asked) -> Reading:
    """Read video tracks; boxes marked outside end a track and are no rows."""
    rows: list[Row] = []
    faults: list[Fault] = []
    notes: list[str] = []
    for name, content in files.items():
        reader = _Reader(name, asked)
        rows += reader.read(content)
        faults += reader.faults
        if reader.images:
            notes.append(f"{name}: {reader.images} images are no video tracks and were left out")
    return Reading(tuple(rows), tuple(faults), tuple(notes))


class _Reader:
    """Walks one document; nothing of it is trusted."""

    def __init__(self, name: str, asked: Asked) -> None:
        self.faults: list[Fault] = []
        self.images = 0
        self._asked = asked
        self._rows: list[Row] = []
        self._path: list[str] = []
        self._texts: dict[str, str] = {}
        self._label = ""
        self._open: dict[str, Any] = {}
        self._name = stem(name)
        self._parser = ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters

    def read(self, content: bytes) -> list[Row]:
        try:
            self._parser.Parse(content, True)
        except ExpatError as error:
            raise FormatError(f"Not XML: line {error.lineno}. Export the task again.") from error
        return self._rows

    def _refuse(self, *_: object) -> None:
        raise FormatError("The XML declares entities, which CVAT does not do. It was not read.")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._path.append(tag)
        self._texts["/".join(self._path)] = ""
        if tag == "track":
            self._label = attributes.get("label", "")
        elif tag == "image":
            self.images += 1
        elif tag == "box" and "track" in self._path:
            self._open = {"at": attributes, "line": self._parser.CurrentLineNumber, "facts": {}}
        elif tag == "attribute" and self._open:
            self._open["name"] = attributes.get("name", "")

    def _characters(self, text: str) -> None:
        self._texts["/".join(self._path)] += text

    def _end(self, tag: str) -> None:
        text = self._texts["/".join(self._path)]
        self._path.pop()
        if tag == "attribute" and self._open:
            self._open["facts"][self._open["name"]] = text
        elif tag == "box" and self._open:
            try:
                if self._open["at"].get("outside") != "1":
                    self._rows.append(self._row(self._open))
            except (RowError, ValueError) as error:
                self.faults.append(Fault(self._open["line"], str(error)))
            self._open = {}

    def _meta(self, name: str) -> str:
        """A fact about the task or job, wherever this version of CVAT puts it."""
        found = (text for path, text in self._texts.items() if path.endswith(f"/{name}"))
        return next((text for text in found if text.strip()), "")

    def _row(self, box: dict[str, Any]) -> Row:
        at = box["at"]
        video = self._meta("source") or self._name
        sides = self._meta("original_size/width"), self._meta("original_size/height")
        stated = (int(sides[0]), int(sides[1])) if all(sides) and "0" not in sides else None
        size = self._meta("task/size")
        try:
            frame = int(at["frame"])
            edges = [at[name] for name in ("xtl", "ytl", "xbr", "ybr")]
        except (KeyError, ValueError) as error:
            raise RowError("a box needs frame, xtl, ytl, xbr and ybr") from error
        if float(at.get("rotation", "0")) != 0:
            raise RowError("the box is turned; only upright boxes can be read")
        facts = {name: box["facts"][name] for name in _ATTRIBUTES if box["facts"].get(name)}
        return Row(
            video=video,
            frame_index=based(frame, self._asked, own_base=0, video=video),
            size_wh=self._asked.size_of(video, stated),
            frames=int(size) if size.strip().isdigit() else 0,
            box=placed(
                numbers_of(edges),
                space=self._asked.space or "pixels",
                stated_wh=stated,
                asked=self._asked,
                video=video,
            ),
            label=self._label,
            line=box["line"],
            **facts,
        )

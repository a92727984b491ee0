"""What every format is written from and read into: one row, one box at one time of one video."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import inf
from pathlib import PurePath

import numpy as np

from refinerank_core.boxes import Corners, Space, clip_to_frame, convert

UNLABELLED = "target"
"""Class name where a row has no label and the format needs one."""


@dataclass(frozen=True)
class Row:
    """One box (or none) at one time.

    Attributes:
        video: its name. frame_index: 0-based. time_s: requested time. frame_s: the frame's own.
        size_wh: display pixels; every box is in them. None: the file does not say.
        frames: length of the video, 0 where not known.
        box: None where the target is not in the frame or nothing was answered.
        label: what the box is called. question: what was asked.
        method: who made the box: a method, or "review" for a person's.
        line: where it was read, 1-based; 0 where it was not.
    """

    video: str
    frame_index: int | None = None
    time_s: float | None = None
    frame_s: float | None = None
    size_wh: tuple[int, int] | None = None
    frames: int = 0
    video_sha256: str = ""
    box: Corners | None = None
    label: str = ""
    question: str = ""
    method: str = ""
    score: float | None = None
    dataset: str = ""
    procedure: str = ""
    row_id: str = ""
    qa_type: str = ""
    case_id: str = ""
    status: str = ""
    reviewer: str = ""
    decided_at: str = ""
    best: str = ""
    confidence: int | None = None
    tags: tuple[str, ...] = ()
    comment: str = ""
    seconds: float = 0.0
    line: int = 0


FIELDS = tuple(field.name for field in fields(Row) if field.name != "line")
_EMPTY = (None, "", (), 0, 0.0)


@dataclass(frozen=True)
class Written:
    """An export.

    Attributes:
        files: name -> content; formats of one file have one.
        losses: sentences on what the format cannot hold, with counts.
    """

    files: Mapping[str, bytes]
    losses: tuple[str, ...]


@dataclass(frozen=True)
class Fault:
    """A line that was not imported, and why."""

    line: int
    text: str


@dataclass(frozen=True)
class Reading:
    """An import.

    Attributes:
        rows: the good lines. faults: the bad ones.
        notes: sentences on what was mended or assumed.
    """

    rows: tuple[Row, ...]
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Asked:
    """What the person who imports says about the file.

    Attributes:
        space: how its numbers are to be read; None: as the format itself declares.
        frame_base: number that the file gives to the first frame; None: as the format declares.
        sizes: video stem -> real frame size; checked against what the file says.
        frames: video stem -> real number of frames.
        rescale: where the file was made on another picture size, scale instead of refusing.
        method: who made the boxes.
        any_size: frame size of every video that sizes does not name.
    """

    space: Space | None = None
    frame_base: int | None = None
    sizes: Mapping[str, tuple[int, int]] | None = None
    frames: Mapping[str, int] | None = None
    rescale: bool = False
    method: str = ""
    any_size: tuple[int, int] | None = None

    def size_of(self, video: str, stated: tuple[int, int] | None) -> tuple[int, int] | None:
        """The real frame size of a video, else the stated one."""
        return (self.sizes or {}).get(stem(video), self.any_size or stated)


class RowError(ValueError):
    """One line cannot be imported; the text says why."""


def stem(name: str) -> str:
    """A video's name without folders and suffix."""
    pure = PurePath(name.replace("\\", "/"))
    return pure.stem if pure.suffix else pure.name


def losses(rows: Iterable[Row], held: Iterable[str], *also: str) -> tuple[str, ...]:
    """Say which fields of these rows a format has no place for."""
    missing = [name for name in FIELDS if name not in set(held)]
    everything = list(rows)
    sentences = list(also)
    for name in missing:
        count = sum(getattr(row, name) not in _EMPTY for row in everything)
        if count:
            sentences.append(f"{name.replace('_', ' ')} of {count} rows is not in this format")
    return tuple(sentences)


def placed(
    numbers: Sequence[float],
    *,
    space: Space,
    stated_wh: tuple[int, int] | None,
    asked: Asked,
    video: str,
) -> Corners:
    """Turn the numbers of a file into corners inside the real frame.

    Args:
        numbers: four, in the file's space.
        space: how they are to be read.
        stated_wh: frame size that the file says it was made on.
        asked: what the importing person said.
        video: whose frame it is.

    Raises:
        RowError: no four numbers, no size to read fractions by, another picture size, a box
            without area or wholly outside.
    """
    if len(numbers) != 4:
        raise RowError(f"a box has four numbers, got {len(numbers)}")
    size_wh = asked.size_of(video, stated_wh)
    made_on = stated_wh or size_wh
    if size_wh is None or made_on is None:
        if space not in ("pixels", "pixels_xywh"):
            raise RowError("fractions need the frame's size. Give the video or --size")
        corners = _corners(numbers, space)
        if not (corners[0] < corners[2] and corners[1] < corners[3]):
            raise RowError(f"the box has no area: {list(numbers)}")
        return corners
    if made_on != size_wh and not asked.rescale:
        raise RowError(
            f"made on {made_on[0]}x{made_on[1]}, but the frame is {size_wh[0]}x{size_wh[1]}. "
            "Import with --rescale to scale the boxes"
        )
    if space in ("pixels", "pixels_xywh"):
        corners = _corners(numbers, space)
    else:
        x0, y0, x1, y1 = convert(
            np.array(numbers), source=space, target="pixels", size_wh=made_on
        ).tolist()
        corners = (x0, y0, x1, y1)
    if made_on != size_wh:
        across, down = size_wh[0] / made_on[0], size_wh[1] / made_on[1]
        x0, y0, x1, y1 = corners
        corners = (x0 * across, y0 * down, x1 * across, y1 * down)
    return _inside(corners, size_wh)


def _corners(numbers: Sequence[float], space: Space) -> Corners:
    x0, y0, x1, y1 = (float(number) for number in numbers)
    return (x0, y0, x0 + x1, y0 + y1) if space == "pixels_xywh" else (x0, y0, x1, y1)


def _inside(corners: Corners, size_wh: tuple[int, int]) -> Corners:
    """Cut off what overhangs; exact where nothing does."""
    if not (corners[0] < corners[2] and corners[1] < corners[3]):
        raise RowError(f"the box has no area: {[round(edge, 3) for edge in corners]}")
    _, valid = clip_to_frame(np.array([corners]), size_wh=size_wh, overhang=inf)
    if not valid[0]:
        raise RowError(f"the box lies outside the {size_wh[0]}x{size_wh[1]} frame")
    x0, y0, x1, y1 = corners
    width, height = size_wh
    return (max(x0, 0.0), max(y0, 0.0), min(x1, float(width)), min(y1, float(height)))


def based(number: int, asked: Asked, *, own_base: int, video: str) -> int:
    """The 0-based index of a frame that a file numbers in its own way.

    Raises:
        RowError: there is no such frame; off by one where the other base would fit.
    """
    base = own_base if asked.frame_base is None else asked.frame_base
    index = number - base
    count = (asked.frames or {}).get(stem(video))
    if index < 0:
        raise RowError(f"frame {number} lies before the first frame, which is {base}")
    if count is not None and index >= count:
        off = " The file may count from 1: import with --frame-base 1" if index == count else ""
        raise RowError(f"frame {number} is past the last frame, {count - 1 + base}.{off}")
    return index


def numbers_of(values: object) -> list[float]:
    """Four numbers, or texts of numbers, as floats.

    Raises:
        RowError: something else.
    """
    if not isinstance(values, list | tuple):
        raise RowError("the box is not a list of numbers")
    try:
        found = [float(value) for value in values]
    except (TypeError, ValueError) as error:
        raise RowError(f"the box holds something that is no number: {values}") from error
    if not all(abs(number) < inf for number in found):
        raise RowError("the box holds a number that is not finite")
    return found

"""A model's text to timed boxes, from there to the frame and to the requested times, and back."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import Literal, get_args

import numpy as np

from refinerank_core.answer_reader import AnswerReader
from refinerank_core.boxes import Corners, clip_to_frame, rescale

AnswerSpace = Literal["pixels", "resized", "thousand", "unit"]
"""How a model counts: pixels of the frame, pixels of the picture as its processor resized it,
thousandths of the frame, or fractions of it. A profile states it; it is never guessed."""

_TIME_SLACK_S = 1e-6  # times that were written and read back may differ in the last digit


@dataclass(frozen=True)
class AnswerBox:
    """One box of an answer.

    Attributes:
        corners: x0, y0, x1, y1; x0 < x1 and y0 < y1.
        time_s: the time that the answer gives it, None where it gives none.
        label: what the answer calls it, "" where it does not say.
    """

    corners: Corners
    time_s: float | None = None
    label: str = ""


@dataclass(frozen=True)
class ParsedAnswer:
    """What could be read out of a model's text.

    Attributes:
        boxes: in reading order, in the space of the model until `to_frame_boxes`.
        repaired: boxes or times that were mended (a bracket put right, a decimal comma).
        unread: groups of numbers that are no box, and clock times that do not exist.
        truncated: the text stops in the middle; what came whole before is in boxes.
        outside: boxes dropped because nothing of them lies in the frame (`to_frame_boxes`).
    """

    boxes: tuple[AnswerBox, ...] = ()
    repaired: int = 0
    unread: int = 0
    truncated: bool = False
    outside: int = 0

    @property
    def timed(self) -> tuple[tuple[float, Corners], ...]:
        """(time in seconds, corners) of the boxes that have a time."""
        return tuple((box.time_s, box.corners) for box in self.boxes if box.time_s is not None)

    @property
    def untimed(self) -> tuple[Corners, ...]:
        """Corners of the boxes without a time."""
        return tuple(box.corners for box in self.boxes if box.time_s is None)

    @property
    def labels(self) -> tuple[str, ...]:
        """The label of each box."""
        return tuple(box.label for box in self.boxes)

    def times_after(self, end_s: float) -> tuple[float, ...]:
        """The times past the end of the video, as the answer gave them."""
        return tuple(time for time, _ in self.timed if time > end_s)


def parse_answer(text: str) -> ParsedAnswer:
    """Read the boxes of an answer, whatever its form; no text is an error.

    Understood are "12.5 seconds: [x0, y0, x1, y1]" with its variants (s, clock times, any
    separators, one lost or wrong bracket), JSON with or without fence (bbox_2d, label, a time key,
    times as keys), older box tokens, and all of these inside prose. Thoughts are skipped. Values
    are neither clipped nor reordered; a box without a time never takes one from its position.

    Args:
        text: what the model wrote.

    Returns:
        The boxes found, none of them when nothing reads as one, and counts of what was mended or
        left unread.
    """
    reader = AnswerReader(text)
    return ParsedAnswer(
        boxes=tuple(AnswerBox(box.corners, box.time_s, box.label) for box in reader.boxes),
        repaired=reader.repaired,
        unread=reader.unread,
        truncated=reader.truncated,
    )


def map_box(
    corners: Corners,
    *,
    space: AnswerSpace,
    resized_wh: tuple[int, int],
    frame_wh: tuple[int, int],
) -> Corners | None:
    """Carry one box from the model's space to the frame: clip there first, then map each axis.

    Args:
        corners: x0, y0, x1, y1 as the model wrote them.
        space: how the model counts.
        resized_wh: width and height of this picture after the processor, from its own grid; used
            by the space "resized" only.
        frame_wh: width and height of this picture in the video.

    Returns:
        Corners in pixels of the frame, inside it; None when no part of the box is.

    Raises:
        ValueError: an unknown space, or a size that is not positive.
    """
    if space not in get_args(AnswerSpace):
        raise ValueError(f"space must be one of {get_args(AnswerSpace)}, got {space!r}")
    sizes = {"pixels": frame_wh, "resized": resized_wh, "thousand": (1000, 1000), "unit": (1, 1)}
    box = np.array([corners], dtype=np.float64)
    inside, valid = clip_to_frame(box, size_wh=sizes[space], overhang=inf)
    if not valid[0]:
        return None
    x0, y0, x1, y1 = rescale(inside, from_wh=sizes[space], to_wh=frame_wh)[0].tolist()
    return x0, y0, x1, y1


def to_frame_boxes(
    parsed: ParsedAnswer,
    *,
    space: AnswerSpace,
    resized_wh: tuple[int, int],
    frame_wh: tuple[int, int],
) -> ParsedAnswer:
    """Carry all boxes of an answer to the frame; see `map_box`.

    Pictures of different sizes in one prompt need one call of `map_box` each, with the sizes of
    the picture that the box is on.

    Returns:
        The answer with boxes in pixels of the frame; those wholly outside are dropped and counted.
    """
    kept = []
    for box in parsed.boxes:
        corners = map_box(box.corners, space=space, resized_wh=resized_wh, frame_wh=frame_wh)
        if corners is not None:
            kept.append(replace(box, corners=corners))
    outside = parsed.outside + len(parsed.boxes) - len(kept)
    return replace(parsed, boxes=tuple(kept), outside=outside)


def match_times(
    parsed: ParsedAnswer, requested_s: Sequence[float], *, tolerance_s: float
) -> tuple[Corners | None, ...]:
    """Give each requested time the answer nearest to it.

    The closest pairs are made first; each answer serves one time. Of equally close ones the
    earlier requested time and the earlier answer come first. A single box without a time answers
    a single requested time; several without times are reported by `ParsedAnswer.untimed` and
    given to none, since their order proves nothing.

    Args:
        parsed: the answer.
        requested_s: K requested times in seconds.
        tolerance_s: how far an answer may lie from a requested time.

    Returns:
        K corners or None, in the order of requested_s.
    """
    chosen: list[Corners | None] = [None] * len(requested_s)
    if len(requested_s) == 1 and len(parsed.boxes) == 1 and parsed.untimed:
        return parsed.untimed
    timed = parsed.timed
    rows = sorted(range(len(timed)), key=lambda row: timed[row][0])
    times = [timed[row][0] for row in rows]
    reach = tolerance_s + _TIME_SLACK_S
    pairs = sorted(
        (round(abs(timed[row][0] - wanted), 6), place, row)
        for place, wanted in enumerate(requested_s)
        for row in rows[bisect_left(times, wanted - reach) : bisect_right(times, wanted + reach)]
    )
    used: set[int] = set()
    for _, place, row in pairs:
        if chosen[place] is None and row not in used:
            chosen[place] = timed[row][1]
            used.add(row)
    return tuple(chosen)


def format_answer(times_s: Sequence[float], boxes: Sequence[Corners | None]) -> str:
    """Write timed boxes as MedVidBench wants a prediction; `parse_answer` reads them back.

    Args:
        times_s: K times in seconds, written so that they read back exactly.
        boxes: K corners, written to a thousandth; None leaves its time out.

    Returns:
        "12.5 seconds: [x0, y0, x1, y1] 16.5 seconds: [...]", "" for no box.

    Raises:
        ValueError: the lengths differ, or a number is not finite.
    """
    if len(times_s) != len(boxes):
        raise ValueError(f"each time needs one box or None, got {len(times_s)} and {len(boxes)}")
    parts = []
    for time, box in zip(times_s, boxes, strict=True):
        if box is None:
            continue
        if not all(isfinite(number) for number in (time, *box)):
            raise ValueError(f"times and boxes must be finite, got {time} and {box}")
        parts.append(f"{float(time)} seconds: [{', '.join(_written(edge) for edge in box)}]")
    return " ".join(parts)


def _written(edge: float) -> str:
    """At most three decimals, no "-0"."""
    digits = f"{edge:.3f}".rstrip("0").rstrip(".")
    return "0" if digits == "-0" else digits

"""The direct baseline's words become one box, or none, for each requested time."""

from collections.abc import Sequence
from itertools import pairwise

from refinerank_core.answers import AnswerSpace, match_times, parse_answer, to_frame_boxes
from refinerank_core.grounding import Box

_TOLERANCE_S = 0.5


def direct_answers(
    text: str,
    requested_s: Sequence[float],
    *,
    space: AnswerSpace,
    resized_wh: tuple[int, int],
    frame_wh: tuple[int, int],
) -> tuple[list[Box | None], list[str]]:
    """Read the MedVLM's answer.

    An answer counts for a requested time when it lies within half the smallest distance of two
    requested times, and within 0.5 s.

    Args:
        text: what the model wrote.
        requested_s: K requested times in ascending order.
        space: how the model counts pixels.
        resized_wh: size at which its processor showed the frames.
        frame_wh: size of the frames.

    Returns:
        K boxes in pixels of the frame or None, and sentences on what could not be used.
    """
    parsed = to_frame_boxes(
        parse_answer(text), space=space, resized_wh=resized_wh, frame_wh=frame_wh
    )
    gaps = [after - before for before, after in pairwise(requested_s)]
    matched = match_times(
        parsed, requested_s, tolerance_s=min([_TOLERANCE_S, *(g / 2 for g in gaps)])
    )
    remarks = []
    if parsed.outside:
        remarks.append(f"The MedVLM wrote {parsed.outside} box(es) outside the frame: dropped.")
    if parsed.truncated:
        remarks.append("The MedVLM's answer was cut at its length limit: whole boxes were kept.")
    if parsed.repaired:
        remarks.append(f"The MedVLM's answer had {parsed.repaired} malformed place(s), mended.")
    boxes: list[Box | None] = [
        None if box is None else (float(box[0]), float(box[1]), float(box[2]), float(box[3]))
        for box in matched
    ]
    return boxes, remarks

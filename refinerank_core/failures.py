"""Why an answer failed: one category for each requested time.

Categories exclude one another; the first that fits holds (FAILURES in words: no box; good enough;
nothing good was proposed; the filter dropped it; the refinement spoiled it; the ranking missed it).
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from refinerank_core.boxes import Boxes, Corners, iou

Category = Literal[
    "format", "correct", "candidate miss", "filter miss", "refinement harm", "ranking miss"
]
CATEGORIES: tuple[Category, ...] = (
    "format",
    "correct",
    "candidate miss",
    "filter miss",
    "refinement harm",
    "ranking miss",
)
TAU = 0.5
NEAR = 0.1
"""Least IoU at which a box that is not good enough still touches the target."""

SMALL_SHARE = 0.01  # of the frame's area
FULL_SHARE = 0.95  # of the frame's area: "the whole picture" is no answer
SAME_BOX = 0.95  # IoU from which a box is a copy of the reference
EDGE_PX = 1.0
OUTSIDE_PX = 2.5  # as far as a box may overhang and be snapped to the edge

_NO_BOXES = np.zeros((0, 4), dtype=np.float32)


@dataclass(frozen=True)
class Neighbour:
    """Another annotated thing in the frame, such as the other hand."""

    box: Corners
    label: str = ""


@dataclass(frozen=True, eq=False)
class Attempt:
    """What one method did at one requested time.

    Attributes:
        chosen: its answer; None when none could be read.
        parent: the original of a chosen refined box; None when the answer is an original.
        pool: (N, 4) every box that could have been chosen before any filter, refined ones too.
        kept: (K, 4) those that the filter left.
        filled: the answer is the previous time's, repeated.
        reference: the box that the question itself showed (sequence tasks).
        wrong_image: the answer is about another picture of the sequence.
    """

    chosen: Corners | None
    parent: Corners | None = None
    pool: Boxes = field(default_factory=lambda: _NO_BOXES)
    kept: Boxes = field(default_factory=lambda: _NO_BOXES)
    filled: bool = False
    reference: Corners | None = None
    wrong_image: bool = False

    @classmethod
    def single(cls, box: Corners | None, *, filled: bool = False) -> "Attempt":
        """Of a method without a pool: its one box is all it had."""
        boxes = _NO_BOXES if box is None else np.array([box], dtype=np.float32)
        return cls(chosen=box, pool=boxes, kept=boxes, filled=filled)


@dataclass(frozen=True)
class Scene:
    """What is true of the frame.

    Attributes:
        truth: the annotated or reviewed box.
        size_wh: display pixels of the frame.
        label: what the target is called.
        others: further annotated things in the frame.
        phrases: what the detector was asked for; empty: not known.
    """

    truth: Corners
    size_wh: tuple[int, int]
    label: str = ""
    others: tuple[Neighbour, ...] = ()
    phrases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """The category of one attempt.

    Attributes:
        category, sub_tag: sub_tag refines the category, "" where it has none.
        iou: of the answer. parent_iou: of its original, equal to iou where it is one.
        best_iou: of the best box of the whole pool. kept_iou: of the best after the filter.
        tags: secondary tags, in a fixed order.
    """

    category: Category
    sub_tag: str
    iou: float
    parent_iou: float
    best_iou: float
    kept_iou: float
    tags: tuple[str, ...] = ()


def classify(attempt: Attempt, scene: Scene, *, tau: float = TAU) -> Verdict:
    """Say why an attempt failed, or that it did not.

    Args:
        attempt: what the method did. The answer and its parent count as members of the pool.
        scene: what is true.
        tau: IoU from which an answer is correct.
    """
    chosen = _overlap(attempt.chosen, scene.truth)
    parent = chosen if attempt.parent is None else _overlap(attempt.parent, scene.truth)
    kept = max(_best(attempt.kept, scene.truth), chosen)
    best = max(_best(attempt.pool, scene.truth), kept, parent)
    category, sub_tag = _category(attempt, scene, chosen, parent, best, kept, tau)
    return Verdict(
        category=category,
        sub_tag=sub_tag,
        iou=chosen,
        parent_iou=parent,
        best_iou=best,
        kept_iou=kept,
        tags=_tags(attempt, scene, chosen, parent, tau),
    )


def _category(
    attempt: Attempt,
    scene: Scene,
    chosen: float,
    parent: float,
    best: float,
    kept: float,
    tau: float,
) -> tuple[Category, str]:
    if attempt.chosen is None:
        return "format", ""
    if chosen >= tau:
        rescued = attempt.parent is not None and parent < tau
        return "correct", "rescued by refinement" if rescued else "as original"
    if best < tau:
        return "candidate miss", "near" if best >= NEAR else "absent"
    if kept < tau:
        return "filter miss", ""
    if attempt.parent is not None and parent >= tau:
        return "refinement harm", ""
    if any(_overlap(attempt.chosen, other.box) >= tau for other in scene.others):
        return "ranking miss", "wrong instance"
    return "ranking miss", "localisation" if chosen >= NEAR else "background"


def _tags(
    attempt: Attempt, scene: Scene, chosen: float, parent: float, tau: float
) -> tuple[str, ...]:
    width, height = scene.size_wh
    x0, y0, x1, y1 = scene.truth
    facts = {
        "query wrong": _query_wrong(scene),
        "hand side or owner confused": _hand_confused(attempt.chosen, scene, tau),
        "small target": (x1 - x0) * (y1 - y0) < SMALL_SHARE * width * height,
        "cut by the frame edge": min(x0, y0, width - x1, height - y1) <= EDGE_PX,
        "lost by refinement": chosen >= tau and parent - chosen >= 0.1,
        "filled from the previous time": attempt.filled,
        "copied reference box": _is_copy(attempt.chosen, attempt.reference),
        "full-image box": _share(attempt.chosen, scene.size_wh) >= FULL_SHARE,
        "out of canvas": _outside(attempt.chosen, scene.size_wh),
        "wrong image": attempt.wrong_image,
    }
    return tuple(name for name, holds in facts.items() if holds)


SECONDARY_TAGS = (
    "query wrong",
    "hand side or owner confused",
    "small target",
    "cut by the frame edge",
    "lost by refinement",
    "filled from the previous time",
    "copied reference box",
    "full-image box",
    "out of canvas",
    "wrong image",
)


def _overlap(box: Corners | None, truth: Corners) -> float:
    return 0.0 if box is None else float(iou(np.array(box), np.array(truth)))


def _best(boxes: Boxes, truth: Corners) -> float:
    return float(iou(boxes, np.array(truth)).max()) if len(boxes) else 0.0


def _query_wrong(scene: Scene) -> bool:
    """No phrase shares a word with the target's name."""
    wanted = set(scene.label.casefold().split())
    asked = {word for phrase in scene.phrases for word in phrase.casefold().split()}
    return bool(wanted and asked) and not wanted & asked


_SIDES = frozenset("left right own other operator assistant surgeon first second".split())


def _hand_confused(chosen: Corners | None, scene: Scene, tau: float) -> bool:
    """The answer lies on a thing whose name differs from the target's in side or owner only."""
    kind = set(scene.label.casefold().split())
    if not kind & {"hand", "hands"}:
        return False
    return any(
        _overlap(chosen, other.box) >= tau
        and set(other.label.casefold().split()) != kind
        and set(other.label.casefold().split()) - _SIDES == kind - _SIDES
        for other in scene.others
    )


def _is_copy(chosen: Corners | None, reference: Corners | None) -> bool:
    return reference is not None and _overlap(chosen, reference) >= SAME_BOX


def _share(box: Corners | None, size_wh: tuple[int, int]) -> float:
    """Share of the frame that the visible part of a box covers."""
    if box is None:
        return 0.0
    width, height = size_wh
    across = max(min(box[2], width) - max(box[0], 0.0), 0.0)
    down = max(min(box[3], height) - max(box[1], 0.0), 0.0)
    return across * down / (width * height)


def _outside(box: Corners | None, size_wh: tuple[int, int]) -> bool:
    if box is None:
        return False
    width, height = size_wh
    overhang = max(-box[0], -box[1], box[2] - width, box[3] - height)
    return overhang > OUTSIDE_PX

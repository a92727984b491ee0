"""What each cell of a picture shows: the targets of the tower's temporary dense heads."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np

from refinerank_core.phantom.pointers import ASKED_STRUCTURES
from refinerank_core.phantom.truth import FrameTruth, ObjectTruth
from refinerank_core.phantom.vocabulary import ACTIONS, LADDERS

UNKNOWN = -100  # the class number that cross entropy leaves out
NAMES = tuple(LADDERS)
NOTHING = len(NAMES)
SIDES = ("left", "right", "top", "bottom")
HOLDERS = ("own left", "own right", "other left", "other right")
FIELDS = MappingProxyType(
    {  # what is told of a cell, and how many answers there are
        "name": len(NAMES) + 1,
        "side": len(SIDES),
        "action": len(ACTIONS) + 1,  # the last: it only moves
        "target": len(NAMES) + 1,
        "holder": len(HOLDERS),
    }
)
_MIRRORED = {"left": "right", "right": "left"}
_CELL_SHARE = 0.3  # a thing that covers this much of a cell is what the cell shows
_THING_SHARE = 0.3  # so is a thing of which this much lies in the cell


def facts_of(thing: ObjectTruth) -> np.ndarray:
    """Return the (len(FIELDS),) answers about one thing, UNKNOWN where there is none."""
    acts = thing.kind == "tool"
    holder = f"{thing.owner} {thing.hand}"
    return np.array(
        [
            NAMES.index(thing.name),
            SIDES.index(thing.side) if thing.side and thing.side_is_clear else UNKNOWN,
            _place(tuple(ACTIONS), thing.action) if acts else UNKNOWN,
            _place(NAMES, thing.target) if acts else UNKNOWN,
            HOLDERS.index(holder) if holder in HOLDERS else UNKNOWN,
        ],
        np.int64,
    )


def label_cells(truth: FrameTruth, grid_hw: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Say what each cell shows: tools before hands, hands before the structures asked for.

    Args:
        truth: of the frame.
        grid_hw: cells down and across.

    Returns:
        (h, w, len(FIELDS)) int64 answers, and (h, w, 4) float32 boxes in 0..1.
    """
    rows, columns = grid_hw
    facts = np.full((rows, columns, len(FIELDS)), UNKNOWN, np.int64)
    facts[..., 0] = NOTHING
    boxes = np.zeros((rows, columns, 4), np.float32)
    scale = np.array([columns, rows, columns, rows], np.float32) / np.tile(truth.size_wh, 2)
    nearest = np.full((rows, columns), np.inf)
    for thing in _by_rank(truth):
        box = thing.box * scale  # in cells
        across = _overlap(box[0], box[2], columns)
        down = _overlap(box[1], box[3], rows)
        share = down[:, None] * across[None, :]
        area = max(float((box[2] - box[0]) * (box[3] - box[1])), 1e-6)
        holds = (share > _CELL_SHARE) | (share > _THING_SHARE * area)
        off_x = np.arange(columns) + 0.5 - (box[0] + box[2]) / 2
        off_y = np.arange(rows) + 0.5 - (box[1] + box[3]) / 2
        rank = {"tool": 0.0, "hand": 100.0, "structure": 200.0}[thing.kind]
        distance = rank + np.hypot(off_y[:, None], off_x[None, :])
        wins = holds & (distance < nearest)
        nearest[wins] = distance[wins]
        facts[wins] = facts_of(thing)
        boxes[wins] = thing.box / np.tile(truth.size_wh, 2)
    return facts, boxes


def cells_of(box: np.ndarray, grid_hw: tuple[int, int]) -> np.ndarray:
    """Return how a box (4,) in 0..1 is shared out over cells: (h * w,) float32 that sum to 1."""
    rows, columns = grid_hw
    x0, y0, x1, y1 = box * np.array([columns, rows, columns, rows], np.float32)
    share = _overlap(y0, y1, rows)[:, None] * _overlap(x0, x1, columns)[None, :]
    share = np.where(share >= 0.5 * share.max(), share, 0.0)
    total = float(share.sum())
    if total <= 0:
        share[min(int(y0), rows - 1), min(int(x0), columns - 1)] = total = 1.0
    return np.asarray(share / total, np.float32).reshape(-1)


def mirrored(truth: FrameTruth) -> FrameTruth:
    """Return the truth of the picture seen in a mirror: left and right change places."""
    width = float(truth.size_wh[0])
    return replace(truth, objects=tuple(_mirrored(thing, width) for thing in truth.objects))


def _mirrored(thing: ObjectTruth, width: float) -> ObjectTruth:
    x0, y0, x1, y1 = thing.box
    name = thing.name
    if thing.kind == "hand":
        name = " ".join(_MIRRORED.get(word, word) for word in name.split())
    return replace(
        thing,
        name=name,
        box=np.array([width - x1, y0, width - x0, y1], np.float32),
        side=_MIRRORED.get(thing.side or "", thing.side),
        hand=_MIRRORED.get(thing.hand or "", thing.hand),
    )


def _by_rank(truth: FrameTruth) -> list[ObjectTruth]:
    return [
        thing
        for thing in truth.objects
        if thing.in_view and (thing.kind != "structure" or thing.name in ASKED_STRUCTURES)
    ]


def _overlap(low: float, high: float, count: int) -> np.ndarray:
    """Return how much of each of count unit cells lies between low and high."""
    starts = np.arange(count, dtype=np.float32)
    return np.asarray(np.clip(np.minimum(high, starts + 1) - np.maximum(low, starts), 0, 1))


def _place(words: tuple[str, ...], word: str | None) -> int:
    return words.index(word) if word in words else len(words)

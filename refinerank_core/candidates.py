"""The candidate pool of one frame: raw detections, fixed sub-boxes, or anchors when there are none.

Source: RefineRank, arXiv:2608.23928, and its released code (constants).
"""

from dataclasses import dataclass, replace

import numpy as np

from refinerank_core.boxes import clip_to_frame
from refinerank_core.structures import CandidatePool, Detections, Float32

POOL_LIMIT = 128
RAW_LIMIT = 12

_SUB_BOXES = (  # fractions of the parent x0 y0 x1 y1, factor of its confidence
    ((0.00, 0.18, 0.55, 0.52), 0.94),
    ((0.00, 0.12, 0.58, 0.48), 0.91),
    ((0.05, 0.18, 0.62, 0.56), 0.89),
)
_SUB_BOX_LEAST_PX = 64
_SUB_BOX_LEAST_SHARE = 0.06

METADATA = (
    "detector confidence",
    "temporal selection score",
    "tube coverage",
    "tube smoothness",
    "time distance",
    "exact match",
    "x0",
    "y0",
    "x1",
    "y1",
    "log area",
    "log aspect",
)
"""Names of the 12 values of f_dino; a flag for each (1 = missing) follows them."""


@dataclass(frozen=True)
class _Row:
    box: tuple[float, float, float, float]
    source: str
    phrase: str
    confidence: float
    parent: int


def build_pool(
    detections: Detections,
    size_wh: tuple[int, int],
    *,
    raw_limit: int = RAW_LIMIT,
    pool_limit: int = POOL_LIMIT,
) -> CandidatePool:
    """Everything that may be the answer, in rank order.

    A raw box at least 64 px wide and high that covers at least 6 % of the frame is followed by
    three fixed parts of itself. Boxes up to 2.5 px outside the frame snap to it; farther ones,
    degenerate ones and doubles are dropped and counted. Where nothing is left, 19 fixed anchors
    step in.

    Args:
        detections: what the detector found, best first.
        size_wh: width and height of the frame in pixels.
        raw_limit: raw detections kept at most.
        pool_limit: candidates kept at most.
    """
    rows: list[_Row] = []
    seen: set[tuple[float, ...]] = set()
    rejected = 0
    boxes, inside = clip_to_frame(detections.boxes[:raw_limit], size_wh=size_wh)
    for k, (box, good) in enumerate(zip(boxes.tolist(), inside.tolist(), strict=True)):
        key = _key(box)
        if not good or key in seen:
            rejected += 1
            continue
        seen.add(key)
        parent = len(rows)
        confidence = float(detections.scores[k])
        rows.append(_Row(tuple(box), "raw", detections.phrases[k], confidence, -1))
        for part, factor in _parts(box, size_wh):
            if _key(part) in seen:
                rejected += 1
                continue
            seen.add(_key(part))
            rows.append(_Row(part, "sub_box", detections.phrases[k], confidence * factor, parent))
    if not rows:
        return _pool(_anchors(size_wh), size_wh, rejected)
    return _pool(rows[:pool_limit], size_wh, rejected + max(0, len(rows) - pool_limit))


def _key(box: tuple[float, ...] | list[float]) -> tuple[float, ...]:
    """Two boxes are the same when they agree to a hundredth of a pixel."""
    return tuple(round(side, 2) for side in box)


def _parts(
    box: list[float], size_wh: tuple[int, int]
) -> list[tuple[tuple[float, float, float, float], float]]:
    """The three fixed sub-boxes of a large raw box, each with its confidence factor."""
    x0, y0, x1, y1 = box
    width, height = x1 - x0, y1 - y0
    share = width * height / (size_wh[0] * size_wh[1])
    if min(width, height) < _SUB_BOX_LEAST_PX or share < _SUB_BOX_LEAST_SHARE:
        return []
    return [
        ((x0 + a * width, y0 + b * height, x0 + c * width, y0 + d * height), factor)
        for (a, b, c, d), factor in _SUB_BOXES
    ]


def _anchors(size_wh: tuple[int, int]) -> list[_Row]:
    """The full frame, 3x3 half-size windows on a quarter grid, 3x3 quarter-size windows."""
    windows = [(0.0, 0.0, 1.0)]
    windows += [(x / 4, y / 4, 1 / 2) for y in range(3) for x in range(3)]
    windows += [((2 * x + 1) / 8, (2 * y + 1) / 8, 1 / 4) for y in range(3) for x in range(3)]
    width, height = size_wh
    return [
        _Row(
            (x * width, y * height, (x + side) * width, (y + side) * height),
            "anchor",
            "",
            float("nan"),
            -1,
        )
        for x, y, side in windows
    ]


def moved(pool: CandidatePool, boxes: Float32, size_wh: tuple[int, int]) -> CandidatePool:
    """The same candidates with other boxes, and what f_dino says of those."""
    return replace(pool, boxes=boxes, metadata=_metadata(boxes, pool.confidences, size_wh))


def _pool(rows: list[_Row], size_wh: tuple[int, int], rejected: int) -> CandidatePool:
    confidences = np.array([row.confidence for row in rows], dtype=np.float32)
    boxes = np.array([row.box for row in rows], dtype=np.float32)
    ranks = np.arange(1, len(rows) + 1)
    # Tube terms are 0 and coverage is 1: every requested time is answered on its own frame.
    native = 0.45 * confidences + 0.05 + 0.02 / ranks
    anchored = np.isnan(confidences)
    native = np.where(anchored, 1.0 / ranks, native)
    return CandidatePool(
        boxes=boxes,
        sources=tuple(row.source for row in rows),
        phrases=tuple(row.phrase for row in rows),
        confidences=confidences,
        parents=np.array([row.parent for row in rows], dtype=np.int64),
        native_scores=native.astype(np.float32),
        metadata=_metadata(boxes, confidences, size_wh),
        rejected=rejected,
    )


def _metadata(boxes: Float32, confidences: Float32, size_wh: tuple[int, int]) -> Float32:
    """(N, 12): the values of f_dino in the order of METADATA, NaN where missing."""
    width, height = size_wh
    unit = boxes.astype(np.float64) / (width, height, width, height)
    sides = unit[:, 2:] - unit[:, :2]
    values = np.zeros((len(boxes), len(METADATA)))
    values[:, 0] = confidences
    values[:, 2:4] = 1.0
    values[:, 5] = 1.0
    values[:, 6:10] = unit
    values[:, 10] = np.log(sides.prod(axis=1))
    values[:, 11] = np.log(sides[:, 0]) - np.log(sides[:, 1])
    values[np.isnan(confidences), :4] = np.nan
    return values.astype(np.float32)


def shortlist(pool: CandidatePool, *, keep: int = 48, first: int = 16) -> list[int]:
    """Rows that the released system hands to RefineNet ("diversity_mmr_k48").

    The first rows by native score, then greedily the best of half the normalised native score and
    half the distance (1 - IoU) to what is chosen.

    Args:
        pool: the whole pool.
        keep: rows at most.
        first: rows taken by native score alone.

    Returns:
        Row numbers in the order they were chosen.
    """
    from refinerank_core.boxes import iou_matrix

    count = len(pool)
    if count <= keep:
        return list(range(count))
    native = pool.native_scores.astype(np.float64)
    spread = float(native.max() - native.min())
    quality = (native - native.min()) / spread if spread > 0 else np.ones(count)
    overlap = iou_matrix(pool.boxes, pool.boxes).astype(np.float64)
    chosen = [int(row) for row in np.argsort(-native, kind="stable")[:first]]
    nearest = overlap[:, chosen].max(axis=1)
    while len(chosen) < keep:
        gain = 0.5 * quality + 0.5 * (1 - nearest)
        gain[chosen] = -np.inf
        row = int(gain.argmax())
        chosen.append(row)
        nearest = np.maximum(nearest, overlap[:, row])
    return chosen

"""How good the embedded detector is: what its twelve best boxes hold, and what its best one is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from refinerank_core.boxes import iou
from refinerank_core.candidates import RAW_LIMIT
from refinerank_core.models.protocols import Detector
from refinerank_core.phantom.stills import Still
from refinerank_core.phantom.truth import ObjectTruth
from refinerank_core.phantom.vocabulary import LADDERS, PROCEDURES
from refinerank_core.structures import Detections, Frame

GENERAL = ("surgical instrument",)


def score_detector(detector: Detector, stills: Sequence[Still]) -> dict[str, dict[str, Any]]:
    """Ask for one tool of every still, by its name and by "surgical instrument".

    Args:
        detector: with low thresholds.
        stills: validation stills of one or more procedures.

    Returns:
        Per procedure: stills; mean IoU of the best of the 12 first boxes with the asked tool
        ("oracle"), of the first box ("top"), and the share of asked tools found at IoU 0.5
        ("recall"), for both captions; "all_found": the share of all tools in view that the general
        caption finds at IoU 0.5 within its 12 first boxes; for open surgery the same for hands.
    """
    table: dict[str, dict[str, Any]] = {}
    for procedure in PROCEDURES:
        chosen = [s for s in stills if s.procedure == procedure and _tools(s)]
        if chosen:
            table[procedure] = _score(detector, chosen)
    return table


def _score(detector: Detector, stills: Sequence[Still]) -> dict[str, Any]:
    asked = [tools[k % len(tools)] for k, s in enumerate(stills) if (tools := _tools(s))]
    frames = [Frame(np.array(s.image), k, s.truth.time_s) for k, s in enumerate(stills)]
    general = detector.detect(frames, GENERAL)
    named: dict[int, Detections] = {}
    for name in sorted({thing.name for thing in asked}):
        places = [k for k, thing in enumerate(asked) if thing.name == name]
        word = LADDERS[name].specific[0]
        found = detector.detect(
            [frames[k] for k in places], (word, f"surgical {word}", f"visible {word}")
        )
        named |= dict(zip(places, found, strict=True))
    row: dict[str, Any] = {"stills": len(stills)}
    for caption, results in (
        ("named", [named[k] for k in range(len(stills))]),
        ("general", general),
    ):
        best = np.array([_best(d, t.box) for d, t in zip(results, asked, strict=True)])
        top = [_best(d, t.box, 1) for d, t in zip(results, asked, strict=True)]
        row[caption] = {
            "oracle": round(float(best.mean()), 4),
            "recall": round(float((best >= 0.5).mean()), 4),
            "top": round(float(np.mean(top)), 4),
        }
    every = [
        _best(d, t.box) >= 0.5 for d, s in zip(general, stills, strict=True) for t in _tools(s)
    ]
    row["all_found"] = round(float(np.mean(every)), 4)
    hands = [(k, t) for k, s in enumerate(stills) for t in s.truth.in_view("hand")]
    if hands:
        found = detector.detect(frames, ("hand",))
        held = [_best(found[k], thing.box) for k, thing in hands]
        row["hands"] = round(float(np.mean(held)), 4)
    return row


def _tools(still: Still) -> list[ObjectTruth]:
    return still.truth.in_view("tool")


def _best(found: Detections, box: np.ndarray, first: int = RAW_LIMIT) -> float:
    """Best IoU among the first boxes, 0 without any."""
    return float(iou(found.boxes[:first], box).max(initial=0.0))

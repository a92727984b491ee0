"""Scores of spatial-temporal grounding: pure functions that leave their inputs as they are.

Boxes stand in the order of the requested times, so nothing here knows about seconds.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Literal, get_args

import numpy as np

from refinerank_core.boxes import Corners, iou, is_valid

Scoring = Literal["strict", "leaderboard"]
"""strict: a missing box scores 0. leaderboard: as the public evaluator of MedVidBench does it, a
missing box (or four zeros) repeats the one before, and a time that still has none is left out."""


def box_ious(
    predicted: Sequence[Corners | None],
    truth: Sequence[Corners | None],
    *,
    scoring: Scoring = "strict",
) -> tuple[float, ...]:
    """IoU at each time of one question that counts.

    Args:
        predicted: K boxes in the order of the requested times, None where there is none.
        truth: K annotated boxes in the same unit, None where the time is not annotated.
        scoring: see `Scoring`.

    Returns:
        strict: one IoU for each annotated time, 0 where the box is missing or has no area.
        leaderboard: one IoU for each annotated time at which both boxes have an area after
        filling. Either may be empty.

    Raises:
        ValueError: the lengths differ, or the scoring is unknown.

    Source: leaderboard: the filling and skipping of UII-AI/MedGRPO-Code, evaluation/eval_stg.py.
    """
    if len(predicted) != len(truth):
        raise ValueError(f"each time needs a pair, got {len(predicted)} and {len(truth)} boxes")
    if scoring not in get_args(Scoring):
        raise ValueError(f"scoring must be one of {get_args(Scoring)}, got {scoring!r}")
    pairs = [(box, true) for box, true in zip(predicted, truth, strict=True) if true is not None]
    if scoring == "leaderboard":
        pairs = _filled(pairs)
    scores = []
    for box, true in pairs:
        measurable = box is not None and bool(is_valid(np.array((box, true))).all())
        if measurable or scoring == "strict":
            scores.append(float(iou(np.array(box), np.array(true))) if measurable else 0.0)
    return tuple(scores)


def question_miou(
    predicted: Sequence[Corners | None],
    truth: Sequence[Corners | None],
    *,
    scoring: Scoring = "strict",
) -> float | None:
    """Mean IoU of one question; None when no time counts. Args and errors as in `box_ious`."""
    scores = box_ious(predicted, truth, scoring=scoring)
    return fmean(scores) if scores else None


def dataset_miou(questions: Iterable[float | None]) -> float | None:
    """STG mIoU of a dataset: each question weighs the same however many times it asks about.

    Args:
        questions: `question_miou` of each row; rows that are None were not scored and are left out.

    Returns:
        The mean; None when no row was scored.
    """
    scored = [score for score in questions if score is not None]
    return fmean(scored) if scored else None


def row_mean(values: np.ndarray, rows: Sequence[str]) -> float:
    """Mean over question rows of the mean over their times.

    Args:
        values: (E,) IoU of each requested time.
        rows: E names of the rows they belong to.
    """
    by_row: dict[str, list[float]] = {}
    for row, value in zip(rows, values, strict=True):
        by_row.setdefault(row, []).append(float(value))
    return float(np.mean([np.mean(times) for times in by_row.values()]))


def dataset_average(datasets: Mapping[str, float]) -> float:
    """Mean of `dataset_miou` over datasets, each with the same weight whatever its size.

    Raises:
        ValueError: there is no dataset.
    """
    if not datasets:
        raise ValueError("an average needs at least one dataset")
    return fmean(datasets.values())


def accuracy_at(ious: Sequence[float], threshold: float) -> float | None:
    """Share of IoUs that reach the threshold (>=); None for no IoU."""
    return fmean(score >= threshold for score in ious) if ious else None


def _filled(
    pairs: Sequence[tuple[Corners | None, Corners]],
) -> list[tuple[Corners | None, Corners]]:
    """Pairs with each missing box replaced by the predicted one before it."""
    filled: list[tuple[Corners | None, Corners]] = []
    last: Corners | None = None
    for box, true in pairs:
        last = box if box is not None and any(box) else last
        filled.append((last, true))
    return filled

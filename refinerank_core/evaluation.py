"""Scores of predictions on MedVidBench rows, on the canvas on which each data set is annotated.

No model and no frame is read: the rows and the predictions are enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from refinerank_core.answers import ParsedAnswer, match_times
from refinerank_core.errors import FormatError
from refinerank_core.formats.medvidbench_rows import QuestionRow, RowsRead
from refinerank_core.formats.medvidbench_submission import PredictionsRead
from refinerank_core.formats.rows import Fault
from refinerank_core.intervals import bootstrap, paired_difference
from refinerank_core.metrics import (
    Scoring,
    accuracy_at,
    box_ious,
    dataset_average,
    dataset_miou,
    question_miou,
)

THRESHOLDS = (0.3, 0.5, 0.7)
TOLERANCE_S = 0.05 + 1e-9
"""A predicted time counts for an annotated one this near: the benchmark writes tenths."""

_DIGITS = 6
_SHOWN = 5


@dataclass(frozen=True)
class RowScore:
    """One row's result.

    Attributes:
        row: the row.
        ious: strict IoU at each annotated time, in the order of the file.
        strict: mean of them.
        leaderboard: the public evaluator's figure; None where it skips the row.
    """

    row: QuestionRow
    ious: tuple[float, ...]
    strict: float
    leaderboard: float | None


def score_rows(rows: RowsRead, answers: Mapping[int, ParsedAnswer]) -> list[RowScore]:
    """Score every annotated row; one without a prediction has no boxes.

    Args:
        rows: with annotation.
        answers: place of the row -> its prediction.
    """
    scored = []
    for row in rows.rows:
        if not row.boxes:
            continue
        times, truth = list(row.boxes), list(row.boxes.values())
        answer = answers.get(row.place, ParsedAnswer())
        timed = ParsedAnswer(tuple(box for box in answer.boxes if box.time_s is not None))
        predicted = match_times(timed, times, tolerance_s=TOLERANCE_S)
        ious = box_ious(predicted, truth)
        scored.append(
            RowScore(
                row,
                ious,
                sum(ious) / len(ious),
                question_miou(predicted, truth, scoring="leaderboard"),
            )
        )
    return scored


def report(rows: RowsRead, predictions: PredictionsRead) -> dict[str, Any]:
    """Every figure of one method, as plain data.

    Returns:
        strict and leaderboard: {mIoU over all rows, datasets: name -> mIoU, average of data sets
        with equal weight, intervals: name -> {low, high, videos}}; acc: share of annotated times
        whose strict IoU reaches each threshold, with the same per data set; counts; videos: name
        -> video -> strict mIoU; problems: [{line, what, file}]. A figure without rows is null.
    """
    scored = score_rows(rows, predictions.by_place)
    problems = [*_problems("rows", rows.faults), *_problems("rows", rows.remarks)]
    for row in rows.rows:
        if not row.boxes:
            problems.append(_problem(row, "has no annotation and is not scored"))
        elif row.place not in predictions.by_place:
            problems.append(_problem(row, "has no prediction and scores 0 strictly"))
    return {
        "strict": _figures(scored, "strict"),
        "leaderboard": _figures(scored, "leaderboard"),
        "acc": {f"{at:g}": _accuracy(scored, at) for at in THRESHOLDS},
        "acc_datasets": {
            name: {f"{at:g}": _accuracy(mine, at) for at in THRESHOLDS}
            for name, mine in _by_dataset(scored).items()
        },
        "counts": {
            "rows": len(scored),
            "times": sum(len(one.ious) for one in scored),
            "predicted": sum(one.row.place in predictions.by_place for one in scored),
            "leaderboard_rows": sum(one.leaderboard is not None for one in scored),
        },
        "videos": {
            name: {
                video: _rounded(dataset_miou(one.strict for one in mine if one.row.video == video))
                for video in sorted({one.row.video for one in mine})
            }
            for name, mine in _by_dataset(scored).items()
        },
        "problems": [*problems, *_problems("predictions", predictions.faults)],
    }


def compare(
    rows: RowsRead, one: PredictionsRead, other: PredictionsRead
) -> dict[str, dict[str, float]]:
    """Strict differences of two methods on the same rows: name -> mean, interval, p, videos."""
    sides = [
        {
            name: [(score.row.video, score.strict) for score in mine]
            for name, mine in _by_dataset(score_rows(rows, answers.by_place)).items()
        }
        for answers in (one, other)
    ]
    found = paired_difference(sides[0], sides[1])
    return {
        name: {key: round(float(value), _DIGITS) for key, value in asdict(gap).items()}
        for name, gap in found.items()
    }


def shared_row_videos(one: RowsRead, other: RowsRead) -> list[str]:
    """Videos (data set/name) that have rows on both sides of a split."""
    sides = [{f"{row.dataset}/{row.video}" for row in side.rows} for side in (one, other)]
    return sorted(sides[0] & sides[1])


def require_apart(shared: Sequence[str]) -> None:
    """Raise FormatError that names the videos of both sides of a split."""
    if shared:
        more = f" and {len(shared) - _SHOWN} more" if len(shared) > _SHOWN else ""
        raise FormatError(
            f"{len(shared)} video(s) stand on both sides of the split: "
            f"{', '.join(shared[:_SHOWN])}{more}. Split by video."
        )


def _by_dataset(scored: Sequence[RowScore]) -> dict[str, list[RowScore]]:
    names = sorted({one.row.dataset for one in scored})
    return {name: [one for one in scored if one.row.dataset == name] for name in names}


def _figures(scored: Sequence[RowScore], scoring: Scoring) -> dict[str, Any]:
    def value(one: RowScore) -> float | None:
        return one.strict if scoring == "strict" else one.leaderboard

    datasets = {
        name: dataset_miou(value(one) for one in mine) for name, mine in _by_dataset(scored).items()
    }
    known = {name: figure for name, figure in datasets.items() if figure is not None}
    intervals = bootstrap(
        {
            name: [(one.row.video, score) for one in mine if (score := value(one)) is not None]
            for name, mine in _by_dataset(scored).items()
        }
    )
    return {
        "mIoU": _rounded(dataset_miou(value(one) for one in scored)),
        "datasets": {name: _rounded(figure) for name, figure in datasets.items()},
        "average": _rounded(dataset_average(known) if known else None),
        "intervals": {
            name: {
                "low": _rounded(found.low),
                "high": _rounded(found.high),
                "videos": found.videos,
            }
            for name, found in intervals.items()
        },
    }


def _accuracy(scored: Sequence[RowScore], at: float) -> float | None:
    return _rounded(accuracy_at([iou for one in scored for iou in one.ious], at))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)


def _problem(row: QuestionRow, what: str) -> dict[str, Any]:
    return {"line": row.line, "what": f"id {row.row_id[:80]} {what}", "file": "rows"}


def _problems(file: str, faults: Sequence[Fault]) -> list[dict[str, Any]]:
    return [{"line": fault.line, "what": fault.text, "file": file} for fault in faults]

"""What a study says: tables, intervals, differences, videos, reliability, where IoU is lost.

Per data set every figure is the mean over question rows of the mean IoU over their times; the
average weighs data sets equally. Mean and spread (sample deviation) are over seeds; intervals
and differences are over videos, of each row's mean over the seeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from refinerank_core.boxes import iou
from refinerank_core.intervals import Scores, bootstrap, paired_difference, row_scores
from refinerank_core.joint_pool import Outcome, chosen_boxes, joint_pools, member_quality
from refinerank_core.metrics import row_mean
from refinerank_core.reliability import as_share, reliability
from refinerank_core.study import TABLES, Measured, StudySet

OURS = "refinerank"
WORST = 6
WORST_OF_VIDEO = 2
_CORRECT = 0.5
_DIGITS = 4


def figures_of(
    measured: Sequence[Measured],
    sets: Sequence[StudySet],
    questions: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Every figure of a study as plain data.

    Args:
        measured: one entry a seed.
        sets: the evaluation side, as it was measured.
        questions: row -> its words, for the worst cases.

    Returns:
        methods, oracle, selectors, features: line -> data set or "average" -> {mean, spread};
        intervals: the same lines -> {low, high}; differences: line -> RefineRank less that line;
        videos: data set -> video -> {rows, examples, mIoU of each method and of the joint oracle};
        reliability: data set or "all" -> bins of the answers and of the whole joint pools;
        curves: seed -> run -> mean loss of each epoch; worst: data set -> the lowest answers of
        the first seed; decomposition: of the first seed.
    """
    names = [one.features.dataset for one in sets]
    return {
        **{table: _table(measured, sets, table) for table in TABLES},
        "procedures": names,
        "seeds": [one.seed for one in measured],
        "decomposition": {one.features.dataset: _lost(measured[0], one) for one in sets},
        "intervals": {table: _intervals(measured, sets, table) for table in TABLES},
        "differences": _differences(measured, sets),
        "videos": {one.features.dataset: _videos(measured, one) for one in sets},
        "reliability": _reliabilities(measured, sets),
        "curves": {
            str(one.seed): {
                run: [_rounded(x) for x in losses] for run, losses in one.losses.items()
            }
            for one in measured
        },
        "worst": {
            one.features.dataset: worst_cases(measured[0], one, questions or {}) for one in sets
        },
    }


def line_of(
    columns: Mapping[str, Iterable[np.ndarray]], sets: Sequence[StudySet]
) -> dict[str, dict[str, float]]:
    """One line of a table: data set or "average" -> mean and spread of mIoU over the seeds.

    Args:
        columns: data set -> (E,) IoU of each seed.
        sets: the data sets.
    """
    scores = {
        one.features.dataset: [
            row_mean(values, one.features.rows) for values in columns[one.features.dataset]
        ]
        for one in sets
    }
    average = np.mean(list(scores.values()), axis=0)
    return {name: _cell(each) for name, each in scores.items()} | {
        "average": _cell(average.tolist())
    }


def _cell(values: Sequence[float]) -> dict[str, float]:
    """Mean and spread of one figure over the seeds."""
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return {"mean": _rounded(float(np.mean(values))), "spread": _rounded(spread)}


def _table(measured: Sequence[Measured], sets: Sequence[StudySet], table: str) -> dict[str, Any]:
    names = [one.features.dataset for one in sets]
    return {
        line: line_of(
            {name: [each.ious[table][line][name] for each in measured] for name in names}, sets
        )
        for line in measured[0].ious[table]
    }


def _scores(
    measured: Sequence[Measured], sets: Sequence[StudySet], table: str, line: str
) -> dict[str, Scores]:
    """Each data set's rows, of the mean over the seeds."""
    return {
        one.features.dataset: row_scores(
            _over_seeds(measured, table, line, one), one.features.rows, one.features.videos
        )
        for one in sets
    }


def _over_seeds(measured: Sequence[Measured], table: str, line: str, one: StudySet) -> np.ndarray:
    """(E,) mean IoU over the seeds."""
    return np.asarray(
        np.mean([each.ious[table][line][one.features.dataset] for each in measured], axis=0)
    )


def _intervals(
    measured: Sequence[Measured], sets: Sequence[StudySet], table: str
) -> dict[str, Any]:
    return {
        line: {
            name: {"low": _rounded(found.low), "high": _rounded(found.high)}
            for name, found in bootstrap(_scores(measured, sets, table, line)).items()
        }
        for line in measured[0].ious[table]
    }


def _differences(measured: Sequence[Measured], sets: Sequence[StudySet]) -> dict[str, Any]:
    """RefineRank less each other method and each selector."""
    ours = _scores(measured, sets, "methods", OURS)
    others = {
        line: _scores(measured, sets, table, line)
        for table in ("methods", "selectors")
        for line in measured[0].ious[table]
        if line != OURS
    }
    return {
        line: {
            name: {key: _rounded(float(value)) for key, value in asdict(gap).items()}
            for name, gap in paired_difference(ours, theirs).items()
        }
        for line, theirs in others.items()
    }


def _videos(measured: Sequence[Measured], one: StudySet) -> dict[str, dict[str, float]]:
    columns = {
        line: _over_seeds(measured, "methods", line, one) for line in measured[0].ious["methods"]
    } | {"joint": _over_seeds(measured, "oracle", "joint", one)}
    videos = np.array(one.features.videos)
    rows = np.array(one.features.rows)
    found: dict[str, dict[str, float]] = {}
    for video in sorted(set(one.features.videos)):
        mine = videos == video
        found[video] = {"rows": len(set(rows[mine])), "examples": int(mine.sum())} | {
            line: _rounded(row_mean(values[mine], rows[mine].tolist()))
            for line, values in columns.items()
        }
    return found


def _lost(measured: Measured, one: StudySet) -> dict[str, float]:
    name = one.features.dataset
    return decomposition(
        one.features.rows,
        chosen=measured.ious["methods"][OURS][name],
        before=measured.before[name],
        best=measured.ious["oracle"]["joint"][name],
    )


def decomposition(
    rows: Sequence[str], *, chosen: np.ndarray, before: np.ndarray, best: np.ndarray
) -> dict[str, float]:
    """Where IoU is lost: 1 - oracle is the candidates', oracle - selected the ranking's.

    Also how often, in shares of the examples, the answer is correct (IoU at least 0.5), rescued by
    refinement (its original was not), or harmed by it (its original was and the answer is not).

    Args:
        rows: question row of each of E examples.
        chosen: (E,) IoU of the answers.
        before: (E,) IoU of the originals that they are or come from.
        best: (E,) IoU of the joint oracle.
    """
    oracle, selected = row_mean(best, rows), row_mean(chosen, rows)
    return {
        "candidate_loss": _rounded(1 - oracle),
        "ranking_loss": _rounded(oracle - selected),
        "correct": _share(chosen >= _CORRECT),
        "rescued": _share((chosen >= _CORRECT) & (before < _CORRECT)),
        "harmed": _share((chosen < _CORRECT) & (before >= _CORRECT)),
    }


def _reliabilities(
    measured: Sequence[Measured], sets: Sequence[StudySet]
) -> dict[str, dict[str, Any]]:
    """Bins over all seeds."""
    found: dict[str, dict[str, Any]] = {}
    every: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {"answers": [], "pool": []}
    for one in sets:
        name = one.features.dataset
        mine: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {"answers": [], "pool": []}
        for each in measured:
            results, reached = each.found[name], each.ious["methods"][OURS][name]
            joint = joint_pools(results)
            overlap = member_quality(joint, one.labels)[joint.valid]
            mine["answers"].append((as_share(answer_scores(results)), reached))
            mine["pool"].append((as_share(pool_scores(results)), overlap))
        found[name] = {what: _binned(pairs) for what, pairs in mine.items()}
        for what, pairs in mine.items():
            every[what] += pairs
    return {**found, "all": {what: _binned(pairs) for what, pairs in every.items()}}


def _binned(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> dict[str, Any]:
    predicted, reached = (np.concatenate([pair[k] for pair in pairs]) for k in (0, 1))
    return reliability(predicted, reached).as_json()


def answer_scores(found: Iterable[Outcome]) -> np.ndarray:
    """(E,) logits of the answers."""
    return np.array([one.ranking.chosen.score for one in found])


def pool_scores(found: Iterable[Outcome]) -> np.ndarray:
    """(K,) logits of every kept member, example by example."""
    return np.array([choice.score for one in found for choice in one.ranking.kept])


def worst_cases(
    measured: Measured, one: StudySet, questions: Mapping[str, str], *, most: int = WORST
) -> list[dict[str, Any]]:
    """The answers with the lowest IoU, at most two of a video; on equal IoU the larger miss.

    Returns:
        For each: video, row, time_s, question, iou, best (IoU of the best original or refined
        box), size_wh, and the boxes truth, answer, before (the original of the answer) and best.
    """
    name, found = one.features.dataset, measured.found[one.features.dataset]
    reached = measured.ious["methods"][OURS][name]
    best = measured.ious["oracle"]["joint"][name]
    answers = chosen_boxes(found)
    taken: dict[str, int] = {}
    cases: list[dict[str, Any]] = []
    for place in np.lexsort((-best, np.round(reached, _DIGITS))).tolist():
        video = one.features.videos[place]
        if len(cases) == most or taken.get(video, 0) == WORST_OF_VIDEO:
            continue
        taken[video] = taken.get(video, 0) + 1
        truth, result = one.labels.boxes[place], found[place]
        cases.append(
            {
                "video": video,
                "row": one.features.rows[place],
                "time_s": round(float(one.features.times_s[place]), 3),
                "question": questions.get(one.features.rows[place], ""),
                "size_wh": [int(side) for side in one.features.sizes_wh[place]],
                "iou": _rounded(float(reached[place])),
                "best": _rounded(float(best[place])),
                "boxes": {
                    "truth": _box(truth),
                    "answer": _box(answers[place]),
                    "before": _box(result.pool.boxes[result.ranking.chosen.candidate]),
                    "best": _box(_best_box(result, truth)),
                },
            }
        )
    return cases


def _best_box(found: Outcome, truth: np.ndarray) -> np.ndarray:
    """(4,) the original or refined box that overlaps the annotation most."""
    boxes = np.concatenate((found.pool.boxes, found.refinement.boxes[found.refinement.valid]))
    return np.asarray(boxes[int(iou(boxes, truth).argmax())])


def _box(box: np.ndarray) -> list[float]:
    return [round(float(edge), 1) for edge in box]


def _share(flags: np.ndarray) -> float:
    return _rounded(float(np.mean(flags)))


def _rounded(value: float) -> float:
    return round(float(value), _DIGITS)

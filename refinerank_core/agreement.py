"""How far reviewers agree with one another and with each method."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from refinerank_core.boxes import Corners, iou

BOOTSTRAPS = 2000
SEED = 20261130


@dataclass(frozen=True)
class View:
    """What one reviewer or method says of one case; box None: none."""

    case_id: str
    rater: str
    decision: str = ""
    box: Corners | None = None


@dataclass(frozen=True)
class Interval:
    """A figure with its 95 % bootstrap interval over n cases; None where it has no value."""

    value: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True)
class Pair:
    """Two raters on the cases that both have seen.

    Attributes:
        kappa: Cohen's kappa of their decisions.
        mean_iou: of their boxes, over the cases where both give one.
    """

    one: str
    other: str
    kappa: Interval
    mean_iou: Interval


@dataclass(frozen=True)
class Disagreement:
    """A case on which raters differ: how far apart the two furthest are."""

    case_id: str
    raters: tuple[str, str]
    decisions: tuple[str, str]
    iou: float | None


def cohen_kappa(one: Sequence[str], other: Sequence[str]) -> float | None:
    """Cohen's kappa of two raters' decisions on the same cases.

    Returns:
        1 for full agreement, 0 for what chance gives; None for no case, or when both always say
        the same single thing, where chance alone explains everything.

    Raises:
        ValueError: the lengths differ.

    Source: Cohen 1960, Educational and Psychological Measurement 20(1).
    """
    if len(one) != len(other):
        raise ValueError(f"each case needs two decisions, got {len(one)} and {len(other)}")
    if not one:
        return None
    names = sorted({*one, *other})
    place = {name: k for k, name in enumerate(names)}
    return _kappa(
        np.array([place[name] for name in one]),
        np.array([place[name] for name in other]),
        len(names),
    )


def _kappa(one: np.ndarray, other: np.ndarray, names: int) -> float | None:
    observed = float(np.mean(one == other))
    shares = [np.bincount(rater, minlength=names) / len(rater) for rater in (one, other)]
    expected = float(shares[0] @ shares[1])
    return None if expected >= 1.0 else (observed - expected) / (1.0 - expected)


def pairs(views: Iterable[View], *, seed: int = SEED, repeats: int = BOOTSTRAPS) -> list[Pair]:
    """Agreement of every two raters that share a case, names sorted.

    Args:
        views: a rater's last view of a case counts.
        seed, repeats: of the bootstrap over cases.
    """
    by_rater: dict[str, dict[str, View]] = {}
    for view in views:
        by_rater.setdefault(view.rater, {})[view.case_id] = view
    found = []
    for one, other in combinations(sorted(by_rater), 2):
        shared = sorted(by_rater[one].keys() & by_rater[other].keys())
        if shared:
            both = [(by_rater[one][name], by_rater[other][name]) for name in shared]
            found.append(_pair(one, other, both, seed, repeats))
    return found


def _pair(one: str, other: str, both: Sequence[tuple[View, View]], seed: int, repeats: int) -> Pair:
    decided = [(a.decision, b.decision) for a, b in both if a.decision and b.decision]
    names = sorted({name for pair in decided for name in pair})
    codes = np.array([[names.index(name) for name in pair] for pair in decided]).reshape(-1, 2)
    overlaps = np.array(
        [float(iou(np.array(a.box), np.array(b.box))) for a, b in both if a.box and b.box]
    )
    return Pair(
        one=one,
        other=other,
        kappa=Interval(
            cohen_kappa([a for a, _ in decided], [b for _, b in decided]),
            *_bootstrap_kappa(codes, len(names), seed, repeats),
            len(decided),
        ),
        mean_iou=mean_interval(overlaps, seed=seed, repeats=repeats),
    )


def _bootstrap_kappa(
    codes: np.ndarray, names: int, seed: int, repeats: int
) -> tuple[float | None, float | None]:
    if len(codes) < 2:
        return None, None
    chance = np.random.default_rng(seed)
    values = []
    for _ in range(repeats):
        drawn = codes[chance.integers(0, len(codes), len(codes))]
        value = _kappa(drawn[:, 0], drawn[:, 1], names)
        if value is not None:
            values.append(value)
    return _ends(np.array(values))


def mean_interval(
    values: np.ndarray | Sequence[float], *, seed: int = SEED, repeats: int = BOOTSTRAPS
) -> Interval:
    """The mean of values and its 95 % percentile bootstrap interval."""
    array = np.asarray(values, dtype=np.float64)
    if not len(array):
        return Interval(None, None, None, 0)
    if len(array) < 2:
        return Interval(float(array[0]), None, None, 1)
    chance = np.random.default_rng(seed)
    means = np.array(
        [array[chance.integers(0, len(array), len(array))].mean() for _ in range(repeats)]
    )
    return Interval(float(array.mean()), *_ends(means), len(array))


def _ends(values: np.ndarray) -> tuple[float | None, float | None]:
    if not len(values):
        return None, None
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def with_methods(
    reviews: Iterable[View], methods: Iterable[View], *, repeats: int = BOOTSTRAPS
) -> dict[str, dict[str, Interval]]:
    """Reviewer -> method -> mean IoU of the reviewer's boxes with the method's.

    A method that gives no box where the reviewer has one scores 0 there; cases that a method was
    not asked about do not count.
    """
    answers = {(view.rater, view.case_id): view.box for view in methods}
    names = sorted({name for name, _ in answers})
    scores: dict[str, dict[str, list[float]]] = {}
    for view in reviews:
        for name in names if view.box else ():
            if (name, view.case_id) in answers:
                box = answers[name, view.case_id]
                overlap = float(iou(np.array(box), np.array(view.box))) if box else 0.0
                scores.setdefault(view.rater, {}).setdefault(name, []).append(overlap)
    return {
        reviewer: {name: mean_interval(values, repeats=repeats) for name, values in found.items()}
        for reviewer, found in sorted(scores.items())
    }


def disagreements(views: Iterable[View], *, tau: float = 0.5) -> list[Disagreement]:
    """Cases on which two raters decided differently or drew boxes of IoU < tau, worst first.

    Different decisions come before different boxes; among boxes the smallest IoU comes first.
    Someone's box against another's none is an IoU of 0.
    """
    by_case: dict[str, dict[str, View]] = {}
    for view in views:
        by_case.setdefault(view.case_id, {})[view.rater] = view
    found = []
    for case_id, raters in by_case.items():
        worst = min(
            (_difference(case_id, a, b) for a, b in combinations(raters.values(), 2)),
            key=_severity,
            default=None,
        )
        if worst is not None and (
            worst.decisions[0] != worst.decisions[1] or (worst.iou is not None and worst.iou < tau)
        ):
            found.append(worst)
    return sorted(found, key=lambda one: (*_severity(one), one.case_id))


def _difference(case_id: str, one: View, other: View) -> Disagreement:
    overlap: float | None = None
    if one.box and other.box:
        overlap = float(iou(np.array(one.box), np.array(other.box)))
    elif one.box or other.box:
        overlap = 0.0
    return Disagreement(case_id, (one.rater, other.rater), (one.decision, other.decision), overlap)


def _severity(one: Disagreement) -> tuple[bool, float]:
    return one.decisions[0] == one.decisions[1], 1.0 if one.iou is None else one.iou

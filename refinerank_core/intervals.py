"""How sure a mean IoU is: bootstrap over videos, and tests of paired differences.

Rows of one video are not independent, so whole videos are drawn. Every data set keeps its own
videos, and the average weighs data sets equally, as `metrics.dataset_average` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Scores = Sequence[tuple[str, float]]
"""One data set's question rows: (video, mean IoU)."""

AVERAGE = "average"
DRAWS = 2_000
_COVER = 0.95
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Interval:
    """A 95 % bootstrap interval of a mean.

    Attributes:
        low, high: its ends.
        videos: how many videos it rests on; with fewer than two it has no width.
    """

    low: float
    high: float
    videos: int


@dataclass(frozen=True)
class Difference:
    """One method less another on the same rows.

    Attributes:
        mean: of the differences.
        low, high: ends of its 95 % bootstrap interval over videos.
        p: two-sided, by swapping the methods video by video.
        videos: how many were swapped; n videos cannot give a p below 2 / 2**n.
    """

    mean: float
    low: float
    high: float
    p: float
    videos: int


def row_scores(values: np.ndarray, rows: Sequence[str], videos: Sequence[str]) -> Scores:
    """Each question row's video, and the mean over its times.

    Args:
        values: (E,) IoU of each requested time.
        rows, videos: E names of the rows and the videos they belong to.
    """
    homes = dict(zip(rows, videos, strict=True))
    times: dict[str, list[float]] = {}
    for row, value in zip(rows, values, strict=True):
        times.setdefault(row, []).append(float(value))
    return [(homes[row], float(np.mean(mine))) for row, mine in times.items()]


def bootstrap(datasets: Mapping[str, Scores], *, seed: int = 0) -> dict[str, Interval]:
    """Intervals of each data set's mean and of their average.

    Args:
        datasets: name -> scores; one without scores is left out.
        seed: of the draws.

    Returns:
        Name -> interval, and "average".
    """
    rng = np.random.default_rng(seed)
    means: dict[str, np.ndarray] = {}
    videos: dict[str, int] = {}
    for name, scores in datasets.items():
        if scores:
            sums, counts = _by_video(scores)
            means[name], videos[name] = _drawn_means(sums, counts, rng), len(counts)
    found = {name: Interval(*_ends(drawn), videos[name]) for name, drawn in means.items()}
    if means:
        average = np.mean(list(means.values()), axis=0)
        found[AVERAGE] = Interval(*_ends(average), sum(videos.values()))
    return found


def paired_difference(
    one: Mapping[str, Scores], other: Mapping[str, Scores], *, seed: int = 0
) -> dict[str, Difference]:
    """Tests of one method against another on the same rows.

    Args:
        one, other: name -> scores, row by row the same videos.
        seed: of the draws.

    Returns:
        Name -> one less other, and "average".

    Raises:
        ValueError: the two do not score the same rows.
    """
    rng = np.random.default_rng(seed)
    boots, swaps, means, videos = [], [], [], []
    found: dict[str, Difference] = {}
    if one.keys() != other.keys():
        raise ValueError("both methods must score the same data sets")
    for name in one:
        if [video for video, _ in one[name]] != [video for video, _ in other[name]]:
            raise ValueError(f"{name}: both methods must score the same rows")
        gaps = [(v, a - b) for (v, a), (_, b) in zip(one[name], other[name], strict=True)]
        if not gaps:
            continue
        sums, counts = _by_video(gaps)
        drawn = _drawn_means(sums, counts, rng)
        signs = rng.choice((-1.0, 1.0), size=(DRAWS, len(sums)))
        swapped = signs @ sums / counts.sum()
        mean = float(sums.sum() / counts.sum())
        found[name] = Difference(mean, *_ends(drawn), _p(swapped, mean), len(sums))
        boots.append(drawn)
        swaps.append(swapped)
        means.append(mean)
        videos.append(len(sums))
    if means:
        mean = float(np.mean(means))
        ends = _ends(np.mean(boots, axis=0))
        found[AVERAGE] = Difference(mean, *ends, _p(np.mean(swaps, axis=0), mean), sum(videos))
    return found


def _by_video(scores: Scores) -> tuple[np.ndarray, np.ndarray]:
    """(V,) sum and count of the scores of each video."""
    names = sorted({video for video, _ in scores})
    place = {name: k for k, name in enumerate(names)}
    sums, counts = np.zeros(len(names)), np.zeros(len(names))
    for video, score in scores:
        sums[place[video]] += score
        counts[place[video]] += 1
    return sums, counts


def _drawn_means(sums: np.ndarray, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(DRAWS,) mean over the rows of as many videos drawn with replacement."""
    times = rng.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), size=DRAWS)
    return np.asarray((times @ sums) / (times @ counts))


def _ends(drawn: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(drawn, ((1 - _COVER) / 2, (1 + _COVER) / 2))
    return float(low), float(high)


def _p(swapped: np.ndarray, mean: float) -> float:
    as_far = int((np.abs(swapped) >= abs(mean) - _ROUNDING).sum())
    return (1 + as_far) / (1 + len(swapped))

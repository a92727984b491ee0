"""Before and after on reviewed cases that were not learned from, and what may be said of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from refinerank_core.boxes import iou
from refinerank_core.feature_sets import FeatureSet, Labels
from refinerank_core.intervals import AVERAGE, bootstrap, paired_difference, row_scores
from refinerank_core.joint_pool import chosen_boxes, outcomes
from refinerank_core.refinenet import RefineNet

Verdict = Literal["better", "worse", "no difference", "too few to tell"]

LEAST_VIDEOS = 6
"""n videos can give no p below 2 / 2**n: with fewer, 5 % is out of reach whatever happens."""

LEVEL = 0.05
_DIGITS = 4


@dataclass(frozen=True)
class Comparison:
    """Two RefineNets on the same cases.

    Attributes:
        cases, videos: how many.
        before, after: mean IoU over questions, with low and high of its 95 % interval over videos.
        difference: after less before, with its interval and p.
    """

    cases: int
    videos: int
    before: tuple[float, float, float]
    after: tuple[float, float, float]
    difference: tuple[float, float, float]
    p: float

    def as_json(self) -> dict[str, Any]:
        """Plain data, rounded."""
        return {
            "cases": self.cases,
            "videos": self.videos,
            "before": _with_ends("miou", self.before),
            "after": _with_ends("miou", self.after),
            "difference": {**_with_ends("mean", self.difference), "p": round(self.p, _DIGITS)},
        }


def compare(
    before: RefineNet, after: RefineNet, sets: Sequence[tuple[FeatureSet, Labels]]
) -> Comparison:
    """Score two RefineNets on the same annotated examples.

    Args:
        before, after: the two.
        sets: features and boxes of each data set; data sets weigh the same.
    """
    scores = []
    for net in (before, after):
        found = {}
        for features, labels in sets:
            reached = iou(chosen_boxes(outcomes(net, features)), labels.boxes)
            found[features.dataset] = row_scores(reached, features.rows, features.videos)
        scores.append(found)
    told = [
        (float(np.mean([np.mean([v for _, v in rows]) for rows in one.values()])), bootstrap(one))
        for one in scores
    ]
    ends = [(mean, drawn[AVERAGE].low, drawn[AVERAGE].high) for mean, drawn in told]
    gap = paired_difference(scores[1], scores[0])[AVERAGE]
    return Comparison(
        cases=sum(len(features) for features, _ in sets),
        videos=gap.videos,
        before=ends[0],
        after=ends[1],
        difference=(gap.mean, gap.low, gap.high),
        p=gap.p,
    )


def verdict_of(compared: Comparison | None) -> Verdict:
    """What the comparison allows to say."""
    if compared is None or compared.videos < LEAST_VIDEOS:
        return "too few to tell"
    if compared.p > LEVEL:
        return "no difference"
    return "better" if compared.difference[0] > 0 else "worse"


def sentence_of(compared: Comparison | None) -> str:
    """The verdict in one sentence for the screen."""
    if compared is None:
        return "Too few to tell: no reviewed video could be held out; review at least two."
    mean, low, high = compared.difference
    figures = (
        f"{compared.before[0]:.3f} before, {compared.after[0]:.3f} after; "
        f"difference {mean:+.3f}, 95 % interval {low:+.3f} to {high:+.3f}"
    )
    held = f"{compared.cases} held-out cases of {compared.videos} videos"
    verdict = verdict_of(compared)
    if verdict == "too few to tell":
        return f"Too few to tell ({held}; it takes {LEAST_VIDEOS} videos): mIoU {figures}."
    words = {
        "better": "Better than chance explains",
        "worse": "Worse than chance explains",
        "no difference": "No difference that chance would not explain",
    }
    return f"{words[verdict]} ({held}): mIoU {figures}."


def _with_ends(name: str, values: tuple[float, float, float]) -> dict[str, float]:
    return dict(zip((name, "low", "high"), (round(v, _DIGITS) for v in values), strict=True))

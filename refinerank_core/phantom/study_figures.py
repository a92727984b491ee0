"""Figures of the phantom study alone: its sides, and the kinds of questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from refinerank_core import study_figures as figures
from refinerank_core.boxes import iou
from refinerank_core.feature_sets import FeatureSet, Labels
from refinerank_core.joint_pool import Outcome, method_ious
from refinerank_core.metrics import row_mean
from refinerank_core.phantom.examples import ExampleSet
from refinerank_core.study import Measured, StudySet, parent_boxes


@dataclass(frozen=True, eq=False)
class Side:
    """One side of the split: an ExampleSet per procedure, in the same order everywhere."""

    sets: tuple[ExampleSet, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The procedures."""
        return tuple(one.features.dataset for one in self.sets)

    def for_training(self) -> list[tuple[FeatureSet, Labels]]:
        """Features and labels of each procedure."""
        return [(one.features, one.labels) for one in self.sets]

    def for_study(self) -> list[StudySet]:
        """The same as the study takes it, with the MedVLM's own boxes."""
        return [StudySet(one.features, one.labels, one.direct) for one in self.sets]

    def questions(self) -> dict[str, str]:
        """Row -> its words."""
        return {asked.row: asked.text for one in self.sets for asked in one.asked}


def split_facts(side: Side) -> dict[str, dict[str, int]]:
    """Videos, question rows and examples of each procedure."""
    return {
        one.features.dataset: {
            "videos": len(set(one.features.videos)),
            "rows": len(set(one.features.rows)),
            "examples": len(one.features),
        }
        for one in side.sets
    }


def refinerank_scores(found: Sequence[Outcome], one: ExampleSet) -> dict[str, float]:
    """Table 3's figures of one procedure for one RefineNet."""
    values = method_ious(found, one.features, one.labels, one.direct)
    return {name: row_mean(each, one.features.rows) for name, each in values.items()}


def decomposition(found: Sequence[Outcome], one: ExampleSet) -> dict[str, float]:
    """Where the IoU of one RefineNet is lost; see `study_figures.decomposition`."""
    values = method_ious(found, one.features, one.labels)
    return figures.decomposition(
        one.features.rows,
        chosen=values["refinerank"],
        before=iou(parent_boxes(found), one.labels.boxes),
        best=values["oracle_joint"],
    )


def by_kind(measured: Measured, side: Side) -> dict[str, dict[str, Any]]:
    """For each kind of question over all procedures: examples and the mean IoU of each method."""
    lines = {**measured.ious["methods"], "oracle_joint": measured.ious["oracle"]["joint"]}
    kinds = np.array([one.kind_of()[row] for one in side.sets for row in one.features.rows])
    values = {line: np.concatenate([each[n] for n in side.names]) for line, each in lines.items()}
    return {
        kind: {"examples": int((kinds == kind).sum())}
        | {line: round(float(each[kinds == kind].mean()), 4) for line, each in values.items()}
        for kind in sorted(set(kinds.tolist()))
    }

"""Figures of the study that need no training: means over rows, and where IoU is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from refinerank_core.boxes import iou
from refinerank_core.feature_sets import FeatureSet, Labels
from refinerank_core.joint_pool import Outcome, chosen_boxes, oracle, outcomes
from refinerank_core.metrics import row_mean
from refinerank_core.phantom.examples import ExampleSet
from refinerank_core.refinenet import RefineNet

_CORRECT = 0.5


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
    rows, truth = one.features.rows, one.labels.boxes
    original, joint = oracle(found, one.labels)
    values = {
        "medvlm": iou(one.direct, truth),
        "medvlm_groundingdino": iou(one.features.boxes[:, 0], truth),
        "refinerank": iou(chosen_boxes(found), truth),
        "oracle_original": original,
        "oracle_joint": joint,
    }
    return {name: row_mean(each, rows) for name, each in values.items()}


def decomposition(net: RefineNet, side: Side) -> dict[str, dict[str, float]]:
    """Where IoU is lost: 1 - oracle is the candidates', oracle - selected the ranking's.

    Also how often, in shares of the examples, the answer is correct (IoU at least 0.5), rescued by
    refinement (its original was not), or harmed by it (its original was and the answer is not).
    """
    table = {}
    for one in side.sets:
        found = outcomes(net, one.features)
        truth, rows = one.labels.boxes, one.features.rows
        _, joint = oracle(found, one.labels)
        chosen = iou(chosen_boxes(found), truth)
        parents = np.stack([r.pool.boxes[r.ranking.chosen.candidate] for r in found])
        before = iou(parents, truth)
        best, selected = row_mean(joint, rows), row_mean(chosen, rows)
        table[one.features.dataset] = {
            "candidate_loss": round(1 - best, 4),
            "ranking_loss": round(best - selected, 4),
            "correct": round(float((chosen >= _CORRECT).mean()), 4),
            "rescued": round(float(((chosen >= _CORRECT) & (before < _CORRECT)).mean()), 4),
            "harmed": round(float(((chosen < _CORRECT) & (before >= _CORRECT)).mean()), 4),
        }
    return table


def by_kind(net: RefineNet, side: Side) -> dict[str, dict[str, float]]:
    """For each kind of question over all procedures: examples and the mean IoU of each method."""
    gathered: dict[str, list[tuple[float, float, float, float]]] = {}
    for one in side.sets:
        found, truth, kinds = outcomes(net, one.features), one.labels.boxes, one.kind_of()
        columns = (
            iou(one.direct, truth),
            iou(one.features.boxes[:, 0], truth),
            iou(chosen_boxes(found), truth),
            oracle(found, one.labels)[1],
        )
        for row, *values in zip(one.features.rows, *columns, strict=True):
            medvlm, confident, chosen, best = (float(value) for value in values)
            gathered.setdefault(kinds[row], []).append((medvlm, confident, chosen, best))
    names = ("medvlm", "medvlm_groundingdino", "refinerank", "oracle_joint")
    return {
        kind: {
            "examples": len(values),
            **{n: round(float(m), 4) for n, m in zip(names, np.mean(values, axis=0), strict=True)},
        }
        for kind, values in sorted(gathered.items())
    }

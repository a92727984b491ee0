"""The paper's comparison on cached features: methods, selectors and features on one split.

Measures IoU at every example; what follows from that lies in `study_figures`.

Source: RefineRank, arXiv:2608.23928 (Tables 3, 4 and 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from refinerank_core.boxes import iou
from refinerank_core.feature_sets import FeatureSet, Labels
from refinerank_core.joint_pool import (
    Outcome,
    joint_pools,
    member_quality,
    method_ious,
    outcomes,
    selected_boxes,
)
from refinerank_core.refinenet import RefineNet, RefineNetConfig
from refinerank_core.selector_features import FeatureChoice, Members
from refinerank_core.selectors import SELECTORS, train_selector
from refinerank_core.training import BATCH, TrainingPlan, TrainingRun, fit

SEEDS = (20260719, 20260720, 20260721)
FEATURE_EPOCHS = 10

TABLES = ("methods", "oracle", "selectors", "features")

Table = dict[str, dict[str, np.ndarray]]
"""Line -> data set -> (E,) IoU at each of its examples."""


@dataclass(frozen=True, eq=False)
class StudySet:
    """One data set on one side of a split.

    Attributes:
        features, labels: of E examples.
        direct: (E, 4) float32, the MedVLM's own boxes in pixels, NaN where it gave none; None
            where it was not asked.
    """

    features: FeatureSet
    labels: Labels
    direct: np.ndarray | None = None

    def subset(self, places: np.ndarray) -> StudySet:
        """The examples at these places."""
        return StudySet(
            self.features.subset(places),
            Labels(self.labels.boxes[places]),
            None if self.direct is None else self.direct[places],
        )


@dataclass(frozen=True, eq=False)
class Measured:
    """What one seed gives on the evaluation side.

    Attributes:
        seed: of every training.
        net: the RefineNet; of the first fold where there are folds.
        ious: one of TABLES -> its lines.
        before: data set -> (E,) IoU of the original that each answer is or comes from.
        found: data set -> RefineNet's word on each of its E examples.
        losses: run -> mean loss of each epoch of RefineNet.
    """

    seed: int
    net: RefineNet
    ious: dict[str, Table]
    before: dict[str, np.ndarray]
    found: dict[str, list[Outcome]]
    losses: dict[str, tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class StudyPlan:
    """How everything is trained.

    Attributes:
        seed: of RefineNet and of the selectors.
        epochs: of RefineNet; the published 40.
        work: folder that keeps the state of RefineNet, so that a stopped study goes on.
        device: where RefineNet and the neural selectors run.
    """

    seed: int
    epochs: int = 40
    work: Path | None = None
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))


def measure(
    training: Sequence[StudySet],
    evaluation: Sequence[StudySet],
    config: RefineNetConfig,
    plan: StudyPlan,
) -> Measured:
    """Train RefineNet, the selectors and the feature study on one side and score the other.

    Selectors choose among the joint pools of this RefineNet and never see its scores.

    Args:
        training, evaluation: data sets of the two sides; no video may stand on both, see
            `feature_sets.shared_videos`.
        config: of RefineNet.
        plan: seeds, epochs, place and device.
    """
    run = train(training, config, plan)
    found = [outcomes(run.net, one.features) for one in evaluation]
    names = [one.features.dataset for one in evaluation]
    ious: dict[str, Table] = {name: {} for name in TABLES}
    for one, results in zip(evaluation, found, strict=True):
        for line, values in method_ious(results, one.features, one.labels, one.direct).items():
            table = "oracle" if line.startswith("oracle_") else "methods"
            lines = ious[table].setdefault(line.removeprefix("oracle_"), {})
            lines[one.features.dataset] = values
    taught = [outcomes(run.net, one.features) for one in training]
    contest = _Contest(training, evaluation, taught, found, plan)
    whole = FeatureChoice(block=config.inter_block)
    for name in SELECTORS:
        ious["selectors"][name] = contest.ious(name, whole)
    for line, choice in feature_rows(evaluation[0].features).items():
        same = choice == whole  # the MLP of the selectors, trained already
        ious["features"][line] = ious["selectors"]["mlp"] if same else contest.ious("mlp", choice)
    return Measured(
        seed=plan.seed,
        net=run.net,
        ious=ious,
        before={
            name: iou(parent_boxes(results), one.labels.boxes)
            for name, one, results in zip(names, evaluation, found, strict=True)
        },
        found=dict(zip(names, found, strict=True)),
        losses={"refinenet": tuple(run.losses)},
    )


def train(training: Sequence[StudySet], config: RefineNetConfig, plan: StudyPlan) -> TrainingRun:
    """RefineNet by the published settings, the same share of a batch for each data set."""
    settings = TrainingPlan(
        seed=plan.seed, epochs=plan.epochs, batch=BATCH // len(training) * len(training)
    )
    return fit(
        config,
        settings,
        [(one.features, one.labels) for one in training],
        device=plan.device,
        checkpoint=None if plan.work is None else state_path(plan.work, settings, config),
    )


def state_path(work: Path, plan: TrainingPlan, config: RefineNetConfig) -> Path:
    """Where the state of one training is kept."""
    return work / f"refinenet-{plan.seed}-{plan.epochs}-{config.inter_block}.pt"


def parent_boxes(found: Sequence[Outcome]) -> np.ndarray:
    """(E, 4) the originals that the answers are or come from, pixels."""
    return np.stack([one.pool.boxes[one.ranking.chosen.candidate] for one in found])


def feature_rows(features: FeatureSet) -> dict[str, FeatureChoice]:
    """The rows of the feature study: f_dino, then q_last, then the box's tokens of each block."""
    rows = {
        "f_dino": FeatureChoice(q_last=False, final=False),
        "q_last": FeatureChoice(final=False),
    }
    return rows | {f"block_{block}": FeatureChoice(block=block) for block in features.r_blocks}


class _Contest:
    """Selectors on the joint pools of one RefineNet."""

    def __init__(
        self,
        training: Sequence[StudySet],
        evaluation: Sequence[StudySet],
        taught: Sequence[list[Outcome]],
        found: Sequence[list[Outcome]],
        plan: StudyPlan,
    ) -> None:
        self._plan = plan
        self._evaluation = evaluation
        self._pools = [joint_pools(results) for results in found]
        pools = [joint_pools(results) for results in taught]
        self._train = [(one.features, pool) for one, pool in zip(training, pools, strict=True)]
        most = max(pool.valid.shape[1] for pool in pools)
        self._quality = np.concatenate(
            [
                _grown(member_quality(pool, one.labels), most)
                for one, pool in zip(training, pools, strict=True)
            ]
        )
        self._valid = np.concatenate([_grown(pool.valid, most) for pool in pools])

    def ious(self, name: str, choice: FeatureChoice) -> dict[str, np.ndarray]:
        """Train one selector on all data sets: data set -> (E,) IoU of what it selects."""
        selector = train_selector(
            name,
            Members(self._train, choice),
            self._quality,
            self._valid,
            seed=self._plan.seed,
            epochs=FEATURE_EPOCHS,
            device=self._plan.device,
        )
        scored = {}
        for one, pool in zip(self._evaluation, self._pools, strict=True):
            scores = selector.scores(Members([(one.features, pool)], choice), pool.valid)
            boxes = selected_boxes(scores, pool)
            scored[one.features.dataset] = np.asarray(iou(boxes, one.labels.boxes))
        return scored


def _grown(array: np.ndarray, most: int) -> np.ndarray:
    """(E, M) padded to (E, most)."""
    return np.pad(array, ((0, 0), (0, most - array.shape[1])))


def joined(
    parts: Sequence[tuple[Measured, Sequence[np.ndarray]]], sets: Sequence[StudySet]
) -> Measured:
    """One result from the folds of one seed.

    Args:
        parts: of each fold: what was measured, and for each data set of `sets` the places of the
            held-out examples, in the order in which they were measured.
        sets: all examples; each place occurs in exactly one fold.
    """
    first = parts[0][0]
    homes = {one.features.dataset: k for k, one in enumerate(sets)}
    sizes = {name: len(sets[k].features) for name, k in homes.items()}

    def put(read: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
        whole = {name: np.full(size, np.nan) for name, size in sizes.items()}
        for (_, places), values in zip(parts, read, strict=True):
            for name, mine in values.items():
                whole[name][places[homes[name]]] = mine
        return whole

    found: dict[str, dict[int, Outcome]] = {name: {} for name in homes}
    for part, places in parts:
        for name, results in part.found.items():
            found[name] |= dict(zip(places[homes[name]].tolist(), results, strict=True))
    return Measured(
        seed=first.seed,
        net=first.net,
        ious={
            table: {line: put([part.ious[table][line] for part, _ in parts]) for line in lines}
            for table, lines in first.ious.items()
        },
        before=put([part.before for part, _ in parts]),
        found={name: [mine[k] for k in range(sizes[name])] for name, mine in found.items()},
        losses={
            f"fold {k + 1} of {len(parts)}": part.losses["refinenet"]
            for k, (part, _) in enumerate(parts)
        },
    )

"""The controlled study: the paper's tables on phantom surgery, split by video.

Per procedure every figure is the mean over question rows of the mean IoU over their times; the
average weighs the three procedures equally. Mean and spread (sample deviation) are over seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from refinerank_core.boxes import iou
from refinerank_core.errors import RefineRankError
from refinerank_core.feature_sets import FeatureSet, shared_videos
from refinerank_core.joint_pool import (
    JointPool,
    Outcome,
    joint_pools,
    member_quality,
    outcomes,
    selected_boxes,
)
from refinerank_core.metrics import row_mean
from refinerank_core.phantom.semantics import semantic_checks
from refinerank_core.phantom.study_figures import (
    Side,
    by_kind,
    decomposition,
    refinerank_scores,
    split_facts,
)
from refinerank_core.refinenet import RefineNet, RefineNetConfig
from refinerank_core.selectors import (
    SELECTORS,
    FeatureChoice,
    member_features,
    train_selector,
)
from refinerank_core.training import TrainingPlan, TrainingRun, fit

SEEDS = (20260719, 20260720, 20260721)
FEATURE_EPOCHS = 10

Scores = dict[str, list[float]]
"""Procedure -> one figure a seed."""


def run_study(
    training: Side,
    evaluation: Side,
    config: RefineNetConfig,
    *,
    seeds: Sequence[int] = SEEDS,
    epochs: int = 40,
    work: Path | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[dict[str, Any], RefineNet]:
    """Train and score everything.

    Args:
        training, evaluation: the two sides.
        config: of RefineNet.
        seeds: one training of each learner a seed.
        epochs: of RefineNet; the published 40.
        work: keeps the state of each RefineNet, so that a stopped study goes on.
        progress: called with a line now and then.

    Returns:
        The figures (see the module's text for their meaning) and the RefineNet of the first seed.

    Raises:
        RefineRankError: the two sides share a video.
    """
    require_split(training, evaluation)
    tables = _Tables(evaluation.names)
    first: RefineNet | None = None
    for seed in seeds:
        run = train(training, config, seed=seed, epochs=epochs, work=work)
        first = first or run.net
        progress(f"seed {seed}: RefineNet in {run.seconds:.0f} s")
        found = [outcomes(run.net, one.features) for one in evaluation.sets]
        _score_methods(tables, evaluation, found)
        taught = [outcomes(run.net, one.features) for one in training.sets]
        _score_selectors(tables, training, evaluation, taught, found, config, seed)
        progress(f"seed {seed}: selectors and feature study done")
    if first is None:
        raise ValueError("seeds must not be empty")
    figures = tables.as_json()
    figures |= {
        "procedures": list(evaluation.names),
        "split": {
            "train": split_facts(training),
            "eval": split_facts(evaluation),
        },
        "seeds": list(seeds),
        "inter_block": config.inter_block,
        "decomposition": decomposition(first, evaluation),
        "by_kind": by_kind(first, evaluation),
        "checks": semantic_checks(first, [(o.features, o.labels) for o in evaluation.sets]),
    }
    return figures, first


def require_split(training: Side, evaluation: Side) -> None:
    """Raise RefineRankError when a video stands on both sides."""
    shared = shared_videos(
        [one.features for one in training.sets], [one.features for one in evaluation.sets]
    )
    if shared:
        raise RefineRankError(
            f"{len(shared)} video(s) stand on both sides of the split, such as {min(shared)}. "
            "Choose scenes of different seeds."
        )


def train(
    training: Side, config: RefineNetConfig, *, seed: int, epochs: int, work: Path | None
) -> TrainingRun:
    """RefineNet by the published settings, 16 examples of each procedure in a batch."""
    count = len(training.sets)
    plan = TrainingPlan(seed=seed, epochs=epochs, batch=48 // count * count)
    return fit(
        config,
        plan,
        training.for_training(),
        device=torch.device("cpu"),
        checkpoint=None if work is None else state_path(work, plan, config),
    )


def state_path(work: Path, plan: TrainingPlan, config: RefineNetConfig) -> Path:
    """Where the state of one training is kept."""
    return work / f"refinenet-{plan.seed}-{plan.epochs}-{config.inter_block}.pt"


class _Tables:
    """Figures gathered seed by seed."""

    def __init__(self, procedures: Sequence[str]) -> None:
        self._procedures = procedures
        self._found: dict[str, dict[str, Scores]] = {}

    def add(self, table: str, line: str, procedure: str, value: float) -> None:
        lines = self._found.setdefault(table, {})
        lines.setdefault(line, {}).setdefault(procedure, []).append(value)

    def as_json(self) -> dict[str, Any]:
        return {
            table: {line: self._line(scores) for line, scores in lines.items()}
            for table, lines in self._found.items()
        }

    def _line(self, scores: Scores) -> dict[str, dict[str, float]]:
        average = np.mean([scores[procedure] for procedure in self._procedures], axis=0)
        cells = {procedure: _cell(scores[procedure]) for procedure in self._procedures}
        return {**cells, "average": _cell(average.tolist())}


def _cell(values: Sequence[float]) -> dict[str, float]:
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return {"mean": round(float(np.mean(values)), 4), "spread": round(spread, 4)}


def _score_methods(tables: _Tables, side: Side, found: Sequence[list[Outcome]]) -> None:
    """Table 3: the three methods and both oracles."""
    for one, results in zip(side.sets, found, strict=True):
        for line, value in refinerank_scores(results, one).items():
            table = "oracle" if line.startswith("oracle_") else "methods"
            tables.add(table, line.removeprefix("oracle_"), one.features.dataset, value)


def _score_selectors(
    tables: _Tables,
    training: Side,
    evaluation: Side,
    taught: Sequence[list[Outcome]],
    found: Sequence[list[Outcome]],
    config: RefineNetConfig,
    seed: int,
) -> None:
    """Tables 4 and 5 on the joint pools of this seed's RefineNet."""
    train_pools = [joint_pools(results) for results in taught]
    eval_pools = [joint_pools(results) for results in found]
    whole = FeatureChoice(block=config.inter_block)
    for name in SELECTORS:
        selected = _select(name, whole, training, evaluation, train_pools, eval_pools, seed)
        for procedure, value in selected.items():
            tables.add("selectors", name, procedure, value)
    for line, choice in feature_rows(evaluation.sets[0].features).items():
        selected = _select("mlp", choice, training, evaluation, train_pools, eval_pools, seed)
        for procedure, value in selected.items():
            tables.add("features", line, procedure, value)


def feature_rows(features: FeatureSet) -> dict[str, FeatureChoice]:
    """The rows of the feature study: f_dino, then q_last, then the box's tokens of each block."""
    rows = {
        "f_dino": FeatureChoice(q_last=False, final=False),
        "q_last": FeatureChoice(final=False),
    }
    return rows | {f"block_{block}": FeatureChoice(block=block) for block in features.r_blocks}


def _select(
    name: str,
    choice: FeatureChoice,
    training: Side,
    evaluation: Side,
    train_pools: Sequence[JointPool],
    eval_pools: Sequence[JointPool],
    seed: int,
) -> dict[str, float]:
    """Train one selector on all procedures and score it on each."""
    parts = [
        (
            member_features(one.features, pool, choice),
            member_quality(pool, one.labels),
            pool.valid,
        )
        for one, pool in zip(training.sets, train_pools, strict=True)
    ]
    most = max(valid.shape[1] for _, _, valid in parts)
    members, quality, valid = (
        np.concatenate([_grown(part[place], most) for part in parts]) for place in range(3)
    )
    selector = train_selector(name, members, quality, valid, seed=seed, epochs=FEATURE_EPOCHS)
    scored = {}
    for one, pool in zip(evaluation.sets, eval_pools, strict=True):
        scores = selector.scores(member_features(one.features, pool, choice), pool.valid)
        overlap = iou(selected_boxes(scores, pool), one.labels.boxes)
        scored[one.features.dataset] = row_mean(overlap, one.features.rows)
    return scored


def _grown(array: np.ndarray, most: int) -> np.ndarray:
    pad = [(0, 0), (0, most - array.shape[1])] + [(0, 0)] * (array.ndim - 2)
    return np.pad(array, pad)

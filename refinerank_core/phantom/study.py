"""The controlled study: the paper's tables on phantom surgery, split by video."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from refinerank_core.errors import RefineRankError
from refinerank_core.feature_sets import shared_videos
from refinerank_core.phantom.semantics import semantic_checks
from refinerank_core.phantom.study_figures import Side, by_kind, split_facts
from refinerank_core.refinenet import RefineNet, RefineNetConfig
from refinerank_core.study import SEEDS, StudyPlan, measure
from refinerank_core.study_figures import figures_of


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
        The figures (see `study_figures`; data sets are procedures), with the split, the kinds of
        questions and the semantic checks; and the RefineNet of the first seed.

    Raises:
        RefineRankError: the two sides share a video.
    """
    require_split(training, evaluation)
    if not seeds:
        raise ValueError("seeds must not be empty")
    measured = []
    for seed in seeds:
        plan = StudyPlan(seed, epochs, work)
        measured.append(measure(training.for_study(), evaluation.for_study(), config, plan))
        progress(f"seed {seed}: RefineNet, selectors and feature study done")
    first = measured[0]
    figures = figures_of(measured, evaluation.for_study(), evaluation.questions())
    figures |= {
        "split": {"train": split_facts(training), "eval": split_facts(evaluation)},
        "inter_block": config.inter_block,
        "by_kind": by_kind(first, evaluation),
        "checks": semantic_checks(first.net, [(o.features, o.labels) for o in evaluation.sets]),
    }
    return figures, first.net


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

"""Tables 3 to 5 on cached features, by the code that the phantom study runs on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from refinerank_core.cached_training import NetSize, annotated_sets, config_of, require_split
from refinerank_core.errors import RefineRankError
from refinerank_core.feature_cache import CachedSet, FeatureCache
from refinerank_core.folds import require_folds, split_fold
from refinerank_core.refinenet import RefineNetConfig
from refinerank_core.study import Measured, StudyPlan, StudySet, joined, measure
from refinerank_core.study_figures import figures_of
from refinerank_core.study_tables import HOW, paper_tables

Told = Callable[[str], None]


@dataclass(frozen=True)
class TablesPlan:
    """How the tables are made.

    Attributes:
        seeds: one training of each learner a seed.
        epochs: of RefineNet; the published 40.
        block: vision block that it reads; None: the profile's of the caches.
        size: of RefineNet.
        folds: None: train on all and score the held-out cache.
    """

    seeds: tuple[int, ...]
    epochs: int = 40
    block: int | None = None
    size: NetSize = field(default_factory=NetSize)
    folds: int | None = None


def cached_tables(
    caches: Sequence[FeatureCache],
    held: FeatureCache | None,
    plan: TablesPlan,
    *,
    work: Path,
    device: torch.device,
    told: Told = lambda _: None,
) -> dict[str, Any]:
    """Every figure of a study on cached rows; the MedVLM's line is there where it was asked.

    Args:
        caches: of annotated rows.
        held: of the rows to score; None with folds, which score each video by what was trained
            without it.
        plan: seeds, epochs, sizes, folds.
        work: keeps the states of RefineNet.
        device: where it and the neural selectors run.
        told: called with a line now and then.

    Raises:
        RefineRankError: neither or both of held and folds, a shared video, too few videos, or
            caches that do not fit each other.
    """
    if (held is None) == (plan.folds is None):
        raise RefineRankError("Give either --held-out or --folds.")
    pairs = annotated_sets(caches)
    block = int(caches[0].manifest["inter_block"]) if plan.block is None else plan.block
    config = config_of(pairs, block, plan.size)
    training = study_sets(caches)
    if held is not None:
        require_split(pairs, held)
        config_of([*pairs, *annotated_sets([held])], block, plan.size)
        evaluation = study_sets([held])
    else:
        evaluation = training
    measured = []
    for seed in plan.seeds:
        run = StudyPlan(seed, plan.epochs, work, device)
        if plan.folds is None:
            measured.append(measure(training, evaluation, config, run))
        else:
            measured.append(_folded(training, config, run, plan.folds, told))
        told(f"seed {seed}: RefineNet, selectors and feature study done")
    models = list(caches[0].manifest["settings"]["models"])
    return figures_of(measured, evaluation) | {
        "split": {
            "train": _facts(training),
            "eval": _facts(evaluation),
        },
        "folds": plan.folds,
        "inter_block": block,
        "models": models,
        "phantom": any("phantom" in str(model) for model in models),
    }


def study_sets(caches: Sequence[FeatureCache]) -> list[StudySet]:
    """The annotated examples of each data set, with the MedVLM's own boxes where all have them."""
    sets = [one for cache in caches for one in cache.sets]
    asked = all(one.direct is not None for one in sets)
    return [_study_set(one, asked) for one in sets]


def _study_set(one: CachedSet, asked: bool) -> StudySet:
    features, labels = one.annotated()
    direct = one.direct if asked else None
    return StudySet(features, labels, None if direct is None else direct[one.annotated_places()])


def _folded(
    sets: Sequence[StudySet], config: RefineNetConfig, plan: StudyPlan, folds: int, told: Told
) -> Measured:
    """One seed over all folds; a fold's states lie in a folder of their own."""
    pairs = [(one.features, one.labels) for one in sets]
    require_folds(pairs, folds)
    parts = []
    for fold in range(folds):
        kept, places = split_fold(pairs, fold, folds=folds, seed=plan.seed)
        training = [StudySet(features, labels) for features, labels in kept]
        held = [one.subset(mine) for one, mine in zip(sets, places, strict=True) if len(mine)]
        work = None if plan.work is None else plan.work / f"fold{fold + 1}of{folds}"
        parts.append((measure(training, held, config, replace(plan, work=work)), places))
        told(f"seed {plan.seed}: fold {fold + 1} of {folds} done")
    return joined(parts, sets)


def _facts(sets: Sequence[StudySet]) -> dict[str, dict[str, int]]:
    return {
        one.features.dataset: {
            "videos": len(set(one.features.videos)),
            "rows": len(set(one.features.rows)),
            "examples": len(one.features),
        }
        for one in sets
    }


def as_markdown(figures: Mapping[str, Any]) -> str:
    """The tables as a document."""
    names = list(figures["procedures"])
    split = figures["split"]
    folds = figures["folds"]
    how = f"{folds} folds grouped by video" if folds else "training and held-out videos apart"
    parts = [
        "# Methods, selectors and features on cached rows",
        "",
        *(
            ["PHANTOM: the models behind these features know drawn surgery alone.", ""]
            if figures["phantom"]
            else []
        ),
        f"Models {', '.join(figures['models'])}; {how}; seeds "
        f"{', '.join(map(str, figures['seeds']))}; {HOW} data sets equally.",
        "",
        "| data set | training videos / examples | evaluation videos / examples |",
        "|---|---|---|",
        *(
            f"| {name} | {_count(split['train'].get(name))} | {_count(split['eval'].get(name))} |"
            for name in dict.fromkeys([*split["train"], *names])
        ),
        "",
        *paper_tables(figures, "data set"),
    ]
    return "\n".join(parts) + "\n"


def _count(facts: Mapping[str, int] | None) -> str:
    return f"{facts['videos']} / {facts['examples']}" if facts else "none"

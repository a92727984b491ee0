"""RefineNet on cached features: train, predict, score; in-sample answers are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from refinerank_core.answers import format_answer
from refinerank_core.boxes import Corners, iou
from refinerank_core.errors import RefineRankError
from refinerank_core.evaluation import require_apart
from refinerank_core.feature_cache import CachedExample, CachedSet, FeatureCache
from refinerank_core.feature_sets import FeatureSet, Labels, shared_videos
from refinerank_core.folds import Sets, require_folds, split_fold
from refinerank_core.formats.medvidbench_space import convention_of, to_canvas
from refinerank_core.formats.medvidbench_submission import FIELDS, INDEX
from refinerank_core.joint_pool import chosen_boxes, method_ious, outcomes
from refinerank_core.metrics import dataset_average, row_mean
from refinerank_core.refinenet import RefineNet, RefineNetConfig
from refinerank_core.training import BATCH, TrainingPlan, TrainingRun, fit

EpochTold = Callable[[str, int, float], None]
"""Called after each epoch with the run's name, the number of epochs done, and the mean loss."""


@dataclass(frozen=True)
class NetSize:
    """Widths of RefineNet's own layers; the defaults are the published ones."""

    d_model: int = 128
    hidden_dim: int = 256


def annotated_sets(caches: Iterable[FeatureCache]) -> list[tuple[FeatureSet, Labels]]:
    """Features and answers of each data set of some caches.

    Raises:
        RefineRankError: a data set has no annotation, or stands in two caches.
    """
    sets = [one.annotated() for cache in caches for one in cache.sets]
    names = [features.dataset for features, _ in sets]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise RefineRankError(
            f"{twice[0]} stands in two caches. Build one cache from all of its rows."
        )
    return sets


def require_unseen(trained_on: Iterable[str], cache: FeatureCache) -> None:
    """Raise a RefineRankError that names the videos of a cache that were trained on."""
    seen = {video for one in cache.sets for video in one.features.videos}
    require_apart(sorted(seen & set(trained_on)))


def require_split(sets: Sets, cache: FeatureCache) -> None:
    """Raise a RefineRankError that names the videos on both sides of a split."""
    sides = [features for features, _ in sets], [one.features for one in cache.sets]
    require_apart(sorted(shared_videos(*sides)))


def config_of(sets: Sets, block: int, size: NetSize) -> RefineNetConfig:
    """RefineNet for these features.

    Raises:
        RefineRankError: the block is not cached, or the data sets' widths differ.
    """
    widths = set()
    for features, _ in sets:
        if block not in features.r_blocks:
            known = ", ".join(map(str, features.r_blocks))
            raise RefineRankError(f"Block {block} is not in the cache: choose one of {known}.")
        shapes = (features.q_last, features.r_final, features.r_blocks[block])
        widths.add(tuple(array.shape[-1] for array in shapes))
    if len(widths) > 1:
        raise RefineRankError("The caches hold features of different models. Build them alike.")
    query, final, inter = widths.pop()
    return RefineNetConfig(
        query_dim=query,
        final_dim=final,
        inter_dim=inter,
        inter_block=block,
        d_model=size.d_model,
        hidden_dim=size.hidden_dim,
    )


def train_on(
    sets: Sets,
    config: RefineNetConfig,
    *,
    seed: int,
    epochs: int,
    device: torch.device,
    work: Path,
    name: str = "refinenet",
    told: EpochTold = lambda *_: None,
) -> TrainingRun:
    """Train by the published settings, resuming from the work folder.

    Args:
        sets: features and answers of each data set.
        config: of RefineNet.
        seed, epochs: of the plan.
        device: where.
        work: keeps the state, one file a name and seed.
        name: of the run.
        told: called after each epoch.
    """
    plan = TrainingPlan(seed=seed, epochs=epochs, batch=BATCH // len(sets) * len(sets))
    label = f"{name}-{seed}"
    try:
        return fit(
            config,
            plan,
            sets,
            device=device,
            checkpoint=work / f"{label}.pt",
            told=lambda epoch, loss: told(label, epoch, loss),
        )
    except ValueError as error:
        raise RefineRankError(str(error)) from error


def out_of_fold(
    caches: Sequence[FeatureCache],
    config: RefineNetConfig,
    *,
    folds: int,
    seed: int,
    epochs: int,
    device: torch.device,
    work: Path,
    told: EpochTold = lambda *_: None,
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Predict every annotated example with a RefineNet that never saw its video.

    Returns:
        The predictions, and strict mIoU of each data set and "average".

    Raises:
        RefineRankError: there are fewer videos than folds.
    """
    if len(caches) != 1:
        raise RefineRankError("Folds are made within one cache. Give one --features.")
    cache = caches[0]
    sets = annotated_sets(caches)
    require_folds(sets, folds)
    boxes = [np.full((len(features), 4), np.nan, np.float32) for features, _ in sets]
    for fold in range(folds):
        training, held = split_fold(sets, fold, folds=folds, seed=seed)
        run = train_on(
            training,
            config,
            seed=seed,
            epochs=epochs,
            device=device,
            work=work,
            name=f"fold{fold + 1}of{folds}",
            told=told,
        )
        for (features, _), places, found in zip(sets, held, boxes, strict=True):
            if len(places):
                found[places] = chosen_boxes(outcomes(run.net, features.subset(places)))
    chosen: dict[str, Corners] = {}
    for one, found in zip(cache.sets, boxes, strict=True):
        known = _annotated_examples(one)
        chosen |= {_name(example): _corners(box) for example, box in zip(known, found, strict=True)}
    scores = {
        features.dataset: row_mean(iou(found, labels.boxes), features.rows)
        for (features, labels), found in zip(sets, boxes, strict=True)
    }
    return predictions(cache, chosen), with_average(scores)


def predict(net: RefineNet, cache: FeatureCache) -> list[dict[str, Any]]:
    """One prediction for every STG row of the cache's file; "" for one that could not be used.

    Raises:
        RefineRankError: the features do not fit the network.
    """
    chosen: dict[str, Corners] = {}
    for one in cache.sets:
        require_fit(net, one.features)
        boxes = chosen_boxes(outcomes(net, one.features))
        chosen |= {_name(e): _corners(box) for e, box in zip(one.examples, boxes, strict=True)}
    return predictions(cache, chosen)


def predictions(cache: FeatureCache, chosen: dict[str, Corners]) -> list[dict[str, Any]]:
    """Boxes in pixels of the frames, written as the benchmark wants them, keyed by row.

    Args:
        cache: whose rows are answered.
        chosen: `_name` of an example -> its box; examples without one are left out.
    """
    timed: dict[int, list[tuple[float, Corners]]] = {}
    for one in cache.sets:
        convention = convention_of(one.features.dataset)
        for example in one.examples:
            box = chosen.get(_name(example))
            if box is not None:
                placed = to_canvas(box, convention, example.size_wh)
                timed.setdefault(example.place, []).append((example.time_s, placed))
    documents = []
    for place, row_id, kind in sorted(cache.rows):
        mine = sorted(timed.get(place, []))
        text = format_answer([time_s for time_s, _ in mine], [box for _, box in mine])
        documents.append({INDEX: place, **dict(zip(FIELDS, (row_id, kind, text), strict=True))})
    return documents


def cache_scores(net: RefineNet, cache: FeatureCache) -> dict[str, dict[str, float]]:
    """Strict mIoU of the methods and of both oracles on the annotated examples of a cache.

    Returns:
        refinerank, original (best box of the pool), joint (best original or refined box),
        medvlm_groundingdino, and medvlm where the cache keeps direct answers:
        data set -> mIoU, and "average".
    """
    tables: dict[str, dict[str, float]] = {}
    for one, (features, labels) in zip(cache.sets, annotated_sets([cache]), strict=True):
        require_fit(net, features)
        direct = None if one.direct is None else one.direct[one.annotated_places()]
        for line, values in method_ious(outcomes(net, features), features, labels, direct).items():
            table = tables.setdefault(line.removeprefix("oracle_"), {})
            table[features.dataset] = row_mean(values, features.rows)
    return {name: with_average(table) for name, table in tables.items()}


def require_fit(net: RefineNet, features: FeatureSet) -> None:
    """Raise RefineRankError unless a network reads features of these widths and this block."""
    config = net.config
    inter = features.r_blocks.get(config.inter_block)
    widths = (
        features.q_last.shape[-1],
        features.r_final.shape[-1],
        None if inter is None else inter.shape[-1],
    )
    if widths != (config.query_dim, config.final_dim, config.inter_dim):
        raise RefineRankError(
            f"This RefineNet reads widths {config.query_dim}, {config.final_dim} and "
            f"{config.inter_dim} of block {config.inter_block}; {features.dataset} is cached "
            "otherwise. Build the cache with the models that it was trained on."
        )


def card_of(
    run: TrainingRun, sets: Sets, caches: Sequence[FeatureCache], *, seconds: float
) -> dict[str, Any]:
    """What a trained checkpoint is and how it came to be."""
    return {
        "plan": asdict(run.plan),
        "config": asdict(run.net.config),
        "parameters": sum(parameter.numel() for parameter in run.net.parameters()),
        "models": caches[0].manifest["settings"]["models"],
        "caches": [cache.digest for cache in caches],
        "epochs": run.epoch,
        "losses": [round(loss, 6) for loss in run.losses],
        "seconds": round(seconds, 1),
        "examples": {features.dataset: len(features) for features, _ in sets},
        "videos": sorted({video for features, _ in sets for video in features.videos}),
    }


def with_average(scores: dict[str, float]) -> dict[str, float]:
    """Figures of data sets, rounded, and their average with equal weight."""
    rounded = {name: round(value, 6) for name, value in scores.items()}
    return {**rounded, "average": round(dataset_average(scores), 6)}


def _annotated_examples(one: CachedSet) -> list[CachedExample]:
    """The examples behind `CachedSet.annotated`, in its order."""
    return [one.examples[place] for place in one.annotated_places()]


def _name(example: CachedExample) -> str:
    return f"{example.place}@{example.time_s!r}"


def _corners(box: np.ndarray) -> Corners:
    x0, y0, x1, y1 = (float(edge) for edge in box)
    return x0, y0, x1, y1

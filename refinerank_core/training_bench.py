"""How long RefineNet trains at the published size, on random features.

The cost of a step does not depend on what the features say, so random ones measure it. A few
examples stand in for all: each data set repeats its own until it has the published number.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch

from refinerank_core.feature_cache import CachedRegions
from refinerank_core.feature_sets import FeatureSet, Labels
from refinerank_core.refinenet import METADATA_VALUES, RefineNetConfig
from refinerank_core.training import TrainingPlan, TrainingRun, epoch_batches

EXAMPLES = {"CholecTrack20": 807, "CoPESD": 134, "EgoSurgery": 1405}
"""The published training split: 2,346 examples."""

CANDIDATES = 48  # twelve detections, each with its three sub-boxes
_DISTINCT = 48
_WARM_STEPS = 2


@dataclass(frozen=True)
class TrainingTime:
    """A measurement.

    Attributes:
        steps: measured.
        step_s: median seconds of one.
        epoch_steps: steps in one of the published epochs.
        measured_s: seconds of the whole training where it was run whole, else None.
    """

    steps: int
    step_s: float
    epoch_steps: int
    measured_s: float | None

    @property
    def whole_s(self) -> float:
        """Seconds of the whole training: measured, or extrapolated from the median step."""
        if self.measured_s is not None:
            return self.measured_s
        return self.step_s * self.epoch_steps * TrainingPlan().epochs


def random_sets(config: RefineNetConfig, *, seed: int = 0) -> list[tuple[FeatureSet, Labels]]:
    """Random features of the published split at these widths, kept as float16 like a cache's."""
    rng = np.random.default_rng(seed)
    return [_random_set(name, count, config, rng) for name, count in EXAMPLES.items()]


def measure_training(
    config: RefineNetConfig, *, device: torch.device, steps: int | None
) -> TrainingTime:
    """Time a training.

    Args:
        config: of RefineNet.
        device: where.
        steps: steps to measure and extrapolate from, of one epoch at most; None trains whole.
    """
    sets = random_sets(config)
    plan = TrainingPlan()
    sizes = [len(features) for features, _ in sets]
    each = len(list(epoch_batches(sizes, batch=plan.batch, rng=np.random.default_rng(0))))
    run = TrainingRun.start(config, plan, sets, device=device)
    run.net.train()
    if steps is None:
        started = time.perf_counter()
        for _ in range(plan.epochs):
            run.advance(sets)
        whole_s = time.perf_counter() - started
        return TrainingTime(each * plan.epochs, whole_s / each / plan.epochs, each, whole_s)
    seconds = []
    batches = list(epoch_batches(sizes, batch=plan.batch, rng=np.random.default_rng(0)))
    for places in batches[: steps + _WARM_STEPS]:
        started = time.perf_counter()
        run.step(sets, places)
        seconds.append(time.perf_counter() - started)
    timed = seconds[_WARM_STEPS:]
    return TrainingTime(len(timed), float(np.median(timed)), each, None)


def _random_set(
    name: str, count: int, config: RefineNetConfig, rng: np.random.Generator
) -> tuple[FeatureSet, Labels]:
    home = np.arange(count) % _DISTINCT
    low = rng.uniform(0, 0.6, (count, CANDIDATES, 2))
    boxes = np.concatenate((low, low + rng.uniform(0.1, 0.4, low.shape)), axis=-1) * 800
    full = np.full(count, CANDIDATES)

    def regions(width: int) -> CachedRegions:
        distinct = rng.standard_normal((_DISTINCT * CANDIDATES, width), np.float32)
        kept = distinct.astype(np.float16)
        return CachedRegions([kept] * count, home * CANDIDATES, full, CANDIDATES)

    features = FeatureSet(
        dataset=name,
        rows=tuple(map(str, range(count))),
        videos=(name,) * count,
        times_s=np.zeros(count, np.float32),
        sizes_wh=np.full((count, 2), 800, np.int64),
        q_last=rng.standard_normal((count, config.query_dim), np.float32),
        r_final=regions(config.final_dim),
        r_blocks={config.inter_block: regions(config.inter_dim)},
        metadata=rng.standard_normal((count, CANDIDATES, METADATA_VALUES), np.float32),
        boxes=boxes.astype(np.float32),
        native=np.zeros((count, CANDIDATES), np.float32),
        valid=np.ones((count, CANDIDATES), np.bool_),
        content=f"random/{name}",
    )
    return features, Labels(boxes[:, 0].astype(np.float32) + 5)

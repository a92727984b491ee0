"""Train RefineNet on precomputed features.

Source: RefineRank, arXiv:2608.23928 (sampling and settings; the losses lie in `losses`).
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from refinerank_core.allocator import keep_freed_memory
from refinerank_core.errors import RefineRankError
from refinerank_core.feature_sets import FeatureSet, Labels, Regions, unit_boxes
from refinerank_core.losses import Batch, refinenet_loss
from refinerank_core.refinenet import METADATA_VALUES, RefineNet, RefineNetConfig
from refinerank_core.whole_file import whole_file

LEAST_STD = 1e-6


BATCH = 48
"""Examples of an update, the published number."""


@dataclass(frozen=True)
class TrainingPlan:
    """How a RefineNet is trained; the defaults are the published settings.

    Attributes:
        epochs: passes over the largest data set.
        batch: examples in an update, the same number from each data set.
        rate, weight_decay: of AdamW; the rate stays.
        clip: largest gradient norm.
        anchors: originals per example whose correction is taught, those that fit best.
        seed: of weights, draws and dropout.
    """

    epochs: int = 40
    batch: int = BATCH
    rate: float = 3e-4
    weight_decay: float = 1e-2
    clip: float = 1.0
    anchors: int = 8
    seed: int = 20260719


def standardiser(sets: Sequence[FeatureSet]) -> tuple[Tensor, Tensor]:
    """Mean and deviation of each of the 12 metadata values over all observed ones.

    Returns:
        (12,) and (12,) float32; a deviation below 1e-6 becomes 1, a value never observed 0 and 1.
    """
    rows = np.concatenate([one.metadata[one.valid] for one in sets]).astype(np.float64)
    mean, std = np.zeros(METADATA_VALUES), np.ones(METADATA_VALUES)
    for column in range(METADATA_VALUES):
        observed = rows[~np.isnan(rows[:, column]), column]
        if len(observed):
            mean[column] = observed.mean()
            std[column] = observed.std() if observed.std() >= LEAST_STD else 1.0
    return torch.tensor(mean, dtype=torch.float32), torch.tensor(std, dtype=torch.float32)


def epoch_batches(
    sizes: Sequence[int], *, batch: int, rng: np.random.Generator
) -> Iterator[list[np.ndarray]]:
    """Draw the batches of one epoch.

    Args:
        sizes: examples in each data set.
        batch: examples in a batch, divided equally among the data sets.
        rng: the epoch's own stream.

    Yields:
        For each data set the places of its share. The largest one is passed through once, the
        smaller ones are drawn with replacement.

    Raises:
        ValueError: batch does not divide among the data sets, or one of them is empty.
    """
    if not sizes or batch % len(sizes) or min(sizes) < 1:
        raise ValueError(f"a batch of {batch} does not divide among data sets of {list(sizes)}")
    share = batch // len(sizes)
    steps = math.ceil(max(sizes) / share)
    drawn = [
        np.concatenate((rng.permutation(size), rng.integers(0, size, steps * share - size)))
        if size == max(sizes)
        else rng.integers(0, size, steps * share)
        for size in sizes
    ]
    for step in range(steps):
        yield [places[step * share : (step + 1) * share] for places in drawn]


def gather_batch(
    sets: Sequence[tuple[FeatureSet, Labels]],
    places: Sequence[np.ndarray],
    *,
    inter_block: int,
    device: torch.device,
) -> Batch:
    """Examples of several data sets as tensors on the device."""
    parts = [
        (features, chosen, labels.unit(features, chosen))
        for (features, labels), chosen in zip(sets, places, strict=True)
    ]
    most = max(features.valid.shape[1] for features, _, _ in parts)

    def joined(read: Callable[[FeatureSet], np.ndarray | Regions]) -> Tensor:
        grown = [_grown(read(features)[chosen], most) for features, chosen, _ in parts]
        return torch.from_numpy(np.concatenate(grown)).to(device)

    return Batch(
        q_last=torch.from_numpy(np.concatenate([f.q_last[c] for f, c, _ in parts])).to(device),
        r_final=joined(lambda features: features.r_final),
        r_inter=joined(lambda features: features.r_blocks[inter_block]),
        metadata=joined(lambda features: features.metadata),
        boxes=torch.from_numpy(
            np.concatenate(
                [_grown(unit_boxes(f.boxes[c], f.sizes_wh[c]), most) for f, c, _ in parts]
            )
        ).to(device),
        valid=joined(lambda features: features.valid),
        wanted=torch.from_numpy(np.concatenate([wanted for _, _, wanted in parts])).to(device),
    )


def _grown(array: np.ndarray, most: int) -> np.ndarray:
    """Pad the second axis with zeros to this length."""
    pad = [(0, 0), (0, most - array.shape[1])] + [(0, 0)] * (array.ndim - 2)
    return np.pad(array, pad)


@dataclass(eq=False)
class TrainingRun:
    """A training under way: everything that a checkpoint holds."""

    plan: TrainingPlan
    net: RefineNet
    optimizer: torch.optim.Optimizer
    data: str
    epoch: int = 0
    seconds: float = 0.0
    losses: list[float] = field(default_factory=list)

    @classmethod
    def start(
        cls,
        config: RefineNetConfig,
        plan: TrainingPlan,
        sets: Sequence[tuple[FeatureSet, Labels]],
        *,
        device: torch.device,
        start: RefineNet | None = None,
    ) -> TrainingRun:
        """Seeded weights and the standardiser of these training sets; else those of `start`."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(plan.seed)
            net = RefineNet(config)
        if start is None:
            mean, std = standardiser([features for features, _ in sets])
            net.standardizer_mean.copy_(mean)
            net.standardizer_std.copy_(std)
        else:
            net.load_state_dict(start.state_dict())
        net = net.to(device)
        if device.type == "cpu":
            keep_freed_memory()
        optimizer = torch.optim.AdamW(
            net.parameters(), lr=plan.rate, weight_decay=plan.weight_decay
        )
        return cls(plan, net, optimizer, fingerprint(sets))

    def resume(self, path: Path) -> None:
        """Go on from a checkpoint of `keep`.

        Raises:
            RefineRankError: it belongs to another plan, another network or other data.
        """
        state = torch.load(path, weights_only=True)
        if state["settings"] != self._settings():
            raise RefineRankError(
                f"{path.name} is a checkpoint of another plan or data. Remove it."
            )
        self.net.load_state_dict(state["net"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.epoch, self.seconds = state["epoch"], state["seconds"]
        self.losses = list(state.get("losses", []))  # older states have none

    def keep(self, path: Path) -> None:
        """Write a checkpoint, whole or not at all."""
        state = {
            "settings": self._settings(),
            "net": self.net.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "epoch": self.epoch,
            "seconds": self.seconds,
            "losses": self.losses,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as fresh:
            torch.save(state, fresh)

    def advance(self, sets: Sequence[tuple[FeatureSet, Labels]]) -> float:
        """One epoch; returns its mean loss. Every draw follows from the seed and the epoch."""
        plan, device = self.plan, self.net.delta_bounds.device
        started = time.perf_counter()
        rng = np.random.default_rng([plan.seed, self.epoch])
        losses: list[float] = []
        self.net.train()
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(plan.seed * 1_000_003 + self.epoch)
            for places in epoch_batches([len(f) for f, _ in sets], batch=plan.batch, rng=rng):
                losses.append(self.step(sets, places))
        self.epoch += 1
        self.seconds += time.perf_counter() - started
        self.losses.append(float(np.mean(losses)))
        return self.losses[-1]

    def step(
        self, sets: Sequence[tuple[FeatureSet, Labels]], places: Sequence[np.ndarray]
    ) -> float:
        """One update on the examples at these places of each data set; returns its loss."""
        block, device = self.net.config.inter_block, self.net.delta_bounds.device
        batch = gather_batch(sets, places, inter_block=block, device=device)
        loss = refinenet_loss(self.net, batch, anchors=self.plan.anchors)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), self.plan.clip)
        self.optimizer.step()
        return float(loss.detach())

    def _settings(self) -> dict[str, Any]:
        settings = {
            "plan": asdict(self.plan),
            "config": asdict(self.net.config),
            "data": self.data,
        }
        plain: dict[str, Any] = json.loads(json.dumps(settings))  # tuples become lists
        return plain


def fingerprint(sets: Sequence[tuple[FeatureSet, Labels]]) -> str:
    """12 hex digits of the content of training sets."""
    digest = hashlib.sha256()
    for features, labels in sets:
        digest.update(features.content.encode())
        read = (features.q_last, features.r_final, features.boxes, labels.boxes)
        for array in read if not features.content else (labels.boxes,):
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:12]


def fit(
    config: RefineNetConfig,
    plan: TrainingPlan,
    sets: Sequence[tuple[FeatureSet, Labels]],
    *,
    device: torch.device,
    checkpoint: Path | None = None,
    stop_after: int | None = None,
    told: Callable[[int, float], None] = lambda *_: None,
    start: RefineNet | None = None,
) -> TrainingRun:
    """Train a RefineNet; the backbones that made the features never enter.

    Args:
        config: its dimensions and the vision block it reads.
        plan: how.
        sets: features and answers of each data set.
        device: where it is trained.
        checkpoint: written after every epoch; a run goes on from it where it exists.
        stop_after: leave after this many epochs in all.
        told: called after each epoch with the epochs done and the mean loss.
        start: begin with the weights and the standardiser of this RefineNet of the same config.

    Returns:
        The run, its network in eval mode.
    """
    run = TrainingRun.start(config, plan, sets, device=device, start=start)
    if checkpoint is not None and checkpoint.is_file():
        run.resume(checkpoint)
    last = plan.epochs if stop_after is None else min(stop_after, plan.epochs)
    with tqdm(total=plan.epochs, initial=run.epoch, desc="RefineNet", unit="epoch") as bar:
        while run.epoch < last:
            loss = run.advance(sets)
            bar.set_postfix(loss=f"{loss:.4f}", refresh=False)
            bar.update()
            if checkpoint is not None:
                run.keep(checkpoint)
            told(run.epoch, loss)
    run.net.eval()
    return run

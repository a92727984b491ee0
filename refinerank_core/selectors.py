"""Selectors that compete with RefineNet on the same joint pool, and the features they may read.

RefineNet is frozen here and its scores are never among the features: a selector sees the boxes of
the joint pool, the detector's metadata, and the MedVLM's features.

Source: RefineRank, arXiv:2608.23928 (selector comparison and feature study).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from sklearn.ensemble import ExtraTreesRegressor
from torch import Tensor, nn

from refinerank_core.feature_sets import FeatureSet, unit_boxes
from refinerank_core.joint_pool import JointPool
from refinerank_core.losses import rank_loss
from refinerank_core.structures import Float32

SELECTORS = ("extra_trees", "mlp", "transformer")
_HIDDEN = 128
_TREE_ROWS = 12_000


@dataclass(frozen=True)
class FeatureChoice:
    """Which features a selector reads; f_dino always.

    Attributes:
        q_last: the question's hidden state.
        final: the merged tokens in the box.
        block: the vision block in the box, None for none.
    """

    q_last: bool = True
    final: bool = True
    block: int | None = None


class Selector(Protocol):
    """Scores the members of joint pools."""

    def scores(self, members: Float32, valid: np.ndarray) -> Float32:
        """(E, M) scores of (E, M, C) members; a padded member's score means nothing."""
        ...


def member_features(features: FeatureSet, joint: JointPool, choice: FeatureChoice) -> Float32:
    """(E, M, C) what a selector may read of each member; never a score of RefineNet.

    f_dino of the member's original (values, 0 where missing, then flags), the member's own box as
    fractions, whether it is refined, and the chosen features of the MedVLM, l2-normalised.
    """
    examples = np.arange(len(features))[:, None]
    metadata = features.metadata[examples, joint.parents]
    missing = np.isnan(metadata)
    parts = [
        np.where(missing, 0.0, metadata),
        missing.astype(np.float32),
        unit_boxes(joint.boxes, features.sizes_wh),
        joint.refined[..., None].astype(np.float32),
    ]
    if choice.q_last:
        question = _unit(features.q_last)[:, None]
        parts.append(np.broadcast_to(question, (*joint.parents.shape, question.shape[-1])))
    if choice.final:
        parts.append(_unit(features.r_final[examples, joint.parents]))
    if choice.block is not None:
        parts.append(_unit(features.r_blocks[choice.block][examples, joint.parents]))
    return np.concatenate(parts, axis=-1).astype(np.float32)


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors at length 1 (a zero vector stays zero)."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(length, 1e-12))


class ExtraTreesSelector:
    """Extremely randomised trees that predict each member's IoU by itself."""

    def __init__(
        self, members: Float32, quality: Float32, valid: np.ndarray, *, seed: int, trees: int = 80
    ) -> None:
        """Fit on the valid members of (E, M, C), at most 12,000 of them drawn by the seed."""
        rows, wanted = members[valid], quality[valid]
        if len(rows) > _TREE_ROWS:
            drawn = np.random.default_rng(seed).permutation(len(rows))[:_TREE_ROWS]
            rows, wanted = rows[drawn], wanted[drawn]
        self._trees = ExtraTreesRegressor(
            n_estimators=trees, min_samples_leaf=3, max_features=0.1, random_state=seed, n_jobs=1
        )
        self._trees.fit(rows, wanted)

    def scores(self, members: Float32, valid: np.ndarray) -> Float32:
        """(E, M) predicted IoU."""
        flat = np.zeros(valid.shape, np.float32)
        flat[valid] = self._trees.predict(members[valid])
        return flat


class NeuralSelector:
    """An MLP on each member by itself, or a Transformer encoder over the set."""

    def __init__(
        self,
        members: Float32,
        quality: Float32,
        valid: np.ndarray,
        *,
        over_set: bool,
        seed: int,
        epochs: int = 10,
        batch: int = 48,
        rate: float = 1e-3,
    ) -> None:
        """Fit with RefineNet's ranking loss.

        Args:
            members: (E, M, C) training members.
            quality: (E, M) their IoU.
            valid: (E, M) bool.
            over_set: let the members of an example see each other.
            seed: of weights, order and dropout.
            epochs, batch, rate: of AdamW.
        """
        rows = members[valid].astype(np.float64)
        spread = rows.std(axis=0)
        self._mean = rows.mean(axis=0).astype(np.float32)
        self._std = np.where(spread < 1e-6, 1.0, spread).astype(np.float32)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._net = _SetNet(members.shape[-1]) if over_set else _MemberNet(members.shape[-1])
            self._fit(members, quality, valid, seed, epochs, batch, rate)
        self._net.eval()

    def _fit(
        self,
        members: Float32,
        quality: Float32,
        valid: np.ndarray,
        seed: int,
        epochs: int,
        batch: int,
        rate: float,
    ) -> None:
        inputs = torch.from_numpy(self._scaled(members))
        wanted, real = torch.from_numpy(quality), torch.from_numpy(valid)
        optimizer = torch.optim.AdamW(self._net.parameters(), lr=rate, weight_decay=1e-2)
        rng = np.random.default_rng(seed)
        self._net.train()
        for _ in range(epochs):
            order = torch.from_numpy(rng.permutation(len(inputs)))
            for places in torch.split(order, batch):
                scores = self._net(inputs[places], real[places])
                loss = rank_loss(scores, wanted[places], real[places])
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(self._net.parameters(), 1.0)
                optimizer.step()

    def scores(self, members: Float32, valid: np.ndarray) -> Float32:
        """(E, M) logits."""
        with torch.inference_mode():
            found = self._net(torch.from_numpy(self._scaled(members)), torch.from_numpy(valid))
        return np.array(found.numpy(), np.float32)

    def _scaled(self, members: Float32) -> Float32:
        return np.asarray((members - self._mean) / self._std, np.float32)


class _MemberNet(nn.Module):
    """Two hidden layers on each member."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(width, _HIDDEN),
            nn.GELU(),
            nn.Dropout(0.1),
            nn.Linear(_HIDDEN, _HIDDEN),
            nn.GELU(),
            nn.Dropout(0.1),
            nn.Linear(_HIDDEN, 1),
        )

    def forward(self, members: Tensor, _valid: Tensor) -> Tensor:
        scores: Tensor = self.layers(members).squeeze(-1)
        return scores


class _SetNet(nn.Module):
    """A Transformer encoder of two layers over the members of an example."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.into = nn.Linear(width, _HIDDEN)
        layer = nn.TransformerEncoderLayer(
            _HIDDEN, 4, 2 * _HIDDEN, dropout=0.1, activation="gelu", batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(_HIDDEN, 1)

    def forward(self, members: Tensor, valid: Tensor) -> Tensor:
        seen = self.encoder(self.into(members), src_key_padding_mask=~valid)
        scores: Tensor = self.out(seen).squeeze(-1)
        return scores


def train_selector(
    name: str, members: Float32, quality: Float32, valid: np.ndarray, *, seed: int, epochs: int = 10
) -> Selector:
    """Fit one of SELECTORS.

    Raises:
        ValueError: no such selector.
    """
    if name == "extra_trees":
        return ExtraTreesSelector(members, quality, valid, seed=seed)
    if name not in SELECTORS:
        raise ValueError(f"selector must be one of {', '.join(SELECTORS)}, got {name!r}")
    return NeuralSelector(
        members, quality, valid, over_set=name == "transformer", seed=seed, epochs=epochs
    )

"""Selectors that compete with RefineNet on the same joint pool.

RefineNet is frozen here and its scores are never among the features: a selector sees the boxes of
the joint pool, the detector's metadata, and the MedVLM's features (`selector_features`).

Source: RefineRank, arXiv:2608.23928 (selector comparison).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from sklearn.ensemble import ExtraTreesRegressor
from torch import Tensor, nn

from refinerank_core.losses import rank_loss
from refinerank_core.selector_features import CHUNK, MemberFeatures
from refinerank_core.structures import Float32

SELECTORS = ("extra_trees", "mlp", "transformer")
_HIDDEN = 128
_TREE_ROWS = 12_000
_CPU = torch.device("cpu")


class Selector(Protocol):
    """Scores the members of joint pools."""

    def scores(self, members: MemberFeatures, valid: np.ndarray) -> Float32:
        """(E, M) scores of (E, M, C) members; a padded member's score means nothing."""
        ...


class ExtraTreesSelector:
    """Extremely randomised trees that predict each member's IoU by itself."""

    def __init__(
        self,
        members: MemberFeatures,
        quality: Float32,
        valid: np.ndarray,
        *,
        seed: int,
        trees: int = 80,
    ) -> None:
        """Fit on the valid members of (E, M, C), at most 12,000 of them drawn by the seed."""
        drawn = np.argwhere(valid)
        if len(drawn) > _TREE_ROWS:
            drawn = drawn[np.random.default_rng(seed).permutation(len(drawn))[:_TREE_ROWS]]
        rows, wanted = _rows(members, drawn), quality[drawn[:, 0], drawn[:, 1]]
        self._trees = ExtraTreesRegressor(
            n_estimators=trees, min_samples_leaf=3, max_features=0.1, random_state=seed, n_jobs=1
        )
        self._trees.fit(rows, wanted)

    def scores(self, members: MemberFeatures, valid: np.ndarray) -> Float32:
        """(E, M) predicted IoU."""
        flat = np.zeros(valid.shape, np.float32)
        for places in _chunks(len(valid)):
            real = valid[places]
            found = np.zeros(real.shape, np.float32)
            found[real] = self._trees.predict(members[places][real])
            flat[places] = found
        return flat


def _chunks(count: int) -> list[np.ndarray]:
    """Places of so many examples, a chunk at a time."""
    return [np.arange(k, min(k + CHUNK, count)) for k in range(0, count, CHUNK)]


def _rows(members: MemberFeatures, places: np.ndarray) -> Float32:
    """(R, C) of (R, 2) places (example, member), in their order."""
    found = np.empty((len(places), members.shape[-1]), np.float32)
    for chunk in _chunks(members.shape[0]):
        mine = np.flatnonzero((places[:, 0] >= chunk[0]) & (places[:, 0] <= chunk[-1]))
        if len(mine):
            found[mine] = members[chunk][places[mine, 0] - chunk[0], places[mine, 1]]
    return found


class NeuralSelector:
    """An MLP on each member by itself, or a Transformer encoder over the set."""

    def __init__(
        self,
        members: MemberFeatures,
        quality: Float32,
        valid: np.ndarray,
        *,
        over_set: bool,
        seed: int,
        epochs: int = 10,
        batch: int = 48,
        rate: float = 1e-3,
        device: torch.device = _CPU,
    ) -> None:
        """Fit with RefineNet's ranking loss.

        Args:
            members: (E, M, C) training members.
            quality: (E, M) their IoU.
            valid: (E, M) bool.
            over_set: let the members of an example see each other.
            seed: of weights, order and dropout.
            epochs, batch, rate: of AdamW.
            device: where it is trained and scores.
        """
        self._device = device
        self._mean, self._std = _moments(members, valid)
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(seed)
            net = _SetNet(members.shape[-1]) if over_set else _MemberNet(members.shape[-1])
            self._net = net.to(device)
            self._fit(members, quality, valid, seed, epochs, batch, rate)
        self._net.eval()

    def _fit(
        self,
        members: MemberFeatures,
        quality: Float32,
        valid: np.ndarray,
        seed: int,
        epochs: int,
        batch: int,
        rate: float,
    ) -> None:
        optimizer = torch.optim.AdamW(self._net.parameters(), lr=rate, weight_decay=1e-2)
        rng = np.random.default_rng(seed)
        self._net.train()
        for _ in range(epochs):
            order = rng.permutation(len(valid))
            for start in range(0, len(order), batch):
                places = order[start : start + batch]
                real = self._tensor(valid[places])
                scores = self._net(self._tensor(self._scaled(members[places])), real)
                loss = rank_loss(scores, self._tensor(quality[places]), real)
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(self._net.parameters(), 1.0)
                optimizer.step()

    def scores(self, members: MemberFeatures, valid: np.ndarray) -> Float32:
        """(E, M) logits."""
        found = np.zeros(valid.shape, np.float32)
        with torch.inference_mode():
            for places in _chunks(len(valid)):
                inputs = self._tensor(self._scaled(members[places]))
                found[places] = self._net(inputs, self._tensor(valid[places])).cpu().numpy()
        return found

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(self._device)

    def _scaled(self, members: Float32) -> Float32:
        return np.asarray((members - self._mean) / self._std, np.float32)


def _moments(members: MemberFeatures, valid: np.ndarray) -> tuple[Float32, Float32]:
    """(C,) mean and deviation over the valid members; a deviation below 1e-6 becomes 1."""
    count, width = int(valid.sum()), members.shape[-1]
    mean, squares = np.zeros(width), np.zeros(width)
    for places in _chunks(len(valid)):
        mean += members[places][valid[places]].sum(axis=0, dtype=np.float64) / count
    for places in _chunks(len(valid)):
        squares += ((members[places][valid[places]] - mean) ** 2).sum(axis=0)
    spread = np.sqrt(squares / count)
    return mean.astype(np.float32), np.where(spread < 1e-6, 1.0, spread).astype(np.float32)


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
    name: str,
    members: MemberFeatures,
    quality: Float32,
    valid: np.ndarray,
    *,
    seed: int,
    epochs: int = 10,
    device: torch.device = _CPU,
) -> Selector:
    """Fit one of SELECTORS; the trees stay on the CPU whatever the device.

    Raises:
        ValueError: no such selector.
    """
    if name == "extra_trees":
        return ExtraTreesSelector(members, quality, valid, seed=seed)
    if name not in SELECTORS:
        raise ValueError(f"selector must be one of {', '.join(SELECTORS)}, got {name!r}")
    return NeuralSelector(
        members,
        quality,
        valid,
        over_set=name == "transformer",
        seed=seed,
        epochs=epochs,
        device=device,
    )

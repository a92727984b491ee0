"""What a selector may read of the members of joint pools; never a score of RefineNet.

Source: RefineRank, arXiv:2608.23928 (feature study).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from refinerank_core.feature_sets import FeatureSet, unit_boxes
from refinerank_core.joint_pool import JointPool
from refinerank_core.structures import Float32

HELD_BYTES = 2**30
"""Members that need no more than this stay in memory; more are gathered whenever they are read."""

CHUNK = 64
"""Examples that are gathered together."""


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


class MemberFeatures(Protocol):
    """(E, M, C) float32: an array, or what is gathered when it is indexed by examples."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(E, M, C)."""
        ...

    def __getitem__(self, places: Any, /) -> Any:
        """(len(places), M, C) float32."""
        ...


def member_features(
    features: FeatureSet,
    joint: JointPool,
    choice: FeatureChoice,
    places: np.ndarray | None = None,
) -> Float32:
    """(E, M, C) what a selector may read of each member.

    f_dino of the member's original (values, 0 where missing, then flags), the member's own box as
    fractions, whether it is refined, and the chosen features of the MedVLM, l2-normalised.

    Args:
        features, joint: of E examples.
        choice: of features.
        places: these examples alone.
    """
    chosen = np.arange(len(features)) if places is None else places
    examples, parents = chosen[:, None], joint.parents[chosen]
    metadata = features.metadata[examples, parents]
    missing = np.isnan(metadata)
    parts = [
        np.where(missing, 0.0, metadata),
        missing.astype(np.float32),
        unit_boxes(joint.boxes[chosen], features.sizes_wh[chosen]),
        joint.refined[chosen][..., None].astype(np.float32),
    ]
    if choice.q_last:
        question = _unit(features.q_last[chosen])[:, None]
        parts.append(np.broadcast_to(question, (*parents.shape, question.shape[-1])))
    if choice.final:
        parts.append(_unit(features.r_final[examples, parents]))
    if choice.block is not None:
        parts.append(_unit(features.r_blocks[choice.block][examples, parents]))
    return np.concatenate(parts, axis=-1).astype(np.float32)


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors at length 1 (a zero vector stays zero)."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(length, 1e-12))


class Members:
    """The members of several data sets' joint pools, one data set after the other.

    At the published sizes a training side is 4 GB, and every selector and feature choice has its
    own: what does not fit HELD_BYTES is gathered again for each batch.
    """

    def __init__(
        self,
        parts: Sequence[tuple[FeatureSet, JointPool]],
        choice: FeatureChoice,
        *,
        held_bytes: int = HELD_BYTES,
    ) -> None:
        """parts: features and joint pools of each data set; pools are padded to the largest."""
        self._parts, self._choice = parts, choice
        self._ends = np.cumsum([len(features) for features, _ in parts])
        width = member_features(*parts[0], choice, np.arange(1)).shape[-1]
        most = max(joint.valid.shape[1] for _, joint in parts)
        self.shape = (int(self._ends[-1]), most, width)
        self._held: np.ndarray | None = None
        if 4 * int(np.prod(self.shape, dtype=np.int64)) <= held_bytes:
            self._held = self._gathered(np.arange(self.shape[0]))

    def __getitem__(self, places: Any, /) -> Any:
        chosen = np.asarray(places)
        return self._gathered(chosen) if self._held is None else self._held[chosen]

    def _gathered(self, places: np.ndarray) -> Float32:
        found = np.zeros((len(places), *self.shape[1:]), np.float32)
        homes = np.searchsorted(self._ends, places, side="right")
        for home, (features, joint) in enumerate(self._parts):
            mine = np.flatnonzero(homes == home)
            first = self._ends[home] - len(features)
            for start in range(0, len(mine), CHUNK):
                rows = mine[start : start + CHUNK]
                read = member_features(features, joint, self._choice, places[rows] - first)
                found[rows, : read.shape[1]] = read
        return found

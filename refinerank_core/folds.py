"""Video-grouped folds: every video is held out once, and never stands on both sides."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from refinerank_core.errors import RefineRankError
from refinerank_core.feature_sets import FeatureSet, Labels

Sets = Sequence[tuple[FeatureSet, Labels]]


def fold_of_videos(videos: Sequence[str], *, folds: int, seed: int) -> dict[str, int]:
    """Fold of each video of one data set, as even as can be, by a seeded hash of its name.

    Source: the released code of RefineRank (deterministic group folds).
    """
    order = sorted(
        set(videos), key=lambda video: hashlib.sha256(f"{seed}:{video}".encode()).hexdigest()
    )
    return {video: place % folds for place, video in enumerate(order)}


def split_fold(sets: Sets, fold: int, *, folds: int, seed: int) -> tuple[Sets, list[np.ndarray]]:
    """One fold's two sides.

    Args:
        sets: features and answers of each data set.
        fold: which videos are held out, 0 to folds - 1.
        folds: how many there are.
        seed: of the assignment.

    Returns:
        The training side without data sets that have no video left, and for each data set of
        `sets` the places of its held-out examples.

    Raises:
        RefineRankError: nothing is left to train on.
    """
    training: list[tuple[FeatureSet, Labels]] = []
    held: list[np.ndarray] = []
    for features, labels in sets:
        homes = fold_of_videos(features.videos, folds=folds, seed=seed)
        out = np.array([homes[video] == fold for video in features.videos])
        held.append(np.flatnonzero(out))
        kept = np.flatnonzero(~out)
        if len(kept):
            training.append((features.subset(kept), Labels(labels.boxes[kept])))
    if not training:
        raise RefineRankError(
            "No video is left to train on: give at least two videos of one data set."
        )
    return training, held


def require_folds(sets: Sets, folds: int) -> None:
    """Raise RefineRankError unless some data set has as many videos as there are folds."""
    most = max(len(set(features.videos)) for features, _ in sets)
    if not 2 <= folds <= most:
        raise RefineRankError(
            f"{folds} folds need at least 2 and at most as many as a data set has videos ({most})."
        )

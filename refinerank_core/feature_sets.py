"""Features of many requested times, computed once: what RefineNet and the selectors are trained on.

The answers lie in a structure of their own (`Labels`): nothing here knows where the target is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Protocol, Self, cast

import numpy as np

from refinerank_core.errors import RefineRankError
from refinerank_core.structures import CandidatePool, Float32, require_array
from refinerank_core.whole_file import whole_file

_BLOCK = "r_block_"


class Regions(Protocol):
    """(E, N, C) float32: an array, or what is read from disk when it is indexed like one."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(E, N, C)."""
        ...

    def __getitem__(self, key: Any, /) -> Any:
        """A new array."""
        ...

    def __array__(self) -> np.ndarray:
        """All of it, in memory."""
        ...


class OnDisk(Regions, Protocol):
    """Regions that stay where they are when some of them are taken."""

    def at(self, places: Sequence[int]) -> Self:
        """These examples."""
        ...


@dataclass(frozen=True, eq=False)
class FeatureSet:
    """E examples of one data set; an example is one requested time of one question.

    Pools are padded to the largest, N.

    Attributes:
        dataset: its name.
        rows: E question rows: examples of one question share a name.
        videos: E video names.
        times_s: (E,) float32 requested times.
        sizes_wh: (E, 2) int64 frame sizes in pixels.
        q_last: (E, Dq) float32.
        r_final: (E, N, Df) float32.
        r_blocks: vision block -> (E, N, Di) float32.
        metadata: (E, N, 12) float32, NaN where missing.
        boxes: (E, N, 4) float32 originals in pixels, best rank first.
        native: (E, N) float32 native scores.
        valid: (E, N) bool: False where the row is padding.
        content: what the features follow from, in one word, where that is known; "" otherwise.
    """

    dataset: str
    rows: tuple[str, ...]
    videos: tuple[str, ...]
    times_s: np.ndarray
    sizes_wh: np.ndarray
    q_last: np.ndarray
    r_final: Regions
    r_blocks: dict[int, Regions]
    metadata: np.ndarray
    boxes: np.ndarray
    native: np.ndarray
    valid: np.ndarray
    content: str = ""

    def __post_init__(self) -> None:
        examples, most = len(self.rows), self.valid.shape[1]
        require_array("q_last", self.q_last, (examples, None), np.float32)
        for name, grid in (("r_final", self.r_final), *self.r_blocks.items()):
            shaped = cast("np.ndarray", grid)  # has what is asked for here
            require_array(f"regions {name}", shaped, (examples, most, None), np.float32)
        require_array("metadata", self.metadata, (examples, most, 12), np.float32)
        require_array("boxes", self.boxes, (examples, most, 4), np.float32)
        require_array("native", self.native, (examples, most), np.float32)
        require_array("valid", self.valid, (examples, most), np.bool_)
        require_array("times_s", self.times_s, (examples,), np.float32)
        require_array("sizes_wh", self.sizes_wh, (examples, 2), np.int64)
        if len(self.videos) != examples:
            raise ValueError(f"videos must name {examples} examples, got {len(self.videos)}")

    def __len__(self) -> int:
        return len(self.rows)

    def pool_at(self, example: int) -> CandidatePool:
        """The candidates of one example, as the filter takes them (sources are not kept)."""
        rows = np.flatnonzero(self.valid[example])
        return CandidatePool(
            boxes=self.boxes[example, rows],
            sources=("raw",) * len(rows),
            phrases=("",) * len(rows),
            confidences=self.metadata[example, rows, 0],
            parents=np.full(len(rows), -1, np.int64),
            native_scores=self.native[example, rows],
            metadata=self.metadata[example, rows],
            rejected=0,
        )

    def subset(self, places: np.ndarray) -> FeatureSet:
        """The examples at these places, in this order."""
        picked = [int(place) for place in places]
        return replace(
            self,
            rows=tuple(self.rows[place] for place in picked),
            videos=tuple(self.videos[place] for place in picked),
            r_final=_taken(self.r_final, picked),
            r_blocks={block: _taken(grid, picked) for block, grid in self.r_blocks.items()},
            content=self.content and hashlib.sha256(f"{self.content}{picked}".encode()).hexdigest(),
            **{name: getattr(self, name)[picked] for name in _ARRAYS},
        )


def _taken(regions: Regions, places: list[int]) -> Regions:
    """Some examples, on disk where they were there."""
    if isinstance(regions, np.ndarray):
        return cast("Regions", regions[places])
    return cast("OnDisk", regions).at(places)


_ARRAYS = (
    "times_s",
    "sizes_wh",
    "q_last",
    "metadata",
    "boxes",
    "native",
    "valid",
)


@dataclass(frozen=True, eq=False)
class Labels:
    """The answers to a FeatureSet.

    Attributes:
        boxes: (E, 4) float32 annotated boxes in pixels.
    """

    boxes: np.ndarray

    def __post_init__(self) -> None:
        require_array("boxes", self.boxes, (None, 4), np.float32)

    def __len__(self) -> int:
        return len(self.boxes)

    def unit(self, features: FeatureSet, places: np.ndarray) -> Float32:
        """(len(places), 4) annotated boxes as fractions of the frames of features."""
        return unit_boxes(self.boxes[places, None], features.sizes_wh[places])[:, 0]


def unit_boxes(boxes: np.ndarray, sizes_wh: np.ndarray) -> Float32:
    """Pixels to fractions: (E, N, 4) boxes on frames of (E, 2) sizes, float32."""
    sides = np.concatenate((sizes_wh, sizes_wh), axis=1).astype(np.float64)
    return np.asarray((boxes / sides[:, None, :]).astype(np.float32))


@dataclass(frozen=True, eq=False)
class Example:
    """One requested time before padding; fields as in FeatureSet, without the leading E."""

    row: str
    video: str
    time_s: float
    size_wh: tuple[int, int]
    pool: CandidatePool
    q_last: np.ndarray
    r_final: np.ndarray
    r_blocks: dict[int, np.ndarray]


def stack(dataset: str, examples: Sequence[Example]) -> FeatureSet:
    """Pad examples to one FeatureSet.

    Raises:
        ValueError: there are none.
    """
    if not examples:
        raise ValueError(f"{dataset}: no examples to stack")
    most = max(len(example.pool) for example in examples)
    pools = [example.pool for example in examples]
    return FeatureSet(
        dataset=dataset,
        rows=tuple(example.row for example in examples),
        videos=tuple(example.video for example in examples),
        times_s=np.array([example.time_s for example in examples], np.float32),
        sizes_wh=np.array([example.size_wh for example in examples], np.int64),
        q_last=np.stack([example.q_last for example in examples]).astype(np.float32),
        r_final=_padded([example.r_final for example in examples], most),
        r_blocks={
            block: _padded([example.r_blocks[block] for example in examples], most)
            for block in sorted(examples[0].r_blocks)
        },
        metadata=_padded([pool.metadata for pool in pools], most),
        boxes=_padded([pool.boxes for pool in pools], most),
        native=_padded([pool.native_scores for pool in pools], most),
        valid=np.arange(most)[None] < np.array([len(pool) for pool in pools])[:, None],
    )


def _padded(arrays: Sequence[np.ndarray], most: int) -> Float32:
    padded = np.zeros((len(arrays), most, *arrays[0].shape[1:]), np.float32)
    for row, array in enumerate(arrays):
        padded[row, : len(array)] = array
    return padded


def save_features(path: Path, features: FeatureSet, labels: Labels | None) -> None:
    """Write one .npz file, whole or not at all; labels keep a name of their own in it."""
    arrays: dict[str, Any] = {
        name: getattr(features, name)
        for name in (field.name for field in fields(features))
        if name not in ("r_blocks", "content")
    }
    arrays |= {f"{_BLOCK}{block}": grid for block, grid in features.r_blocks.items()}
    if labels is not None:
        arrays["label_boxes"] = labels.boxes
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as fresh:
        np.savez(fresh, **arrays)


def load_features(path: Path) -> tuple[FeatureSet, Labels | None]:
    """Read what save_features wrote.

    Raises:
        RefineRankError: the file is absent or damaged.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError) as error:
        raise RefineRankError(
            f"{path.name}: not a readable feature file. Compute the features again."
        ) from error
    blocks = {
        int(name.removeprefix(_BLOCK)): arrays.pop(name)
        for name in list(arrays)
        if name.startswith(_BLOCK)
    }
    boxes = arrays.pop("label_boxes", None)
    features = FeatureSet(
        dataset=str(arrays.pop("dataset")),
        rows=tuple(map(str, arrays.pop("rows"))),
        videos=tuple(map(str, arrays.pop("videos"))),
        r_blocks=blocks,
        **arrays,
    )
    return features, None if boxes is None else Labels(boxes)


def shared_videos(*sides: Sequence[FeatureSet]) -> set[str]:
    """Names of videos that stand on more than one side of a split: empty when it is sound."""
    named = [{video for features in side for video in features.videos} for side in sides]
    return {
        video
        for place, side in enumerate(named)
        for other in named[place + 1 :]
        for video in side & other
    }

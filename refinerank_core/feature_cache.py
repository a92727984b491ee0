"""A folder of cached features: shards, a manifest without answers, and the answers by themselves.

FOLDER/manifest.json   which row, time and frame each example is, and where it lies
FOLDER/labels.json     annotated boxes, one entry an example; absent for rows without any
FOLDER/answers.json    the MedVLM's own boxes, likewise; absent unless they were asked for
FOLDER/shards/         the features
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from refinerank_core.errors import RefineRankError
from refinerank_core.feature_sets import FeatureSet, Labels
from refinerank_core.feature_shards import Shard, open_shard

SCHEMA = "refinerank-features-1"
MANIFEST, LABELS, SHARDS = "manifest.json", "labels.json", "shards"
DIRECT = "answers.json"
_NO_LABEL = (np.nan,) * 4


@dataclass(frozen=True)
class CachedExample:
    """One requested time of a cached row.

    Attributes:
        place: of the row in its file.
        row_id, qa_type, dataset, video: of the row.
        time_s: requested.
        frame: number of the sampled frame.
        size_wh: of the frame.
        shard, at: where its features lie: name of the file, place in it.
        key: see feature_shards.ShardEntry.
    """

    place: int
    row_id: str
    qa_type: str
    dataset: str
    video: str
    time_s: float
    frame: int
    size_wh: tuple[int, int]
    shard: str
    at: int
    key: str


@dataclass(frozen=True, eq=False)
class CachedSet:
    """The examples of one data set.

    Attributes:
        examples: what they are.
        features: of them, regions read from disk when asked for.
        labels: (E, 4) boxes, NaN where a time is not annotated; None without answers.
        direct: (E, 4) float32, the MedVLM's own boxes in pixels, NaN where it gave none; None
            where they were not asked for.
    """

    examples: tuple[CachedExample, ...]
    features: FeatureSet
    labels: Labels | None
    direct: np.ndarray | None = None

    def annotated(self) -> tuple[FeatureSet, Labels]:
        """The examples that have an answer.

        Raises:
            RefineRankError: there is none.
        """
        places = self.annotated_places()
        if self.labels is None or not len(places):
            raise RefineRankError(
                f"{self.features.dataset}: the cached rows have no annotation. "
                "Build the cache from annotated rows."
            )
        if len(places) == len(self.examples):
            return self.features, self.labels
        return self.features.subset(places), Labels(self.labels.boxes[places])

    def annotated_places(self) -> np.ndarray:
        """Places of the examples that have an answer."""
        if self.labels is None:
            return np.zeros(0, np.int64)
        return np.flatnonzero(~np.isnan(self.labels.boxes).any(axis=1))


@dataclass(frozen=True, eq=False)
class FeatureCache:
    """An opened cache.

    Attributes:
        manifest: its facts.
        sets: one a data set, by name.
    """

    manifest: dict[str, Any]
    sets: tuple[CachedSet, ...]

    @property
    def digest(self) -> str:
        """Hash of everything that the features depend on, and of the features."""
        return str(self.manifest["digest"])

    @property
    def rows(self) -> list[tuple[int, str, str]]:
        """(place, id, qa_type) of every STG row of the file, usable or not."""
        return [(int(place), str(one), str(kind)) for place, one, kind in self.manifest["rows"]]


class CachedRegions:
    """(E, N, C) float32 regions that stay on disk as float16, zeros at padding.

    Indexed as the array would be: by examples, by (example, candidates), or by two index arrays.
    """

    ndim = 3
    dtype = np.dtype(np.float32)

    def __init__(
        self, parts: Sequence[np.ndarray], starts: np.ndarray, counts: np.ndarray, most: int
    ) -> None:
        """parts: E arrays mapped from disk; starts, counts: (E,) of each one's candidates."""
        self._parts, self._starts, self._counts = parts, starts, counts
        self.shape = (len(parts), most, parts[0].shape[-1])

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self._examples(np.arange(len(self)))

    def __getitem__(self, key: Any, /) -> np.ndarray:
        if not isinstance(key, tuple):
            return self._examples(np.asarray(key))
        examples, candidates = np.broadcast_arrays(*map(np.asarray, key))
        found = np.zeros((examples.size, self.shape[2]), np.float32)
        flat = candidates.ravel()
        for example in np.unique(examples):
            rows = np.flatnonzero(examples.ravel() == example)
            real = rows[flat[rows] < self._counts[example]]
            found[real] = self._parts[example][self._starts[example] + flat[real]]
        return found.reshape(*examples.shape, self.shape[2])

    def _examples(self, places: np.ndarray) -> np.ndarray:
        found = np.zeros((places.size, *self.shape[1:]), np.float32)
        for row, place in enumerate(places.ravel()):
            start, count = self._starts[place], self._counts[place]
            found[row, :count] = self._parts[place][start : start + count]
        return found.reshape(*places.shape, *self.shape[1:])

    def at(self, places: Sequence[int]) -> CachedRegions:
        """These examples, still on disk."""
        chosen = np.asarray(places)
        return CachedRegions(
            [self._parts[place] for place in places],
            self._starts[chosen],
            self._counts[chosen],
            self.shape[1],
        )


def open_cache(folder: Path) -> FeatureCache:
    """Open what `features build` wrote.

    Raises:
        RefineRankError: there is no whole cache in the folder.
    """
    manifest = _read_json(folder / MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        raise RefineRankError(
            f"{folder.name} holds no cache of this version. Build it with `features build`."
        )
    try:
        examples = [
            CachedExample(**{**one, "size_wh": tuple(one["size_wh"])})
            for one in manifest["examples"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise RefineRankError(f"{folder.name}: {MANIFEST} is damaged. Build it again.") from error
    if not examples:
        raise RefineRankError(f"{folder.name}: the cache holds no example.")
    shards = {name: open_shard(folder / SHARDS / name) for name in {one.shard for one in examples}}
    digest = str(manifest.get("digest"))
    boxes = _boxes(folder / LABELS, digest, len(examples))
    direct = _boxes(folder / DIRECT, digest, len(examples))
    sets = []
    for dataset in sorted({one.dataset for one in examples}):
        places = [k for k, one in enumerate(examples) if one.dataset == dataset]
        mine = tuple(examples[place] for place in places)
        features = _feature_set(dataset, mine, shards, digest)
        labels = None if boxes is None else Labels(boxes[places])
        sets.append(CachedSet(mine, features, labels, None if direct is None else direct[places]))
    return FeatureCache(manifest, tuple(sets))


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RefineRankError(
            f"{path.parent.name}: {path.name} is missing or damaged. Build the cache again."
        ) from error


def _boxes(path: Path, digest: str, count: int) -> np.ndarray | None:
    """(count, 4) float32 boxes, NaN where there is none; None without a file."""
    if not path.is_file():
        return None
    told = _read_json(path)
    boxes = told.get("boxes") if isinstance(told, dict) and told.get("digest") == digest else None
    if not isinstance(boxes, list) or len(boxes) != count:
        name = path.parent.name
        raise RefineRankError(f"{name}: {path.name} is not of this cache. Build it again.")
    return np.array([_NO_LABEL if box is None else box for box in boxes], np.float32)


def _feature_set(
    dataset: str, examples: Sequence[CachedExample], shards: dict[str, Shard], digest: str
) -> FeatureSet:
    """The features of some examples, regions left on disk."""
    homes = [shards[one.shard] for one in examples]
    counts = np.array([h.entries[one.at].count for h, one in zip(homes, examples, strict=True)])
    starts = np.array(
        [
            sum(entry.count for entry in home.entries[: one.at])
            for home, one in zip(homes, examples, strict=True)
        ]
    )
    rows_of = [
        sum(entry.count > 0 for entry in home.entries[: one.at])
        for home, one in zip(homes, examples, strict=True)
    ]
    most = int(counts.max())
    places = list(zip(homes, starts, counts, strict=True))

    def padded(name: str) -> np.ndarray:
        width = homes[0].arrays[name].shape[1:]
        found = np.zeros((len(examples), most, *width), np.float32)
        for row, (home, start, count) in enumerate(places):
            found[row, :count] = home.arrays[name][start : start + count]
        return found

    return FeatureSet(
        dataset=dataset,
        rows=tuple(str(one.place) for one in examples),
        videos=tuple(f"{dataset}/{one.video}" for one in examples),
        times_s=np.array([one.time_s for one in examples], np.float32),
        sizes_wh=np.array([one.size_wh for one in examples], np.int64),
        q_last=np.stack(
            [home.arrays["q_last"][row] for home, row in zip(homes, rows_of, strict=True)]
        ).astype(np.float32),
        r_final=CachedRegions([home.arrays["r_final"] for home in homes], starts, counts, most),
        r_blocks={
            block: CachedRegions([home.block(block) for home in homes], starts, counts, most)
            for block in homes[0].blocks
        },
        metadata=padded("metadata"),
        boxes=padded("boxes"),
        native=padded("native"),
        valid=np.arange(most)[None] < counts[:, None],
        content=f"{digest}/{dataset}",
    )

"""One shard of cached features: a safetensors file, read in place.

Regions of all examples stand one after the other in float16; boxes and metadata in float32. The
header names each example by a key that follows from what it was computed from. No answers here.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from refinerank_core.errors import ModelError, RefineRankError
from refinerank_core.feature_sets import Example
from refinerank_core.whole_file import whole_file

SUFFIX = ".safetensors"
_HEADER = "refinerank"
_KINDS = {"F16": np.float16, "F32": np.float32, "I64": np.int64}
_LENGTH_BYTES = 8
_BLOCK = "r_block_"


@dataclass(frozen=True)
class ShardEntry:
    """One example of a shard.

    Attributes:
        key: hex, of the models, the words, the time and the frame that it was computed from.
        size_wh: of the frame in pixels.
        count: candidates; 0 where it could not be computed.
        fault: why, "" where it could.
    """

    key: str
    size_wh: tuple[int, int]
    count: int
    fault: str = ""


@dataclass(frozen=True, eq=False)
class Shard:
    """An opened shard.

    Attributes:
        path: the file.
        entries: E examples.
        arrays: name -> array mapped from the file: q_last (E, Dq) float16; r_final, r_block_B
            (R, ..) float16, metadata, boxes, native (R, ..) float32 over all R candidates.
    """

    path: Path
    entries: tuple[ShardEntry, ...]
    arrays: dict[str, np.ndarray]

    @property
    def blocks(self) -> tuple[int, ...]:
        """The vision blocks it holds."""
        names = [name for name in self.arrays if name.startswith(_BLOCK)]
        return tuple(sorted(int(name.removeprefix(_BLOCK)) for name in names))

    def block(self, number: int) -> np.ndarray:
        """(R, Di) float16 of one vision block."""
        return self.arrays[f"{_BLOCK}{number}"]


def shard_name(keys: Sequence[str]) -> str:
    """File name of the shard that holds these examples."""
    return hashlib.sha256("\n".join(keys).encode()).hexdigest()[:32] + SUFFIX


def write_shard(folder: Path, keys: Sequence[str], results: Sequence[Example | str]) -> Path:
    """Write one shard, whole or not at all.

    Args:
        folder: where it goes.
        keys: E keys.
        results: E examples, or the sentence that says why there is none.

    Returns:
        Its path; the name follows from the keys.

    Raises:
        ModelError: a feature does not fit float16.
    """
    entries = [
        ShardEntry(key, (0, 0), 0, result)
        if isinstance(result, str)
        else ShardEntry(key, result.size_wh, len(result.pool))
        for key, result in zip(keys, results, strict=True)
    ]
    header = json.dumps([asdict(entry) for entry in entries], sort_keys=True)
    content = save(
        _tensors([one for one in results if isinstance(one, Example)]), {_HEADER: header}
    )
    path = folder / shard_name(keys)
    with whole_file(path) as fresh, fresh.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return path


def open_shard(path: Path) -> Shard:
    """Map a shard.

    Raises:
        RefineRankError: it is absent, or not whole.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
            header: dict[str, Any] = json.loads(file.read(min(length, size)))
        entries = [
            ShardEntry(**{**entry, "size_wh": tuple(entry["size_wh"])})
            for entry in json.loads(header.pop("__metadata__")[_HEADER])
        ]
        start = _LENGTH_BYTES + length
        arrays = {name: _mapped(path, facts, start) for name, facts in header.items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RefineRankError(
            f"{path.name}: not a whole feature shard. Remove it and build again."
        ) from error
    return Shard(path, tuple(entries), arrays)


def file_digest(path: Path) -> str:
    """SHA-256 of a file, hex.

    Raises:
        RefineRankError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise RefineRankError(f"{path.name} cannot be read ({error.strerror}).") from error


def _mapped(path: Path, facts: dict[str, Any], start: int) -> np.ndarray:
    """An array of the file; ValueError where the file ends before it."""
    kind, shape = _KINDS[facts["dtype"]], tuple(facts["shape"])
    begin, end = facts["data_offsets"]
    if end - begin != prod(shape) * np.dtype(kind).itemsize or start + end > path.stat().st_size:
        raise ValueError("truncated")
    if not prod(shape):
        return np.zeros(shape, kind)
    return np.memmap(path, kind, mode="r", offset=start + begin, shape=shape)


def _tensors(examples: Sequence[Example]) -> dict[str, np.ndarray]:
    if not examples:
        return {}
    tensors = {
        "q_last": _half("q_last", np.stack([one.q_last for one in examples])),
        "r_final": _half("final", np.concatenate([one.r_final for one in examples])),
        "metadata": np.concatenate([one.pool.metadata for one in examples]),
        "boxes": np.concatenate([one.pool.boxes for one in examples]),
        "native": np.concatenate([one.pool.native_scores for one in examples]),
    }
    for block in sorted(examples[0].r_blocks):
        joined = np.concatenate([one.r_blocks[block] for one in examples])
        tensors[f"{_BLOCK}{block}"] = _half(f"block {block}", joined)
    return {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}


def _half(name: str, values: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        half = values.astype(np.float16)
    if not np.isfinite(half).all():
        raise ModelError(f"The features of {name} hold numbers too large to keep as float16.")
    return half

"""The same build over many processes, cards or machines, through Ray Data (an optional extra).

Each worker holds one replica of the frozen models and writes whole shards into the folder, which
every machine must see under the same path. Ray places the work; nothing is scheduled here.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from refinerank_core.errors import RefineRankError
from refinerank_core.feature_build import Compute, Engine, compute_shard
from refinerank_core.feature_plan import Chunk, settings_of
from refinerank_core.frozen_steps import Backbones

Loader = Callable[[], Backbones]
"""Loads the frozen models in the process that calls it; must pickle."""


def _import_ray() -> Any:
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise RefineRankError(
            "Ray is not installed. Install it with: pip install 'ray[data]>=2.40'."
        ) from error
    return ray


def start_ray(workers: int, address: str | None = None) -> Any:
    """Join the cluster at an address, or start Ray here with a CPU slot a worker and one more.

    Raises:
        RefineRankError: Ray is not installed.
    """
    ray = _import_ray()
    if not ray.is_initialized():
        here = {"num_cpus": workers + 1} if address is None else {"address": address}
        ray.init(**here, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    return ray


def remote_settings(loader: Loader, *, gpus: float) -> dict[str, Any]:
    """`settings_of`, asked of a worker, so that this process needs no models."""
    ray = _import_ray()

    def asked() -> dict[str, Any]:
        return settings_of(loader())

    found: dict[str, Any] = ray.get(ray.remote(num_cpus=1, num_gpus=gpus)(asked).remote())
    return found


class ShardWorker:
    """One replica of the frozen models."""

    def __init__(self, loader: Loader, folder: str, compute: Compute) -> None:
        self._backbones = loader()
        self._folder = Path(folder)
        self._compute = compute

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Compute the chunks of a batch; returns their sizes."""
        chunks: list[Chunk] = [pickle.loads(packed) for packed in batch["chunk"]]
        for chunk in chunks:
            self._compute(self._backbones, chunk, self._folder)
        return {"done": np.array([len(chunk) for chunk in chunks])}


def ray_engine(
    loader: Loader, *, workers: int, gpus: float, compute: Compute = compute_shard
) -> Engine:
    """Compute the chunks on workers, each with one replica and this many cards."""

    def run(chunks: Sequence[Chunk], folder: Path) -> Iterator[int]:
        if not chunks:
            return
        ray = _import_ray()
        packed = [{"chunk": pickle.dumps(chunk)} for chunk in chunks]
        items = ray.data.from_items(packed, override_num_blocks=len(chunks))
        done = items.map_batches(
            ShardWorker,
            fn_constructor_args=(loader, str(folder.absolute()), compute),
            batch_size=1,
            concurrency=min(workers, len(chunks)),
            num_cpus=1,
            num_gpus=gpus,
        )
        for batch in done.iter_batches(batch_size=1):
            yield int(batch["done"].sum())

    return run

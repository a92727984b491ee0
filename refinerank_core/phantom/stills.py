"""Stills of phantom scenes on disk: drawn once from their seeds, read by every training.

A shard is two files, `NAME.npy` (N, H, W, 3) uint8 RGB and `NAME.json` with one truth a still. The
JSON is written last, so a shard that has one is whole, and a run that was stopped goes on after it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from refinerank_core.phantom.effects import Sensor
from refinerank_core.phantom.geometry import stream
from refinerank_core.phantom.scene import Scene
from refinerank_core.phantom.seeds import seed_for
from refinerank_core.phantom.truth import FrameTruth, ObjectTruth
from refinerank_core.phantom.vocabulary import PROCEDURES
from refinerank_core.whole_file import whole_file

TURNS = (0, 1, 0, 2, 0, 1)  # places in PROCEDURES: the more there is to tell apart, the oftener
SCENE_S = 20.0  # length of the scenes that stills are taken from


@dataclass(frozen=True)
class StillPlan:
    """Which stills to draw.

    Attributes:
        purpose: whose seeds, a key of seeds.SEED_RANGES.
        procedures: kinds of surgery; each gets the same scene numbers.
        first_scene, scenes: the scene numbers; scenes is a multiple of shard_scenes.
        stills_per_scene: drawn at times spread over the scene.
        shard_scenes: scenes in one shard.
        size_wh: of a still.
    """

    purpose: str
    procedures: tuple[str, ...]
    first_scene: int = 0
    scenes: int = 512
    stills_per_scene: int = 8
    shard_scenes: int = 64
    size_wh: tuple[int, int] = (448, 252)

    def __post_init__(self) -> None:
        if self.scenes < 1 or self.scenes % self.shard_scenes:
            raise ValueError(f"scenes must be a multiple of {self.shard_scenes}, got {self.scenes}")

    def shards(self) -> Iterator[tuple[str, str, int]]:
        """Yield (name, procedure, first scene) of each shard, the procedures taking turns."""
        last = self.first_scene + self.scenes
        for first in range(self.first_scene, last, self.shard_scenes):
            for procedure in self.procedures:
                slug = procedure.replace(" ", "-")
                yield f"{self.purpose}-{slug}-{first:06d}", procedure, first


@dataclass(frozen=True, eq=False)
class Still:
    """One still with what is true of it.

    Attributes:
        image: (H, W, 3) uint8 RGB.
        truth: of this frame, without masks.
        procedure: kind of surgery.
        seed: of its scene.
    """

    image: np.ndarray
    truth: FrameTruth
    procedure: str
    seed: int


class StillSet(Sequence[Still]):
    """All stills of a folder, images left on disk until asked for."""

    def __init__(self, folder: Path, purpose: str, procedures: Sequence[str] = ()) -> None:
        """Open the whole shards that are there now.

        Args:
            folder: where `make_stills` wrote them.
            purpose: a key of seeds.SEED_RANGES.
            procedures: kinds of surgery to read; empty: all.

        Raises:
            ValueError: the folder holds no such shard.
        """
        self._shards: list[np.ndarray] = []
        self.records: list[dict[str, Any]] = []
        self._places: list[tuple[int, int]] = []
        self._groups: dict[str, list[int]] = {}
        for path in sorted(folder.glob(f"{purpose}-*.json")):
            card = json.loads(path.read_text(encoding="utf-8"))
            if procedures and card["procedure"] not in procedures:
                continue
            self._shards.append(np.load(path.with_suffix(".npy"), mmap_mode="r"))
            group = self._groups.setdefault(card["procedure"], [])
            group += range(len(self.records), len(self.records) + len(card["stills"]))
            self._places += [(len(self._shards) - 1, row) for row in range(len(card["stills"]))]
            self.records += card["stills"]
        if not self.records:
            raise ValueError(
                f"{folder.name} holds no {purpose} stills. Draw them with: phantom make"
            )

    def __len__(self) -> int:
        return len(self.records)

    def by_procedure(self) -> dict[str, list[int]]:
        """Return the places of each procedure's stills."""
        return self._groups

    def draw(self, rng: np.random.Generator, count: int) -> list[Still]:
        """Draw stills at random, the procedures that there are taking their TURNS."""
        turns = [PROCEDURES[turn] for turn in TURNS if PROCEDURES[turn] in self._groups]
        first = int(rng.integers(len(turns)))
        groups = [self._groups[turns[(first + k) % len(turns)]] for k in range(count)]
        return [self[group[int(rng.integers(len(group)))]] for group in groups]

    def scene_places(self, index: int) -> list[int]:
        """Return the places of all stills of the scene that this still is of, in time order."""
        record = self.records[index]
        scene = (record["procedure"], record["seed"])
        first = last = index
        while first > 0 and self._scene(first - 1) == scene:
            first -= 1
        while last + 1 < len(self) and self._scene(last + 1) == scene:
            last += 1
        return list(range(first, last + 1))

    def _scene(self, index: int) -> tuple[str, int]:
        return self.records[index]["procedure"], self.records[index]["seed"]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        shard, row = self._places[index]
        record = self.records[index]
        return Still(
            image=np.array(self._shards[shard][row]),  # a copy: the file is read-only
            truth=truth_of(record),
            procedure=record["procedure"],
            seed=record["seed"],
        )


def make_stills(plan: StillPlan, folder: Path) -> int:
    """Draw the shards that are not there yet, and return how many that were."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [s for s in plan.shards() if not (folder / f"{s[0]}.json").is_file()]
    for name, procedure, first in tqdm(missing, desc="shards of stills", unit="shard"):
        images, records = draw_shard(plan, procedure, first)
        with whole_file(folder / f"{name}.npy") as fresh:
            np.save(fresh, images)
        card = {
            "purpose": plan.purpose,
            "procedure": procedure,
            "first_scene": first,
            "size_wh": list(plan.size_wh),
            "stills": records,
        }
        with whole_file(folder / f"{name}.json") as fresh:
            fresh.write_text(json.dumps(card, default=int), encoding="utf-8")  # numpy numbers
    return len(missing)


def draw_shard(
    plan: StillPlan, procedure: str, first_scene: int
) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """Draw one shard: its (N, H, W, 3) images and their truths as plain values."""
    width, height = plan.size_wh
    count = plan.shard_scenes * plan.stills_per_scene
    images = np.empty((count, height, width, 3), np.uint8)
    records: list[dict[str, Any]] = []
    for number in range(first_scene, first_scene + plan.shard_scenes):
        seed = seed_for(plan.purpose, number)
        scene = Scene.from_seed(seed, procedure, duration_s=SCENE_S)
        rng = stream(seed, 77)
        for turn in range(plan.stills_per_scene):
            time_s = SCENE_S * (turn + float(rng.uniform(0.05, 0.95))) / plan.stills_per_scene
            quality = int(rng.integers(60, 97)) if rng.random() < 0.8 else None
            sensor = Sensor(noise=float(rng.uniform(0.0, 5.0)), jpeg_quality=quality)
            images[len(records)], truth = scene.render(time_s, plan.size_wh, sensor=sensor)
            records.append({"seed": seed, "procedure": procedure, **truth.as_json()})
    return images, records


def truth_of(record: dict[str, Any]) -> FrameTruth:
    """Read a truth back from its plain values (masks are not kept)."""
    return FrameTruth(
        time_s=record["time_s"],
        size_wh=(record["size_wh"][0], record["size_wh"][1]),
        objects=tuple(
            ObjectTruth(**{**thing, "box": np.array(thing["box"], np.float32)}, mask=None)
            for thing in record["objects"]
        ),
    )

"""Build a feature cache: what is there already is kept, what is missing is computed shard by shard.

Examples that are missing are cut into shards in the order of the rows; a shard is computed by
itself, so that it comes out the same whoever computes it and whatever was computed before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from refinerank_core.errors import FormatError, RefineRankError
from refinerank_core.feature_answers import (
    ANSWERS,
    answer_chunks,
    missing_answers,
    read_answers,
)
from refinerank_core.feature_cache import DIRECT, LABELS, MANIFEST, SHARDS
from refinerank_core.feature_manifest import Known, labels_of, manifest_of, uncomputed
from refinerank_core.feature_plan import (
    SHARD_EXAMPLES,
    Chunk,
    Planned,
    Unit,
    missing_chunks,
)
from refinerank_core.feature_sets import Example
from refinerank_core.feature_shards import SUFFIX, open_shard, shard_name, write_shard
from refinerank_core.formats import strict_json
from refinerank_core.formats.medvidbench_rows import RowsRead
from refinerank_core.formats.rows import Fault
from refinerank_core.frame_folder import read_picture
from refinerank_core.frozen_steps import Backbones, ask_frozen
from refinerank_core.profiles import Profile
from refinerank_core.structures import Frame
from refinerank_core.whole_file import whole_file

_READERS = 2
_AHEAD = 3  # questions whose frames are decoded while the models work on an earlier one

Compute = Callable[[Backbones, Chunk, Path], Path]
"""Computes one chunk and writes it as one file of the folder; a function of a module."""

Engine = Callable[[Sequence[Chunk], Path], Iterator[int]]
"""Takes the missing chunks and the folder of shards, writes each as one shard, and yields how many
examples are done after each."""


def compute_shard(backbones: Backbones, chunk: Chunk, folder: Path) -> Path:
    """Compute one shard and write it; questions of one row are asked in one go.

    Frames are decoded ahead while the models work. What a frame cannot give is written as such.
    """
    name = shard_name([unit.key for unit in chunk])
    groups = [tuple(group) for _, group in groupby(chunk, key=lambda unit: unit.place)]
    results: list[Example | str] = []
    with ThreadPoolExecutor(_READERS) as readers:
        waiting: list[list[Future[np.ndarray]]] = []
        for number, group in enumerate(groups):
            for later in groups[number + len(waiting) : number + _AHEAD]:
                waiting.append([readers.submit(read_picture, unit.path) for unit in later])
            results += _asked(backbones, group, waiting.pop(0), name)
    return write_shard(folder, [unit.key for unit in chunk], results)


def _asked(
    backbones: Backbones, group: Chunk, pictures: Sequence[Future[np.ndarray]], shard: str
) -> list[Example | str]:
    """One question's examples; where there is none, the sentence that says why."""
    first = group[0]
    results: dict[str, Example | str] = {}
    shown: list[tuple[Unit, Frame]] = []
    for unit, picture in zip(group, pictures, strict=True):
        try:
            frame = Frame(image=picture.result(), index=unit.frame, time_s=unit.time_s)
            shown.append((unit, frame))
        except RefineRankError as error:
            results[unit.key] = str(error)
    if shown:
        # One folder may hold the frames of many videos: what stands before the number tells.
        name = first.path.with_name(first.path.stem.rpartition("_")[0] + first.path.suffix)
        try:
            found = ask_frozen(
                backbones,
                first.question,
                [frame for _, frame in shown],
                [unit.time_s for unit, _ in shown],
                row=str(first.place),
                video=first.video,
                video_key=f"{shard}/{name}",
                duration_s=None,
            )
            results |= {u.key: one for (u, _), one in zip(shown, found.examples, strict=True)}
        except RefineRankError as error:
            results |= {unit.key: str(error) for unit, _ in shown}
    return [results[unit.key] for unit in group]


def local_engine(backbones: Backbones, *, compute: Compute = compute_shard) -> Engine:
    """Compute the chunks here, one after the other."""

    def run(chunks: Sequence[Chunk], folder: Path) -> Iterator[int]:
        for chunk in chunks:
            compute(backbones, chunk, folder)
            yield len(chunk)

    return run


def build_cache(
    rows: RowsRead,
    units: Planned,
    out: Path,
    *,
    faults: Sequence[Fault] = (),
    settings: dict[str, Any],
    profile: Profile,
    engine: Engine,
    shard_examples: int = SHARD_EXAMPLES,
    answers: Engine | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> dict[str, Any]:
    """Bring a cache up to date with its rows.

    Args:
        rows: the rows.
        units: every requested time of the rows that can be used, as `plan_units` gives them.
        out: the cache's folder; shards that are there are used and never changed.
        faults: what could not be planned.
        settings: of `settings_of`.
        profile: the manifest says its name and the block that its RefineNet reads; it also says
            how direct answers are asked for and read.
        engine: computes what is missing.
        shard_examples: examples in a shard.
        answers: computes the MedVLM's direct answers, by `compute_answer`, to keep them too; None
            leaves those that are there alone.
        progress: called with examples done and examples to compute.

    Returns:
        The manifest, and beside it "computed", how many examples were, and "faults", each a line
        of the rows and what is wrong there. Shards that no example refers to any more stay.

    Raises:
        FormatError: no row can be used.
        RefineRankError: the folder cannot be written.
    """
    if not units:
        raise FormatError("None of the rows can be used: see `rows check`.")
    folder, spoken = out / SHARDS, out / ANSWERS
    try:
        folder.mkdir(parents=True, exist_ok=True)
        chunks = missing_chunks((u for _, u in units), _known(folder), size=shard_examples)
        asked = [] if answers is None else answer_chunks(units, profile)
        unsaid = [] if answers is None else missing_answers(asked, spoken, profile)
        computed, done = sum(map(len, chunks)), 0
        total = computed + sum(map(len, unsaid))
        progress(0, total)
        for count in engine(chunks, folder):
            done += count
            progress(done, total)
        if answers is not None:
            spoken.mkdir(exist_ok=True)
            for count in answers(unsaid, spoken):
                done += count
                progress(done, total)
        known = _known(folder)
        every = [*rows.faults, *faults, *uncomputed(units, known)]
        manifest = manifest_of(rows, units, known, settings)
        manifest |= {"profile": profile.name, "inter_block": profile.refinenet.inter_block}
        labels = labels_of(units, known, every)
        if any(labels):
            _write(out / LABELS, {"digest": manifest["digest"], "boxes": labels})
        else:
            (out / LABELS).unlink(missing_ok=True)
        if answers is not None:
            boxes = read_answers(asked, spoken, profile)
            direct = [boxes.get(one["key"]) for one in manifest["examples"]]
            _write(out / DIRECT, {"digest": manifest["digest"], "boxes": direct})
        _write(out / MANIFEST, manifest)
    except OSError as error:
        raise RefineRankError(f"{out.name} cannot be written ({error.strerror}).") from error
    told = [{"line": fault.line, "what": fault.text} for fault in every]
    return {**manifest, "computed": computed, "faults": told}


def _known(folder: Path) -> Known:
    """Key -> shard and place, of every whole shard; a leftover of a killed build is removed."""
    for leftover in folder.glob(".*.part*"):
        leftover.unlink(missing_ok=True)
    known: Known = {}
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            shard = open_shard(path)
        except RefineRankError:
            path.unlink()  # not whole: computed again
            continue
        for at, entry in enumerate(shard.entries):
            known.setdefault(entry.key, (shard, at))
    return known


def _write(path: Path, content: Any) -> None:
    """JSON, whole or not at all."""
    with whole_file(path) as fresh:
        fresh.write_text(strict_json.dumps(content) + "\n", encoding="utf-8")

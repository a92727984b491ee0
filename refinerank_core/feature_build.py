"""Build a feature cache: what is there already is kept, what is missing is computed shard by shard.

An example's key follows from the models, the words, the time and the frame's bytes. Examples that
are missing are cut into shards in the order of the rows; a shard is computed by itself, so that it
comes out the same whoever computes it and whatever was computed before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from refinerank_core.errors import FormatError, RefineRankError
from refinerank_core.feature_cache import LABELS, MANIFEST, SCHEMA, SHARDS, CachedExample
from refinerank_core.feature_sets import Example
from refinerank_core.feature_shards import (
    SUFFIX,
    Shard,
    file_digest,
    open_shard,
    shard_name,
    write_shard,
)
from refinerank_core.formats import strict_json
from refinerank_core.formats.medvidbench_rows import QuestionRow, RowsRead
from refinerank_core.formats.medvidbench_space import to_frame
from refinerank_core.formats.medvidbench_time import local_path
from refinerank_core.formats.rows import Fault, RowError
from refinerank_core.frame_folder import read_picture
from refinerank_core.frozen_steps import Backbones, ask_frozen
from refinerank_core.models.prompts import FEATURE_PROMPT, QUERY_PROMPT
from refinerank_core.structures import Frame

SHARD_EXAMPLES = 64
LABEL_TOLERANCE_S = 0.05 + 1e-9
_READERS = 2
_AHEAD = 3  # questions whose frames are decoded while the models work on an earlier one


@dataclass(frozen=True)
class Unit:
    """One example to compute.

    Attributes:
        key: see the module's text.
        place: of its row in the file.
        question, video, time_s: what is asked of which video, and when.
        path: of its frame on this machine.
        frame: number of the frame.
    """

    key: str
    place: int
    question: str
    video: str
    time_s: float
    path: Path
    frame: int


Chunk = tuple[Unit, ...]
Planned = Sequence[tuple[QuestionRow, Unit]]
Known = dict[str, tuple[Shard, int]]
"""Key of an example -> its shard and its place there."""

Engine = Callable[[Sequence[Chunk], Path], Iterator[int]]
"""Takes the missing chunks and the folder of shards, writes each as one shard, and yields how many
examples are done after each."""


def settings_of(backbones: Backbones) -> dict[str, Any]:
    """Everything but words and frames that the features follow from."""
    profile = backbones.profile
    detector = profile.detector
    return {
        "schema": SCHEMA,
        "models": list(backbones.model_ids),
        "prompts": [FEATURE_PROMPT, QUERY_PROMPT],
        "blocks": list(profile.medvlm.blocks),
        "medvlm": [profile.medvlm.max_pixels, profile.medvlm.dtype, profile.medvlm.load_bits],
        "detector": [
            detector.backend,
            detector.box_threshold,
            detector.text_threshold,
            detector.max_raw,
            detector.short_side,
            detector.long_side,
        ],
        "pool_limit": profile.pool_limit,
    }


def plan_units(
    rows: RowsRead, data: Path, settings: dict[str, Any]
) -> tuple[list[tuple[QuestionRow, Unit]], list[Fault]]:
    """Every requested time of every usable row, in order, and what cannot be used.

    Args:
        rows: the rows; their annotation is not looked at.
        data: the folder that stands for /root/data.
        settings: of `settings_of`.
    """
    units: list[tuple[QuestionRow, Unit]] = []
    faults: list[Fault] = []
    digests: dict[Path, str] = {}
    for row in rows.rows:
        if row.timeline is None:
            continue  # its fault is among the rows' own
        if not row.requested_s:
            faults.append(Fault(row.line, f"id {row.row_id[:80]}: the question names no time"))
            continue
        try:
            units += [
                (row, _unit(row, time_s, data, settings, digests)) for time_s in row.requested_s
            ]
        except (RowError, RefineRankError) as error:
            faults.append(Fault(row.line, f"id {row.row_id[:80]}: {error}"))
    return units, faults


def _unit(
    row: QuestionRow,
    time_s: float,
    data: Path,
    settings: dict[str, Any],
    digests: dict[Path, str],
) -> Unit:
    timeline = row.timeline
    if timeline is None:
        raise RowError("the row has no frames")
    place = timeline.nearest(time_s)
    path = local_path(timeline.paths[place], data)
    if path not in digests:
        digests[path] = file_digest(path)
    made_from = json.dumps([settings, row.question, time_s, digests[path]], sort_keys=True)
    key = hashlib.sha256(made_from.encode()).hexdigest()
    return Unit(
        key, row.place, row.question, row.video, time_s, path.absolute(), timeline.numbers[place]
    )


def missing_chunks(
    units: Iterable[Unit], known: Iterable[str], *, size: int = SHARD_EXAMPLES
) -> list[Chunk]:
    """The units whose key is not known, once each, cut into shards of this size."""
    seen, missing = set(known), []
    for unit in units:
        if unit.key not in seen:
            seen.add(unit.key)
            missing.append(unit)
    return [tuple(missing[k : k + size]) for k in range(0, len(missing), size)]


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


def local_engine(backbones: Backbones) -> Engine:
    """Compute the chunks here, one after the other."""

    def run(chunks: Sequence[Chunk], folder: Path) -> Iterator[int]:
        for chunk in chunks:
            compute_shard(backbones, chunk, folder)
            yield len(chunk)

    return run


def build_cache(
    rows: RowsRead,
    data: Path,
    out: Path,
    *,
    settings: dict[str, Any],
    profile: str,
    inter_block: int,
    engine: Engine,
    shard_examples: int = SHARD_EXAMPLES,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> dict[str, Any]:
    """Bring a cache up to date with its rows.

    Args:
        rows: the rows.
        data: the folder that stands for /root/data.
        out: the cache's folder; shards that are there are used and never changed.
        settings: of `settings_of`.
        profile, inter_block: name of the profile, and the block its RefineNet reads.
        engine: computes what is missing.
        shard_examples: examples in a shard.
        progress: called with examples done and examples to compute.

    Returns:
        The manifest, and beside it "computed", how many examples were, and "faults", each a line
        of the rows and what is wrong there. Shards that no example refers to any more stay.

    Raises:
        FormatError: no row can be used.
        RefineRankError: the folder cannot be written.
    """
    units, faults = plan_units(rows, data, settings)
    if not units:
        raise FormatError("None of the rows can be used: see `rows check`.")
    folder = out / SHARDS
    try:
        folder.mkdir(parents=True, exist_ok=True)
        known = _known(folder)
        chunks = missing_chunks((unit for _, unit in units), known, size=shard_examples)
        done, total = 0, sum(map(len, chunks))
        progress(0, total)
        for count in engine(chunks, folder):
            done += count
            progress(done, total)
        known = _known(folder)
        faults = [*rows.faults, *faults, *_uncomputed(units, known)]
        manifest = _manifest(rows, units, known, settings)
        manifest |= {"profile": profile, "inter_block": inter_block}
        labels = _labels(units, known, faults)
        if any(labels):
            _write(out / LABELS, {"digest": manifest["digest"], "boxes": labels})
        else:
            (out / LABELS).unlink(missing_ok=True)
        _write(out / MANIFEST, manifest)
    except OSError as error:
        raise RefineRankError(f"{out.name} cannot be written ({error.strerror}).") from error
    told = [{"line": fault.line, "what": fault.text} for fault in faults]
    return {**manifest, "computed": total, "faults": told}


def _known(folder: Path) -> Known:
    """Key -> shard and place, of every whole shard; a leftover of a killed build is removed."""
    for leftover in folder.glob(".*.part"):
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


def _uncomputed(units: Planned, known: Known) -> list[Fault]:
    """What the models could not be asked about."""
    faults = []
    for row, unit in units:
        shard, at = known[unit.key]
        what = shard.entries[at].fault
        if what:
            text = f"id {row.row_id[:80]}, time {unit.time_s:g}: {what}"
            faults.append(Fault(row.line, text))
    return faults


def _manifest(
    rows: RowsRead, units: Planned, known: Known, settings: dict[str, Any]
) -> dict[str, Any]:
    """What is where. Nothing in it follows from the annotation."""
    examples: list[CachedExample] = []
    for row, unit in units:
        shard, at = known[unit.key]
        if not shard.entries[at].fault:
            examples.append(
                CachedExample(
                    place=row.place,
                    row_id=row.row_id,
                    qa_type=row.qa_type,
                    dataset=row.dataset,
                    video=row.video,
                    time_s=unit.time_s,
                    frame=unit.frame,
                    size_wh=shard.entries[at].size_wh,
                    shard=shard.path.name,
                    at=at,
                    key=unit.key,
                )
            )
    used = {known[one.key][0].path for one in examples}
    digests = {path.name: file_digest(path) for path in sorted(used)}
    listed = [asdict(one) for one in examples]
    joined = json.dumps([listed, digests], sort_keys=True).encode()
    return {
        "schema": SCHEMA,
        "settings": settings,
        "digest": hashlib.sha256(joined).hexdigest(),
        "rows": [
            [place, row_id, kind]
            for (row_id, kind), places in rows.order.items()
            for place in places
        ],
        "examples": listed,
        "shards": digests,
    }


def _labels(units: Planned, known: Known, faults: list[Fault]) -> list[list[float] | None]:
    """The annotated box of each example of the manifest, in pixels of its frame."""
    found: list[list[float] | None] = []
    for row, unit in units:
        shard, at = known[unit.key]
        if shard.entries[at].fault:
            continue
        near = [t for t in row.boxes if abs(t - unit.time_s) <= LABEL_TOLERANCE_S]
        try:
            size_wh = shard.entries[at].size_wh
            box = to_frame(row.boxes[near[0]], row.convention, size_wh) if near else None
        except RowError as error:
            text = f"id {row.row_id[:80]}, time {unit.time_s:g}: {error}"
            faults.append(Fault(row.line, text))
            box = None
        found.append(None if box is None else list(box))
    return found


def _write(path: Path, content: Any) -> None:
    """JSON, whole or not at all."""
    scratch = path.with_name(f".{path.name}.part")
    scratch.write_text(strict_json.dumps(content) + "\n", encoding="utf-8")
    scratch.replace(path)

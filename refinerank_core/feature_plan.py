"""What a feature cache is to hold: every requested time of every usable row, under its key.

A key follows from the models, the words, the time and the frame's bytes. The annotation is never
looked at.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from refinerank_core.errors import RefineRankError
from refinerank_core.feature_cache import SCHEMA
from refinerank_core.feature_shards import file_digest
from refinerank_core.formats.medvidbench_rows import QuestionRow, RowsRead
from refinerank_core.formats.medvidbench_time import local_path
from refinerank_core.formats.rows import Fault, RowError
from refinerank_core.frozen_steps import Backbones
from refinerank_core.models.prompts import FEATURE_PROMPT, QUERY_PROMPT

SHARD_EXAMPLES = 64


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
    key = unit_key(settings, row.question, time_s, digests[path])
    return Unit(
        key, row.place, row.question, row.video, time_s, path.absolute(), timeline.numbers[place]
    )


def unit_key(settings: dict[str, Any], question: str, time_s: float, frame_digest: str) -> str:
    """Key of an example: a hash of everything that its features follow from."""
    made_from = json.dumps([settings, question, time_s, frame_digest], sort_keys=True)
    return hashlib.sha256(made_from.encode()).hexdigest()


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

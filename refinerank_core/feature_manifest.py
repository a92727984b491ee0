"""The two lists beside the shards of a feature cache: what is where, and the answers."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any

from refinerank_core.feature_cache import SCHEMA, CachedExample
from refinerank_core.feature_plan import Planned
from refinerank_core.feature_shards import Shard, file_digest
from refinerank_core.formats.medvidbench_rows import RowsRead
from refinerank_core.formats.medvidbench_space import to_frame
from refinerank_core.formats.rows import Fault, RowError

LABEL_TOLERANCE_S = 0.05 + 1e-9

Known = dict[str, tuple[Shard, int]]
"""Key of an example -> its shard and its place there."""


def uncomputed(units: Planned, known: Known) -> list[Fault]:
    """What the models could not be asked about."""
    faults = []
    for row, unit in units:
        shard, at = known[unit.key]
        what = shard.entries[at].fault
        if what:
            text = f"id {row.row_id[:80]}, time {unit.time_s:g}: {what}"
            faults.append(Fault(row.line, text))
    return faults


def manifest_of(
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


def labels_of(units: Planned, known: Known, faults: list[Fault]) -> list[list[float] | None]:
    """The annotated box of each example of the manifest, in pixels of its frame."""
    found: list[list[float] | None] = []
    for row, unit in units:
        shard, at = known[unit.key]
        if shard.entries[at].fault:
            continue
        near = [t for t in row.boxes if abs(t - unit.time_s) <= LABEL_TOLERANCE_S]
        try:
            size_wh = shard.entries[at].size_wh
            nearest = min(near, key=lambda t: abs(t - unit.time_s), default=None)
            box = None if nearest is None else to_frame(row.boxes[nearest], row.convention, size_wh)
        except RowError as error:
            text = f"id {row.row_id[:80]}, time {unit.time_s:g}: {error}"
            faults.append(Fault(row.line, text))
            box = None
        found.append(None if box is None else list(box))
    return found

"""Features of reviewed pictures, by the same build that `features build` runs on rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from refinerank_core.feature_build import build_cache, local_engine
from refinerank_core.feature_cache import FeatureCache, open_cache
from refinerank_core.feature_plan import Unit, settings_of, unit_key
from refinerank_core.feature_shards import file_digest
from refinerank_core.formats.medvidbench_rows import STG, QuestionRow, RowsRead
from refinerank_core.frozen_steps import Backbones
from refinerank_core.learning.pictures import Picture
from refinerank_core.learning.targets import LeftOut

DATASET = "reviews"
"""One data set, so that each reviewed box weighs the same whatever it came from."""


def reviewed_cache(
    backbones: Backbones,
    pictures: Sequence[Picture],
    out: Path,
    *,
    told: Callable[[int, int], None] = lambda *_: None,
) -> tuple[FeatureCache, list[Picture], list[LeftOut]]:
    """Bring a cache of reviewed pictures up to date.

    Args:
        backbones: the frozen models.
        pictures: what was reviewed.
        out: folder of the cache.
        told: called with examples done and to compute.

    Returns:
        The cache, the picture behind each of its examples in their order, and the pictures that
        the models could not be asked about.

    Raises:
        RefineRankError: none of them could be used.
    """
    settings = settings_of(backbones)
    rows, planned = _planned(pictures, settings)
    build_cache(
        rows,
        [(row, unit) for row, unit, _ in planned],
        out,
        settings=settings,
        profile=backbones.profile,
        engine=local_engine(backbones),
        progress=told,
    )
    cache = open_cache(out)
    asked = {(unit.place, unit.time_s): picture for _, unit, picture in planned}
    used = [asked[example.place, example.time_s] for example in cache.sets[0].examples]
    cases = {picture.target.case.case_id for picture in used}
    why = "the models could not be asked about its picture"
    left_out = [
        LeftOut.of(one.target.case, why) for one in pictures if one.target.case.case_id not in cases
    ]
    return cache, used, left_out


def _planned(
    pictures: Sequence[Picture], settings: dict[str, Any]
) -> tuple[RowsRead, list[tuple[QuestionRow, Unit, Picture]]]:
    """A row for each question about a video; its times are those that were reviewed."""
    asked: dict[tuple[str, str], list[Picture]] = defaultdict(list)
    for picture in pictures:
        asked[picture.target.video, picture.target.case.question].append(picture)
    read = RowsRead()
    planned = []
    for place, ((video, question), mine) in enumerate(asked.items()):
        mine.sort(key=lambda picture: picture.time_s)
        row = QuestionRow(
            place=place,
            line=place + 1,
            row_id=f"{video}-{place}",
            qa_type=STG,
            dataset=DATASET,
            video=video,
            question=question,
            requested_s=tuple(picture.time_s for picture in mine),
            timeline=None,
            boxes={picture.time_s: picture.target.box for picture in mine},
        )
        read.rows.append(row)
        read.order[row.row_id, STG].append(place)
        read.total += 1
        for one in mine:
            key = unit_key(settings, question, one.time_s, file_digest(one.path))
            unit = Unit(key, place, question, video, one.time_s, one.path.absolute(), one.frame)
            planned.append((row, unit, one))
    return read, planned

"""What a visitor takes away: the candidates as a table, the maps as arrays."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demo.present import overlap
from demo.sessions import Answer
from refinerank_core.grounding import Candidate, TimeGrounding

CSV_COLUMNS = (
    "requested_s frame_index frame_s candidate source phrase confidence native_score parent"
    " x0 y0 x1 y1 score_original score_refined delta_x delta_y delta_log_w delta_log_h"
    " refined_x0 refined_y0 refined_x1 refined_y1 iou_shift kept_original kept_refined answer"
).split()


def pool_csv(answer: Answer) -> str:
    """Every candidate of every time, one a line, full precision; text is safe in a spreadsheet."""
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for time in answer.grounding.times:
        for row in time.candidates:
            writer.writerow(_csv_row(time, row))
    return sheet.getvalue()


def _csv_row(time: TimeGrounding, row: Candidate) -> list[object]:
    best = time.answers.refinerank
    chosen = ("refined" if best.refined else "original") if best.candidate_id == row.id else ""
    return [
        time.requested_s,
        time.frame_index,
        time.frame_s,
        row.id,
        row.source,
        spreadsheet_text(row.phrase),
        "" if row.confidence is None else row.confidence,
        row.native_score,
        "" if row.parent is None else row.parent,
        *row.box,
        row.score_original,
        row.score_refined,
        *row.delta,
        *(row.refined_box or ("", "", "", "")),
        "" if row.refined_box is None else overlap(row.box, row.refined_box),
        int(row.kept_original),
        int(row.kept_refined),
        chosen,
    ]


def spreadsheet_text(text: str) -> str:
    """Text that a spreadsheet does not run as a formula: an apostrophe goes before = + - @."""
    return f"'{text}" if text[:1] in {"=", "+", "-", "@", "\t", "\r"} else text


def maps_npz(arrays: Mapping[str, NDArray[np.float16]], about: dict[str, Any]) -> bytes:
    """The arrays as .npz, with a readable `about.json` beside them in the same archive."""
    packed = io.BytesIO()
    np.savez_compressed(packed, allow_pickle=False, **arrays)
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr("about.json", json.dumps(about, ensure_ascii=False, indent=1))
    return packed.getvalue()

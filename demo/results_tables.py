"""The tables of the Results tab, published figures beside those of a file. No Gradio, no HTML.

A table is {title, note, groups: [{name, kind, span}], heads, rows: [{name, cells}]}; a cell is
{text, small}; kind is "published" or "ours".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from demo import results_published as published
from demo.results_read import AVERAGE, Cell, Ends, Evaluation, Gap, Options, Study
from refinerank_core.study_tables import line_name

Plain = dict[str, Any]
NONE = "\u2013"
_METHODS = {
    "medvlm": "MedVLM",
    "medvlm_groundingdino": "MedVLM + GroundingDINO",
    "refinerank": "RefineRank",
    "paper": "As in the paper",
    "reencode": "Refined boxes encoded again",
    "smooth": "Smoothed over time",
    "ensemble": "Ensemble of seeds",
}


def number(value: float | None) -> str:
    """An IoU or a share, as the tables show it."""
    return NONE if value is None else f"{value:.3f}"


def method(line: str) -> str:
    """A line of a table in few words."""
    return _METHODS.get(line) or line_name(line)


def _groups(study: Study, extra: int = 0) -> list[Plain]:
    """The two groups of columns; extra: columns of each beside data sets and average."""
    ours = "This run, PHANTOM surgery" if study.phantom else "This run"
    return [
        {"name": published.LABEL, "kind": "published", "span": len(published.COLUMNS) + extra},
        {"name": ours, "kind": "ours", "span": len(study.procedures) + 1 + extra},
    ]


def _heads(study: Study, *extra: str) -> list[str]:
    return [*published.COLUMNS, *extra, *study.procedures, AVERAGE, *extra]


def _published(row: Sequence[float] | None) -> list[Plain]:
    values = row or (None,) * len(published.COLUMNS)
    return [{"text": number(value), "small": ""} for value in values]


def _ours(study: Study, table: str, line: str) -> list[Plain]:
    """Cells of a line of this run: mean ± spread, and the interval over videos."""
    cells: Mapping[str, Cell] = getattr(study, table).get(line, {})
    ends: Mapping[str, Ends] = study.intervals.get(table, {}).get(line, {})
    columns = [*study.procedures, AVERAGE]
    return [_cell(cells.get(name), ends.get(name)) for name in columns]


def _cell(cell: Cell | None, ends: Ends | None = None) -> Plain:
    if cell is None:
        return {"text": NONE, "small": ""}
    spread = f" ± {cell.spread:.3f}" if cell.spread else ""
    return {"text": number(cell.mean) + spread, "small": interval(ends)}


def interval(ends: Ends | Gap | None) -> str:
    """A 95 % interval."""
    return "" if ends is None else f"[{ends.low:.3f}, {ends.high:.3f}]"


def methods_table(study: Study) -> Plain:
    """Table 3, with the oracle of each method's boxes."""
    rows = []
    for line in published.METHODS:
        oracle = {"medvlm_groundingdino": "original", "refinerank": "joint"}.get(line)
        cells = study.oracle.get(oracle, {}) if oracle else study.methods.get(line, {})
        rows.append(
            {
                "name": method(line),
                "cells": [
                    *_published(published.METHODS[line]),
                    {"text": number(published.ORACLES[line]), "small": ""},
                    *_ours(study, "methods", line),
                    _cell(cells.get(AVERAGE)),
                ],
                "strong": line == "refinerank",
            }
        )
    return {
        "title": "Methods (Table 3)",
        "note": "mIoU: mean over question rows of the mean IoU over their times; the average weighs"
        " data sets equally. ± deviation over seeds; in brackets 95 % over videos. Oracle: average "
        "of the best box that could have been chosen.",
        "groups": _groups(study, 1),
        "heads": _heads(study, "oracle"),
        "rows": rows,
    }


def selectors_table(study: Study) -> Plain:
    """Table 4."""
    rows = [
        {
            "name": "RefineRank's own scores" if line == "refinerank" else method(line),
            "cells": [
                *_published(published.SELECTORS[line]),
                *_ours(study, "methods" if line == "refinerank" else "selectors", line),
            ],
            "strong": line == "refinerank",
        }
        for line in published.SELECTORS
    ]
    return {
        "title": "Selectors on the same joint pool (Table 4)",
        "note": "RefineNet is frozen and none of the selectors sees its scores.",
        "groups": _groups(study),
        "heads": _heads(study),
        "rows": rows,
    }


def features_table(study: Study) -> Plain:
    """Table 5: published blocks beside ours of the same place in the tower."""
    theirs, ours = list(published.FEATURES), list(study.features)
    rows = []
    for place in range(max(len(theirs), len(ours))):
        line = theirs[place] if place < len(theirs) else None
        mine = ours[place] if place < len(ours) else None
        words = method(line or mine or "")
        if line and mine and line != mine:
            words += f" (here {mine.replace('_', ' ')})"
        rows.append(
            {
                "name": words,
                "cells": [
                    *_published(published.FEATURES[line] if line else None),
                    *_ours(study, "features", mine or ""),
                ],
            }
        )
    return {
        "title": "Features (Table 5)",
        "note": "A separate MLP of 10 epochs; rows after q_last add the box's tokens of one vision "
        f"block. Published blocks are of {published.BLOCKS}.",
        "groups": _groups(study),
        "heads": _heads(study),
        "rows": rows,
    }


def losses_table(study: Study) -> Plain:
    """Where IoU is lost."""
    fields = ("candidate_loss", "ranking_loss", "correct", "rescued", "harmed")
    rows = [
        {
            "name": "Published average",
            "cells": [
                {"text": number(value), "small": ""}
                for value in (published.CANDIDATE_LOSS, published.RANKING_LOSS, None, None, None)
            ],
            "quiet": True,
        }
    ] + [
        {
            "name": name,
            "cells": [{"text": number(found.get(key)), "small": ""} for key in fields],
        }
        for name, found in study.decomposition.items()
    ]
    return {
        "title": "Where IoU is lost",
        "note": "1 - oracle is lost by the candidates, oracle - answer by the ranking. The other "
        "columns are shares of the times (IoU at least 0.5 is correct).",
        "groups": [],
        "heads": [
            "by candidates",
            "by ranking",
            "correct",
            "rescued by refinement",
            "harmed by it",
        ],
        "rows": rows,
    }


def kinds_table(study: Study) -> Plain:
    """By kind of question."""
    lines = [name for name in next(iter(study.by_kind.values())) if name != "examples"]
    return {
        "title": "By kind of question",
        "note": "What the question points with; mean IoU over times of all data sets.",
        "groups": [],
        "heads": [
            "times",
            *("Oracle" if one.startswith("oracle") else method(one) for one in lines),
        ],
        "rows": [
            {
                "name": kind,
                "cells": [
                    {"text": f"{found['examples']:.0f}", "small": ""},
                    *({"text": number(found.get(line)), "small": ""} for line in lines),
                ],
            }
            for kind, found in study.by_kind.items()
        ],
    }


def differences_table(
    found: Mapping[str, Mapping[str, Gap]], datasets: Sequence[str], *, whose: str = "RefineRank"
) -> Plain:
    """Paired differences over videos."""
    columns = [*datasets, AVERAGE]
    return {
        "title": f"{whose} less the others",
        "note": "Paired over videos: mean, 95 % interval, and p by swapping the methods video by "
        "video.",
        "groups": [],
        "heads": columns,
        "rows": [
            {
                "name": method(line),
                "cells": [_gap(gaps.get(name)) for name in columns],
            }
            for line, gaps in found.items()
        ],
    }


def _gap(gap: Gap | None) -> Plain:
    if gap is None:
        return {"text": NONE, "small": ""}
    p = "p < 0.001" if gap.p < 0.001 else f"p {gap.p:.3f}"
    return {"text": f"{gap.mean:+.3f}", "small": f"[{gap.low:+.3f}, {gap.high:+.3f}] {p}"}


def evaluation_table(found: Evaluation) -> Plain:
    """Published methods and this one, by the data sets' own names."""
    own = [name for name in found.strict.datasets if name not in published.DATASETS]
    columns = [*published.DATASETS, *own]
    rows: list[Plain] = [
        {
            "name": f"{method(line)} (published)",
            "cells": [
                *_published(row[:-1]),
                *({"text": NONE, "small": ""} for _ in own),
                {"text": number(row[-1]), "small": ""},
            ],
            "quiet": True,
        }
        for line, row in published.METHODS.items()
    ]
    for words, scores in (("strict", found.strict), ("leaderboard", found.leaderboard)):
        ends = scores.intervals
        rows.append(
            {
                "name": f"This method, {words}",
                "cells": [
                    {
                        "text": number(scores.datasets.get(name)),
                        "small": interval(ends.get(name)),
                    }
                    for name in columns
                ]
                + [{"text": number(scores.average), "small": interval(ends.get(AVERAGE))}],
                "strong": words == "strict",
            }
        )
    for name, words in (("original", "boxes of the pool"), ("joint", "with refined boxes")):
        if name in found.oracle:
            best = found.oracle[name]
            rows.append(
                {
                    "name": f"Oracle, {words}",
                    "cells": [
                        {"text": number(best.get(one)), "small": ""} for one in (*columns, AVERAGE)
                    ],
                }
            )
    return {
        "title": "STG mIoU",
        "note": "The average weighs data sets equally. In brackets: 95 % over videos. Published "
        "figures are of the paper's own split.",
        "groups": [],
        "heads": [*columns, AVERAGE],
        "rows": rows,
    }


def accuracy_table(found: Evaluation) -> Plain:
    """Share of annotated times that reach a threshold."""
    return {
        "title": "Share of times with IoU at least",
        "note": "Strict scoring, over annotated times.",
        "groups": [],
        "heads": list(found.acc),
        "rows": [
            {
                "name": name,
                "cells": [{"text": number(shares.get(at)), "small": ""} for at in found.acc],
            }
            for name, shares in (*found.acc_datasets.items(), ("all rows", found.acc))
        ],
    }


def options_table(found: Options, datasets: Sequence[str]) -> Plain:
    """Mean IoU of each option."""
    columns = [*datasets, AVERAGE]
    return {
        "title": "Options beyond the paper",
        "note": "mIoU, ± deviation over seeds.",
        "groups": [],
        "heads": columns,
        "rows": [
            {
                "name": method(line),
                "cells": [_cell(cells.get(name)) for name in columns],
                "strong": line == "paper",
            }
            for line, cells in found.options.items()
        ],
    }

"""A study's figures as Markdown tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LINE_NAMES = {
    "medvlm": "MedVLM (direct answer)",
    "medvlm_groundingdino": "MedVLM + GroundingDINO (best confidence)",
    "refinerank": "RefineRank",
    "original": "oracle, original boxes",
    "joint": "oracle, original and refined boxes",
    "extra_trees": "ExtraTrees",
    "mlp": "MLP",
    "transformer": "Transformer encoder",
    "f_dino": "f_dino",
    "q_last": "+ q_last",
}
HOW = (
    "mean over seeds ± sample deviation. mIoU: mean over question rows of the mean over their "
    "times; the average weighs"
)


def line_name(line: str) -> str:
    """A line of a table in words."""
    return LINE_NAMES.get(line, "+ " + line.replace("_", " "))


def paper_tables(figures: Mapping[str, Any], what: str) -> list[str]:
    """Tables 3 to 5, differences over videos, and where IoU is lost.

    Args:
        figures: what `study_figures.figures_of` gives.
        what: a data set is called, such as "procedure".
    """
    names = list(figures["procedures"])
    ours = {"refinerank": figures["methods"]["refinerank"]}
    return [
        "## Methods (Table 3)",
        "",
        *_table({**figures["methods"], **figures["oracle"]}, names),
        "",
        "## Selectors on the same joint pool (Table 4; RefineNet frozen, its scores unseen)",
        "",
        *_table({**figures["selectors"], **ours}, names),
        "",
        "## Features (Table 5; a separate MLP, rows beside f_dino and q_last add the box's tokens)",
        "",
        *_table(figures["features"], names),
        "",
        "## RefineRank less each other line (95 % interval and p over videos)",
        "",
        *_differences(figures["differences"], names),
        "",
        "## Where IoU is lost",
        "",
        f"| {what} | candidates (1 - oracle) | ranking (oracle - chosen) | IoU >= 0.5 | rescued "
        "by refinement | harmed |",
        "|---|---|---|---|---|---|",
        *(
            f"| {name} | " + " | ".join(f"{value:.4f}" for value in row.values()) + " |"
            for name, row in figures["decomposition"].items()
        ),
    ]


def _table(lines: Mapping[str, Any], names: list[str]) -> list[str]:
    columns = [*names, "average"]
    rows = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for line, cells in lines.items():
        shown = [f"{cells[c]['mean']:.4f} ± {cells[c]['spread']:.4f}" for c in columns]
        rows.append(f"| {line_name(line)} | {' | '.join(shown)} |")
    return rows


def _differences(lines: Mapping[str, Any], names: list[str]) -> list[str]:
    columns = [*names, "average"]
    rows = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for line, gaps in lines.items():
        shown = [
            f"{gap['mean']:+.4f} [{gap['low']:+.4f}, {gap['high']:+.4f}], p {gap['p']:.4f}"
            for gap in (gaps[c] for c in columns)
        ]
        rows.append(f"| {line_name(line)} | {' | '.join(shown)} |")
    return rows

"""The study's figures as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

METHOD_NAMES = {
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


def as_markdown(figures: Mapping[str, Any]) -> str:
    """The tables of a study, each figure as mean ± deviation over the seeds.

    Args:
        figures: what `study.run_study` gives, with command and revision.
    """
    procedures = list(figures["procedures"])
    split = figures["split"]
    parts = [
        "# The controlled study on phantom surgery",
        "",
        "PHANTOM: every video is drawn by a program and every model here is small and trained on "
        "such videos. The figures show how the method behaves, not how it does on patients.",
        "",
        f"`{figures['command']}` at {figures['revision']}; seeds "
        f"{', '.join(map(str, figures['seeds']))}; mean over seeds ± sample deviation. mIoU: mean "
        "over question rows of the mean over their times; the average weighs procedures equally.",
        "",
        "| procedure | training videos / examples | evaluation videos / examples |",
        "|---|---|---|",
        *(
            f"| {name} | {_count(split['train'][name])} | {_count(split['eval'][name])} |"
            for name in procedures
        ),
        "",
        "## Methods (Table 3)",
        "",
        *_table({**figures["methods"], **figures["oracle"]}, procedures),
        "",
        "## Selectors on the same joint pool (Table 4; RefineNet frozen, its scores unseen)",
        "",
        *_table(
            {**figures["selectors"], "refinerank": figures["methods"]["refinerank"]}, procedures
        ),
        "",
        "## Features (Table 5; a separate MLP, rows beside f_dino and q_last add the box's tokens)",
        "",
        *_table(figures["features"], procedures),
        "",
        "## Where IoU is lost",
        "",
        "| procedure | candidates (1 - oracle) | ranking (oracle - chosen) | IoU >= 0.5 | rescued "
        "by refinement | harmed |",
        "|---|---|---|---|---|---|",
        *(
            f"| {name} | " + " | ".join(f"{value:.4f}" for value in row.values()) + " |"
            for name, row in figures["decomposition"].items()
        ),
        "",
        "## By kind of question",
        "",
        "| kind | examples | MedVLM | MedVLM + GroundingDINO | RefineRank | oracle |",
        "|---|---|---|---|---|---|",
        *(
            f"| {kind} | {row['examples']} | "
            + " | ".join(f"{value:.4f}" for name, value in row.items() if name != "examples")
            + " |"
            for kind, row in figures["by_kind"].items()
        ),
        "",
        "## Does it listen?",
        "",
        *_checks(figures["checks"]),
    ]
    return "\n".join(parts) + "\n"


def _table(lines: Mapping[str, Any], procedures: list[str]) -> list[str]:
    columns = [*procedures, "average"]
    rows = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for line, cells in lines.items():
        name = METHOD_NAMES.get(line, "+ " + line.replace("_", " "))
        shown = [f"{cells[c]['mean']:.4f} ± {cells[c]['spread']:.4f}" for c in columns]
        rows.append(f"| {name} | {' | '.join(shown)} |")
    return rows


def _count(facts: Mapping[str, int]) -> str:
    return f"{facts['videos']} / {facts['examples']}"


def _checks(checks: Mapping[str, Any]) -> list[str]:
    swaps = checks["swaps"]
    return [
        f"- question swapped for one about another thing in view: the box moved to it in "
        f"{swaps['moved']} of {swaps['tried']} frames",
        f"- mean IoU over examples {checks['mean_iou']:.4f}; with ROI features shuffled among "
        f"candidates {checks['mean_iou_shuffled_roi']:.4f}; with q_last shuffled among questions "
        f"{checks['mean_iou_shuffled_q_last']:.4f}",
    ]

"""The phantom study's figures as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from refinerank_core.study_tables import HOW, paper_tables


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
        f"{', '.join(map(str, figures['seeds']))}; {HOW} procedures equally.",
        "",
        "| procedure | training videos / examples | evaluation videos / examples |",
        "|---|---|---|",
        *(
            f"| {name} | {_count(split['train'][name])} | {_count(split['eval'][name])} |"
            for name in procedures
        ),
        "",
        *paper_tables(figures, "procedure"),
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

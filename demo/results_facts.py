"""From result files to what the Results tab shows: sentences, videos, tables. Plain data only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from demo import results_published as published
from demo.results_read import AVERAGE, Card, Document, Evaluation, Options, Study
from demo.results_tables import (
    NONE,
    accuracy_table,
    differences_table,
    evaluation_table,
    features_table,
    kinds_table,
    losses_table,
    method,
    methods_table,
    number,
    options_table,
    selectors_table,
)

Plain = dict[str, Any]
PHANTOM = "PHANTOM"
_SHOWN_PROBLEMS = 50


def document_facts(one: Document) -> Plain:
    """Everything that the tab shows of one file, but the pictures and the counts of cases."""
    content = one.content
    if isinstance(content, Study):
        return {"kind": "study", "name": one.name, **study_facts(content)}
    if isinstance(content, Evaluation):
        return {"kind": "evaluation", "name": one.name, **evaluation_facts(content)}
    if isinstance(content, Options):
        return {"kind": "options", "name": one.name, **options_facts(content)}
    return {"kind": "card", "name": one.name, **card_facts(content)}


def study_facts(study: Study) -> Plain:
    """A study, or tables made from cached rows."""
    datasets = study.procedures
    return {
        "badge": PHANTOM if study.phantom else "",
        "say": _say(study),
        "origin": origin(study),
        "datasets": list(datasets),
        "first": methods_table(study),
        "tables": [
            selectors_table(study),
            features_table(study),
            *([losses_table(study)] if study.decomposition else []),
            *([kinds_table(study)] if study.by_kind else []),
            *([differences_table(study.differences, datasets)] if study.differences else []),
        ],
        "listens": listens(study.checks),
        "videos": [
            {"dataset": name, "video": video, **_video_cells(found)}
            for name, videos in study.videos.items()
            for video, found in videos.items()
        ],
        "video_heads": [method(line) for line in study.methods] + ["Oracle"],
        "worst": [
            {
                "dataset": name,
                "place": place,
                "video": case.video,
                "question": case.question,
                "time": f"{case.time_s:g} s",
                "size": list(case.size_wh),
                "words": f"IoU {number(case.iou)}; best box of the pool {number(case.best)}",
                "boxes": {role: list(box) for role, box in case.boxes.items()},
            }
            for name, cases in study.worst.items()
            for place, case in enumerate(cases)
        ],
        "figures": figures_of(study),
        "problems": [],
        "older": ""
        if study.videos
        else "This file was made by an older version: it has no videos, intervals, curves or "
        "calibration. Run the study again to get them.",
    }


def figures_of(study: Study) -> list[str]:
    """Names of the figures that this study can fill."""
    names = ["methods"]
    names += ["videos"] if study.videos else []
    names += ["reliability"] if study.reliability else []
    return names + (["curves"] if study.curves else [])


def _say(study: Study) -> str:
    if study.phantom:
        return (
            "Every video of this run is drawn by a program and its models are small: the figures "
            "show how the method behaves, not how it does on patients."
        )
    return "A run on cached rows of your own; compare it with the published figures by data set."


def origin(study: Study) -> list[list[str]]:
    """What the figures come from, as pairs of a word and what it stands for."""
    found = [["Models", ", ".join(study.models) or NONE]]
    if study.split:
        sums = {
            side: [sum(one[key] for one in study.split[side].values()) for key in _COUNTED]
            for side in ("train", "eval")
            if side in study.split
        }
        found.append(
            [
                "Split by video",
                "; ".join(
                    f"{words} {videos} videos, {examples} examples"
                    for (videos, examples), words in zip(
                        sums.values(), ("training", "evaluation"), strict=False
                    )
                )
                + (f"; {study.folds} folds" if study.folds else ""),
            ]
        )
    if study.seeds:
        found.append(["Seeds", ", ".join(map(str, study.seeds))])
    if study.command:
        found.append(["Command", study.command])
    if study.revision:
        found.append(["Revision", study.revision[:12]])
    return found


_COUNTED = ("videos", "examples")


def listens(checks: Mapping[str, Any]) -> list[str]:
    """Whether the answers follow from the question and from what is in the boxes."""
    try:
        swaps = checks["swaps"]
        return [
            f"Asked about another thing of the same frame, the box moved to it in {swaps['moved']} "
            f"of {swaps['tried']} frames.",
            f"Mean IoU over times {checks['mean_iou']:.3f}; with the boxes' features shuffled "
            f"{checks['mean_iou_shuffled_roi']:.3f}; with the questions shuffled "
            f"{checks['mean_iou_shuffled_q_last']:.3f}.",
        ]
    except (KeyError, TypeError, ValueError):
        return []


def _video_cells(found: Mapping[str, float]) -> Plain:
    values = {name: value for name, value in found.items() if name not in ("rows", "examples")}
    return {
        "rows": int(found.get("rows", 0)),
        "times": int(found.get("examples", 0)),
        "values": [round(value, 4) for value in values.values()],
        "rank": values.get("refinerank", next(iter(values.values()), 0.0)),
    }


def evaluation_facts(found: Evaluation) -> Plain:
    """A scored submission of one's own."""
    datasets = list(found.strict.datasets)
    gaps = {"the other method": found.difference} if found.difference else {}
    return {
        "badge": "",
        "say": "Scored by `evaluate` on annotated rows. Strict: a missing box is 0. Leaderboard: "
        "as the public evaluator scores it.",
        "origin": [
            [
                "Rows",
                f"{found.counts.get('rows', 0)}, {found.counts.get('predicted', 0)} predicted",
            ],
            ["Annotated times", str(found.counts.get("times", 0))],
        ],
        "datasets": datasets,
        "first": evaluation_table(found),
        "tables": [
            accuracy_table(found),
            *([differences_table(gaps, datasets, whose="This method")] if gaps else []),
        ],
        "listens": [],
        "videos": [
            {
                "dataset": name,
                "video": video,
                "rows": None,
                "times": None,
                "values": [value],
                "rank": value or 0.0,
            }
            for name, videos in found.videos.items()
            for video, value in videos.items()
        ],
        "video_heads": ["This method"],
        "worst": [],
        "figures": ["methods", "videos"],
        "problems": [
            f"line {one.get('line')} of {one.get('file')}: {one.get('what')}"
            for one in found.problems[:_SHOWN_PROBLEMS]
        ]
        + (
            [f"and {len(found.problems) - _SHOWN_PROBLEMS} more"]
            if len(found.problems) > _SHOWN_PROBLEMS
            else []
        ),
        "older": "",
    }


def options_facts(found: Options) -> Plain:
    """Options beyond the paper."""
    datasets = [name for name in next(iter(found.options.values()), {}) if name != AVERAGE]
    tables = []
    if found.differences:
        tables = [differences_table(found.differences, datasets, whose="Each option")]
        tables[0] |= {"title": "Each option less the paper's way"}
    return {
        "badge": PHANTOM,
        "say": "Options beyond the paper, each measured on the study's videos; none of them is on "
        "unless it is asked for.",
        "origin": [
            ["Models", ", ".join(found.models) or NONE],
            ["Seeds", ", ".join(map(str, found.seeds)) or NONE],
            ["Command", found.command or NONE],
            ["Revision", found.revision[:12] or NONE],
        ],
        "datasets": datasets,
        "first": options_table(found, datasets),
        "tables": tables,
        "listens": [],
        "videos": [],
        "video_heads": [],
        "worst": [],
        "figures": ["methods"] + (["reliability"] if found.calibration else []),
        "problems": [],
        "older": "",
    }


def card_facts(card: Card) -> Plain:
    """A trained checkpoint."""
    names = sorted({name for scores in card.held_out.values() for name in scores} - {AVERAGE})
    words = {"refinerank": "RefineRank", "original": "Oracle", "joint": "Oracle with refined boxes"}
    return {
        "badge": "",
        "say": f"A RefineNet of {len(card.losses)} epochs."
        if card.losses
        else "This card has no losses: it was written by an older version or another training.",
        "origin": [
            ["Models", ", ".join(card.models) or NONE],
            ["Seed", str(card.plan.get("seed", NONE))],
            ["Block", str(card.config.get("inter_block", NONE))],
        ],
        "datasets": names,
        "first": {
            "title": "Scores on held-out videos",
            "note": "Strict mIoU." if card.held_out else "It was trained without --held-out.",
            "groups": [],
            "heads": [*names, AVERAGE] if card.held_out else [],
            "rows": [
                {
                    "name": words.get(line, line),
                    "cells": [
                        {"text": number(scores.get(name)), "small": ""}
                        for name in (*names, AVERAGE)
                    ],
                    "strong": line == "refinerank",
                }
                for line, scores in card.held_out.items()
            ],
        },
        "tables": [],
        "listens": [],
        "videos": [],
        "video_heads": [],
        "worst": [],
        "figures": ["curves"] if card.losses else [],
        "problems": [],
        "older": "",
    }


def published_facts() -> Plain:
    """The leaderboard and the published split, for the foot of the page."""
    return {
        "leaderboard": {
            "title": f"Leaderboard, STG mIoU, published, {published.LEADERBOARD_DATE}",
            "note": f"RefineRank's rank over all of the leaderboard's metrics: "
            f"{published.GLOBAL_RANK}.",
            "groups": [],
            "heads": ["STG mIoU"],
            "rows": [
                {"name": name, "cells": [{"text": number(value), "small": ""}]}
                for name, value in published.LEADERBOARD
            ],
        },
        "split": {
            "title": "Published split",
            "note": published.LABEL,
            "groups": [],
            "heads": ["training videos", "examples", "evaluation videos", "examples"],
            "rows": [
                {"name": name, "cells": [{"text": f"{value:,}", "small": ""} for value in counts]}
                for name, counts in published.SPLIT.items()
            ],
        },
    }

"""Result files of our own making, small enough to check by eye."""

from __future__ import annotations

import copy
from typing import Any

from refinerank_core.reliability import BINS

PROCEDURES = ("laparoscopy", "open surgery")
VIDEO = "phantom-laparoscopy-3000000"


def cells(low: float, high: float, spread: float = 0.01) -> dict[str, Any]:
    """One line of a table."""
    values = {"laparoscopy": low, "open surgery": high, "average": (low + high) / 2}
    return {name: {"mean": round(v, 4), "spread": spread} for name, v in values.items()}


def intervals(line: dict[str, Any]) -> dict[str, Any]:
    """0.05 to both sides."""
    return {
        name: {"low": cell["mean"] - 0.05, "high": cell["mean"] + 0.05}
        for name, cell in line.items()
    }


def study(**changes: Any) -> dict[str, Any]:
    """A study of two procedures."""
    tables: dict[str, dict[str, Any]] = {
        "methods": {
            "medvlm": cells(0.1, 0.2, 0.0),
            "medvlm_groundingdino": cells(0.2, 0.4, 0.0),
            "refinerank": cells(0.4, 0.7),
        },
        "oracle": {"original": cells(0.6, 0.8, 0.0), "joint": cells(0.7, 0.9)},
        "selectors": {
            "extra_trees": cells(0.35, 0.6),
            "mlp": cells(0.38, 0.65),
            "transformer": cells(0.36, 0.64),
        },
        "features": {
            "f_dino": cells(0.2, 0.4),
            "q_last": cells(0.3, 0.6),
            **{f"block_{block}": cells(0.35, 0.6) for block in (1, 3, 5, 7)},
        },
    }
    gap = {"mean": 0.25, "low": 0.2, "high": 0.3, "p": 0.0005, "videos": 20.0}
    bins = {
        "counts": [0] * (BINS - 1) + [4],
        "predicted": [None] * (BINS - 1) + [0.95],
        "reached": [None] * (BINS - 1) + [0.8],
        "error": 0.15,
    }
    case = {
        "video": VIDEO,
        "row": f"{VIDEO}-q0",
        "time_s": 1.4,
        "question": "Where is the hook at 1.4 seconds?",
        "size_wh": [224, 126],
        "iou": 0.0,
        "best": 0.61,
        "boxes": {
            "truth": [20, 20, 80, 70],
            "answer": [120, 30, 180, 90],
            "before": [122, 31, 182, 92],
            "best": [24, 18, 84, 72],
        },
    }
    videos = {
        "laparoscopy": {
            f"phantom-laparoscopy-{3_000_000 + k}": {
                "rows": 3,
                "examples": 5,
                "medvlm": 0.1,
                "medvlm_groundingdino": 0.2,
                "refinerank": round(0.05 * k, 3),
                "joint": 0.7,
            }
            for k in range(16)
        }
    }
    whole = {
        **tables,
        "procedures": list(PROCEDURES),
        "seeds": [1, 2],
        "decomposition": {
            name: {
                "candidate_loss": 0.3,
                "ranking_loss": 0.3,
                "correct": 0.5,
                "rescued": 0.03,
                "harmed": 0.02,
            }
            for name in PROCEDURES
        },
        "by_kind": {
            "action": {
                "examples": 50,
                "medvlm": 0.1,
                "medvlm_groundingdino": 0.2,
                "refinerank": 0.5,
                "oracle_joint": 0.7,
            }
        },
        "checks": {
            "swaps": {"tried": 100, "moved": 88},
            "mean_iou": 0.58,
            "mean_iou_shuffled_roi": 0.46,
            "mean_iou_shuffled_q_last": 0.21,
        },
        "split": {
            side: {name: {"videos": n, "rows": 5 * n, "examples": 9 * n} for name in PROCEDURES}
            for side, n in (("train", 100), ("eval", 20))
        },
        "models": ["phantom-medvlm@1", "phantom-detector@2"],
        "command": "python -m refinerank_core phantom study",
        "revision": "0123456789abcdef",
        "quick": False,
        "intervals": {
            table: {line: intervals(row) for line, row in lines.items()}
            for table, lines in tables.items()
        },
        "differences": {
            "medvlm_groundingdino": dict.fromkeys((*PROCEDURES, "average"), gap),
        },
        "videos": videos,
        "reliability": {"all": {"answers": bins, "pool": bins}},
        "curves": {"1": {"refinenet": [3.0, 2.0, 1.5]}, "2": {"refinenet": [3.1, 2.1, 1.4]}},
        "worst": {"laparoscopy": [case]},
    }
    return copy.deepcopy(whole | changes)


def evaluation(**changes: Any) -> dict[str, Any]:
    """What `evaluate --json` gives for two data sets, one of them published."""
    side = {
        "mIoU": 0.5,
        "datasets": {"CoPESD": 0.6, "Mine": 0.4},
        "average": 0.5,
        "intervals": {"CoPESD": {"low": 0.5, "high": 0.7, "videos": 2}},
    }
    whole = {
        "strict": side,
        "leaderboard": side | {"average": 0.55},
        "acc": {"0.3": 0.8, "0.5": 0.6, "0.7": None},
        "acc_datasets": {"CoPESD": {"0.3": 0.9, "0.5": 0.7, "0.7": 0.2}},
        "counts": {"rows": 8, "times": 16, "predicted": 7, "leaderboard_rows": 8},
        "videos": {"CoPESD": {"c8": 0.7, "c9": 0.5}, "Mine": {"m1": None}},
        "problems": [{"line": 3, "what": "id x has no prediction", "file": "rows"}],
    }
    return copy.deepcopy(whole | changes)


def card(**changes: Any) -> dict[str, Any]:
    """A training's card."""
    whole = {
        "plan": {"seed": 7, "epochs": 3},
        "config": {"inter_block": 23},
        "models": ["medvlm@1", "detector@2"],
        "losses": [3.0, 2.0, 1.0],
        "held_out": {"refinerank": {"CoPESD": 0.6, "average": 0.6}},
    }
    return copy.deepcopy(whole | changes)

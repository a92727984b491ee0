"""What the paper and the leaderboard report: other people's figures, always shown as published.

Source: RefineRank, arXiv:2608.23928, Tables 2 to 5; MedVidBench leaderboard, 15 August 2026.
"""

from __future__ import annotations

from collections.abc import Mapping

LABEL = "Published (arXiv 2608.23928, MedVidBench)"
DATASETS = ("CholecTrack20", "CoPESD", "EgoSurgery")
COLUMNS = (*DATASETS, "average")

Row = tuple[float, float, float, float]
"""Figures of COLUMNS."""

METHODS: Mapping[str, Row] = {
    "medvlm": (0.0929, 0.0170, 0.0190, 0.0429),
    "medvlm_groundingdino": (0.1350, 0.3371, 0.3435, 0.2719),
    "refinerank": (0.3960, 0.5972, 0.3671, 0.4534),
}
ORACLES: Mapping[str, float] = {
    "medvlm": 0.0429,
    "medvlm_groundingdino": 0.6772,
    "refinerank": 0.7302,
}
"""Average of the best box that each method could have chosen."""

SELECTORS: Mapping[str, Row] = {
    "extra_trees": (0.2842, 0.4243, 0.2781, 0.3289),
    "mlp": (0.3373, 0.5767, 0.3417, 0.4186),
    "transformer": (0.3447, 0.5415, 0.3261, 0.4041),
    "refinerank": METHODS["refinerank"],
}
FEATURES: Mapping[str, Row] = {
    "f_dino": (0.1512, 0.3578, 0.3213, 0.2767),
    "q_last": (0.2528, 0.6069, 0.3536, 0.4044),
    "block_7": (0.3779, 0.5488, 0.3260, 0.4176),
    "block_15": (0.3537, 0.5411, 0.3558, 0.4169),
    "block_23": (0.3373, 0.5767, 0.3417, 0.4186),
    "block_31": (0.2622, 0.6040, 0.3213, 0.3959),
}
BLOCKS = 32
"""Depth of the published vision tower."""

SPLIT: Mapping[str, tuple[int, int, int, int]] = {
    "CholecTrack20": (7, 807, 2, 212),
    "CoPESD": (5, 134, 2, 118),
    "EgoSurgery": (11, 1405, 3, 624),
    "total": (23, 2346, 7, 954),
}
"""Training videos and examples, evaluation videos and examples."""

CANDIDATE_LOSS, RANKING_LOSS = 0.270, 0.277

LEADERBOARD_DATE = "15 August 2026"
LEADERBOARD: tuple[tuple[str, float], ...] = (
    ("RefineRank", 0.421),
    ("uAI-NEXUS-MedVLM-1.0a-7B-RL", 0.202),
    ("uAI-NEXUS-MedVLM-1.0c-4B-SFT", 0.190),
    ("uAI-NEXUS-MedVLM-1.0a-7B-SFT", 0.177),
    ("uAI-NEXUS-MedVLM-1.0b-4B-RL", 0.176),
)
GLOBAL_RANK = 11
"""RefineRank's place on the leaderboard over all of its metrics."""

"""Hold a study that was run again against one that is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ROUNDING = 0.04
SPREADS = 3.0


def differences(again: Mapping[str, Any], kept: Mapping[str, Any]) -> list[str]:
    """Name each figure of Table 3 that a repeated study does not give again.

    A figure may lie SPREADS times the kept deviation over seeds away, and ROUNDING more: two
    machines add up in another order, and a training on them ends a little elsewhere. ROUNDING is a
    guess, not a measurement: it lets a loss of less than 0.04 mIoU pass.

    Args:
        again, kept: what `study_of_profile` gives.

    Returns:
        One line a figure, none when all agree.
    """
    found = []
    if again["models"] != kept["models"]:
        found.append(f"models: {again['models']}, kept {kept['models']}")
    if again["split"] != kept["split"]:
        found.append("the videos or examples are not those of the kept study")
    for table in ("methods", "oracle"):
        for line, cells in kept[table].items():
            for column, cell in cells.items():
                new = again[table][line][column]["mean"]
                allowed = ROUNDING + SPREADS * cell["spread"]
                if abs(new - cell["mean"]) > allowed:
                    found.append(
                        f"{line}, {column}: {new:.4f}, kept {cell['mean']:.4f} +- {allowed:.4f}"
                    )
    return found

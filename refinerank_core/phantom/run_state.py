"""A training on disk: checkpoints that are whole or not there, and the card beside the result."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm
from transformers import AutoTokenizer

from refinerank_core.models.loading import load_strictly, weights_id
from refinerank_core.whole_file import whole_file


def keep_state(state: dict[str, Any], path: Path) -> None:
    """Write a checkpoint so that a stop at any moment leaves the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as fresh:
        torch.save(state, fresh)


def read_state(
    path: Path, plan: dict[str, Any], *, free: Collection[str] = ()
) -> dict[str, Any] | None:
    """Return the checkpoint at path, None where there is none.

    Args:
        path: of the checkpoint.
        plan: that the training follows now.
        free: what of a plan may have changed since the checkpoint was written.

    Raises:
        ValueError: it was written under another plan.
    """
    if not path.is_file():
        return None
    state: dict[str, Any] = torch.load(path, weights_only=True)
    before, now = (
        {name: value for name, value in told.items() if name not in free}
        for told in (state["plan"], plan)
    )
    if before != now:
        raise ValueError(
            f"{path.name} in {path.parent.name} belongs to another plan: train in another folder."
        )
    return state


def load_weights(model: Any, processor: Any, folder: Path) -> str:
    """Give a model the weights of a finished checkpoint of its size and its words.

    Args:
        model: a transformers model.
        processor: with the tokenizer that the training will use.
        folder: of the finished checkpoint.

    Returns:
        The checkpoint's name and hash.

    Raises:
        WeightsError: the checkpoint is absent, damaged, or of another size.
        ValueError: its tokenizer counts words in another way.
    """
    words = AutoTokenizer.from_pretrained(folder).get_vocab()
    if words != processor.tokenizer.get_vocab():
        raise ValueError(
            f"{folder.name} knows other words than this version trains. Start from a seed."
        )
    begun = load_strictly(
        type(model), str(folder), revision=None, dtype=torch.float32, attention="eager"
    )
    model.load_state_dict(begun.state_dict())
    return weights_id(str(folder), begun)


def run_steps(
    step: Callable[[int], float],
    keep: Callable[[int, float], None],
    *,
    first: int,
    last: int,
    seconds: float,
    keep_every_s: float,
    label: str,
) -> float:
    """Take the steps first..last - 1 and keep the state every so often and at the end.

    Args:
        step: takes the number of a step and returns its loss.
        keep: takes the number of the next step and the seconds of all runs so far.
        first: the step to begin with.
        last: the step to stop before.
        seconds: of earlier runs.
        keep_every_s: seconds between two checkpoints.
        label: of the progress bar.

    Returns:
        The seconds of all runs.
    """
    began, kept = time.monotonic(), time.monotonic()
    smooth: float | None = None
    with tqdm(total=last, initial=first, desc=label, unit="step", mininterval=5) as bar:
        for number in range(first, last):
            loss = step(number)
            smooth = loss if smooth is None else 0.98 * smooth + 0.02 * loss
            bar.set_postfix(loss=f"{smooth:.3f}", refresh=False)
            bar.update()
            if time.monotonic() - kept > keep_every_s and number + 1 < last:
                keep(number + 1, seconds + time.monotonic() - began)
                kept = time.monotonic()
    total = seconds + time.monotonic() - began
    keep(last, total)
    return total


def warm_then_cosine(step: int, steps: int, *, warm: int = 100, floor: float = 0.03) -> float:
    """Return the share of the peak learning rate at a step."""
    import math

    rise = min(1.0, (step + 1) / warm)
    return rise * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps))))


def command_line() -> str:
    """Return the command as typed, without the folders that it names."""
    words = [Path(word).name if "/" in word else word for word in sys.argv[1:]]
    return " ".join(["python -m refinerank_core", *words])


def revision() -> str:
    """Return the commit that the code stands at, "unknown" outside a checkout."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def write_figures(path: Path | None, text: str) -> None:
    """Write what a study found, whole or not at all, where a file was asked for; say so."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as fresh:
        fresh.write_text(text, encoding="utf-8")
    print(f"wrote {path.name}", file=sys.stderr)


def write_card(card: dict[str, Any], path: Path) -> None:
    """Write what a checkpoint is and how it came to be."""
    path.write_text(json.dumps(card, indent=2, default=float) + "\n", encoding="utf-8")

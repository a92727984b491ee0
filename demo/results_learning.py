"""Learning from reviews in the Results tab: what there is, how far it is, what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from demo.results_tables import number

Plain = dict[str, Any]

UNAVAILABLE = "Start the app with --variants FOLDER to let reviews teach a new profile here."
_STAGES = {
    "reviews": "Reading the reviews and taking their frames",
    "features": "Computing features",
    "training": "Training",
    "scoring": "Comparing before and after on held-out videos",
}
_SHOWN = 20


class Counts(Protocol):
    """How much there is to learn from."""

    @property
    def accepted(self) -> int: ...
    @property
    def corrected(self) -> int: ...
    @property
    def videos(self) -> int: ...


class RunState(Protocol):
    """How far a training is; see `refinerank_core.learning.runner.RunState`."""

    @property
    def status(self) -> str: ...
    @property
    def stage(self) -> str: ...
    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def losses(self) -> Sequence[float]: ...
    @property
    def message(self) -> str: ...
    @property
    def result(self) -> Mapping[str, Any] | None: ...


@dataclass(frozen=True)
class Learning:
    """The training that the tab may start; it runs in a process of its own.

    Attributes:
        counts: how much there is to learn from.
        start: begin a training under a name ("": made up); raises RefineRankError when one runs.
        state: the last run, None where there was none.
        cancel: stop the one that runs.
    """

    counts: Callable[[], Counts]
    start: Callable[[str], RunState]
    state: Callable[[], RunState | None]
    cancel: Callable[[], RunState | None]


def learning_facts(learning: Learning | None) -> Plain:
    """Everything that the panel shows."""
    if learning is None:
        return {"available": False, "say": UNAVAILABLE, "run": None}
    found, state = learning.counts(), learning.state()
    return {
        "available": True,
        "say": counts_words(found),
        "enough": found.accepted + found.corrected > 0,
        "run": None if state is None else run_facts(state),
    }


def counts_words(found: Counts) -> str:
    """What there is to learn from."""
    cases = found.accepted + found.corrected
    if not cases:
        return "No case has been accepted or corrected yet: decide some in Review first."
    return (
        f"{cases} reviewed box{'es' * (cases != 1)} of {found.videos} "
        f"video{'s' * (found.videos != 1)} to learn from: {found.accepted} accepted, "
        f"{found.corrected} corrected."
    )


def run_facts(state: RunState) -> Plain:
    """One training."""
    running = state.status == "running"
    stage = _STAGES.get(state.stage, state.stage)
    count = f": {state.done} of {state.total}" if state.total else ""
    return {
        "status": state.status,
        "say": f"{stage}{count}." if running else state.message,
        "share": state.done / state.total if running and state.total else None,
        "losses": [round(float(loss), 5) for loss in state.losses],
        "report": report_facts(state.result) if state.result else None,
    }


def report_facts(result: Mapping[str, Any]) -> Plain:
    """Before and after on the held-out reviewed cases."""
    left = list(result.get("left_out", []))
    words = [f"{one['video']}: {one['why']}" for one in left[:_SHOWN]]
    if len(left) > _SHOWN:
        words.append(f"and {len(left) - _SHOWN} more")
    reviews, training = result["reviews"], result["training"]
    return {
        "verdict": str(result["verdict"]),
        "say": str(result["say"]),
        "profile": str(result["name"]),
        "origin": [
            ["New profile", str(result["name"])],
            ["Started from", str(result["started_from"])],
            [
                "Reviews",
                f"{reviews['cases']} of {reviews['videos']} videos, record "
                f"{str(reviews['sha256'])[:12]}",
            ],
            ["Trained on", f"{training['cases']} cases of {training['videos']} videos"],
        ],
        "table": _table(result["held_out"]) if result.get("held_out") else None,
        "left_out": words,
    }


def _table(held: Mapping[str, Any]) -> Plain:
    gap = held["difference"]
    rows: list[Plain] = [
        {
            "name": name.capitalize(),
            "cells": [
                {"text": number(held[name]["miou"]), "small": ""},
                {"text": f"[{held[name]['low']:.3f}, {held[name]['high']:.3f}]", "small": ""},
                {"text": "", "small": ""},
            ],
        }
        for name in ("before", "after")
    ]
    rows.append(
        {
            "name": "After less before",
            "cells": [
                {"text": f"{gap['mean']:+.3f}", "small": ""},
                {"text": f"[{gap['low']:+.3f}, {gap['high']:+.3f}]", "small": ""},
                {"text": f"{gap['p']:.3f}", "small": ""},
            ],
            "strong": True,
        }
    )
    return {
        "title": "On held-out reviewed cases",
        "note": f"{held['cases']} cases of {held['videos']} videos that nothing was learned from.",
        "groups": [],
        "heads": ["mIoU", "95 % interval", "p"],
        "rows": rows,
    }

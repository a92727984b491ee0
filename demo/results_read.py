"""Result files: a study, tables, an evaluation, options, a card. Read whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from refinerank_core.errors import FormatError

MOST_BYTES = 8 * 2**20
AVERAGE = "average"

Figure = Annotated[float, Field(allow_inf_nan=False)]
Text = Annotated[str, Field(max_length=4000)]
Edges = tuple[Figure, Figure, Figure, Figure]


class _Part(BaseModel):
    """Frozen; what newer files add is passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Cell(_Part):
    """A mean over seeds and its sample deviation."""

    mean: Figure
    spread: Figure = 0.0


class Ends(_Part):
    """A 95 % interval over videos."""

    low: Figure
    high: Figure


class Gap(Ends):
    """RefineRank, or the method scored, less another."""

    mean: Figure
    p: Figure
    videos: Figure


class Bins(_Part):
    """See `refinerank_core.reliability.Reliability`."""

    counts: list[int]
    predicted: list[Figure | None]
    reached: list[Figure | None]
    error: Figure


class WorstCase(_Part):
    """One of the lowest answers; boxes in pixels of a frame of size_wh."""

    video: Text
    row: Text
    time_s: Figure
    question: Text = ""
    size_wh: tuple[Annotated[int, Field(gt=0, le=100_000)], Annotated[int, Field(gt=0, le=100_000)]]
    iou: Figure
    best: Figure
    boxes: dict[Text, Edges]


Lines = dict[str, dict[str, Cell]]
Intervals = dict[str, dict[str, Ends]]


class Study(_Part):
    """What `phantom study` or `tables` writes. Files of older versions have no videos and after."""

    procedures: Annotated[list[Text], Field(min_length=1, max_length=50)]
    methods: Lines
    oracle: Lines
    selectors: Lines
    features: Lines
    decomposition: dict[str, dict[str, Figure]] = {}
    by_kind: dict[str, dict[str, Figure]] = {}
    checks: dict[str, Any] = {}
    split: dict[str, dict[str, dict[str, int]]] = {}
    seeds: list[int] = []
    models: list[Text] = []
    command: Text = ""
    revision: Text = ""
    quick: bool = False
    phantom: bool = True
    folds: int | None = None
    intervals: dict[str, Intervals] = {}
    differences: dict[str, dict[str, Gap]] = {}
    videos: dict[str, dict[str, dict[str, Figure]]] = {}
    reliability: dict[str, dict[str, Bins]] = {}
    curves: dict[str, dict[str, list[Figure]]] = {}
    worst: dict[str, list[WorstCase]] = {}


class Scores(_Part):
    """One way of scoring in an evaluation."""

    mIoU: Figure | None  # noqa: N815 - the contract's own name
    datasets: dict[str, Figure | None]
    average: Figure | None
    intervals: dict[str, Ends] = {}


class Evaluation(_Part):
    """What `evaluate --json` writes."""

    strict: Scores
    leaderboard: Scores
    acc: dict[str, Figure | None]
    acc_datasets: dict[str, dict[str, Figure | None]] = {}
    counts: dict[str, int] = {}
    videos: dict[str, dict[str, Figure | None]] = {}
    difference: dict[str, Gap] = {}
    oracle: dict[str, dict[str, Figure]] = {}
    problems: list[dict[str, Any]] = []


class Calibrated(_Part):
    """Reliability of the answers before and after a calibration."""

    method: Text = ""
    bins: dict[str, Bins]

    @field_validator("bins", mode="before")
    @classmethod
    def _as_columns(cls, told: Any) -> Any:
        """Bins that are written row by row become columns."""
        if not isinstance(told, Mapping):
            return told
        return {name: _columns(one) if isinstance(one, list) else one for name, one in told.items()}


class Options(_Part):
    """What `phantom beyond` writes: options beyond the paper on the study's videos."""

    options: Lines
    differences: dict[str, dict[str, Gap]] = {}
    calibration: Calibrated | None = None
    seeds: list[int] = []
    models: list[Text] = []
    command: Text = ""
    revision: Text = ""


def _columns(rows: list[Any]) -> dict[str, Any]:
    """counts, predicted, reached and error of rows {count, predicted, correct}."""
    if not all(isinstance(row, Mapping) for row in rows):
        raise ValueError("bins must be objects")
    counts = [int(row["count"]) for row in rows]
    predicted = [row["predicted"] for row in rows]
    reached = [row["correct"] for row in rows]
    gaps = [
        count * abs(float(p) - float(r))
        for count, p, r in zip(counts, predicted, reached, strict=True)
        if p is not None and r is not None
    ]
    error = sum(gaps) / max(sum(counts), 1)
    return {"counts": counts, "predicted": predicted, "reached": reached, "error": error}


class Card(_Part):
    """What a training writes beside its checkpoint."""

    losses: list[Figure] = []
    config: dict[str, Any]
    plan: dict[str, Any]
    models: list[Text] = []
    held_out: dict[str, dict[str, Figure]] = {}
    command: Text = ""


@dataclass(frozen=True)
class Document:
    """One opened file.

    Attributes:
        name: of the file.
        kind: what it is.
        content: what is in it.
    """

    name: str
    kind: Literal["study", "evaluation", "options", "card"]
    content: Study | Evaluation | Options | Card


def read_document(path: Path) -> Document:
    """Open a result file.

    Raises:
        FormatError: it cannot be read or is no such file, in one sentence.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise FormatError(f"{path.name} is larger than {MOST_BYTES >> 20} MB: no result file.")
        told = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise FormatError(f"{path.name} cannot be read ({error.strerror}).") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(
            f"{path.name} is not JSON. Open what `evaluate --json`, `tables --json` or "
            "`phantom study --json` wrote, or a training's .card.json."
        ) from error
    return document(path.name, told)


def document(name: str, told: Any) -> Document:
    """Make out what a file holds. Raises FormatError, as `read_document`."""
    if isinstance(told, Mapping):
        if "procedures" in told and "methods" in told:
            return Document(name, "study", _checked(name, Study, told))
        if "strict" in told and "leaderboard" in told:
            return Document(name, "evaluation", _checked(name, Evaluation, told))
        if "options" in told:
            return Document(name, "options", _checked(name, Options, told))
        if "plan" in told and "config" in told:
            return Document(name, "card", _checked(name, Card, told))
    raise FormatError(
        f"{name} holds no results: wanted what `evaluate --json`, `tables --json` or "
        "`phantom study --json` wrote, or a training's .card.json."
    )


def _checked(name: str, kind: Any, told: Any) -> Any:
    try:
        found = kind.model_validate(told)
    except KeyError as error:
        raise FormatError(f"{name} is damaged: {error} is missing. Make it again.") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise FormatError(
            f"{name} is damaged at {where[:120]} ({first['msg']}). Make it again."
        ) from error
    if isinstance(found, Study):
        _require_whole(name, found)
    return found


def _require_whole(name: str, study: Study) -> None:
    """Every line of a table has every column."""
    wanted = {*study.procedures, AVERAGE}
    for table in (study.methods, study.oracle, study.selectors, study.features):
        for line, cells in table.items():
            if missing := sorted(wanted - cells.keys()):
                raise FormatError(f"{name} is damaged: {line} has no {missing[0]}. Make it again.")
    if "refinerank" not in study.methods or not {"original", "joint"} <= study.oracle.keys():
        raise FormatError(f"{name} is damaged: RefineRank or its oracle is missing. Make it again.")

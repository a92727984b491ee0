"""Predictions for MedVidBench: read against their rows, and laid over a full prediction file."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from refinerank_core.answers import ParsedAnswer, parse_answer
from refinerank_core.errors import FormatError
from refinerank_core.formats import strict_json
from refinerank_core.formats.medvidbench_rows import STG, RowsRead
from refinerank_core.formats.rows import Fault, RowError

INDEX = "source_index"
"""Field of an overlay that says which row a prediction answers; a submission has none."""

FIELDS = ("id", "qa_type", "prediction")

PUBLIC_TEST = MappingProxyType({"rows": 6245, "pairs": 5644, "stg": 780})
"""Size of the public test set: rows, distinct (id, qa_type), rows of the kind stg."""


@dataclass(frozen=True)
class PredictionsRead:
    """What a file of predictions says.

    Attributes:
        by_place: place of the row -> the answer to it.
        faults: predictions that answer no row or hold no timed box.
    """

    by_place: Mapping[int, ParsedAnswer]
    faults: tuple[Fault, ...]


def read_predictions(text: str, rows: RowsRead) -> PredictionsRead:
    """Read a submission, or the STG overlay, against the rows that it answers.

    A prediction with a source_index answers that row. Without one, the n-th prediction of an
    (id, qa_type) answers the n-th row of it.

    Raises:
        FormatError: the text is no JSON list.
    """
    seen: dict[tuple[str, str], int] = defaultdict(int)
    found: dict[int, ParsedAnswer] = {}
    faults: list[Fault] = []
    for line, item in _elements(text):
        try:
            place = _answered(item, rows, seen)
            if place is None:
                continue
            if place in found:
                raise RowError(f"row {place} has two predictions; the first counts")
            found[place] = parsed = parse_answer(_prediction(item))
            if not parsed.timed:
                raise RowError(f"id {_id(item)[:80]}: the prediction holds no timed box")
            if parsed.untimed:
                count = len(parsed.untimed)
                raise RowError(f"id {_id(item)[:80]}: {count} boxes have no time and do not count")
        except RowError as error:
            faults.append(Fault(line, str(error)))
    return PredictionsRead(found, tuple(faults))


def overlay(source: str, full: str | None, stg: str, *, public_test: bool = False) -> str:
    """Put STG predictions into a full prediction file.

    Args:
        source: the question rows, JSON.
        full: predictions for every row in the order of the rows, JSON; None where all are STG.
        stg: predictions with source_index, JSON, one for each STG row.
        public_test: require the size of the public test set.

    Returns:
        The submission as JSON text: id, qa_type, prediction for every row, in order. Predictions
        of other kinds are as they were.

    Raises:
        FormatError: a file does not fit the rows; the first place is named.
    """
    rows = [item for _, item in _elements(source)]
    keys = [_key(item, place) for place, item in enumerate(rows)]
    if public_test:
        _require_public_test(keys)
    wanted = [place for place, (_, kind) in enumerate(keys) if kind == STG]
    if full is None:
        if len(wanted) < len(keys):
            raise FormatError(
                f"{len(keys) - len(wanted)} rows are of another kind than stg. "
                "Give the file of their predictions with --full."
            )
        documents: list[Any] = [None] * len(keys)
    else:
        documents = [item for _, item in _elements(full)]
        _require_same(keys, documents)
    for place, item in _by_index([item for _, item in _elements(stg)], keys, wanted).items():
        documents[place] = dict(zip(FIELDS, (*keys[place], _told(item, place)), strict=True))
    return strict_json.dumps(documents, indent=2) + "\n"


def _elements(text: str) -> list[tuple[int, Any]]:
    try:
        return list(strict_json.elements(text))
    except ValueError as error:
        raise FormatError("Not JSON: it holds a number that is too long.") from error


def _answered(item: Any, rows: RowsRead, seen: dict[tuple[str, str], int]) -> int | None:
    """Place of the row that a prediction answers; None for another kind."""
    if not isinstance(item, dict):
        raise RowError("a prediction is an object")
    kind = str(item.get("qa_type", STG))
    if kind != STG:
        return None
    places = rows.order.get((_id(item), kind), [])
    index = item.get(INDEX)
    if index is not None:
        if isinstance(index, bool) or not isinstance(index, int) or index not in places:
            raise RowError(f"source_index {str(index)[:40]} is no stg row of id {_id(item)[:80]}")
        return index
    turn = seen[_id(item), kind]
    seen[_id(item), kind] += 1
    if turn >= len(places):
        raise RowError(f"id {_id(item)[:80]}: no question row is left for this prediction")
    return places[turn]


def _id(item: Mapping[str, Any]) -> str:
    value = item.get("id")
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RowError("the prediction has no id")
    return str(value).encode("utf-8", "replace").decode()


def _prediction(item: Mapping[str, Any]) -> str:
    value = item.get("prediction")
    if not isinstance(value, str):
        raise RowError(f"id {_id(item)[:80]}: the prediction is not a text")
    return value


def _key(item: Any, place: int) -> tuple[str, str]:
    """(id, qa_type) of one element of a file that must be whole."""
    if not isinstance(item, dict):
        raise FormatError(f"Row {place} is not an object. Correct the file.")
    found = item.get("id"), item.get("qa_type")
    if not all(isinstance(value, str) and value.strip() for value in found):
        raise FormatError(f"Row {place} has no id or no qa_type as a text. Correct the file.")
    return str(found[0]), str(found[1])


def _told(item: Mapping[str, Any], place: int) -> str:
    value = item.get("prediction")
    if not isinstance(value, str):
        raise FormatError(f"The prediction for row {place} is not a text. Correct the file.")
    return value


def _require_same(keys: Sequence[tuple[str, str]], documents: Sequence[Any]) -> None:
    """Raise FormatError unless the predictions stand in the order of the rows."""
    if len(documents) != len(keys):
        raise FormatError(
            f"The full file has {len(documents)} predictions for {len(keys)} rows. "
            "Give one for each row, in their order."
        )
    for place, (item, key) in enumerate(zip(documents, keys, strict=True)):
        if _key(item, place) != key:
            raise FormatError(
                f"Prediction {place} of the full file is not for row {place}. "
                "Give them in the order of the rows."
            )
        _told(item, place)
        if set(item) != set(FIELDS):
            raise FormatError(
                f"Prediction {place} of the full file must have {', '.join(FIELDS)} "
                f"and no more, got {', '.join(sorted(map(str, item)))}."
            )


def _by_index(
    items: Sequence[Any], keys: Sequence[tuple[str, str]], wanted: Sequence[int]
) -> dict[int, Mapping[str, Any]]:
    """STG predictions by the place of their row: each row once, and no other."""
    found: dict[int, Mapping[str, Any]] = {}
    for item in items:
        index = item.get(INDEX) if isinstance(item, dict) else None
        if isinstance(index, bool) or not isinstance(index, int):
            raise FormatError("A STG prediction has no source_index. Write them with `predict`.")
        if index in found:
            raise FormatError(f"Row {index} has two STG predictions. Keep one.")
        if not 0 <= index < len(keys) or _key(item, index) != keys[index] or keys[index][1] != STG:
            raise FormatError(f"The STG prediction for row {index} is not for a stg row of its id.")
        found[index] = item
    missing = [place for place in wanted if place not in found]
    if missing:
        raise FormatError(
            f"{len(missing)} stg rows have no prediction, such as row {missing[0]}. Predict them."
        )
    return found


def _require_public_test(keys: Sequence[tuple[str, str]]) -> None:
    got = {
        "rows": len(keys),
        "pairs": len(set(keys)),
        "stg": Counter(kind for _, kind in keys)[STG],
    }
    if got != dict(PUBLIC_TEST):
        raise FormatError(
            f"The public test set has {PUBLIC_TEST['rows']} rows, {PUBLIC_TEST['stg']} of them stg "
            f"({PUBLIC_TEST['pairs']} distinct pairs); this file has {got['rows']}, {got['stg']} "
            f"({got['pairs']})."
        )

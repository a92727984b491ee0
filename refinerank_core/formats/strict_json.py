"""JSON that every reader takes: no NaN out, none in, and the line of each element."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from refinerank_core.errors import FormatError

NOT_FINITE = "not_finite"
"""Key that lists the fields of an object whose value was not a finite number, and is null."""

_SPACE = " \t\r\n"


@dataclass(frozen=True)
class _NotANumber:
    word: str


_DECODER = json.JSONDecoder(parse_constant=_NotANumber)


def dumps(value: Any, *, indent: int | None = None) -> str:
    """Write a value; numpy scalars become plain, NaN and infinities null with a flag."""
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False, indent=indent)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        plain = {str(name): _plain(item) for name, item in value.items()}
        lost = [str(name) for name, item in value.items() if _has_lost(item)]
        return {**plain, NOT_FINITE: lost} if lost else plain
    return value


def _has_lost(value: Any) -> bool:
    """The value itself, or a member of a list, is a number that is not finite."""
    if isinstance(value, list | tuple | np.ndarray):
        return any(_has_lost(item) for item in value)
    return isinstance(value, float | np.floating) and not isfinite(value)


def loads(text: str) -> Any:
    """Read a whole document.

    Raises:
        FormatError: no JSON (with the line), or NaN and the like (with the field).
    """
    try:
        value = _DECODER.decode(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise FormatError(f"Not JSON: {_where(error)}.") from error
    refuse_not_finite(value)
    return value


def refuse_not_finite(value: Any) -> None:
    """Raise FormatError that names the first field with a number that is not finite."""
    for path, word in _not_finite(value, ""):
        raise FormatError(f"{path or 'The value'} is {word}, which is no number. Use null.")


def _not_finite(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, _NotANumber):
        yield path, value.word
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _not_finite(item, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _not_finite(item, f"{path}[{place}]")


def _where(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}: {error.msg}"
    return "it is nested too deeply"


def elements(text: str, key: str | None = None) -> Iterator[tuple[int, Any]]:
    """Line and value of each element of the list that is the document, or its member `key`.

    Args:
        text: the document; its end is checked too.
        key: member of the top object; None: the document itself is the list.

    Raises:
        FormatError: no JSON, or no such list.
    """
    document = loads_unchecked(text)
    if key is None and not isinstance(document, list):
        raise FormatError("The file must be a JSON list.")
    if key is not None and not (isinstance(document, dict) and isinstance(document.get(key), list)):
        raise FormatError(f"The file must be a JSON object with a list named {key}.")
    place = _after_space(text, 0) if key is None else _member(text, key)
    line, seen = 1, 0
    place = _after_space(text, place + 1)
    while text[place] != "]":
        line += text.count("\n", seen, place)
        seen = place
        value, place = _DECODER.raw_decode(text, place)
        yield line, value
        place = _after_space(text, place)
        if text[place] == ",":
            place = _after_space(text, place + 1)


def loads_unchecked(text: str) -> Any:
    """Read a document that may hold NaN; `refuse_not_finite` finds it part by part."""
    try:
        return _DECODER.decode(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise FormatError(f"Not JSON: {_where(error)}.") from error


def _member(text: str, key: str) -> int:
    """Where the value of a member of the top object starts (the last one of that name)."""
    place, found = _after_space(text, _after_space(text, 0) + 1), 0
    while text[place] != "}":
        name, place = _DECODER.raw_decode(text, place)
        place = _after_space(text, _after_space(text, place) + 1)
        found = place if name == key else found
        _, place = _DECODER.raw_decode(text, place)
        place = _after_space(text, place)
        if text[place] == ",":
            place = _after_space(text, place + 1)
    return found


def _after_space(text: str, place: int) -> int:
    while text[place] in _SPACE:
        place += 1
    return place

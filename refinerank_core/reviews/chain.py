"""The hash chain over events: each one seals all before it."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

SEALED = ("seq", "client_id", "at", "kind", "case_id", "reviewer", "based_on", "version", "body")
"""Fields of an event that its hash covers, next to the hash before it."""

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical_json(value: Any) -> str:
    """The one way to write a value: sorted keys, no spaces, ASCII, no NaN."""
    return _ENCODER.encode(value)


def genesis(database_id: str) -> str:
    """What the first event of a database follows."""
    return hashlib.sha256(f"refinerank reviews {database_id}".encode()).hexdigest()


def event_hash(prev: str, event: Mapping[str, Any]) -> str:
    """Hash of an event.

    Args:
        prev: hash of the event before it, or `genesis`.
        event: at least the SEALED fields; body is its stored text.
    """
    sealed = {name: event[name] for name in SEALED}
    return hashlib.sha256(canonical_json({**sealed, "prev": prev}).encode()).hexdigest()

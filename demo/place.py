"""Where the app runs, told by the environment: what a Space sets, and what it keeps."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from refinerank_core.reviews.database import DEFAULT_DATABASE

STORAGE = Path("/data")
"""What a Space keeps when it has persistent storage."""


def on_space(environment: Mapping[str, str]) -> bool:
    """Whether this is a Hugging Face Space."""
    return "SPACE_ID" in environment


def told(environment: Mapping[str, str], variable: str, otherwise: bool) -> bool:
    """What a variable says; `otherwise` where it says nothing."""
    words = environment.get(variable, "").strip().lower()
    return words in ("1", "true", "yes", "on") if words else otherwise


def database(given: str | None, environment: Mapping[str, str], storage: Path) -> tuple[str, bool]:
    """Where reviews are kept, and whether they outlive the machine.

    Args:
        given: file or URL of the command line; None: a Space's storage, else the working folder.
        environment: tells whether this is a Space.
        storage: see STORAGE.
    """
    if not on_space(environment):
        return given or DEFAULT_DATABASE, True
    if given is None and storage.is_dir() and os.access(storage, os.W_OK):
        given = str(storage / DEFAULT_DATABASE)
    place = given or DEFAULT_DATABASE
    return place, "://" in place or Path(place).resolve().is_relative_to(storage.resolve())

"""Files that are there whole or not at all, whenever the writing is stopped."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A file to write to in place of path; it takes path's place where the block ends well.

    It lies beside path, hidden, with the same suffix. After an error path is as it was; a kill
    leaves at most a hidden file whose name holds ".part".

    Raises:
        OSError: the file cannot take its place.
    """
    scratch = path.with_name(f".{path.stem}.{secrets.token_hex(4)}.part{path.suffix}")
    try:
        yield scratch
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)

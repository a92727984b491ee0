"""Write a command's result files: whole or not at all, with one sentence when it cannot be."""

import os
import tempfile
from errno import EISDIR
from pathlib import Path

from refinerank_core.errors import RefineRankError


def write_whole(path: Path, content: bytes) -> None:
    """Put content at path by way of a file beside it, so that a reader never sees half of it.

    Raises:
        RefineRankError: the folder is missing or cannot be written.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except OSError as error:
        raise _unwritable(path, error) from error


def refuse_unwritable(*paths: Path | None) -> None:
    """Find out before the work that its results will have a place.

    Args:
        paths: where files will be put; None and "-" (stdout) are passed over.

    Raises:
        RefineRankError: a folder is missing or cannot be written.
    """
    for path in paths:
        if path is None or path == Path("-"):
            continue
        try:
            if path.is_dir():
                raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
            with tempfile.TemporaryFile(dir=path.parent):
                pass
        except OSError as error:
            raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> RefineRankError:
    return RefineRankError(
        f"{path.name} cannot be written ({error.strerror}). Choose a folder that exists."
    )

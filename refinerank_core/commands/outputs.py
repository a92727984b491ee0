"""Write a command's result files: whole or not at all, with one sentence when it cannot be."""

import os
import tempfile
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
        raise RefineRankError(
            f"{path.name} cannot be written ({error.strerror}). Choose a folder that exists."
        ) from error

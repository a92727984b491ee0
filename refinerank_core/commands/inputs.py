"""Read a command's input texts, with one sentence when that cannot be."""

from pathlib import Path

from refinerank_core.errors import RefineRankError


def read_text(path: Path) -> str:
    """The text of an input file, with or without a byte order mark.

    Raises:
        RefineRankError: it is missing, cannot be read, or is no UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise RefineRankError(f"{path.name} cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise RefineRankError(f"{path.name} is not UTF-8 text. Save it as UTF-8.") from error

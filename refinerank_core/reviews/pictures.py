"""Pictures of judged frames that people asked to keep: a folder of JPEG files, one a case.

An uploaded video goes with its visitor. What is kept here was asked for, frame by frame, and lies
under the case's hash: neither the file's name nor the video's is in it.
"""

import os
from pathlib import Path

from refinerank_core.errors import StoreError
from refinerank_core.whole_file import whole_file


class Pictures:
    """The folder; it is made when the first picture comes. Safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def has(self, case_id: str) -> bool:
        """Whether the frame of a case is kept."""
        return self._path(case_id).is_file()

    def keep(self, case_id: str, jpeg: bytes) -> None:
        """Keep a picture; one that is there already is replaced, whole or not at all.

        Raises:
            StoreError: it cannot be written.
        """
        path = self._path(case_id)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with whole_file(path) as fresh, fresh.open("wb") as file:
                file.write(jpeg)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StoreError(
                "The picture cannot be kept. Free some space or make the folder writable."
            ) from error

    def read(self, case_id: str) -> bytes:
        """The JPEG of a case. Raises StoreError when none is kept."""
        try:
            return self._path(case_id).read_bytes()
        except OSError as error:
            raise StoreError("The picture of this case is not kept any more.") from error

    def forget(self, case_id: str) -> None:
        """Remove the picture of a case, if there is one. Raises StoreError when that fails."""
        try:
            self._path(case_id).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError("The picture cannot be removed. Make its folder writable.") from error

    def _path(self, case_id: str) -> Path:
        if len(case_id) != 64 or not case_id.isalnum():
            raise StoreError("No case has this id. Look it up in the queue again.")
        return self._folder / f"{case_id}.jpg"

"""Which commit stands for a repository that a profile does not pin: fixed when it is first fetched.

A branch moves; a result has to say which weights it is of, and the next machine has to find the
same. The commits stand in one JSON file in the hub's cache, beside the checkpoints themselves.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from refinerank_core.errors import WeightsError
from refinerank_core.whole_file import whole_file

LOCK_NAME = "refinerank.lock.json"


def locked_commit(cache: Path, repo: str, revision: str | None) -> str | None:
    """The commit that a moving revision was fixed to.

    Args:
        cache: folder of the hub's cache.
        repo: hub id.
        revision: branch or tag; None is the main branch.

    Returns:
        The commit; None where nothing was fetched yet.

    Raises:
        WeightsError: the file is damaged.
    """
    return _read(cache).get(_key(repo, revision))


def lock_commit(cache: Path, repo: str, revision: str | None, commit: str) -> None:
    """Fix a moving revision to a commit.

    Raises:
        WeightsError: the file is damaged or cannot be written.
    """
    known = {**_read(cache), _key(repo, revision): commit}
    path = cache / LOCK_NAME
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as fresh:
            fresh.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as error:
        raise WeightsError(
            f"{LOCK_NAME} cannot be written into the model cache ({error.strerror}). "
            "Make room, or set HF_HOME to a folder of your own."
        ) from error


def _key(repo: str, revision: str | None) -> str:
    return f"{repo}@{revision or 'main'}"


def _read(cache: Path) -> Mapping[str, str]:
    path = cache / LOCK_NAME
    if not path.is_file():
        return {}
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _damaged() from error
    if not isinstance(told, dict) or not all(isinstance(one, str) for one in told.values()):
        raise _damaged()
    return told


def _damaged() -> WeightsError:
    return WeightsError(
        f"{LOCK_NAME} in the model cache is damaged. Remove it and run fetch again."
    )

"""A training from reviews in a process of its own: start it, watch it, stop it, find it again.

FOLDER/state.json   how far it is, written by the process that trains
FOLDER/log.txt      what it said
FOLDER/lock         locked as long as that process lives, so that a dead one is known as such
FOLDER/stop         which run was told to stop
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

import refinerank_core
from refinerank_core.errors import RefineRankError
from refinerank_core.learning.variant import require_name

Status = Literal["running", "done", "failed", "cancelled"]
STATE, LOG, LOCK, STOP = "state.json", "log.txt", "lock", "stop"

_ROOT = Path(refinerank_core.__file__).resolve().parent.parent
_LOSSES = 500


class _Plain(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LearnAsk(_Plain):
    """What to train.

    Attributes:
        reviews: the review database, a file or a URL.
        videos: folders with the videos of the cases.
        profile: name or path of the profile to start from.
        variants: folder that gets the new profile.
        name: of the new profile; "": made from the reviews' hash.
    """

    reviews: str
    videos: tuple[str, ...]
    profile: str
    variants: str
    name: str = ""


class RunState(_Plain):
    """How far a training is.

    Attributes:
        run_id: of this run.
        status: what became of it.
        stage, done, total: of learn.STAGES, and how much of it.
        losses: of the epochs so far.
        message: one sentence for the screen.
        started_at, ended_at: ISO 8601, UTC; "" while it runs.
        result: what `train --reviews` prints, once it is done.
    """

    run_id: str
    status: Status = "running"
    stage: str = "reviews"
    done: int = 0
    total: int = 0
    losses: tuple[float, ...] = ()
    message: str = ""
    started_at: str
    ended_at: str = ""
    result: dict[str, Any] | None = None


class Runner:
    """The one training of a folder. Everything is in files: a new Runner finds a running one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._child: subprocess.Popen[bytes] | None = None

    def start(self, ask: LearnAsk) -> RunState:
        """Start a training; it goes on when this process ends.

        Raises:
            RefineRankError: one runs already, it cannot be started, or the name cannot be used.
        """
        if ask.name:
            require_name(ask.name)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with self._locked() as lock, (self._folder / LOG).open("wb") as log:
                for name in (STOP, "pid"):
                    (self._folder / name).unlink(missing_ok=True)
                state = RunState(run_id=secrets.token_hex(8), started_at=_now())
                write_state(self._folder, state)
                self._child = subprocess.Popen(
                    self._command(ask),
                    cwd=_ROOT,
                    env={**os.environ, "REFINERANK_DB": _database(ask)},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(lock,),  # the child keeps it locked until it ends
                    start_new_session=True,
                )
                (self._folder / "pid").write_text(str(self._child.pid), encoding="utf-8")
        except OSError as error:
            raise RefineRankError(
                f"The training cannot be started ({error.strerror}). Look at {self._folder.name}."
            ) from error
        return state

    def state(self) -> RunState | None:
        """The last run; None where there was none."""
        if self._child is not None:
            self._child.poll()  # so that an ended child is let go
        busy = self._busy()  # asked first: a child writes its last word before it unlocks
        state = read_state(self._folder)
        if state is None or state.status != "running" or busy:
            return state
        stopped = self._stopped() == state.run_id
        ended = state.model_copy(
            update={
                "status": "cancelled" if stopped else "failed",
                "message": "Stopped; nothing was changed."
                if stopped
                else f"The training ended without a word. Its last words: {self._last_words()}",
                "ended_at": _now(),
            }
        )
        write_state(self._folder, ended)
        return ended

    def cancel(self) -> RunState | None:
        """Tell the run that is under way to stop; returns where it stands."""
        state = self.state()
        if state is not None and state.status == "running":
            (self._folder / STOP).write_text(state.run_id, encoding="utf-8")
            # It may end, or not have written its number yet, at this very moment.
            with suppress(FileNotFoundError, ValueError, ProcessLookupError):
                pid = int((self._folder / "pid").read_text(encoding="utf-8"))
                if self._busy():
                    os.kill(pid, signal.SIGTERM)
        return self.state()

    def _command(self, ask: LearnAsk) -> list[str]:
        words = [sys.executable, "-m", "refinerank_core", "train", "--reviews"]
        words += ["--profile", _absolute(ask.profile)]
        words += ["--variants", str(Path(ask.variants).resolve())]
        words += ["--work", str(self._folder / "work"), "--state", str(self._folder)]
        words += ["--name", ask.name] if ask.name else []
        return [*words, "--videos", *(str(Path(video).resolve()) for video in ask.videos)]

    @contextmanager
    def _locked(self) -> Iterator[int]:
        lock = os.open(self._folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise RefineRankError(
                    "A training runs already. Wait for it, or stop it first."
                ) from error
            yield lock
        finally:
            os.close(lock)

    def _busy(self) -> bool:
        """Whether the process of a run lives."""
        if not (self._folder / LOCK).is_file():
            return False
        try:
            with self._locked():
                return False
        except RefineRankError:
            return True

    def _stopped(self) -> str:
        path = self._folder / STOP
        return path.read_text(encoding="utf-8") if path.is_file() else ""

    def _last_words(self) -> str:
        path = self._folder / LOG
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        lines = [line for line in text.replace("\r", "\n").splitlines() if line.strip()]
        return lines[-1][:200] if lines else "none."


class Reporter:
    """What the process that trains writes its state with; it goes on with the run that is there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        begun = read_state(folder)
        fresh = begun is None or begun.status != "running"
        new = RunState(run_id=secrets.token_hex(8), started_at=_now())
        self._state = new if begun is None or fresh else begun

    def told(self, stage: str, done: int, total: int, loss: float | None) -> None:
        """Take `learn`'s word."""
        losses = self._state.losses + (() if loss is None else (round(loss, 5),))
        self._put(stage=stage, done=done, total=total, losses=losses[-_LOSSES:])

    def end(self, status: Status, message: str, result: dict[str, Any] | None = None) -> None:
        """Write the last state."""
        self._put(status=status, message=message, result=result, ended_at=_now())

    def _put(self, **changes: Any) -> None:
        self._state = self._state.model_copy(update=changes)
        write_state(self._folder, self._state)


def read_state(folder: Path) -> RunState | None:
    """The state that is written there; None where there is none that can be read."""
    try:
        return RunState.model_validate_json((folder / STATE).read_bytes())
    except (OSError, ValidationError):
        return None


def write_state(folder: Path, state: RunState) -> None:
    """Write a state, whole or not at all."""
    scratch = folder / f".{STATE}.{os.getpid()}.part"
    scratch.write_text(json.dumps(state.model_dump(mode="json")), encoding="utf-8")
    scratch.replace(folder / STATE)


def _database(ask: LearnAsk) -> str:
    """The database as the child finds it; it may hold a password, so it is no argument."""
    return ask.reviews if "://" in ask.reviews else str(Path(ask.reviews).resolve())


def _absolute(profile: str) -> str:
    return str(Path(profile).resolve()) if "/" in profile or profile.endswith(".json") else profile


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")

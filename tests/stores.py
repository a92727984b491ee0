"""Review stores for tests: SQLite in a folder, PostgreSQL on a server of our own."""

import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from refinerank_core.grounding import Box
from refinerank_core.reviews.records import (
    Action,
    ActionKind,
    Assignment,
    Case,
    Comment,
    Judgement,
    MethodAnswer,
    Step,
    Truth,
)

START = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


class Ticking:
    """A clock that is ten seconds on whenever it is read."""

    def __init__(self) -> None:
        self.reads = 0

    def __call__(self) -> datetime:
        self.reads += 1
        return START + timedelta(seconds=10 * self.reads)


def case(time_s: float = 1.0, *, box: Box = (10.0, 10.0, 50.0, 50.0), **changes: object) -> Case:
    """A case about a hook at time_s of a 640x360 video, answered by two methods."""
    facts: dict[str, object] = {
        "video_name": "clip.mp4",
        "video_sha256": "ab" * 32,
        "width": 640,
        "height": 360,
        "question": "Where is the hook?",
        "target": "hook",
        "requested_s": time_s,
        "frame_index": round(time_s * 25),
        "answers": (
            MethodAnswer(method="refinerank", box=box),
            MethodAnswer(method="medvlm", box=(10.0, 10.0, 50.0, 30.0)),
        ),
    }
    return Case.model_validate({**facts, **changes})


def act(
    about: Case,
    kind: ActionKind,
    body: Judgement | Comment | Assignment | Truth | Step,
    *,
    based_on: int = 0,
    by: str = "Dr A",
    client_id: str = "",
) -> Action:
    """An action with an id of its own."""
    return Action(
        client_id=client_id or uuid.uuid4().hex,
        case_id=about.case_id,
        reviewer=by,
        kind=kind,
        body=body,
        based_on=based_on,
    )


def fix(box: Box = (12.0, 11.0, 52.5, 49.25), **changes: object) -> Judgement:
    """A decision that corrects the box."""
    return Judgement.model_validate({"decision": "fix", "box_after": box, **changes})


REJECT = Judgement(decision="reject")


def _programs() -> Path | None:
    """The folder of PostgreSQL's server programs, None where it is not installed."""
    homes = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    found = shutil.which("initdb")
    return homes[-1].parent if homes else Path(found).parent if found else None


@contextmanager
def postgres_server() -> Iterator[str]:
    """Start a server on a socket of its own; gives a URL without database, and skips without it."""
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL's server is not installed on this machine")
    with tempfile.TemporaryDirectory(prefix="refinerank-pg-") as name:
        folder = Path(name)
        as_owner: list[str] = []
        if os.geteuid() == 0:  # the server refuses to run as root
            shutil.chown(folder, "postgres")
            as_owner = ["runuser", "-u", "postgres", "--"]
        data = folder / "data"

        def call(program: str, *arguments: str) -> None:
            subprocess.run(
                [*as_owner, str(programs / program), *arguments],
                check=True,
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

        call("initdb", "-D", str(data), "-U", "tester", "--auth=trust", "--no-sync")
        settings = f"-c listen_addresses='' -c fsync=off -k {folder}"
        call("pg_ctl", "-D", str(data), "-w", "-o", settings, "start")
        try:
            yield f"postgresql://tester@/{{}}?host={folder}"
        finally:
            call("pg_ctl", "-D", str(data), "-m", "immediate", "stop")

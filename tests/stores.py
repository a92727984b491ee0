"""Review stores for tests: SQLite in a folder, PostgreSQL on a server of our own."""

import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

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
from refinerank_core.reviews.store import Store

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


POSTGRES = "REFINERANK_TEST_POSTGRES"
"""Names a PostgreSQL database whose role may create others; `.ci/run` sets it."""


@contextmanager
def postgres_server() -> Iterator[str]:
    """A server to make databases on; gives a URL with {} in the database's place.

    It is the one that POSTGRES names, else one of our own on a socket; skips without either.
    """
    named = os.environ.get(POSTGRES, "")
    if named:
        url = sa.make_url(named).set(database="DATABASE")
        yield url.render_as_string(hide_password=False).replace("DATABASE", "{}")
        return
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


@pytest.fixture(scope="module")
def new_database() -> Iterator[Callable[[], str]]:
    """A function that makes a PostgreSQL database with all tables and returns its URL.

    All of them are dropped at the end: the server may be someone's own.
    """
    made: list[str] = []

    def command(url: str, words: str) -> None:
        with psycopg.connect(url.format("postgres"), autocommit=True) as connection:
            connection.execute(words.encode())

    with postgres_server() as url:

        def create(like: str = "") -> str:
            name = f"refinerank_test_{uuid.uuid4().hex}"
            command(url, f"CREATE DATABASE {name}" + (f" TEMPLATE {like}" if like else ""))
            made.append(name)
            return name

        migrated = create()
        Store(url.format(migrated)).close()
        try:
            yield lambda: url.format(create(migrated))
        finally:
            for name in made:
                command(url, f"DROP DATABASE {name} WITH (FORCE)")

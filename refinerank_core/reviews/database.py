"""The database behind the store: SQLite in one file, or PostgreSQL by URL, with the same code."""

import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from refinerank_core.errors import StoreError
from refinerank_core.reviews.migrate import bring_up_to_date

DEFAULT_DATABASE = "refinerank-reviews.db"
BUSY_TIMEOUT_S = 15.0

_LOCK_KEY = 0x5EF1E5A4  # any fixed number: all stores of one PostgreSQL database agree on it

_SQLITE_WORDS = {
    "SQLITE_FULL": "the disk is full. Free some space and try again",
    "SQLITE_READONLY": "it is read-only. Make the file and its folder writable, or choose another",
    "SQLITE_BUSY": "another program holds it locked. Close that program and try again",
    "SQLITE_LOCKED": "another program holds it locked. Close that program and try again",
    "SQLITE_CORRUPT": "the file is damaged. Keep it, and go on with a backup or an export",
    "SQLITE_NOTADB": "it is no review database. Choose another file",
    "SQLITE_CANTOPEN": "it cannot be opened. Choose a folder that exists and is writable",
    "SQLITE_IOERR": "the disk refuses to read or write. Check the disk and its free space",
    "SQLITE_PERM": "access is denied. Choose a file of your own",
}
_POSTGRES_WORDS = {
    "53100": "the server's disk is full. Free some space and try again",
    "25006": "it is read-only. Connect to a writable server",
    "55P03": "another program holds it locked. Try again",
    "57014": "it took too long to answer. Try again",
    "40P01": "two writes met. Try again",
    "28P01": "the password is wrong. Check the database URL",
    "3D000": "there is no such database. Check the database URL",
}


def database_url(place: str | Path) -> sa.URL:
    """Read what a person gives for the database: a file's path, or a URL.

    Raises:
        StoreError: a URL that cannot be read.
    """
    text = str(place)
    if "://" not in text:
        return sa.URL.create("sqlite", database=str(Path(text).expanduser()))
    try:
        url = sa.make_url(text)
    except (exc.ArgumentError, ValueError) as error:
        raise StoreError("The review database's URL cannot be read. Check its form.") from error
    if url.drivername in ("postgres", "postgresql"):
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise StoreError("The review database must be an SQLite file or a PostgreSQL URL.")
    return url


class Database:
    """Connections, transactions and fault messages; knows no cases.

    Safe to share between threads: each transaction has a connection of its own.

    Attributes:
        name: file or database name for messages, without folders, users and passwords.
    """

    def __init__(self, place: str | Path, *, timeout_s: float = BUSY_TIMEOUT_S) -> None:
        """Open, and create or migrate the tables.

        Raises:
            StoreError: it cannot be opened, or was written by a newer program.
        """
        url = database_url(place)
        self.name = Path(url.database or "reviews").name
        self._writing = RLock()
        self._sqlite = url.get_backend_name() == "sqlite"
        with self.faults():
            self._engine = _engine(url, timeout_s)
        try:
            with self.reading() as connection:
                current = bring_up_to_date(connection, apply=False)
            if not current:
                with self.writing() as connection:
                    bring_up_to_date(connection, apply=True)
        except StoreError:
            self.close()
            raise

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """One consistent view of the data."""
        with self.faults(), self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction that no other writer overlaps; committed to disk when the block ends."""
        with self.faults(), self._writing, self._engine.connect() as connection:
            writer = connection.execution_options(refinerank_write=True)
            with writer.begin():
                if not self._sqlite:
                    writer.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK_KEY)))
                yield writer

    def integrity(self) -> list[str]:
        """What SQLite's own check finds; [] on PostgreSQL, which checks its pages itself."""
        if not self._sqlite:
            return []
        with self.reading() as connection:
            rows = connection.exec_driver_sql("PRAGMA integrity_check(5)").scalars().all()
        return [str(row) for row in rows if row != "ok"]

    def limit_pages(self, spare: int = 1) -> None:
        """Let the file grow by this many pages at most, as a full disk would (SQLite only)."""

        def limit(connection: Any, _: object) -> None:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count={pages + spare}")

        self._engine.dispose()
        sa.event.listen(self._engine, "connect", limit)

    @contextmanager
    def faults(self) -> Iterator[None]:
        """Turn a driver's error into one sentence."""
        try:
            yield
        except exc.DBAPIError as error:
            raise StoreError(f"Reviews ({self.name}): {_words(error.orig)}.") from error
        except exc.SQLAlchemyError as error:
            raise StoreError(
                f"Reviews ({self.name}): the database does not answer. Try again."
            ) from error


def _words(error: BaseException | None) -> str:
    """The reason in words fit for a clinician, without what the driver says of hosts and files."""
    name = getattr(error, "sqlite_errorname", "") or ""
    for start, words in _SQLITE_WORDS.items():
        if name.startswith(start):
            return words
    state = getattr(error, "sqlstate", None)
    if state in _POSTGRES_WORDS:
        return _POSTGRES_WORDS[state]
    if isinstance(error, sqlite3.Error):
        return "the database refuses this. Check that the file is a review database"
    if state is None:
        return "the server cannot be reached. Check that it runs and the database URL"
    return f"the server refuses this (code {state})"


def _engine(url: sa.URL, timeout_s: float) -> sa.Engine:
    if url.get_backend_name() == "sqlite":
        engine = sa.create_engine(url, connect_args={"timeout": timeout_s}, pool_size=10)
        sa.event.listen(engine, "connect", _set_up_sqlite)
        sa.event.listen(engine, "begin", partial(_begin_sqlite, timeout_s=timeout_s))
        return engine
    options = f"-c lock_timeout={round(timeout_s * 1000)}"
    return sa.create_engine(url, connect_args={"options": options}, pool_pre_ping=True)


def _set_up_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # BEGIN is ours: the driver's own comes too late for WAL
    run: Callable[[str], Any] = connection.execute
    _use_wal(run)
    run("PRAGMA synchronous=FULL")  # a confirmed write survives a power cut
    run("PRAGMA foreign_keys=ON")


def _use_wal(run: Callable[[str], Any]) -> None:
    """Switch to write-ahead logging; several openers of a new file may meet at this switch."""
    for wait_s in (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 0.0):
        try:
            if run("PRAGMA journal_mode").fetchone()[0] != "wal":
                run("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname not in ("SQLITE_BUSY", "SQLITE_LOCKED") or not wait_s:
                raise
        time.sleep(wait_s)


def _begin_sqlite(connection: sa.Connection, timeout_s: float) -> None:
    """Begin. Writers try again every few milliseconds: all have the same chance at each release.

    SQLite's own waiting sleeps longer the longer it has waited, so that the first comers starve.
    """
    if not connection.get_execution_options().get("refinerank_write", False):
        connection.exec_driver_sql("BEGIN")
        return
    connection.exec_driver_sql("PRAGMA busy_timeout=0")
    deadline = time.monotonic() + timeout_s
    try:
        while not _begun(connection) and time.monotonic() < deadline:
            time.sleep(random.uniform(0.001, 0.005))
        if not connection.connection.in_transaction:
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # the last try: its fault is told
    finally:
        connection.exec_driver_sql(f"PRAGMA busy_timeout={round(timeout_s * 1000)}")


def _begun(connection: sa.Connection) -> bool:
    try:
        connection.connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if not error.sqlite_errorname.startswith("SQLITE_BUSY"):
            raise
        return False
    return True

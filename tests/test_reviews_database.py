"""The database: migrations, faults in one sentence, many writers, sudden death."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from threading import Event as Flag
from threading import Thread

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from refinerank_core.errors import StoreError
from refinerank_core.reviews import stress_faults
from refinerank_core.reviews.database import Database, database_url
from refinerank_core.reviews.migrate import MIGRATIONS, NEWEST
from refinerank_core.reviews.schema import METADATA
from refinerank_core.reviews.store import Store
from refinerank_core.reviews.stress import kills, parallel
from refinerank_core.reviews.stress_load import Finding, Load, made_cases
from refinerank_core.reviews.stress_size import size
from refinerank_core.reviews.worklist import Wanted
from tests.stores import act, case, fix, new_database

__all__ = ["new_database"]  # a fixture


def test_the_migrations_build_the_tables_that_the_code_reads(tmp_path: Path) -> None:
    database = Database(tmp_path / "reviews.db")
    with database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        differences = compare_metadata(context, METADATA)
    database.close()

    assert differences == []


def test_the_newest_version_is_the_last_file() -> None:
    assert ScriptDirectory(str(MIGRATIONS)).get_current_head() == NEWEST


def test_an_open_file_keeps_a_log_and_its_keys(tmp_path: Path) -> None:
    database = Database(tmp_path / "reviews.db", timeout_s=7.0)
    with database.reading() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "foreign_keys", "busy_timeout", "synchronous")
        }
    database.close()

    assert pragmas == {
        "journal_mode": "wal",
        "foreign_keys": 1,
        "busy_timeout": 7000,
        "synchronous": 2,
    }


@pytest.mark.parametrize(
    ("place", "driver"),
    [
        ("reviews.db", "sqlite"),
        ("/data/reviews.db", "sqlite"),
        ("sqlite:////data/reviews.db", "sqlite"),
        ("postgres://host/reviews", "postgresql+psycopg"),
        ("postgresql://host/reviews", "postgresql+psycopg"),
        ("postgresql+psycopg://host/reviews", "postgresql+psycopg"),
    ],
)
def test_a_place_is_a_path_or_a_url(place: str, driver: str) -> None:
    assert database_url(place).drivername == driver


@pytest.mark.parametrize("place", ["mysql://host/reviews", "://", "postgresql://host:port/x"])
def test_another_place_is_refused_in_words(place: str) -> None:
    with pytest.raises(StoreError, match="database"):
        Store(place)


def test_a_server_that_is_not_there_is_one_sentence_without_the_password() -> None:
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        Store("postgresql://someone:secret@127.0.0.1:1/reviews?connect_timeout=2")

    assert "secret" not in str(caught.value)


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"Reviews \(reviews.db\): it cannot be opened") as caught:
        Store(tmp_path / "nowhere" / "reviews.db")

    assert str(tmp_path) not in str(caught.value)


def test_a_database_of_a_newer_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "reviews.db"
    Store(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(StoreError, match="newer version"):
        Store(path)


@pytest.mark.parametrize(
    "fault",
    [
        stress_faults.disk_full,
        stress_faults.read_only,
        stress_faults.locked,
        stress_faults.corrupt,
    ],
)
def test_a_fault_of_the_disk_is_said_and_loses_nothing(
    fault: Callable[[Path], Finding], tmp_path: Path
) -> None:
    finding = fault(tmp_path / "reviews.db")

    assert finding.met, finding.result


def test_parallel_reviewers_lose_and_double_nothing(tmp_path: Path) -> None:
    finding = parallel(tmp_path / "reviews.db", Load(reviewers=4, decisions=25))

    assert finding.met, finding.result
    assert "100 events, 0 lost, 0 doubled" in finding.result


def test_parallel_reviewers_meet_on_a_server_too(new_database: Callable[[], str]) -> None:
    finding = parallel(new_database(), Load(reviewers=4, decisions=25))

    assert finding.met, finding.result
    assert "100 events, 0 lost, 0 doubled" in finding.result


def test_a_killed_writer_loses_nothing_that_was_confirmed(tmp_path: Path) -> None:
    finding = kills(tmp_path / "reviews.db", Load(kills=3))

    assert finding.met, finding.result
    assert " 0 lost, file opened 3 of 3 times" in finding.result


def test_a_writer_killed_beside_a_server_loses_nothing(new_database: Callable[[], str]) -> None:
    finding = kills(new_database(), Load(kills=3))

    assert finding.met, finding.result
    assert " 0 lost, file opened 3 of 3 times" in finding.result


def test_the_migrations_build_the_same_tables_on_a_server(new_database: Callable[[], str]) -> None:
    database = Database(new_database())
    with database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        differences = compare_metadata(context, METADATA)
    database.close()

    assert differences == []


def test_threads_share_one_store_while_another_program_writes(tmp_path: Path) -> None:
    path = tmp_path / "reviews.db"
    cases = made_cases(8)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    locked, faults = Flag(), []

    def save(store: Store, k: int) -> None:
        try:
            locked.wait(10)
            for turn in range(10):
                store.record(act(cases[k], "decided", fix(), based_on=turn, by=f"R{k}"))
                store.queue(Wanted())
        except Exception as error:
            faults.append(error)

    with Store(path) as store:
        store.add(cases, by="import")
        workers = [Thread(target=save, args=(store, k)) for k in range(8)]
        for worker in workers:
            worker.start()
        other.execute("BEGIN IMMEDIATE")
        locked.set()
        workers[0].join(0.3)  # all of them wait for this transaction meanwhile
        other.execute("ROLLBACK")
        for worker in workers:
            worker.join()
        other.close()

        assert faults == []
        assert store.counts()["decided"] == 80
        assert store.verify().sound


def test_openers_of_a_new_file_meet_without_harm(tmp_path: Path) -> None:
    path = tmp_path / "reviews.db"
    faults: list[Exception] = []

    def open_it(k: int) -> None:
        try:
            with Store(path) as store:
                store.add([case(float(k))], by="import")
        except Exception as error:
            faults.append(error)

    workers = [Thread(target=open_it, args=(k,)) for k in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert faults == []
    with Store(path) as store:
        assert (store.verify().problems, store.queue(Wanted()).total) == ((), 6)


def test_a_long_record_is_measured(tmp_path: Path) -> None:
    findings = size(tmp_path / "reviews.db", 600)

    assert [finding.name.split(" (")[0] for finding in findings] == [
        "the queue over 600 events opens",
        "a decision after 600 events",
        "verify over 700 events",
    ]
    assert findings[2].met

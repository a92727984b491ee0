"""Faults of disk and file, made for real on a store, and what the store says to them."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

from refinerank_core.errors import StoreError
from refinerank_core.reviews.store import Store
from refinerank_core.reviews.stress_load import Finding, decision, made_cases

_CASES = 6


def faults(folder: Path) -> list[Finding]:
    """Each fault in a database of its own."""
    tries: dict[str, Callable[[Path], Finding]] = {
        "full": disk_full,
        "readonly": read_only,
        "locked": locked,
        "corrupt": corrupt,
    }
    return [attempt(folder / f"{name}.db") for name, attempt in tries.items()]


def _written(path: Path) -> None:
    """A store with one confirmed decision, closed."""
    cases = made_cases(_CASES)
    with Store(path) as store:
        store.add(cases, by="stress")
        store.record(decision(cases[0], "R0", "confirmed-0", based_on=0, turn=0))


def _refusal(store: Store, turn: int = 1) -> str:
    """What a write is answered, "" when it went through."""
    case = made_cases(_CASES)[turn]
    try:
        store.record(decision(case, "R0", f"attempt-{turn}", based_on=0, turn=turn))
    except StoreError as error:
        return str(error)
    return ""


def _kept(store: Store) -> bool:
    """The confirmed decision is there, the refused one is not, and all is sound."""
    known = store.confirmed(["confirmed-0", "attempt-1"])
    return set(known) == {"confirmed-0"} and store.verify().sound


def disk_full(path: Path) -> Finding:
    """No page is left for the database (SQLite's own limit of pages, the same error code)."""
    _written(path)
    with Store(path) as store:
        store.limit_pages()
        refused, said = 0, ""
        while not said and refused < _CASES - 1:  # the pages in use have some room left
            refused += 1
            said = _refusal(store, refused)
        known = set(store.confirmed(["confirmed-0", f"attempt-{refused}"]))
        kept = known == {"confirmed-0"} and store.verify().sound
    with Store(path) as store:
        again = _refusal(store, refused) == ""
    return _finding("disk full", said, "disk is full" in said and kept and again)


def read_only(path: Path) -> Finding:
    """The file may be read but not written."""
    _written(path)
    with Store(path), Store(f"sqlite:///file:{path}?mode=ro&uri=true") as store:
        said, kept = _refusal(store), _kept(store)
    return _finding("read-only file", said, "read-only" in said and kept)


def locked(path: Path) -> Finding:
    """Another program holds the file in a transaction that does not end."""
    _written(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with Store(path, timeout_s=0.2) as store:
            said, kept = _refusal(store), _kept(store)
            other.execute("ROLLBACK")
            again = _refusal(store) == ""
    finally:
        other.close()
    return _finding("locked file", said, "locked" in said and kept and again)


def corrupt(path: Path) -> Finding:
    """Bytes in the middle are overwritten; and a file that never was a database."""
    _written(path)
    before = path.stat().st_size
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(bytes(data))
    said = _opening(path)
    nothing = path.with_suffix(".txt")
    nothing.write_text("not a database at all\n" * 100)
    also = _opening(nothing)
    fine = "damaged" in said and "no review database" in also and path.stat().st_size == before
    return _finding("damaged file", said, fine)


def _opening(path: Path) -> str:
    try:
        with Store(path) as store:
            return "; ".join(store.verify().problems)
    except StoreError as error:
        return str(error)


def _finding(name: str, said: str, met: bool) -> Finding:
    return Finding(name, f'says "{said}"', met)

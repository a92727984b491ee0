"""Figures of reliability, measured: many writers, sudden death, faults of the disk, size."""

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from refinerank_core.errors import StoreError
from refinerank_core.reviews.conflicts import ConflictError
from refinerank_core.reviews.store import Store
from refinerank_core.reviews.stress_faults import faults
from refinerank_core.reviews.stress_load import Finding, Load, decision, made_cases, sound_words
from refinerank_core.reviews.stress_size import size

_SPAWN = multiprocessing.get_context("spawn")  # a fresh interpreter, as a server's worker is


@dataclass
class _Confirmed:
    """What one writer was told is safe."""

    client_ids: list[str] = field(default_factory=list)
    slowest_s: float = 0.0


def run(folder: Path, load: Load, say: Callable[[str], None] = lambda _: None) -> list[Finding]:
    """Try everything in a folder of its own.

    Args:
        folder: empty; databases are made there and stay for a look.
        load: how much.
        say: is told what is being tried.
    """
    say(f"{load.reviewers} reviewers x {load.decisions} decisions")
    findings = [parallel(folder / "parallel.db", load)]
    say(f"kill -9, {load.kills} times")
    findings.append(kills(folder / "kills.db", load))
    say("faults of disk and file")
    findings += faults(folder)
    say(f"{load.events} events")
    return findings + size(folder / "size.db", load.events)


def parallel(place: Path | str, load: Load) -> Finding:
    """Reviewers in processes of their own decide on the same cases at once."""
    cases = made_cases(max(load.decisions // 4, 1))
    with Store(place) as store:
        store.add(cases, by="stress")
    results = [_SPAWN.Pipe(duplex=False) for _ in range(load.reviewers)]
    workers = [
        _SPAWN.Process(target=_review, args=(str(place), k, load.decisions, len(cases), sender))
        for k, (_, sender) in enumerate(results)
    ]
    began = time.monotonic()
    for worker in workers:
        worker.start()
    told = [_receive(receiver) for receiver, _ in results]
    for worker in workers:
        worker.join()
    took = time.monotonic() - began
    with Store(place) as store:
        names = [name for one in told for name in one.client_ids]
        written = store.confirmed(names)
        kinds = store.counts()
        report = store.verify()
    wanted = load.reviewers * load.decisions
    decided = kinds["decided"]
    doubled = decided - len(written)
    slowest = max(one.slowest_s for one in told)
    return Finding(
        f"{load.reviewers} reviewers x {load.decisions} decisions in parallel processes",
        f"{decided} events, {wanted - len(written)} lost, {doubled} doubled, "
        f"{kinds['conflicted']} conflicts told, chain {sound_words(report.sound)}, "
        f"{decided / took:.0f} decisions/s, slowest {slowest:.2f} s",
        decided == wanted and len(written) == wanted and doubled == 0 and report.sound,
    )


def _review(path: str, k: int, decisions: int, cases: int, sender: Connection) -> None:
    """One reviewer: decides, and on a conflict looks again and decides anew."""
    confirmed = _Confirmed()
    worklist = made_cases(cases)
    random.Random(k).shuffle(worklist)
    with Store(path, timeout_s=60.0) as store:
        for turn in range(decisions):
            case = worklist[turn % len(worklist)]
            began = time.monotonic()
            version, tries = store.case(case.case_id).state.version, 0
            while True:
                name = f"reviewer-{k}-{turn}-{tries}"
                action = decision(case, f"R{k}", name, based_on=version, turn=turn)
                try:
                    receipt = store.record(action)
                except ConflictError as conflict:
                    version, tries = conflict.state.version, tries + 1
                    continue
                confirmed.client_ids.append(receipt.event.client_id)
                confirmed.slowest_s = max(confirmed.slowest_s, time.monotonic() - began)
                break
    sender.send(confirmed)
    sender.close()


def _receive(receiver: Connection) -> _Confirmed:
    try:
        told = receiver.recv()
    except EOFError as error:
        raise StoreError("A stress process stopped before it had told its results.") from error
    if not isinstance(told, _Confirmed):
        raise TypeError(f"a stress process sent {type(told)}")
    return told


def kills(place: Path | str, load: Load) -> Finding:
    """Kill the writing process at random moments while decisions stream in."""
    chance = random.Random(load.seed)
    cases = made_cases(20)
    with Store(place) as store:
        store.add(cases, by="stress")
    told: list[str] = []
    unopened = 0
    for life in range(load.kills):
        receiver, sender = _SPAWN.Pipe(duplex=False)
        worker = _SPAWN.Process(target=_stream, args=(str(place), life, len(cases), sender))
        worker.start()
        sender.close()
        told += _until_killed(worker.pid, receiver, chance.uniform(0.0, 0.25))
        worker.join()
        try:
            Store(place).close()
        except StoreError:
            unopened += 1
    with Store(place) as store:
        lost = len(told) - len(store.confirmed(told))
        report = store.verify()
    return Finding(
        f"kill -9 at {load.kills} random moments while decisions stream in",
        f"{len(told)} confirmed, {lost} lost, file opened {load.kills - unopened} of "
        f"{load.kills} times, chain {sound_words(report.sound)}",
        lost == 0 and unopened == 0 and report.sound and len(told) > 0,
    )


def _stream(path: str, life: int, cases: int, sender: Connection) -> None:
    """Decide for ever; each confirmed id is sent on after its confirmation."""
    worklist = made_cases(cases)
    with Store(path) as store:
        turn = 0
        while True:
            case = worklist[turn % len(worklist)]
            version = store.case(case.case_id).state.version
            name = f"life-{life}-{turn:06d}"
            store.record(decision(case, f"R{life}", name, based_on=version, turn=turn))
            sender.send(name)
            turn += 1


def _until_killed(pid: int | None, receiver: Connection, delay_s: float) -> list[str]:
    """Ids that came through, until the process was killed delay_s after the first of them."""
    told = [receiver.recv()]
    deadline = time.monotonic() + delay_s
    while receiver.poll(max(deadline - time.monotonic(), 0)) and time.monotonic() < deadline:
        told.append(receiver.recv())
    if pid is not None:
        os.kill(pid, signal.SIGKILL)
    try:
        while receiver.poll(1.0):
            told.append(receiver.recv())
    except (EOFError, OSError):
        pass  # the pipe ends with the process, perhaps in the middle of an id
    return told

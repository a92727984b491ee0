"""A long record: how fast the queue opens over it, and how fast a decision is written."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from refinerank_core.reviews.records import Action
from refinerank_core.reviews.store import Store
from refinerank_core.reviews.stress_load import Finding, decision, made_cases, sound_words
from refinerank_core.reviews.worklist import Wanted

_BATCH = 2000
_EACH = 8  # decisions on a case: half of the cases stay new


def size(path: Path, events: int) -> list[Finding]:
    """A record of the promised length: time to open the queue, and to decide."""
    with Store(path) as store:
        _fill(store, events)
    began = time.monotonic()
    with Store(path) as store:
        page = store.queue(Wanted(status=("new", "unsure"), sort="margin"))
        opened = time.monotonic() - began
        filters = [
            Wanted(),
            Wanted(tag="small target"),
            Wanted(reviewer="R1", sort="decided", descending=True),
            Wanted(sort="shuffle", seed=5),
            Wanted(text="stress-007", sort="disagreement"),
        ]
        pages = [_timed(partial(store.queue, wanted)) for wanted in filters]
        times = []
        for turn, item in enumerate((page.items * 4)[:100]):
            case = store.case(item.case_id)
            action = decision(
                case.case, "late", f"late-{turn:05d}", based_on=case.state.version, turn=turn
            )
            times.append(_timed(partial(store.record, action)))
        began = time.monotonic()
        report = store.verify()
        checked = time.monotonic() - began
    slowest = max(opened, *pages)
    return [
        Finding(
            f"the queue over {events} events opens (aim: 1 s)",
            f"{opened:.3f} s with the database, slowest of {len(pages)} filters {max(pages):.3f} s,"
            f" {report.cases} cases",
            slowest <= 1.0,
        ),
        Finding(
            f"a decision after {events} events (aim: 100 ms)",
            f"median {1000 * median(times):.1f} ms, slowest of {len(times)} "
            f"{1000 * max(times):.1f} ms",
            max(times) <= 0.1,
        ),
        Finding(
            f"verify over {report.events} events",
            f"{checked:.1f} s, chain {sound_words(report.sound)}",
            report.sound,
        ),
    ]


def _fill(store: Store, events: int) -> None:
    """A fifth of the events are imports, the others decisions by ten reviewers."""
    count = max(events // 5, 1)
    cases = made_cases(count)
    for start in range(0, count, _BATCH):
        store.add(cases[start : start + _BATCH], by="stress")
    batch: list[Action] = []
    for k in range(events - count):
        case, turn = cases[k // _EACH], k % _EACH
        name = f"fill-{k:07d}"
        batch.append(decision(case, f"R{turn % 10}", name, based_on=turn, turn=k))
        if len(batch) == _BATCH:
            store.record_all(batch)
            batch = []
    store.record_all(batch)


def _timed(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began

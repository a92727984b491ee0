"""A question while it runs: steps as they pass, time left, and a way to stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from queue import Empty, Queue
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from demo.services import Progress
from refinerank_core.errors import RefineRankError
from refinerank_core.grounding import Grounding

if TYPE_CHECKING:
    from refinerank_core.pipeline import Grounded

_POLL_S = 0.1


class StoppedError(RefineRankError):
    """The visitor stopped the question."""


@dataclass(frozen=True)
class Step:
    """How far a question is.

    Attributes:
        done: stage -> how many requested times have passed it.
        total: requested times.
        elapsed_s: since the question was asked.
        left_s: estimate of the rest, None while nothing is known.
        stopping: the visitor asked to stop and the stage that runs is being waited for.
    """

    done: dict[str, int]
    total: int
    elapsed_s: float
    left_s: float | None
    stopping: bool = False

    def after(self, start: int, total: int) -> Step:
        """The same step seen from the whole question: `start` times have passed all stages."""
        left_s = self.left_s
        if left_s is not None and self.total:
            left_s *= (total - start) / self.total
        stages = {name: done + start for name, done in self.done.items()}
        return Step(stages, total, self.elapsed_s, left_s, self.stopping)


@dataclass(eq=False)
class Pace:
    """Seconds that each stage took for one requested time, learnt from question to question."""

    seconds: dict[str, float] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def learn(self, spent: dict[str, float], total: int) -> None:
        """Take in the seconds of a finished run: half the old figure, half the new one."""
        with self._lock:
            for stage, seconds in spent.items():
                new = seconds / max(1, total)
                old = self.seconds.get(stage, new)
                self.seconds[stage] = (old + new) / 2

    def left_s(self, stages: tuple[str, ...], done: dict[str, int], total: int) -> float | None:
        """Seconds until all stages have passed all times; None before the first run."""
        with self._lock:
            if not self.seconds:
                return None
            return sum(
                self.seconds.get(stage, 0.0) * (total - done.get(stage, 0)) for stage in stages
            )


def joined(first: Grounding, more: Grounding) -> Grounding:
    """Two groups of requested times of one question as one answer."""
    stages = {**first.seconds, **more.seconds}
    asked = first.question
    return first.model_copy(
        update={
            "question": asked.model_copy(update={"times_s": asked.times_s + more.question.times_s}),
            "times": first.times + more.times,
            "seconds": {
                name: first.seconds.get(name, 0.0) + more.seconds.get(name, 0.0) for name in stages
            },
            "warnings": tuple(dict.fromkeys(first.warnings + more.warnings)),
        }
    )


def follow(
    work: Callable[[Progress], Grounded], *, stages: tuple[str, ...], pace: Pace, cancel: Event
) -> Generator[Step | Grounded]:
    """Run work in a thread; give steps while it runs and what it returned at the end.

    Raises:
        StoppedError: cancel was set; the stage that ran then has ended.
        Exception: whatever work raised.
    """
    news: Queue[tuple[str, int, int] | Grounded | BaseException] = Queue()

    def report(stage: str, done: int, total: int) -> None:
        if cancel.is_set():
            raise StoppedError("Stopped. Nothing was changed.")
        news.put((stage, done, total))

    def run() -> None:
        try:
            news.put(work(report))
        except BaseException as error:
            news.put(error)

    started = time.perf_counter()
    Thread(target=run, name="question", daemon=True).start()
    passed: dict[str, int] = {}
    total = 1
    told = False
    try:
        while True:
            try:
                one = news.get(timeout=_POLL_S)
            except Empty:
                if cancel.is_set() and not told:
                    told = True
                    yield Step(dict(passed), total, time.perf_counter() - started, None, True)
                continue
            if isinstance(one, BaseException):
                raise one
            if not isinstance(one, tuple):
                if cancel.is_set():
                    raise StoppedError("Stopped. Nothing was changed.")
                yield one
                return
            stage, done, total = one
            passed[stage] = done
            left_s = pace.left_s(stages, passed, total)
            yield Step(dict(passed), total, time.perf_counter() - started, left_s)
    except GeneratorExit:
        cancel.set()  # whoever stops listening stops the work too
        raise

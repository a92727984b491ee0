"""A question while it runs: what it tells, time left, and a way to stop."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import closing
from contextvars import copy_context
from dataclasses import dataclass, field
from queue import Empty, Queue
from threading import Event, Lock, Thread

from refinerank_core.errors import ModelError, RefineRankError
from refinerank_core.progress import Begun, Grounded, News, Passed, Ranked, Written

_POLL_S = 0.1
_ONCE = ("query",)  # stages that a question passes once, however many times it asks for


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


@dataclass(eq=False)
class Pace:
    """Seconds that each stage took for one requested time, learnt from question to question.

    Attributes:
        seconds: by stage.
        guessed: nothing has run here yet; the seconds are those of a kept answer.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    guessed: bool = True
    _lock: Lock = field(default_factory=Lock)

    def learn(self, spent: Mapping[str, float], total: int) -> None:
        """Take in the seconds of a finished run: half the old figure, half the new one."""
        with self._lock:
            new = per_time(spent, total)
            old = new if self.guessed else self.seconds
            self.seconds = {name: (old.get(name, new[name]) + new[name]) / 2 for name in new}
            self.guessed = False

    def guess(self, spent: Mapping[str, float], total: int) -> None:
        """Take a kept answer's seconds until a question has run here."""
        with self._lock:
            if self.guessed:
                self.seconds = per_time(spent, total)

    def left_s(self, stages: tuple[str, ...], done: dict[str, int], total: int) -> float | None:
        """Seconds until all stages have passed all times; None before the first run."""
        with self._lock:
            if not self.seconds:
                return None
            left = {stage: total - done.get(stage, 0) for stage in stages}
            return sum(
                self.seconds.get(stage, 0.0) * (min(1, times) if stage in _ONCE else times)
                for stage, times in left.items()
            )


def per_time(spent: Mapping[str, float], total: int) -> dict[str, float]:
    """Seconds of each stage for one requested time, and for the whole question where once."""
    return {name: s / (1 if name in _ONCE else max(1, total)) for name, s in spent.items()}


def follow(
    news: Generator[News], *, stages: tuple[str, ...], pace: Pace, cancel: Event
) -> Generator[Step | Begun | Ranked | Written | Grounded]:
    """Listen to a run in a thread; tell steps and findings as they come.

    The thread takes the caller's context along: who is asking is known to whatever computes.

    Raises:
        StoppedError: cancel was set; the stage that ran then has ended, and what it found was told.
        Exception: whatever the run raised.
    """
    heard: Queue[News | BaseException | None] = Queue()
    context = copy_context()
    listen = Thread(target=context.run, args=(_listen, news, heard, cancel), daemon=True)
    started = time.perf_counter()
    listen.start()
    passed: dict[str, int] = {}
    total = 1

    def step(stopping: bool = False) -> Step:
        left_s = None if stopping else pace.left_s(stages, passed, total)
        return Step(dict(passed), total, time.perf_counter() - started, left_s, stopping)

    told = False
    try:
        while True:
            try:
                one = heard.get(timeout=_POLL_S)
            except Empty:
                if cancel.is_set() and not told:
                    told = True
                    yield step(stopping=True)
                continue
            if isinstance(one, Passed):
                passed[one.stage], total = one.done, one.total
                yield step(stopping=cancel.is_set())
            elif isinstance(one, Begun | Ranked | Written | Grounded):
                yield one
                if isinstance(one, Grounded):
                    return
            else:
                raise one or StoppedError("Stopped.")
    except GeneratorExit:
        cancel.set()  # whoever stops listening stops the work too
        raise


def _listen(
    news: Generator[News], heard: Queue[News | BaseException | None], cancel: Event
) -> None:
    """Pass on what comes until it ends or is cancelled; None is the end."""
    try:
        for one in news:
            heard.put(one)
            if cancel.is_set():
                news.close()
        heard.put(None)
    except BaseException as error:
        heard.put(error)


def in_turns(busy: Lock, news: Generator[News]) -> Generator[News]:
    """Hold the models for one step at a time: a glance at a map need not wait for a whole run."""
    with closing(news):
        while True:
            with busy:
                one = next(news, None)
            if one is None:
                return
            yield one


def whole(news: Iterable[News]) -> Grounded:
    """The whole answer at the end of a run. Raises ModelError when there is none."""
    for one in news:
        if isinstance(one, Grounded):
            return one
    raise ModelError("The run ended without an answer. Ask again.")

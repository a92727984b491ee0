"""A question while it runs: what is told, time left, and a way to stop."""

from __future__ import annotations

from collections.abc import Generator
from contextvars import ContextVar
from threading import Event, Lock
from typing import Any

import pytest

from demo.runs import Pace, Step, StoppedError, follow, in_turns, whole
from refinerank_core.errors import ModelError
from refinerank_core.progress import Grounded, News, Passed, Ranked

STAGES = ("query", "encode", "rank")
WHO: ContextVar[str] = ContextVar("WHO", default="nobody")


def some_ranked() -> Ranked:
    return Ranked(0, (), {}, {}, ())


def the_whole() -> Grounded:
    grounding: Any = None
    return Grounded(grounding, {})


def run(news: Generator[News], cancel: Event | None = None, pace: Pace | None = None) -> list[Any]:
    return list(follow(news, stages=STAGES, pace=pace or Pace(), cancel=cancel or Event()))


def test_steps_and_findings_come_in_order_and_the_whole_last() -> None:
    ranked, last = some_ranked(), the_whole()

    def work() -> Generator[News]:
        yield Passed("encode", 1, 2)
        yield ranked
        yield Passed("encode", 2, 2)
        yield last

    one, two, three, four = run(work())

    assert [one.done, three.done] == [{"encode": 1}, {"encode": 2}]
    assert two is ranked
    assert four is last


def test_a_fault_of_the_work_reaches_the_caller() -> None:
    def work() -> Generator[News]:
        yield Passed("encode", 1, 2)
        raise ModelError("The model gave no numbers.")

    with pytest.raises(ModelError, match="no numbers"):
        run(work())


def test_a_cancelled_question_tells_what_it_found_and_goes_no_further() -> None:
    cancel = Event()
    reached: list[str] = []
    told: list[object] = []

    def work() -> Generator[News]:
        cancel.set()
        yield some_ranked()
        reached.append("too far")
        yield the_whole()

    with pytest.raises(StoppedError):
        told.extend(follow(work(), stages=STAGES, pace=Pace(), cancel=cancel))

    assert reached == []
    assert any(isinstance(one, Ranked) for one in told)


def test_who_stops_listening_stops_the_work() -> None:
    cancel, stopped = Event(), Event()

    def work() -> Generator[News]:
        try:
            yield Passed("encode", 1, 1)
            cancel.wait(5)
            yield Passed("rank", 1, 1)
        finally:
            stopped.set()

    news = follow(work(), stages=STAGES, pace=Pace(), cancel=cancel)
    next(news)
    news.close()

    assert stopped.wait(5)


def test_the_work_knows_who_asks() -> None:
    seen = []

    def work() -> Generator[News]:
        seen.append(WHO.get())
        yield the_whole()

    WHO.set("a visitor")
    run(work())

    assert seen == ["a visitor"]


def test_time_left_is_what_earlier_questions_took() -> None:
    pace = Pace()
    pace.learn({"query": 3.0, "encode": 4.0, "rank": 2.0}, total=2)

    def work() -> Generator[News]:
        yield Passed("encode", 1, 3)
        yield the_whole()

    step = run(work(), pace=pace)[0]

    assert isinstance(step, Step)
    assert step.left_s == pytest.approx(3.0 + 2 * 2.0 + 3 * 1.0)  # a question is read once


def test_a_kept_answers_seconds_serve_until_a_question_has_run() -> None:
    pace = Pace()
    pace.guess({"query": 1.0, "encode": 8.0}, total=2)
    assert pace.left_s(STAGES, {}, 3) == pytest.approx(1.0 + 3 * 4.0)

    pace.learn({"query": 0.5, "encode": 2.0}, total=2)
    pace.guess({"query": 9.0, "encode": 9.0}, total=1)

    assert pace.left_s(STAGES, {}, 3) == pytest.approx(0.5 + 3 * 1.0)


def test_nothing_is_promised_before_the_first_question() -> None:
    assert Pace().left_s(STAGES, {}, 1) is None


def test_a_run_without_an_end_is_no_answer() -> None:
    with pytest.raises(ModelError, match="without an answer"):
        whole([Passed("encode", 1, 1)])


def test_the_models_are_free_between_two_steps() -> None:
    busy, held = Lock(), []

    def work() -> Generator[News]:
        for k in (1, 2):
            held.append(busy.locked())
            yield Passed("encode", k, 2)

    told = [(one, busy.locked()) for one in in_turns(busy, work())]

    assert held == [True, True]
    assert told == [(Passed("encode", 1, 2), False), (Passed("encode", 2, 2), False)]

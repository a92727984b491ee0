"""A question while it runs."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from demo.runs import Pace, Step, StoppedError, follow, joined
from demo.services import Progress
from refinerank_core.errors import ModelError
from refinerank_core.video import open_video
from tests.browser.fakes import grounding_of, tissue
from tests.clips import encode

STAGES = ("encode", "rank")


def run(work: Any, cancel: Event | None = None, pace: Pace | None = None) -> list[Any]:
    return list(follow(work, stages=STAGES, pace=pace or Pace(), cancel=cancel or Event()))


def test_steps_come_in_order_and_the_result_last() -> None:
    result = SimpleNamespace()

    def work(progress: Progress) -> Any:
        progress("encode", 1, 2)
        progress("encode", 2, 2)
        progress("rank", 2, 2)
        return result

    *steps, last = run(work)

    assert [step.done for step in steps] == [{"encode": 1}, {"encode": 2}, {"encode": 2, "rank": 2}]
    assert last is result


def test_a_fault_of_the_work_reaches_the_caller() -> None:
    def work(progress: Progress) -> Any:
        raise ModelError("The model gave no numbers.")

    with pytest.raises(ModelError, match="no numbers"):
        run(work)


def test_a_cancelled_question_stops_at_its_next_step() -> None:
    cancel = Event()
    reached = []

    def work(progress: Progress) -> Any:
        progress("encode", 1, 1)
        cancel.set()
        progress("rank", 1, 1)
        reached.append("too far")

    with pytest.raises(StoppedError):
        run(work, cancel)

    assert reached == []


def test_who_stops_listening_stops_the_work() -> None:
    cancel, stopped = Event(), Event()

    def work(progress: Progress) -> Any:
        progress("encode", 1, 1)
        cancel.wait(5)
        try:
            progress("rank", 1, 1)
        except StoppedError:
            stopped.set()
            raise

    news = follow(work, stages=STAGES, pace=Pace(), cancel=cancel)
    next(news)
    news.close()

    assert stopped.wait(5)


def test_time_left_is_what_earlier_questions_took() -> None:
    pace = Pace()
    pace.learn({"encode": 4.0, "rank": 2.0}, total=2)

    def work(progress: Progress) -> Any:
        progress("encode", 1, 3)
        return None

    step = run(work, pace=pace)[0]

    assert isinstance(step, Step)
    assert step.left_s == pytest.approx(2 * 2.0 + 3 * 1.0)


def test_nothing_is_promised_before_the_first_question() -> None:
    assert Pace().left_s(STAGES, {}, 1) is None


def test_groups_of_times_join_to_one_answer(tmp_path: Path) -> None:
    path = encode(tmp_path / "a.mp4", (tissue(k, (96, 64)) for k in range(40)))
    with open_video(path) as video:
        first = grounding_of(video, "where?", "it", ["it"], [0.2, 0.4])
        more = grounding_of(video, "where?", "it", ["it"], [0.8])
        whole = grounding_of(video, "where?", "it", ["it"], [0.2, 0.4, 0.8])

    both = joined(first, more)

    assert both.times == whole.times
    assert both.question.times_s == (0.2, 0.4, 0.8)
    assert both.seconds["rank"] == pytest.approx(0.2)


def test_a_step_of_a_later_group_counts_the_times_before_it() -> None:
    step = Step({"encode": 2}, 4, 1.0, 2.0).after(8, 12)

    assert (step.done, step.total, step.left_s) == ({"encode": 10}, 12, 2.0)

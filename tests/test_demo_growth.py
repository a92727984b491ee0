"""An answer that grows while its question runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.growth import Growth
from demo.present import answer_facts, stopped_words
from demo.sessions import Clip, Sessions
from refinerank_core.grounding import Grounding
from refinerank_core.progress import Begun, Grounded, Ranked, Written
from tests.browser.fakes import FakeCore, fake_services, grounding_of, tissue, unwritten
from tests.clips import encode

TIMES = [0.2, 0.4, 0.8]
SPENT = {"encode": 1.0}


@pytest.fixture
def clip(tmp_path: Path) -> Iterator[Clip]:
    encode(tmp_path / "a.mp4", (tissue(k, (96, 64)) for k in range(40)))
    sessions = Sessions(fake_services(FakeCore(), tmp_path))
    yield sessions.sample("a")
    sessions.close()


@pytest.fixture
def answer(clip: Clip) -> Grounding:
    return grounding_of(clip.video, "where?", "it", ["it"], TIMES)


def ranked(answer: Grounding, first: int, stop: int) -> Ranked:
    times = tuple(unwritten(one) for one in answer.times[first:stop])
    return Ranked(first, times, {}, SPENT, ("Frame 5 is blank.",))


def begun(clip: Clip, answer: Grounding) -> Growth:
    growth = Growth(clip, reused=0)
    growth.take(Begun(answer.model_copy(update={"times": ()})))
    return growth


def test_before_a_time_is_ranked_there_is_no_answer(clip: Clip, answer: Grounding) -> None:
    growth = begun(clip, answer)

    assert (growth.answer, growth.stop()) == (None, None)
    assert "before a time was answered" in stopped_words(growth)


def test_ranked_times_are_a_whole_grounding_of_fewer_times(clip: Clip, answer: Grounding) -> None:
    growth = begun(clip, answer)

    now = growth.take(ranked(answer, 0, 2))

    assert now is not None
    assert now.grounding.question.times_s == (0.2, 0.4)
    assert now.grounding.seconds == SPENT
    assert Grounding.from_json(now.grounding.to_json()) == now.grounding
    states = [one["medvlm"]["state"] for one in answer_facts(now)["times"]]
    assert states == ["writing", "writing"]


def test_what_grew_is_the_same_as_what_comes_at_once(clip: Clip, answer: Grounding) -> None:
    growth = begun(clip, answer)
    first = growth.take(ranked(answer, 0, 2))
    growth.take(ranked(answer, 2, 3))
    growth.take(Written(0, tuple(one.answers.medvlm for one in answer.times), SPENT, ()))
    grown = growth.answer

    last = growth.take(Grounded(answer, {}))

    assert first is not None
    assert grown is not None
    assert last is not None
    assert grown.grounding.times == answer.times
    assert not grown.unwritten
    assert (last.grounding, last.token, last.running) == (answer, first.token, False)


def test_another_choice_at_the_end_is_another_answer(clip: Clip, answer: Grounding) -> None:
    growth = begun(clip, answer)
    first = growth.take(ranked(answer, 0, 3))

    last = growth.take(Grounded(answer, {}))  # the MedVLM's words are new

    assert first is not None
    assert last is not None
    assert last.token != first.token


def test_a_stopped_answer_stays_and_says_what_it_lacks(clip: Clip, answer: Grounding) -> None:
    growth = begun(clip, answer)
    growth.take(ranked(answer, 0, 2))

    kept = growth.stop()

    assert kept is not None
    assert not kept.running
    assert "Stopped: 2 of 3 requested times are answered." in kept.grounding.warnings
    assert "was not written for 2 of them" in kept.grounding.warnings[-1]
    assert [one["medvlm"]["state"] for one in answer_facts(kept)["times"]] == ["stopped"] * 2
    assert "Stopped: 2 of 3 requested times are answered." in stopped_words(growth)


def test_a_finished_answer_is_not_stopped_any_more(clip: Clip, answer: Grounding) -> None:
    growth = begun(clip, answer)
    growth.take(Grounded(answer, {}))

    kept = growth.stop()

    assert kept is not None
    assert kept.grounding.warnings == answer.warnings

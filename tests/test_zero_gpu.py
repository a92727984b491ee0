"""A card that is there only while a decorated call runs, in a process forked for it."""

import os
import pickle
import time
from collections.abc import Generator
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
import torch

from demo import zero_gpu
from demo.zero_gpu import MOST_TIMES, GroundAsk, MapsAsk, on_card, package, seconds_for
from refinerank_core.errors import ModelError, QuestionError
from refinerank_core.pipeline import RefineRank
from refinerank_core.video import Video
from tests.fake_spaces import FakeSpaces, WorkerError


def ask(count: int = 1) -> GroundAsk:
    return GroundAsk(Path("clip.mp4"), "0f", "Where is the hook?", None, 0.0, False, count)


@pytest.mark.parametrize("told", [{}, {"SPACES_ZERO_GPU": "false"}, {"SPACE_ID": "a/b"}])
def test_without_zero_gpu_nothing_is_imported(told: dict[str, str]) -> None:
    assert package(told) is None


def test_with_zero_gpu_the_package_is_given() -> None:
    assert callable(package({"SPACES_ZERO_GPU": "true"}).GPU)


def test_zero_gpu_without_its_package_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zero_gpu, "find_spec", lambda name: None)

    with pytest.raises(ModelError, match="package spaces is not installed"):
        package({"SPACES_ZERO_GPU": "1"})


def test_more_times_ask_for_more_seconds_up_to_a_days_share() -> None:
    counts = [1, 8, 32, MOST_TIMES]

    assert [seconds_for(ask(count)) for count in counts] == [12, 30, 90, 120]
    assert seconds_for(MapsAsk(Path("clip.mp4"), "0f", 3, (0, 0, 9, 9))) == seconds_for(ask(1))


def test_the_work_runs_in_another_process_with_what_was_loaded_before() -> None:
    spaces = FakeSpaces()
    loaded = Lock()  # a thing that cannot be pickled, like a model on a card

    def work(asked: GroundAsk) -> Generator[tuple[int, bool, int]]:
        yield os.getpid(), loaded.locked(), asked.count

    run = on_card(spaces, work, seconds_for)
    loaded.acquire()
    ((process, was_locked, count),) = run(ask(8))

    assert process != os.getpid()
    assert was_locked
    assert count == 8
    assert spaces.asked_s == [30]


def test_news_arrive_one_by_one_while_the_work_goes_on(tmp_path: Path) -> None:
    go_on = tmp_path / "go on"

    def work(asked: GroundAsk) -> Generator[str]:
        yield "first"
        while not go_on.exists():
            time.sleep(0.01)
        yield "second"

    news = on_card(FakeSpaces(), work, seconds_for)(ask())

    assert next(news) == "first"
    go_on.touch()
    assert list(news) == ["second"]


def test_a_fault_keeps_its_class_and_its_words() -> None:
    def work(asked: GroundAsk) -> Generator[str]:
        yield "begun"
        raise QuestionError("The question is empty. Type one.")

    with pytest.raises(QuestionError, match=r"The question is empty\. Type one\."):
        list(on_card(FakeSpaces(), work, seconds_for)(ask()))


def test_a_bug_does_not_pass_for_an_answer() -> None:
    def work(asked: GroundAsk) -> Generator[str]:
        yield "begun"
        raise ZeroDivisionError

    with pytest.raises(WorkerError, match="ZeroDivisionError"):
        list(on_card(FakeSpaces(), work, seconds_for)(ask()))


def test_whoever_stops_listening_stops_the_work(tmp_path: Path) -> None:
    ended = tmp_path / "ended"

    def work(asked: GroundAsk) -> Generator[int]:
        try:
            for k in range(1000):
                yield k
                time.sleep(0.01)
        finally:
            ended.touch()

    news = on_card(FakeSpaces(), work, seconds_for)(ask())
    assert next(news) == 0
    news.close()

    assert ended.exists()


class NoTensors(pickle.Pickler):
    """Refuses what would keep a card busy in the other process, or hang on the way."""

    def reducer_override(self, thing: object) -> Any:
        assert not isinstance(thing, torch.Tensor), "a tensor is on its way to another process"
        return NotImplemented


def test_the_news_of_real_models_travel_without_tensors(system: RefineRank, video: Video) -> None:
    news = list(system.steps(video, "Where is the hook?", [0.4, 1.0], batch=1))
    news.append(system.maps_at(video, 3, (5.0, 5.0, 90.0, 90.0)))  # type: ignore[arg-type]

    for one in news:
        stream = BytesIO()
        NoTensors(stream).dump(one)
        assert type(pickle.loads(stream.getvalue())) is type(one)

    assert len({type(one) for one in news}) == 6


@pytest.mark.parametrize("sent", [ask(), MapsAsk(Path("clip.mp4"), "0f", 3, (0.0, 0.0, 9.0, 9.0))])
def test_what_is_asked_can_be_pickled(sent: GroundAsk | MapsAsk) -> None:
    assert pickle.loads(pickle.dumps(sent)) == sent

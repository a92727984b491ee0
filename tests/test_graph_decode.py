"""The step that a card replays, run uncaptured: it reads what a growing text reads."""

from pathlib import Path
from typing import Any

import pytest
import torch

from refinerank_core.models import graph_decode
from refinerank_core.models.continuation import Continuation
from refinerank_core.models.drafts import Drafts
from refinerank_core.models.graph_decode import CapturedTexts, CaptureError, buffer_length
from refinerank_core.models.greedy import write_greedily
from refinerank_core.models.medvlm import QwenMedVLM
from refinerank_core.pipeline import RefineRank
from tests.conftest import frame
from tests.lively import NEVER, lively, lively_system, words


@pytest.fixture(scope="module", params=["full attention", "sliding window"])
def model(request: pytest.FixtureRequest, untrained_profile: Path) -> Any:
    """A small Qwen2.5-VL with random weights, so large that each token depends on all before it."""
    return lively(untrained_profile, window=5 if request.param == "sliding window" else None)


@pytest.mark.parametrize("prompt", [(5,), tuple(range(3, 40)), (7,) * 20])
@torch.inference_mode()
def test_a_text_is_that_of_the_growing_one(model: Any, prompt: tuple[int, ...]) -> None:
    begin, drafts = CapturedTexts(), Drafts()

    first = write_greedily(
        model, words(*prompt), limit=45, ends=NEVER, drafts=drafts, begin_text=begin
    )
    guessed = write_greedily(
        model, words(*prompt), limit=45, ends=NEVER, drafts=drafts, begin_text=begin
    )

    assert first == guessed == write_greedily(model, words(*prompt), limit=45, ends=NEVER)
    assert len(set(first)) > 20  # a model that repeats one token would prove little


@torch.inference_mode()
def test_states_are_those_of_the_growing_text(model: Any) -> None:
    ours = CapturedTexts()(model, words(*range(3, 30)), room=40)
    theirs = Continuation(model, words(*range(3, 30)), room=40)
    torch.testing.assert_close(ours.prompt_state, theirs.prompt_state)

    for tokens, back in (
        ([4], 0),
        ([9, 8, 7, 6], 3),
        ([5, 5, 5, 5, 5, 5, 5, 5, 5], 9),
        ([2, 3], 0),
    ):
        torch.testing.assert_close(ours.read(tokens), theirs.read(tokens), atol=1e-4, rtol=1e-4)
        ours.take_back(back)
        theirs.take_back(back)


@torch.inference_mode()
def test_a_text_after_pictures_is_that_of_the_growing_one(
    untrained_profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    medvlm = lively_system(untrained_profile).medvlm
    assert isinstance(medvlm, QwenMedVLM)
    caught: list[dict[str, Any]] = []

    def keep(model: Any, inputs: dict[str, Any], **how: Any) -> list[int]:
        caught.append(inputs)
        return write_greedily(model, inputs, **how)

    monkeypatch.setattr("refinerank_core.models.medvlm.write_greedily", keep)
    medvlm.answer([frame(2), frame(3)], [0.4, 0.6], "Where is the hook?", "")

    ours = write_greedily(
        medvlm.network, caught[0], limit=40, ends=NEVER, begin_text=CapturedTexts()
    )

    assert ours == write_greedily(medvlm.network, caught[0], limit=40, ends=NEVER)
    assert "video_grid_thw" in caught[0]


@torch.inference_mode()
def test_a_second_text_does_not_see_the_first(model: Any) -> None:
    begin = CapturedTexts()

    write_greedily(model, words(*range(3, 60)), limit=70, ends=NEVER, begin_text=begin)
    second = write_greedily(model, words(9, 8, 7), limit=20, ends=NEVER, begin_text=begin)

    assert second == write_greedily(model, words(9, 8, 7), limit=20, ends=NEVER)


@torch.inference_mode()
def test_more_than_the_room_or_the_step_is_refused(model: Any) -> None:
    text = CapturedTexts(width=4)(model, words(4, 5), room=6)

    with pytest.raises(ValueError, match="a step reads 4 tokens, got 5"):
        text.read([1, 2, 3, 4, 5])
    text.read([1, 2, 3, 4])
    with pytest.raises(ValueError, match="no room to read 3 tokens"):
        text.read([1, 2, 3])


def test_buffers_are_of_few_lengths_and_hold_what_they_must() -> None:
    lengths = {tokens: buffer_length(tokens) for tokens in range(1, 40_000, 37)}

    assert all(length >= tokens for tokens, length in lengths.items())
    assert all(length < tokens + max(1024, tokens / 4) for tokens, length in lengths.items())
    assert len(set(lengths.values())) < 20


@torch.inference_mode()
def test_steps_of_old_lengths_make_room(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_decode, "_SHORTEST", 64)
    begin = CapturedTexts()

    for size in (10, 100, 200, 10):
        begin(model, words(*[5] * size), room=4)

    assert list(begin._steps) == [buffer_length(213), buffer_length(23)]


def test_a_card_that_cannot_record_is_told_and_the_text_is_written_all_the_same(
    untrained_profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise CaptureError("operation not permitted when stream is capturing")

    medvlm = RefineRank.load(str(untrained_profile), device="cpu").medvlm
    assert isinstance(medvlm, QwenMedVLM)
    plain = medvlm.write("Where is the hook?", 12)
    monkeypatch.setattr(medvlm, "_begin_text", refuse)

    assert medvlm.write("Where is the hook?", 12) == plain
    (note,) = medvlm.take_notes()
    assert "not permitted when stream is capturing" in note
    assert "text is written more slowly" in note
    assert medvlm.write("Where is the hook?", 12) == plain
    assert medvlm.take_notes() == ()

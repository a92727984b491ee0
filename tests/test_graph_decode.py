"""The step that a card replays, run uncaptured: it writes what the growing cache writes."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import Qwen2_5_VLForConditionalGeneration

from refinerank_core.models import graph_decode
from refinerank_core.models.graph_decode import GraphWriter, buffer_length, why_not
from refinerank_core.models.greedy import write_greedily
from refinerank_core.models.loading import load_strictly
from refinerank_core.models.medvlm import QwenMedVLM
from refinerank_core.pipeline import RefineRank
from tests.conftest import frame

NEVER = frozenset({-1})


@pytest.fixture(scope="module")
def model(untrained_profile: Path) -> Any:
    """A small Qwen2.5-VL with random weights, so large that each token depends on all before it."""
    return lively(untrained_profile, attention="sdpa")


def lively(profile: Path, *, attention: str) -> Any:
    model = load_strictly(
        Qwen2_5_VLForConditionalGeneration,
        str(profile.parent / "medvlm"),
        revision=None,
        dtype=torch.float32,
        attention=attention,
    )
    enliven(model)
    return model


def enliven(model: Any) -> None:
    generator = torch.Generator().manual_seed(3)
    for parameter in model.model.language_model.parameters():
        if parameter.ndim > 1:
            parameter.data.normal_(0, 0.35, generator=generator)


def words(*ids: int) -> dict[str, Any]:
    """The inputs of a prompt without a picture."""
    tokens = torch.tensor([ids])
    return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}


@pytest.mark.parametrize("prompt", [(5,), tuple(range(3, 40)), (7,) * 20])
@torch.inference_mode()
def test_a_text_is_that_of_the_growing_cache(model: Any, prompt: tuple[int, ...]) -> None:
    ours = GraphWriter(model).write(words(*prompt), limit=45, ends=NEVER)

    assert ours == write_greedily(model, words(*prompt), limit=45, ends=NEVER)
    assert len(ours) == 45
    assert len(set(ours)) > 20  # a model that repeats one token would prove little


@torch.inference_mode()
def test_a_text_after_pictures_is_that_of_the_growing_cache(
    untrained_profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    medvlm = RefineRank.load(str(untrained_profile), device="cpu").medvlm
    assert isinstance(medvlm, QwenMedVLM)
    enliven(medvlm.network)
    caught: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def keep(model: Any, inputs: dict[str, Any], **how: Any) -> list[int]:
        caught.append((inputs, how))
        return write_greedily(model, inputs, **how)

    monkeypatch.setattr("refinerank_core.models.medvlm.write_greedily", keep)
    medvlm.answer([frame(2), frame(3)], [0.4, 0.6], "Where is the hook?", "")
    inputs, _ = caught[0]

    ours = GraphWriter(medvlm.network).write(inputs, limit=40, ends=NEVER)

    assert ours == write_greedily(medvlm.network, inputs, limit=40, ends=NEVER)


@torch.inference_mode()
def test_a_second_text_does_not_see_the_first(model: Any) -> None:
    writer = GraphWriter(model)

    writer.write(words(*range(3, 60)), limit=70, ends=NEVER)
    second = writer.write(words(9, 8, 7), limit=20, ends=NEVER)

    assert second == write_greedily(model, words(9, 8, 7), limit=20, ends=NEVER)


@pytest.mark.parametrize("at", [0, 1, 16, 17, 30])
@torch.inference_mode()
def test_a_text_ends_with_its_ending_token_wherever_the_host_looks(model: Any, at: int) -> None:
    whole = write_greedily(model, words(*range(3, 30)), limit=40, ends=NEVER)
    end = whole[at]

    ours = GraphWriter(model).write(words(*range(3, 30)), limit=40, ends={end})

    assert ours == whole[: whole.index(end) + 1]


@pytest.mark.parametrize("limit", [1, 2, 16, 17, 18])
@torch.inference_mode()
def test_a_text_is_never_longer_than_its_limit(model: Any, limit: int) -> None:
    assert len(GraphWriter(model).write(words(4, 5), limit=limit, ends=NEVER)) == limit


@torch.inference_mode()
def test_eager_attention_takes_the_same_mask(model: Any, untrained_profile: Path) -> None:
    eager = lively(untrained_profile, attention="eager")

    ours = GraphWriter(eager).write(words(*range(3, 30)), limit=30, ends=NEVER)

    assert ours == write_greedily(model, words(*range(3, 30)), limit=30, ends=NEVER)


def test_buffers_are_of_few_lengths_and_hold_what_they_must() -> None:
    lengths = {tokens: buffer_length(tokens) for tokens in range(1, 40_000, 37)}

    assert all(length >= tokens for tokens, length in lengths.items())
    assert all(length < tokens + max(1024, tokens / 4) for tokens, length in lengths.items())
    assert len(set(lengths.values())) < 20


@torch.inference_mode()
def test_steps_of_old_lengths_make_room(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_decode, "_SHORTEST", 64)
    writer = GraphWriter(model)

    for size in (10, 100, 200, 10):
        writer.write(words(*[5] * size), limit=4, ends=NEVER)

    assert list(writer._steps) == [buffer_length(220), buffer_length(30)]


def test_a_model_that_cannot_be_captured_is_refused_with_the_reason() -> None:
    def like(kinds: list[str], quantised: bool) -> Any:
        language = SimpleNamespace(config=SimpleNamespace(layer_types=kinds))
        return SimpleNamespace(
            model=SimpleNamespace(language_model=language), is_quantized=quantised
        )

    sliding = like(["full_attention", "sliding_attention"], False)

    assert why_not(like(["full_attention"], False)) == ""
    assert why_not(like(["full_attention"], True)) == "its weights are quantised"
    with pytest.raises(ValueError, match="sliding_attention"):
        GraphWriter(sliding)

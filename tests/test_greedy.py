"""Guessing ahead changes how long a text takes, never the text."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoProcessor, Qwen2_5_VLForConditionalGeneration

from refinerank_core.models.continuation import Continuation
from refinerank_core.models.drafts import Drafts
from refinerank_core.models.greedy import write_greedily

PROMPTS = (
    "Where is the hook at 3.0 seconds?",
    "Which tool is grasping the gallbladder?",
    "Question: where is the knife?\nName the visual target for an object detector.",
)
NONE = frozenset({-1})


@pytest.fixture(scope="module", params=["full attention", "sliding window"])
def model(request: pytest.FixtureRequest, untrained_profile: Path) -> Any:
    folder = untrained_profile.parent / "medvlm"
    model: Any = Qwen2_5_VLForConditionalGeneration.from_pretrained(folder).eval()
    if request.param == "sliding window":
        text = model.config.text_config.to_dict()
        text |= {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}
        text["layer_types"] = ["full_attention"] + ["sliding_attention"] * (
            text["num_hidden_layers"] - 1
        )
        config = model.config.to_dict() | {"text_config": text}
        windowed: Any = Qwen2_5_VLForConditionalGeneration(type(model.config)(**config)).eval()
        windowed.load_state_dict(model.state_dict())
        return windowed
    return model


@pytest.fixture(scope="module")
def tokenizer(untrained_profile: Path) -> Any:
    return AutoProcessor.from_pretrained(untrained_profile.parent / "medvlm").tokenizer


def _inputs(tokenizer: Any, prompt: str) -> dict[str, torch.Tensor]:
    return dict(tokenizer(prompt, return_tensors="pt"))


def _generated(model: Any, inputs: dict[str, torch.Tensor], count: int) -> list[int]:
    ids = model.generate(**inputs, do_sample=False, max_new_tokens=count, min_new_tokens=count)
    written: list[int] = ids[0, inputs["input_ids"].shape[1] :].tolist()
    return written


def test_a_text_is_the_library_s_whatever_is_guessed(model: Any, tokenizer: Any) -> None:
    drafts = Drafts()
    with torch.inference_mode():
        for prompt in PROMPTS * 2:
            inputs = _inputs(tokenizer, prompt)
            words = inputs["input_ids"][0].tolist()
            written = write_greedily(model, inputs, limit=30, ends=NONE, words=words, drafts=drafts)

            whole = torch.tensor([words + written])
            logits = model(input_ids=whole, use_cache=False).logits[0, len(words) - 1 : -1]
            assert written == logits.argmax(dim=-1).tolist()


def test_misleading_guesses_do_no_harm(model: Any, tokenizer: Any) -> None:
    class Wrong(Drafts):
        def guess(self, told: Any, limit: int) -> list[int]:
            return [(told[-1] + step) % 50 for step in range(min(5, limit))]

    inputs = _inputs(tokenizer, PROMPTS[0])
    with torch.inference_mode():
        plain = write_greedily(model, inputs, limit=24, ends=NONE)
        misled = write_greedily(model, inputs, limit=24, ends=NONE, drafts=Wrong())

    assert misled == plain


def test_a_text_that_was_written_before_takes_fewer_steps(
    model: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, steps = Continuation.read, []

    def counted(self: Continuation, tokens: list[int]) -> torch.Tensor:
        steps.append(len(tokens))
        return read(self, tokens)

    monkeypatch.setattr(Continuation, "read", counted)
    inputs, drafts = _inputs(tokenizer, PROMPTS[0]), Drafts()
    words = inputs["input_ids"][0].tolist()
    with torch.inference_mode():
        first = write_greedily(model, inputs, limit=28, ends=NONE, words=words, drafts=drafts)
        alone = len(steps)
        again = write_greedily(model, inputs, limit=28, ends=NONE, words=words, drafts=drafts)

    assert again == first
    assert len(steps) - alone < 28 / 2


@pytest.mark.parametrize("limit", [1, 2, 7])
def test_a_text_ends_at_its_limit(model: Any, tokenizer: Any, limit: int) -> None:
    inputs, drafts = _inputs(tokenizer, PROMPTS[1]), Drafts()
    with torch.inference_mode():
        for _ in range(2):
            assert (
                len(write_greedily(model, inputs, limit=limit, ends=NONE, drafts=drafts)) == limit
            )


def test_a_text_ends_with_its_first_end_even_when_that_was_guessed(
    model: Any, tokenizer: Any
) -> None:
    inputs, drafts = _inputs(tokenizer, PROMPTS[1]), Drafts()
    with torch.inference_mode():
        free = write_greedily(model, inputs, limit=20, ends=NONE, drafts=drafts)
        place = max(free.index(token) for token in set(free))  # of a token new to the text
        ended = write_greedily(
            model, inputs, limit=20, ends=frozenset({free[place]}), drafts=drafts
        )

    assert ended == free[: place + 1]


def test_the_library_writes_the_same(model: Any, tokenizer: Any) -> None:
    if model.config.text_config.use_sliding_window:
        pytest.skip("the library's sliding cache is held by the test on whole passes")
    for prompt in PROMPTS:
        inputs = _inputs(tokenizer, prompt)
        with torch.inference_mode():
            written = write_greedily(model, inputs, limit=24, ends=NONE)
        assert written == _generated(model, inputs, 24)


def test_what_is_taken_back_leaves_no_trace(model: Any, tokenizer: Any) -> None:
    inputs = _inputs(tokenizer, PROMPTS[2])
    with torch.inference_mode():
        text = Continuation(model, inputs, room=16)
        text.read([5, 6, 7])
        text.take_back(2)
        mended = text.read([9, 8])
        other = Continuation(model, inputs, room=16)
        other.read([5])
        straight = other.read([9, 8])

    torch.testing.assert_close(mended, straight, atol=1e-5, rtol=0)


def test_more_than_the_room_is_refused(model: Any, tokenizer: Any) -> None:
    with torch.inference_mode():
        text = Continuation(model, _inputs(tokenizer, PROMPTS[2]), room=3)
        with pytest.raises(ValueError, match="no room to read 4 tokens"):
            text.read([1, 2, 3, 4])


def test_guesses_come_from_the_longest_run_met() -> None:
    drafts = Drafts(longest=3, most=4)
    drafts.learn([1, 2, 3, 4, 9, 3, 5])

    assert (
        drafts.guess([1, 2, 3], limit=8)[0] == 4
    )  # after 1 2 3, although 3 was last followed by 5
    assert drafts.guess([7, 3], limit=8)[0] == 5
    assert drafts.guess([8], limit=8) == []
    assert len(drafts.guess([1], limit=2)) == 2


def test_a_full_memory_begins_anew() -> None:
    drafts = Drafts(longest=1, room=10)
    drafts.learn(list(range(20)))
    drafts.learn([100, 101])

    assert drafts.guess([3], limit=1) == []
    assert drafts.guess([100], limit=1) == [101]

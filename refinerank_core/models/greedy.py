"""Greedy text from a Qwen2.5-VL in few steps.

The library's `generate` prepares for sampling, beams and penalties anew at every token. Here the
prompt is read once, guesses at the next tokens are read together with the last sure one, and those
that the model would have written itself are kept. A test holds the text against `generate`'s own;
in half precision a tie between two tokens may fall the other way, as it may between two libraries.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from torch import Tensor

from refinerank_core.models.continuation import Continuation
from refinerank_core.models.drafts import Drafts


class Text(Protocol):
    """A text under way: a Continuation, or what reads as it does."""

    prompt_state: Tensor

    def read(self, tokens: list[int]) -> Tensor:
        """(L, D) last states of L further tokens."""
        ...

    def take_back(self, count: int) -> None:
        """Forget the last tokens read."""
        ...


class BeginText(Protocol):
    """Reads a prompt, whose text then goes on; see Continuation."""

    def __call__(self, model: Any, inputs: dict[str, Any], *, room: int) -> Text:
        """The text after the prompt, with room for so many tokens."""
        ...


def write_greedily(
    model: Any,
    inputs: dict[str, Any],
    *,
    limit: int,
    ends: Collection[int],
    words: Sequence[int] = (),
    drafts: Drafts | None = None,
    begin_text: BeginText = Continuation,
) -> list[int]:
    """The most likely token after the prompt, and after it, until one ends the text.

    Args:
        model: a Qwen2_5_VLForConditionalGeneration.
        inputs: of its forward pass, for one prompt: input_ids (1, P) and what goes with them.
        limit: tokens written at most, at least 1.
        ends: tokens that end a text.
        words: the prompt's tokens without those that stand for pictures; guesses come from them.
        drafts: memory of earlier texts, which this one is added to; None begins without any.
        begin_text: reads the prompt and what follows it.

    Returns:
        The written tokens, the ending one included where there is one.
    """
    drafts = drafts or Drafts()
    drafts.learn(words)
    text = begin_text(model, inputs, room=limit)
    told = list(words)  # and what is written
    begin = len(told)
    token = int(model.lm_head(text.prompt_state).argmax(dim=-1))
    while True:
        told.append(token)
        drafts.learn(told, len(told) - 1)
        left = limit - (len(told) - begin)
        if token in ends or left <= 0:
            return told[begin:]
        guessed = drafts.guess(told, left - 1)
        best: list[int] = model.lm_head(text.read([token, *guessed])).argmax(dim=-1).tolist()
        kept = 0
        while kept < len(guessed) and guessed[kept] == best[kept] and best[kept] not in ends:
            kept += 1
        text.take_back(len(guessed) - kept)
        told += guessed[:kept]
        drafts.learn(told, len(told) - kept)
        token = best[kept]

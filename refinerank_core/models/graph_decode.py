"""Greedy text at the speed of memory: one step of a Qwen2.5-VL, captured once as a CUDA graph.

Written token by token, a 7B model waits for the host, which starts some hundred kernels per token.
Here keys and values lie in buffers of a fixed length, the step reads and writes nothing but
buffers, and a card replays it without the host: all that is left is to read the weights. The host
looks at what was written every few tokens. On the CPU the same step runs uncaptured, which is how
the tests hold it against `write_greedily`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, StaticCache

_SHORTEST = 1024
_LOOK_EVERY = 16
"""Tokens between two looks at the text; up to one fewer are written in vain at its end."""
_KEPT = 2
_WARM_UP = 3


class CaptureError(RuntimeError):
    """A card cannot record the step; the text has to be written without a graph."""


def why_not(model: Any) -> str:
    """Why a model's step cannot be captured: a reason in words, "" where it can.

    Args:
        model: a Qwen2_5_VLForConditionalGeneration.
    """
    kinds = set(model.model.language_model.config.layer_types)
    if kinds != {"full_attention"}:  # a sliding window counts its tokens on the host
        return f"its layers attend by {', '.join(sorted(kinds))}"
    if getattr(model, "is_quantized", False):
        return "its weights are quantised"
    return ""


def buffer_length(tokens: int) -> int:
    """Length of the buffers for so many tokens: few different ones, none much too long.

    A step reads its buffers whole, and each length has to be captured once.
    """
    grain = max(_SHORTEST, (1 << tokens.bit_length()) >> 3)
    return -(-tokens // grain) * grain


class GraphWriter:
    """Writes greedy text with a model whose step is captured once per length of the buffers.

    Not safe to use from several threads; run it in inference mode.
    """

    def __init__(self, model: Any) -> None:
        """Nothing is captured yet.

        Args:
            model: a Qwen2_5_VLForConditionalGeneration on its device.

        Raises:
            ValueError: the model's step cannot be captured; see why_not.
        """
        if reason := why_not(model):
            raise ValueError(f"this model's step cannot be captured: {reason}")
        self._model = model
        self._steps: OrderedDict[int, _Step] = OrderedDict()

    def write(self, inputs: dict[str, Any], *, limit: int, ends: Collection[int]) -> list[int]:
        """The most likely token after the prompt, and after it, until one ends the text.

        Args:
            inputs: of the model's forward pass, for one prompt: input_ids (1, P) and what goes
                with them.
            limit: tokens written at most, at least 1.
            ends: tokens that end a text.

        Returns:
            The written tokens, the ending one included where there is one.

        Raises:
            CaptureError: the card cannot record the step.
        """
        model = self._model
        read = DynamicCache(config=model.config.get_text_config())
        states = model.model(**inputs, cache=read, use_cache=True).last_hidden_state
        token = model.lm_head(states[:, -1]).argmax(dim=-1)
        first = int(token)
        if first in ends or limit == 1:
            return [first]
        length = inputs["input_ids"].shape[1]
        place = torch.tensor(length, device=token.device)
        if "mm_token_type_ids" in inputs:  # a picture takes fewer places than tokens
            place = place + model.model.rope_deltas.reshape(())
        step = self._step_for(length + limit + _LOOK_EVERY)
        step.begin(read, token, place, length)
        return [first, *step.run(limit - 1, ends)]

    def _step_for(self, tokens: int) -> _Step:
        """A step whose buffers hold so many tokens; the one that was used longest ago goes."""
        length = buffer_length(tokens)
        step = self._steps.pop(length, None)
        if step is None:
            while len(self._steps) >= _KEPT:
                self._steps.popitem(last=False)
            step = _Step(self._model, length)
        self._steps[length] = step
        return step


class _Step:
    """One written token, from buffers to buffers."""

    def __init__(self, model: Any, length: int) -> None:
        self._model = model
        self._language = model.model.language_model
        self._length = length
        weight = model.lm_head.weight
        self._lowest = torch.finfo(weight.dtype).min
        device = weight.device

        def whole(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.long, device=device)

        self._rows = torch.arange(length, device=device)
        self._token = whole(1)  # the last token
        self._place = whole()  # its rotary position
        self._filled = whole()  # how many keys stand before its own
        self._count = whole(1)  # where in the text its successor goes
        self._text = whole(length)
        self._dtype = weight.dtype
        self._cache = StaticCache(config=model.config.get_text_config(), max_cache_len=length)
        self._graph: Any = None
        self._advance()  # makes the buffers of the cache
        if device.type == "cuda":
            self._capture(device)

    def begin(self, read: DynamicCache, token: Tensor, place: Tensor, length: int) -> None:
        """Take over what the prompt left.

        Args:
            read: keys and values of the prompt.
            token: (1,) the first written token.
            place: () its rotary position.
            length: of the prompt in tokens.
        """
        for ours, theirs in zip(self._cache.layers, read.layers, strict=True):
            ours.keys[:, :, :length].copy_(theirs.keys)
            ours.values[:, :, :length].copy_(theirs.values)
            ours.cumulative_length.fill_(length)
        self._token.copy_(token)
        self._place.copy_(place)
        self._filled.fill_(length)
        self._count.zero_()

    def run(self, limit: int, ends: Collection[int]) -> list[int]:
        """Up to `limit` further tokens, the ending one included."""
        advance = self._advance if self._graph is None else self._graph.replay
        written: list[int] = []
        while len(written) < limit:
            start, size = len(written), min(_LOOK_EVERY, limit - len(written))
            for _ in range(size):
                advance()
            for token in self._text[start : start + size].tolist():
                written.append(token)
                if token in ends:
                    return written
        return written

    def _advance(self) -> None:
        """The step itself: nothing in it depends on a number that only the host knows."""
        hidden = self._rows > self._filled
        mask = torch.zeros(self._length, dtype=self._dtype, device=hidden.device)
        mask = mask.masked_fill(hidden, self._lowest)[None, None, None]
        states = self._language(
            inputs_embeds=self._language.embed_tokens(self._token)[:, None],
            position_ids=self._place.reshape(1, 1, 1).expand(3, 1, 1),
            attention_mask={"full_attention": mask},
            cache=self._cache,
            use_cache=True,
        ).last_hidden_state
        following = self._model.lm_head(states[:, -1]).argmax(dim=-1)
        self._text.index_copy_(0, self._count, following)
        self._token.copy_(following)
        self._count.add_(1)
        self._filled.add_(1)
        self._place.add_(1)

    def _capture(self, device: torch.device) -> None:
        """Record the step; the first rounds let libraries choose kernels and take memory."""
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.device(device):
                side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
                side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):
                    for _ in range(_WARM_UP):
                        self._advance()
                torch.cuda.current_stream().wait_stream(side)
                with torch.cuda.graph(graph):
                    self._advance()
        except RuntimeError as error:
            reason = (str(error).strip().splitlines() or ["no reason given"])[0]
            raise CaptureError(reason[:160]) from error
        self._graph = graph

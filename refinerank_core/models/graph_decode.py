"""A text under way on a card: one step of reading, captured once as a CUDA graph and replayed.

Token by token, a 7B model waits for the host, which starts some hundred kernels per token. Here
keys and values lie in buffers of a fixed length, and a step reads a fixed number of tokens from
buffers into buffers, so that the card repeats it without the host: what is left is to read the
weights. A step of few tokens takes as long as one of one token, which is what guesses live on. On
the CPU the same step runs uncaptured; so the tests hold it against `Continuation`.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from refinerank_core.models.continuation import Continuation
from refinerank_core.models.drafts import MOST_GUESSED
from refinerank_core.models.text_layers import heads_of, layer_end

WIDTH = MOST_GUESSED + 1
"""Tokens of a step: a sure one and the guesses that are read with it."""

_SHORTEST = 1024
_KEPT = 2
_WARM_UP = 3


class CaptureError(RuntimeError):
    """A card cannot record the step; texts have to be written without it."""


class CapturedTexts:
    """Begins texts of one model; their step is captured once per length of the buffers.

    One text at a time is under way: a new one takes the buffers of the one before. Not safe to use
    from several threads; run it in inference mode.
    """

    def __init__(self, *, width: int = WIDTH) -> None:
        """Nothing is captured yet.

        Args:
            width: tokens that a step reads at most.
        """
        self._width = width
        self._steps: OrderedDict[int, _Step] = OrderedDict()

    def __call__(self, model: Any, inputs: dict[str, Any], *, room: int) -> CapturedText:
        """Read a prompt, as Continuation does.

        Args:
            model: a Qwen2_5_VLForConditionalGeneration, the same at every call.
            inputs: see Continuation.
            room: tokens that can be read after the prompt.

        Raises:
            CaptureError: the card cannot record the step, or has no memory for its buffers.
        """
        prompt = Continuation(model, inputs, room=0)
        step = self._step_for(model, prompt.length + room + self._width)
        step.take_over(prompt)
        return CapturedText(step, prompt, prompt.length + room)

    def _step_for(self, model: Any, tokens: int) -> _Step:
        """A step whose buffers hold so many tokens; the one that was used longest ago goes."""
        length = buffer_length(tokens)
        step = self._steps.pop(length, None)
        if step is None:
            while len(self._steps) >= _KEPT:
                self._steps.popitem(last=False)
            step = _Step(model, length, self._width)
        self._steps[length] = step
        return step


class CapturedText:
    """What Continuation is, over a captured step."""

    def __init__(self, step: _Step, prompt: Continuation, most: int) -> None:
        self.prompt_state = prompt.prompt_state
        """(1, D) last state of the prompt."""
        self._step = step
        self._begin, self._begin_place = prompt.length, prompt.next_place
        self._length, self._most = prompt.length, most

    def read(self, tokens: list[int]) -> Tensor:
        """(L, D) last states of L further tokens, at most as many as the step is wide.

        Raises:
            ValueError: there is no room for them.
        """
        if self._length + len(tokens) > self._most:
            raise ValueError(f"no room to read {len(tokens)} tokens")
        place = self._begin_place + (self._length - self._begin)
        states = self._step.run(tokens, self._length, place)
        self._length += len(tokens)
        return states

    def take_back(self, count: int) -> None:
        """Forget the last tokens read, none of the prompt's."""
        self._length -= count


def buffer_length(tokens: int) -> int:
    """Length of the buffers for so many tokens: few different ones, none much too long.

    A step reads its buffers whole, and each length has to be captured once.
    """
    grain = max(_SHORTEST, (1 << tokens.bit_length()) >> 3)
    return -(-tokens // grain) * grain


class _Step:
    """Reads `width` tokens after `filled` others, from buffers into buffers."""

    def __init__(self, model: Any, length: int, width: int) -> None:
        self._language = model.model.language_model
        self._width = width
        weight: Tensor = self._language.embed_tokens.weight
        device = weight.device
        self._rows = torch.arange(length, device=device)
        self._ahead = torch.arange(width, device=device)
        self._tokens = torch.zeros(1, width, dtype=torch.long, device=device)
        self._filled = torch.zeros((), dtype=torch.long, device=device)
        self._place = torch.zeros((), dtype=torch.long, device=device)
        self._graph: Any = None
        try:
            self._states = weight.new_zeros(width, weight.shape[1])
            self._held = [self._buffers(layer, length) for layer in self._language.layers]
            if device.type == "cuda":
                self._capture(device)
        except RuntimeError as error:
            reason = (str(error).strip().splitlines() or ["no reason given"])[0]
            raise CaptureError(reason[:160]) from error

    def take_over(self, prompt: Continuation) -> None:
        """Begin with the keys and values of a prompt."""
        for ours, theirs in zip(self._held, prompt.held, strict=True):
            for mine, read in zip(ours, theirs, strict=True):
                mine[:, :, : prompt.length].copy_(read[:, :, : prompt.length])

    def run(self, tokens: list[int], filled: int, place: Tensor) -> Tensor:
        """(L, D) last states of L tokens after `filled` others, the first of them at `place`.

        Raises:
            ValueError: there are more tokens than the step is wide.
        """
        count = len(tokens)
        if count > self._width:
            raise ValueError(f"a step reads {self._width} tokens, got {count}")
        # What the rest of the buffer holds is read too; no real token sees it, the next run
        # writes over it.
        self._tokens[0, :count].copy_(torch.tensor(tokens))
        self._filled.fill_(filled)
        self._place.copy_(place)
        if self._graph is None:
            self._advance()
        else:
            self._graph.replay()
        return self._states[:count].clone()

    def _buffers(self, layer: Any, length: int) -> tuple[Tensor, Tensor]:
        attention = layer.self_attn
        shape = (1, attention.num_key_value_heads, length, attention.head_dim)
        like = self._states
        return like.new_zeros(shape), like.new_zeros(shape)

    def _advance(self) -> None:
        """The step itself: nothing in it depends on a number that only the host knows."""
        at = self._filled + self._ahead  # (width,)
        states = self._language.embed_tokens(self._tokens)
        places = (self._place + self._ahead).reshape(1, 1, -1).expand(3, 1, -1)
        angles = self._language.rotary_emb(states, places)
        biases: dict[int | None, Tensor] = {}
        for layer, (keys, values) in zip(self._language.layers, self._held, strict=True):
            query, key, value = heads_of(layer, states, angles)
            keys.index_copy_(2, at, key)
            values.index_copy_(2, at, value)
            window = layer.self_attn.sliding_window
            if window not in biases:
                biases[window] = self._bias(at, window)
            states = layer_end(layer, states, _attend(query, keys, values, biases[window]))
        self._states.copy_(self._language.norm(states)[0])

    def _bias(self, at: Tensor, window: int | None) -> Tensor:
        """(width, length): 0 where a token looks, minus infinity elsewhere."""
        hidden = self._rows > at[:, None]
        if window is not None:
            hidden |= self._rows <= at[:, None] - window
        bias = self._states.new_zeros(hidden.shape)
        return bias.masked_fill_(hidden, float("-inf"))

    def _capture(self, device: torch.device) -> None:
        """Record the step; the first rounds let libraries choose kernels and take memory."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(device):
            side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(_WARM_UP):
                    self._advance()
            torch.cuda.current_stream().wait_stream(side)
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                self._advance()
        self._graph = graph


def _attend(query: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
    """Attention of (1, heads, L, head) queries; heads that share keys stand as rows of one head.

    So no key is repeated: with a mask, kernels that share heads by themselves are slow ones.
    """
    _, heads, length, width = query.shape
    shared = keys.shape[1]
    rows = query.reshape(1, shared, heads // shared * length, width)
    mixed = F.scaled_dot_product_attention(
        rows, keys, values, attn_mask=bias.repeat(heads // shared, 1)
    )
    return mixed.reshape(1, heads, length, width)

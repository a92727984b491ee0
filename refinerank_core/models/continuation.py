"""A text under way: the keys and values of all that was read, and a short way to read on."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import DynamicCache

from refinerank_core.models.text_layers import heads_of, layer_end


class Continuation:
    """Reads tokens after a prompt, a few at a time, and can take the last ones back."""

    def __init__(self, model: Any, inputs: dict[str, Any], *, room: int) -> None:
        """Read the prompt.

        Args:
            model: a Qwen2_5_VLForConditionalGeneration.
            inputs: of its forward pass, for one prompt: input_ids (1, P) and what goes with them.
            room: tokens that can be read after the prompt.
        """
        # Without a configuration the cache keeps every key, also where a window slides.
        cache = DynamicCache()
        whole, self._language = model.model, model.model.language_model
        states = whole(**inputs, cache=cache, use_cache=True).last_hidden_state
        self.prompt_state: Tensor = states[:, -1]
        """(1, D) last state of the prompt."""
        self._length = int(inputs["input_ids"].shape[1])
        self._shift = torch.zeros(1, dtype=torch.long, device=states.device)
        if "mm_token_type_ids" in inputs:  # a picture takes fewer places than tokens
            self._shift = whole.rope_deltas.reshape(1)
        self._keys = [_with_room(layer.keys, room) for layer in cache.layers]
        self._values = [_with_room(layer.values, room) for layer in cache.layers]

    def read(self, tokens: list[int]) -> Tensor:
        """(L, D) last states of L further tokens.

        Raises:
            ValueError: there is no room for them.
        """
        first, count = self._length, len(tokens)
        last = first + count
        if last > self._keys[0].shape[2]:
            raise ValueError(f"no room to read {count} tokens")
        language, device = self._language, self._shift.device
        states = language.embed_tokens(torch.tensor([tokens], device=device))
        at = torch.arange(first, last, device=device)
        angles = language.rotary_emb(states, (at + self._shift).reshape(1, 1, -1).expand(3, 1, -1))
        for number, layer in enumerate(language.layers):
            query, key, value = heads_of(layer, states, angles)
            keys, values = self._keys[number], self._values[number]
            keys[:, :, first:last], values[:, :, first:last] = key, value
            mixed = F.scaled_dot_product_attention(
                query,
                keys[:, :, :last],
                values[:, :, :last],
                attn_mask=_may_see(at, last, layer.self_attn.sliding_window),
                enable_gqa=True,
            )
            states = layer_end(layer, states, mixed)
        self._length = last
        read: Tensor = language.norm(states)[0]
        return read

    def take_back(self, count: int) -> None:
        """Forget the last tokens read."""
        self._length -= count


def _with_room(states: Tensor, room: int) -> Tensor:
    """(1, key heads, P, head) states at the beginning of a buffer of P + room places."""
    buffer = states.new_empty(*states.shape[:2], states.shape[2] + room, states.shape[3])
    buffer[:, :, : states.shape[2]] = states
    return buffer


def _may_see(at: Tensor, last: int, window: int | None) -> Tensor | None:
    """(L, last) which places tokens at these places may look at; None: at all of them."""
    if window is None and len(at) == 1:
        return None
    places = torch.arange(last, device=at.device)
    allowed = places <= at[:, None]
    if window is not None:
        allowed &= places > at[:, None] - window
    return allowed

"""A text under way: the keys and values of all that was read, and a short way to read on."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from refinerank_core.models.text_layers import Angles, evened, heads_of, layer_end


class Continuation:
    """Reads a prompt, then tokens after it, a few at a time; the last ones can be taken back."""

    def __init__(self, model: Any, inputs: dict[str, Any], *, room: int) -> None:
        """Read the prompt.

        Args:
            model: a Qwen2_5_VLForConditionalGeneration.
            inputs: of its forward pass, for one prompt: input_ids (1, P); where pictures stand in
                it, also mm_encoder_outputs, mm_token_type_ids and what gives their places.
            room: tokens that can be read after the prompt.
        """
        self._language = model.model.language_model
        states, places = _embedded(model, inputs)
        self._length = 0
        self._next_place = places[0, 0, -1] + 1  # a picture takes fewer places than tokens
        space = states.shape[1] + room
        self._keys, self._values = [], []
        for layer in self._language.layers:
            attention = layer.self_attn
            shape = (1, attention.num_key_value_heads, space, attention.head_dim)
            self._keys.append(states.new_empty(shape))
            self._values.append(states.new_empty(shape))
        ahead = self._next_place + torch.arange(room, device=places.device)
        self._begin = states.shape[1]
        self._angles: Angles = self._turns(states, ahead.reshape(1, 1, -1).expand(3, 1, -1))
        self.prompt_state = self._read(states, self._turns(states, places))[-1:]
        """(1, D) last state of the prompt."""

    @property
    def length(self) -> int:
        """Tokens read so far, those of the prompt among them."""
        return self._length

    @property
    def next_place(self) -> Tensor:
        """() rotary place of the next token."""
        return self._next_place

    @property
    def held(self) -> list[tuple[Tensor, Tensor]]:
        """Keys and values of each layer, (1, key heads, at least `length`, head) each."""
        return list(zip(self._keys, self._values, strict=True))

    def read(self, tokens: list[int]) -> Tensor:
        """(L, D) last states of L further tokens.

        Raises:
            ValueError: there is no room for them.
        """
        device = self._next_place.device
        states = self._language.embed_tokens(torch.tensor([tokens], device=device))
        first = self._length - self._begin
        cosines, sines = (part[:, first : first + len(tokens)] for part in self._angles)
        read = self._read(states, (cosines, sines))
        self._next_place = self._next_place + len(tokens)
        return read

    def take_back(self, count: int) -> None:
        """Forget the last tokens read, none of the prompt's."""
        self._length -= count
        self._next_place = self._next_place - count

    def _turns(self, states: Tensor, places: Tensor) -> Angles:
        """Rotary angles (1, L, head) at places (3, 1, L), in the type of the states."""
        cosines, sines = self._language.rotary_emb(states, places)
        return cosines, sines

    def _read(self, states: Tensor, angles: Angles) -> Tensor:
        """(L, D) last states from embeddings (1, L, D) and their rotary angles."""
        first, last = self._length, self._length + states.shape[1]
        if last > self._keys[0].shape[2]:
            raise ValueError(f"no room to read {states.shape[1]} tokens")
        masks: dict[int | None, Tensor | None] = {}
        for number, layer in enumerate(self._language.layers):
            query, key, value = heads_of(layer, states, angles)
            keys, values = self._keys[number], self._values[number]
            keys[:, :, first:last], values[:, :, first:last] = key, value
            window = layer.self_attn.sliding_window
            if window not in masks:
                masks[window] = _may_see(first, last, window, states.device)
            mask = masks[window]
            mixed = F.scaled_dot_product_attention(
                query,
                keys[:, :, :last],
                values[:, :, :last],
                attn_mask=mask,
                is_causal=mask is None and last - first > 1,
                enable_gqa=True,
            )
            states = layer_end(layer, states, mixed)
        self._length = last
        return evened(self._language.norm, states)[0]


def _embedded(model: Any, inputs: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """Embeddings (1, P, D) of a prompt with its pictures in place, and rotary places (3, 1, P)."""
    ids: Tensor = inputs["input_ids"]
    states = model.model.language_model.embed_tokens(ids)
    if "mm_token_type_ids" not in inputs:
        return states, torch.arange(ids.shape[1], device=ids.device).expand(3, 1, -1)
    config = model.config
    tokens = {"image": config.image_token_id, "video": config.video_token_id}
    for kind, seen in inputs["mm_encoder_outputs"].items():
        merged = torch.cat(seen.pooler_output).to(states.device, states.dtype)
        states = states.masked_scatter((ids == tokens[kind])[..., None], merged)
    told = ("mm_token_type_ids", "image_grid_thw", "video_grid_thw", "second_per_grid_ts")
    places, _ = model.model.get_rope_index(ids, **{n: inputs[n] for n in told if n in inputs})
    return states, places


def _may_see(first: int, last: int, window: int | None, device: torch.device) -> Tensor | None:
    """(last - first, last) which places new tokens look at; None: all of them up to their own."""
    count = last - first
    if window is None and (count == 1 or first == 0):
        return None
    at, places = torch.arange(first, last, device=device), torch.arange(last, device=device)
    allowed = places <= at[:, None]
    if window is not None:
        allowed &= places > at[:, None] - window
    return allowed

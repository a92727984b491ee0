"""One layer of Qwen2.5-VL's language model in its parts, from the modules of transformers.

The library's own layer takes its cache, masks and attention from a configuration at every call.
Where only a few tokens pass, or many rows share a beginning, the parts are put together by hand;
tests hold the results against the library's.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Angles = tuple[Tensor, Tensor]
"""Rotary cosines and sines, (..., L, head)."""


def turned(states: Tensor, angles: Angles) -> Tensor:
    """Turn (..., L, head) states by rotary angles that broadcast against them."""
    cosines, sines = angles
    first, second = states.chunk(2, dim=-1)
    return states * cosines + torch.cat((-second, first), dim=-1) * sines


def evened(norm: Any, states: Tensor) -> Tensor:
    """What an RMS norm of the library gives, in one step where no half precision rounds between."""
    if states.dtype != torch.float32:
        rounded: Tensor = norm(states)
        return rounded
    return F.rms_norm(states, states.shape[-1:], norm.weight, norm.variance_epsilon)


def heads_of(layer: Any, states: Tensor, angles: Angles) -> tuple[Tensor, Tensor, Tensor]:
    """Turned queries (B, heads, L, head) and keys, and values (B, key heads, L, head)."""
    attention = layer.self_attn
    normed = evened(layer.input_layernorm, states)
    count, length, _ = states.shape
    query, key, value = (
        projection(normed).reshape(count, length, -1, attention.head_dim).transpose(1, 2)
        for projection in (attention.q_proj, attention.k_proj, attention.v_proj)
    )
    cosines, sines = (part[:, None] for part in angles)
    return turned(query, (cosines, sines)), turned(key, (cosines, sines)), value


def for_all_heads(layer: Any, states: Tensor) -> Tensor:
    """Repeat each key head for the query heads that share it."""
    return states.repeat_interleave(int(layer.self_attn.num_key_value_groups), dim=1)


def layer_end(layer: Any, states: Tensor, mixed: Tensor) -> Tensor:
    """What follows attention: (B, L, D) from states (B, L, D) and mixed (B, heads, L, head)."""
    count, _, length, _ = mixed.shape
    joined = mixed.transpose(1, 2).reshape(count, length, -1)
    states = states + layer.self_attn.o_proj(joined)
    ended: Tensor = states + layer.mlp(evened(layer.post_attention_layernorm, states))
    return ended

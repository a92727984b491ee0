"""Qwen2.5-VL's forward passes for training: the modules of transformers, batched over pictures.

transformers walks through the pictures of a batch one by one in every attention of the tower, and
runs the picture again for every question. For pictures of one size, and many questions about each,
the same sums are done here at once. A test holds the results against transformers' own.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers.vision_utils import get_vision_position_ids

from refinerank_core.models.text_layers import for_all_heads, heads_of, layer_end, turned


def vision_angles(visual: Any, grid_hw: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Return the rotary (P, head) cosines and sines of one picture's patches."""
    places = get_vision_position_ids(torch.tensor([[1, *grid_hw]]), visual.spatial_merge_size)
    cosines, sines = visual.rotary_pos_emb(torch.zeros(1), places)
    return cosines, sines


def see(
    visual: Any, patches: Tensor, angles: tuple[Tensor, Tensor], blocks: tuple[int, ...]
) -> tuple[dict[int, Tensor], Tensor]:
    """Run the vision tower over pictures that fit into one window.

    Args:
        visual: the vision tower.
        patches: (B, P, 3 * patch_px^2), as medvlm_pictures.cut_patches gives them.
        angles: from vision_angles.
        blocks: numbers of the blocks whose outputs are wanted.

    Returns:
        Block number -> (B, P, C), and the merged tokens (B, P / merge^2, D).
    """
    weight = visual.patch_embed.proj.weight.sum(dim=2).flatten(1)
    states = F.linear(patches, weight)
    kept: dict[int, Tensor] = {}
    for number, block in enumerate(visual.blocks):
        states = states + _vision_attention(block.attn, block.norm1(states), angles)
        states = states + block.mlp(block.norm2(states))
        if number in blocks:
            kept[number] = states
    count, patch_count, channels = states.shape
    groups = visual.merger.ln_q(states).reshape(count, -1, visual.spatial_merge_unit * channels)
    if groups.shape[1] * visual.spatial_merge_unit != patch_count:
        raise ValueError(f"{patch_count} patches do not fill whole groups")
    return kept, visual.merger.mlp(groups)


def _vision_attention(attention: Any, states: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
    count, length, width = states.shape
    heads = attention.num_heads
    qkv = attention.qkv(states).reshape(count, length, 3, heads, width // heads)
    query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
    mixed = F.scaled_dot_product_attention(turned(query, angles), turned(key, angles), value)
    joined: Tensor = attention.proj(mixed.transpose(1, 2).reshape(count, length, width))
    return joined


def read(
    language: Any,
    prefix: Tensor,
    prefix_places: Tensor,
    segments: Tensor | None = None,
    watched: dict[int, tuple[Tensor, Tensor]] | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Run the language model over shared beginnings, each with several continuations.

    Args:
        language: the language model.
        prefix: (B, P, D) embeddings, the same length for all.
        prefix_places: (3, B, P) rotary places, the last one a plain text place.
        segments: (B, S, L, D) embeddings of S continuations, padded at the end; None for none.
        watched: gets the queries (B * S, heads, L, head) and keys (B * S, heads, P + L, head) of
            the continuations at each layer number that it holds; None for none.

    Returns:
        (B, P, D) and (B, S, L, D) last hidden states. What follows a continuation's true end
        means nothing.
    """
    count, shared, width = prefix.shape
    angles = language.rotary_emb(prefix, prefix_places)
    states, tails = prefix, segments
    tail_angles, mask = None, None
    if segments is not None:
        branches, length = segments.shape[1:3]
        first = prefix_places[:, :, -1:] + 1
        places = first + torch.arange(length)  # (3, B, L)
        tail_angles = language.rotary_emb(prefix, places.repeat_interleave(branches, dim=1))
        tails = segments.reshape(count * branches, length, width)
        own = torch.ones(length, length, dtype=torch.bool).tril()
        mask = torch.cat((torch.ones(length, shared, dtype=torch.bool), own), dim=1)
    for number, layer in enumerate(language.layers):
        query, key, value = heads_of(layer, states, angles)
        mixed = F.scaled_dot_product_attention(
            query, for_all_heads(layer, key), for_all_heads(layer, value), is_causal=True
        )
        if tails is not None and tail_angles is not None:
            tail_query, own_key, own_value = heads_of(layer, tails, tail_angles)
            branches = len(tails) // count
            keys = torch.cat((key.repeat_interleave(branches, dim=0), own_key), dim=2)
            keys = for_all_heads(layer, keys)
            if watched is not None and number in watched:
                watched[number] = (tail_query, keys)
            values = torch.cat((value.repeat_interleave(branches, dim=0), own_value), dim=2)
            tail_mixed = F.scaled_dot_product_attention(
                tail_query,
                keys,
                for_all_heads(layer, values),
                attn_mask=mask,
            )
            tails = layer_end(layer, tails, tail_mixed)
        states = layer_end(layer, states, mixed)
    states = language.norm(states)
    if tails is None or segments is None:
        return states, None
    return states, language.norm(tails).reshape(segments.shape)

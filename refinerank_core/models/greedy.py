"""Greedy text from a Qwen2.5-VL, one token after the other, without the library's general loop.

The library's `generate` prepares for sampling, beams and penalties anew at every token. Here the
prompt is read once and each further token passes through the language model alone. A test holds
the text against `generate`'s own.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache


def write_greedily(
    model: Any, inputs: dict[str, Any], *, limit: int, ends: Collection[int]
) -> list[int]:
    """The most likely token after the prompt, and after it, until one ends the text.

    Args:
        model: a Qwen2_5_VLForConditionalGeneration.
        inputs: of its forward pass, for one prompt: input_ids (1, P) and what goes with them.
        limit: tokens written at most, at least 1.
        ends: tokens that end a text.

    Returns:
        The written tokens, the ending one included where there is one.
    """
    cache = DynamicCache(config=model.config.get_text_config())
    whole, language = model.model, model.model.language_model
    states = whole(**inputs, cache=cache, use_cache=True).last_hidden_state
    place = inputs["input_ids"].shape[1]
    if "mm_token_type_ids" in inputs:  # a picture takes fewer places than tokens
        place = place + whole.rope_deltas.reshape(1)
    # A single new token may look at all that came before: no mask has to be made.
    kinds = set(language.config.layer_types)
    unmasked = None if "sliding_attention" in kinds else dict.fromkeys(kinds)
    written: list[int] = []
    while True:
        token: Tensor = model.lm_head(states[:, -1]).argmax(dim=-1)
        written.append(int(token))
        if written[-1] in ends or len(written) >= limit:
            return written
        at = torch.as_tensor(place + len(written) - 1, device=token.device)
        states = language(
            inputs_embeds=language.embed_tokens(token)[:, None],
            position_ids=at.reshape(1, 1, 1).expand(3, 1, 1),
            attention_mask=unmasked,
            cache=cache,
            use_cache=True,
        ).last_hidden_state

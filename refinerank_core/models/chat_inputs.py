"""What goes into a Qwen2.5-VL and how its words end: prompt tokens, picture tokens."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from transformers.modeling_outputs import BaseModelOutputWithPooling

from refinerank_core.models.protocols import VisionFeatures


def limit_pixels(processor: Any, max_pixels: int | None) -> None:
    """Give the processor the pixel budget of one frame; None leaves the checkpoint's own."""
    if max_pixels is not None:
        size = dict(processor.image_processor.size)
        size["longest_edge"] = max_pixels
        size["shortest_edge"] = min(size["shortest_edge"], max_pixels)
        processor.image_processor.size = size


def chat_ids(processor: Any, prompt: str, *, media: str | None, generate: bool) -> list[int]:
    """Token ids of one user turn.

    Args:
        processor: of the checkpoint.
        prompt: the user's words.
        media: "image", "video" or None; its placeholder stands first.
        generate: end with the beginning of the answer.
    """
    content = [{"type": media}] if media else []
    text = processor.apply_chat_template(
        [{"role": "user", "content": [*content, {"type": "text", "text": prompt}]}],
        tokenize=False,
        add_generation_prompt=generate,
    )
    return list(processor.tokenizer(text, add_special_tokens=False)["input_ids"])


def end_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    """Tokens that end a text, told by the model, else by the tokenizer."""
    told = model.generation_config.eos_token_id
    told = tokenizer.eos_token_id if told is None else told
    return frozenset(told if isinstance(told, list) else [told])


def spread(ids: list[int], placeholder: int, count: int) -> list[int]:
    """ids with its one placeholder repeated count times."""
    at = ids.index(placeholder)
    return ids[:at] + [placeholder] * count + ids[at + 1 :]


def as_pooled(seen: Sequence[VisionFeatures]) -> BaseModelOutputWithPooling:
    """Cached merged tokens in the form in which the model takes pre-encoded pictures."""
    return BaseModelOutputWithPooling(pooler_output=tuple(v.final.flatten(0, 1) for v in seen))


def seconds_per_step(times_s: list[float], tokens_per_second: float) -> tuple[float, str]:
    """Seconds between the frames of a direct answer, and a sentence where that is not exact."""
    if len(times_s) < 2:
        return 1.0, ""
    steps = [after - before for before, after in pairwise(times_s)]
    mean_s = float(np.mean(steps))
    if max(steps) - min(steps) > 1e-3 * max(mean_s, 1e-6):
        return mean_s, (
            "The requested times are not evenly spaced: the direct MedVLM answer was told their "
            f"mean distance, {mean_s:.3f} s."
        )
    if mean_s * tokens_per_second < 1:
        return mean_s, (
            f"The requested times lie {mean_s:.3f} s apart, closer than the MedVLM can tell "
            f"({1 / tokens_per_second:.3f} s): its direct answer may mix them up."
        )
    return mean_s, ""

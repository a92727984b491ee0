"""What the machine could do at best, beside what the models need: the two ends of a speed figure.

A prompt is read at the rate of matrix products, text is written at the rate at which weights come
out of memory. Both rates are measured here, and what the MedVLM needs of them is counted from its
sizes.
"""

from dataclasses import dataclass
from typing import Any

import torch

from refinerank_core.timing import median_ms

_MATRIX = {"cuda": 8192, "cpu": 1024}
_COPY_BYTES = {"cuda": 1 << 30, "cpu": 1 << 26}
_REPEATS = 5


@dataclass(frozen=True)
class Rates:
    """Measured rates of a device.

    Attributes:
        flops_per_s: of a large matrix product, a multiplication and an addition counted as two.
        bytes_per_s: read from and written to memory by a large copy.
    """

    flops_per_s: float
    bytes_per_s: float


def measure_rates(device: torch.device, dtype: torch.dtype) -> Rates:
    """Both rates of a device; takes well under a second on a card."""
    side = _MATRIX[device.type]
    one = torch.randn(side, side, device=device, dtype=dtype)
    other = torch.randn(side, side, device=device, dtype=dtype)
    torch.matmul(one, other)
    product_ms = median_ms(lambda: torch.matmul(one, other), _REPEATS)
    count = _COPY_BYTES[device.type]
    source = torch.zeros(count, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    target.copy_(source)
    copy_ms = median_ms(lambda: target.copy_(source), _REPEATS)
    return Rates(
        flops_per_s=2 * side**3 / (product_ms / 1000), bytes_per_s=2 * count / (copy_ms / 1000)
    )


def encode_flops(model: Any, *, patches: int, tokens: int) -> float:
    """Operations of one frame through the tower and one prompt through the language model.

    Args:
        model: a Qwen2_5_VLForConditionalGeneration.
        patches: of the frame, before merging.
        tokens: of the prompt, the merged patches among them.
    """
    vision, text = model.config.vision_config, model.config.text_config
    tower = model.model.visual
    full = len(vision.fullatt_block_indexes)
    window = (vision.window_size // vision.patch_size) ** 2
    looked_at = full * patches + (vision.depth - full) * min(window, patches)
    seeing = 2 * _weights(tower.blocks) * patches + 4 * vision.hidden_size * patches * looked_at
    merging = 2 * _weights(tower.merger) * patches / vision.spatial_merge_size**2
    language = model.model.language_model
    # Causal attention looks at half of all pairs.
    reading = 2 * _weights(language.layers) * tokens
    reading += 2 * text.hidden_size * text.num_hidden_layers * tokens * tokens
    return float(seeing + merging + reading)


def decode_bytes(model: Any, *, tokens: int) -> float:
    """Bytes that one written token has to read: the language model's weights and the cache.

    Args:
        model: a Qwen2_5_VLForConditionalGeneration.
        tokens: before the new one.
    """
    text = model.config.text_config
    weights = sum(
        parameter.numel() * parameter.element_size()
        for part in (model.model.language_model.layers, model.lm_head)
        for parameter in part.parameters()
    )
    head = text.hidden_size // text.num_attention_heads
    item = model.lm_head.weight.element_size()
    cache = 2 * text.num_hidden_layers * text.num_key_value_heads * head * tokens * item
    return float(weights + cache)


def _weights(part: Any) -> int:
    """Weights that are multiplied with, which vectors such as biases and norms are not."""
    return sum(parameter.numel() for parameter in part.parameters() if parameter.ndim > 1)

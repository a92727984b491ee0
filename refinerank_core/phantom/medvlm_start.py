"""First weights that let a small Qwen2.5-VL learn sooner than the library's own would."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

RESIDUAL_OUTPUTS = ("attn.proj", "self_attn.o_proj", "mlp.down_proj")
EMBEDDING_STD = 0.08
DAMPING = 2e-4  # of the largest variance: components below are not blown up to full size


def scale_by_width(model: nn.Module, *, depth: int, seed: int) -> None:
    """Draw every linear weight with the spread that keeps the size of its input.

    The library's fixed 0.02 suits widths of thousands; at a hundred, layers start near silence.
    Layers that write onto the residual stream start smaller, the more of them there are.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, part in model.named_modules():
            if isinstance(part, nn.Embedding):
                part.weight.normal_(0.0, EMBEDDING_STD, generator=generator)
            elif isinstance(part, nn.Linear) and not name.endswith("lm_head"):
                spread = part.in_features**-0.5
                if name.endswith(RESIDUAL_OUTPUTS):
                    spread /= (2 * depth) ** 0.5
                part.weight.normal_(0.0, spread, generator=generator)
                if part.bias is not None:
                    part.bias.zero_()


def whiten_patches(visual: Any, patches: Tensor) -> None:
    """Let the patch embedding start as the main components of real patches, evened out.

    Args:
        visual: the vision tower.
        patches: (B, P, 3 * patch^2) of some pictures.
    """
    weight = visual.patch_embed.proj.weight  # (hidden, 3, 2, patch, patch)
    flat = patches.flatten(0, 1)
    spread = flat.T @ flat / len(flat)
    variances, components = torch.linalg.eigh(spread)
    largest = variances[-len(weight) :].clamp(min=0)
    gains = (largest + DAMPING * variances[-1]).rsqrt()
    filters = components[:, -len(weight) :].T * gains[:, None]
    channels, steps, side = weight.shape[1:4]
    with torch.no_grad():
        weight.copy_(filters.reshape(-1, channels, 1, side, side).expand_as(weight) / steps)

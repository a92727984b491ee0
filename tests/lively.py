"""Small language models with random weights so large that each token depends on all before it.

With the small weights that a model begins with, a text repeats one token and proves little.
"""

from pathlib import Path
from typing import Any

import torch
from transformers import Qwen2_5_VLForConditionalGeneration

from refinerank_core.models.loading import load_strictly
from refinerank_core.models.medvlm import QwenMedVLM
from refinerank_core.pipeline import RefineRank

NEVER = frozenset({-1})
"""Tokens that end a text: none."""


def lively(profile: Path, *, window: int | None = None) -> Any:
    """The profile's MedVLM, enlivened; with a window, all layers but the first look so far back."""
    model = load_strictly(
        Qwen2_5_VLForConditionalGeneration,
        str(profile.parent / "medvlm"),
        revision=None,
        dtype=torch.float32,
        attention="sdpa",
    )
    if window is not None:
        for layer in model.model.language_model.layers[1:]:
            layer.self_attn.sliding_window = window
    enliven(model)
    return model


def lively_system(profile: Path) -> RefineRank:
    """The profile's models on the CPU, the MedVLM enlivened."""
    system = RefineRank.load(str(profile), device="cpu")
    assert isinstance(system.medvlm, QwenMedVLM)
    enliven(system.medvlm.network)
    return system


def enliven(model: Any) -> None:
    """Draw the language model's matrices anew."""
    generator = torch.Generator().manual_seed(3)
    for parameter in model.model.language_model.parameters():
        if parameter.ndim > 1:
            parameter.data.normal_(0, 0.35, generator=generator)


def words(*ids: int) -> dict[str, Any]:
    """The inputs of a prompt without a picture."""
    tokens = torch.tensor([ids])
    return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}

"""The GroundingDINO authors' own files (`groundingdino_swinb_cogcoor.pth`): read and measured.

The file is a torch pickle and is read with weights_only, which runs no code of the file. The
network's sizes are read off its tensors, so that no configuration file has to come along.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from typing import Any

from torch import Tensor

from refinerank_core.errors import WeightsError
from refinerank_core.models.torch_file import read_torch_file

POINTS = 4
"""Places that deformable attention reads per head and level, in all official files."""
TEXT_HEAD_WIDTH = 64
"""Width of one attention head of the text encoder (BERT)."""

# In the official files and of no use at inference: a table for training labels, and a counter that
# the text encoder makes anew.
_SPARE = ("label_enc.weight", "bert.embeddings.position_ids")


@dataclass(frozen=True)
class OfficialSizes:
    """What the official network needs to be built.

    Attributes:
        embed, depths, heads, window: Swin backbone.
        width, heads_fusion: of the encoder and decoder, and their attention heads.
        queries, levels, encoder_layers, decoder_layers, feed_forward: encoder and decoder.
        text_width, text_layers, text_feed_forward, vocabulary, positions: text encoder.
    """

    embed: int
    depths: tuple[int, ...]
    heads: tuple[int, ...]
    window: int
    width: int
    heads_fusion: int
    queries: int
    levels: int
    encoder_layers: int
    decoder_layers: int
    feed_forward: int
    text_width: int
    text_layers: int
    text_feed_forward: int
    vocabulary: int
    positions: int

    @property
    def text_heads(self) -> int:
        """Attention heads of the text encoder."""
        return max(1, self.text_width // TEXT_HEAD_WIDTH)


def read_official(path: Path) -> dict[str, Tensor]:
    """The tensors of an official file under their own names.

    Raises:
        WeightsError: the file is absent, damaged, holds code, or is no table of tensors.
    """
    content = read_torch_file(path, kind="detector", origin="official")
    table: Any = content.get("model", content) if isinstance(content, Mapping) else content
    if not isinstance(table, Mapping) or not all(isinstance(one, Tensor) for one in table.values()):
        raise WeightsError(
            f"{path.name}: not an official GroundingDINO file. Use groundingdino_swinb_cogcoor.pth "
            "or groundingdino_swint_ogc.pth."
        )
    named = {str(key).removeprefix("module."): tensor for key, tensor in table.items()}
    return {key: tensor for key, tensor in named.items() if key not in _SPARE}


def measure(name: str, state: Mapping[str, Tensor]) -> OfficialSizes:
    """The sizes of the network that these tensors are of.

    Args:
        name: of the file, for the error.
        state: what read_official gave.

    Raises:
        WeightsError: a tensor that tells a size is missing.
    """
    try:
        levels, width = state["transformer.level_embed"].shape
        offsets = state["transformer.encoder.layers.0.self_attn.sampling_offsets.bias"]
        stages = range(_count(state, r"backbone\.0\.layers\.(\d+)\."))
        table = "backbone.0.layers.{}.blocks.0.attn.relative_position_bias_table"
        words = state["bert.embeddings.word_embeddings.weight"]
        return OfficialSizes(
            embed=state["backbone.0.patch_embed.proj.weight"].shape[0],
            depths=tuple(
                _count(state, rf"backbone\.0\.layers\.{stage}\.blocks\.(\d+)\.") for stage in stages
            ),
            heads=tuple(state[table.format(stage)].shape[1] for stage in stages),
            window=(isqrt(state[table.format(0)].shape[0]) + 1) // 2,
            width=width,
            heads_fusion=offsets.numel() // (levels * POINTS * 2),
            queries=state["transformer.tgt_embed.weight"].shape[0],
            levels=levels,
            encoder_layers=_count(state, r"transformer\.encoder\.layers\.(\d+)\."),
            decoder_layers=_count(state, r"transformer\.decoder\.layers\.(\d+)\."),
            feed_forward=state["transformer.encoder.layers.0.linear1.weight"].shape[0],
            text_width=words.shape[1],
            text_layers=_count(state, r"bert\.encoder\.layer\.(\d+)\."),
            text_feed_forward=state["bert.encoder.layer.0.intermediate.dense.weight"].shape[0],
            vocabulary=words.shape[0],
            positions=state["bert.embeddings.position_embeddings.weight"].shape[0],
        )
    except (KeyError, ValueError) as error:
        raise WeightsError(
            f"{name}: not a GroundingDINO with a Swin backbone ({error} is missing). "
            "Use groundingdino_swinb_cogcoor.pth or groundingdino_swint_ogc.pth."
        ) from error


def official_id(path: Path) -> str:
    """File name and 12 hex digits of the SHA-256 of its bytes."""
    with path.open("rb") as file:
        return f"{path.stem}@{hashlib.file_digest(file, 'sha256').hexdigest()[:12]}"


def _count(state: Mapping[str, Tensor], pattern: str) -> int:
    """How many numbered parts the tensors' names tell of."""
    found = {int(match[1]) for key in state if (match := re.match(pattern, key))}
    if found != set(range(len(found))) or not found:
        raise KeyError(pattern.replace("\\", ""))
    return len(found)

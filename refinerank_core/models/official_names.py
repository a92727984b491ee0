"""From the GroundingDINO authors' tensor names to those of the transformers classes."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor
from transformers import (
    AutoTokenizer,
    GroundingDinoConfig,
    GroundingDinoForObjectDetection,
    GroundingDinoProcessor,
    SwinConfig,
)
from transformers.models.grounding_dino.image_processing_grounding_dino import (
    GroundingDinoImageProcessor,
)

from refinerank_core.errors import WeightsError
from refinerank_core.models.loading import quiet
from refinerank_core.models.official_weights import OfficialSizes, measure, read_official
from refinerank_core.models.small import save

_SWIN = "model.backbone.conv_encoder.model.swin."
_LAYER = r"^transformer\.encoder\.{}\.(\d+)\."
_RULES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"^backbone\.0\.patch_embed\.proj", _SWIN + "embeddings.patch_embeddings.projection"),
        (r"^backbone\.0\.patch_embed\.norm", _SWIN + "embeddings.norm"),
        (r"^backbone\.0\.norm(\d)", r"model.backbone.conv_encoder.model.hidden_states_norms.out\1"),
        (r"^backbone\.0\.layers\.", _SWIN + "encoder.layers."),
        (r"(swin.*)\.norm1\.", r"\1.layernorm_before."),
        (r"(swin.*)\.norm2\.", r"\1.layernorm_after."),
        (r"(swin.*)\.attn\.proj\.", r"\1.attention.o_proj."),
        (r"(swin.*)\.attn\.relative_", r"\1.attention.relative_position_bias.relative_"),
        (r"(swin.*)\.attn\.([qkv])\.", r"\1.attention.\2_proj."),
        (r"^input_proj\.", "model.input_proj_vision."),
        (r"^bert\.", "model.text_backbone."),
        (r"^feat_map\.", "model.text_projection."),
        (
            _LAYER.format("layers") + "norm1",
            r"model.encoder.layers.\1.deformable_layer.self_attn_layer_norm",
        ),
        (
            _LAYER.format("layers") + "norm2",
            r"model.encoder.layers.\1.deformable_layer.final_layer_norm",
        ),
        (_LAYER.format("layers") + "linear", r"model.encoder.layers.\1.deformable_layer.fc"),
        (_LAYER.format("layers"), r"model.encoder.layers.\1.deformable_layer."),
        (
            _LAYER.format("text_layers") + "norm1",
            r"model.encoder.layers.\1.text_enhancer_layer.layer_norm_before",
        ),
        (
            _LAYER.format("text_layers") + "norm2",
            r"model.encoder.layers.\1.text_enhancer_layer.layer_norm_after",
        ),
        (
            _LAYER.format("text_layers") + "linear",
            r"model.encoder.layers.\1.text_enhancer_layer.fc",
        ),
        (_LAYER.format("text_layers"), r"model.encoder.layers.\1.text_enhancer_layer."),
        (_LAYER.format("fusion_layers"), r"model.encoder.layers.\1.fusion_layer."),
        (r"(fusion_layer\.)gamma_v", r"\1vision_param"),
        (r"(fusion_layer\.)gamma_l", r"\1text_param"),
        (r"(fusion_layer\.layer_norm_)v", r"\1vision"),
        (r"(fusion_layer\.layer_norm_)l", r"\1text"),
        (r"(fusion_layer\.attn\.(?:values_|out_)?)v_proj", r"\1vision_proj"),
        (r"(fusion_layer\.attn\.(?:values_|out_)?)l_proj", r"\1text_proj"),
        (r"^transformer\.decoder\.layers\.", "model.decoder.layers."),
        (r"(decoder\.layers\.\d+)\.cross_attn\.", r"\1.encoder_attn."),
        (r"(decoder\.layers\.\d+)\.ca_text\.", r"\1.encoder_attn_text."),
        (r"(decoder\.layers\.\d+)\.catext_norm\.", r"\1.encoder_attn_text_layer_norm."),
        (r"(decoder\.layers\.\d+)\.norm1\.", r"\1.encoder_attn_layer_norm."),
        (r"(decoder\.layers\.\d+)\.norm2\.", r"\1.self_attn_layer_norm."),
        (r"(decoder\.layers\.\d+)\.norm3\.", r"\1.final_layer_norm."),
        (r"(decoder\.layers\.\d+)\.linear", r"\1.fc"),
        (r"(text_enhancer_layer\.self_attn|decoder\..*attn\w*)\.q\.", r"\1.query."),
        (r"(text_enhancer_layer\.self_attn|decoder\..*attn\w*)\.k\.", r"\1.key."),
        (r"(text_enhancer_layer\.self_attn|decoder\..*attn\w*)\.v\.", r"\1.value."),
        (r"^transformer\.decoder\.norm\.", "model.decoder.layer_norm."),
        (r"^transformer\.decoder\.ref_point_head\.", "model.decoder.reference_points_head."),
        (r"^transformer\.decoder\.bbox_embed\.", "model.decoder.bbox_embed."),
        (r"^transformer\.tgt_embed\.", "model.query_position_embeddings."),
        (r"^transformer\.enc_out_bbox_embed\.", "model.encoder_output_bbox_embed."),
        (r"^transformer\.", "model."),
    )
)
# Tables that the transformers classes compute, and a layer of the text encoder that neither uses.
_LEFT_OUT = re.compile(r".*relative_position_index$|bert\.pooler\.")
_JOINED = re.compile(r"(.*\.)(?:qkv\.|in_proj_)(weight|bias)$")
# A norm of the backbone that the detector never asks for and no official file holds.
_UNUSED = re.compile(r".*\.swin\.layernorm\..*")


def transformers_names(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Official tensors under the names of GroundingDinoForObjectDetection.

    Attention projections that the official network keeps in one tensor are taken apart.
    """
    renamed = {}
    for key, tensor in _apart(state):
        for pattern, replacement in _RULES:
            key = pattern.sub(replacement, key)
        stage = re.search(r"hidden_states_norms\.out(\d)", key)
        if stage is not None:  # the official network counts stages from 0, transformers from 1
            key = key.replace(stage[0], f"hidden_states_norms.stage{int(stage[1]) + 1}")
        renamed[key] = tensor
    return renamed


def _apart(state: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Every tensor that is needed; joint query, key and value projections one by one."""
    for key, tensor in state.items():
        if _LEFT_OUT.match(key):
            continue
        joined = _JOINED.match(key)
        if joined is None:
            yield key, tensor
            continue
        for letter, part in zip("qkv", tensor.chunk(3), strict=True):
            yield f"{joined[1]}{letter}.{joined[2]}", part.clone()


def transformers_config(sizes: OfficialSizes) -> GroundingDinoConfig:
    """The configuration of the transformers classes for these sizes."""
    stages = len(sizes.depths)
    return GroundingDinoConfig(
        backbone_config=SwinConfig(
            image_size=32 * sizes.window,
            patch_size=4,
            embed_dim=sizes.embed,
            depths=list(sizes.depths),
            num_heads=list(sizes.heads),
            window_size=sizes.window,
            out_features=[f"stage{stage}" for stage in range(stages - 2, stages + 1)],
        ),
        text_config={
            "model_type": "bert",
            "vocab_size": sizes.vocabulary,
            "hidden_size": sizes.text_width,
            "num_hidden_layers": sizes.text_layers,
            "num_attention_heads": sizes.text_heads,
            "intermediate_size": sizes.text_feed_forward,
            "max_position_embeddings": sizes.positions,
        },
        num_queries=sizes.queries,
        num_feature_levels=sizes.levels,
        encoder_layers=sizes.encoder_layers,
        decoder_layers=sizes.decoder_layers,
        encoder_ffn_dim=sizes.feed_forward,
        decoder_ffn_dim=sizes.feed_forward,
        encoder_attention_heads=sizes.heads_fusion,
        decoder_attention_heads=sizes.heads_fusion,
        d_model=sizes.width,
        dropout=0.0,
        disable_custom_kernels=True,
    )


def official_processor(tokenizer_source: str, *, vocabulary: int) -> GroundingDinoProcessor:
    """Pictures and captions as the official network reads them: short side 800, at most 1333.

    Args:
        tokenizer_source: folder of the text encoder's tokenizer, or its hub id.
        vocabulary: tokens that the text encoder knows.

    Raises:
        WeightsError: the tokenizer is absent or of another vocabulary.
    """
    name = tokenizer_source.rsplit("/", 1)[-1]
    try:
        with quiet():
            tokenizer = AutoTokenizer.from_pretrained(tokenizer_source)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WeightsError(
            f"{name}: the detector's tokenizer is missing or damaged. Name its folder, or fetch "
            "google-bert/bert-base-uncased."
        ) from error
    if len(tokenizer) != vocabulary:
        raise WeightsError(
            f"{name}: {len(tokenizer)} tokens, the detector's text encoder knows {vocabulary}. "
            "Use the tokenizer that it was trained with (google-bert/bert-base-uncased)."
        )
    return GroundingDinoProcessor(GroundingDinoImageProcessor(), tokenizer)


def convert_official(path: Path, tokenizer_source: str, folder: Path) -> None:
    """Write an official file as a checkpoint folder of the transformers classes.

    Args:
        path: `groundingdino_swinb_cogcoor.pth` or another file of that format.
        tokenizer_source: see `official_processor`.
        folder: is made; files of the same names in it are replaced.

    Raises:
        WeightsError: the file or the tokenizer cannot be used.
    """
    state = read_official(path)
    sizes = measure(path.name, state)
    processor = official_processor(tokenizer_source, vocabulary=sizes.vocabulary)
    save(official_as_transformers(path.name, state, sizes), processor, folder)


def official_as_transformers(
    name: str, state: Mapping[str, Tensor], sizes: OfficialSizes
) -> Any:  # GroundingDinoForObjectDetection; transformers ships no types
    """The transformers model with an official file's weights.

    Raises:
        WeightsError: a tensor is missing, unknown or of another size.
    """
    model = GroundingDinoForObjectDetection(transformers_config(sizes))
    try:
        missing, unknown = model.load_state_dict(transformers_names(state), strict=False)
    except RuntimeError as error:
        first = str(error).strip().splitlines()[-1].strip()
        raise WeightsError(f"{name}: the tensors do not fit ({first[:160]}).") from error
    wrong = [key for key in missing if not _UNUSED.match(key)] + list(unknown)
    if wrong:
        raise WeightsError(
            f"{name}: {len(wrong)} tensors are missing or unknown ({', '.join(wrong[:3])}). "
            "Use a complete official file."
        )
    return model.eval().requires_grad_(False)

"""Small models of the two real architectures: the same classes and processors, fewer numbers.

They start from seeded random weights. The phantom's training gives them something to say; until
then whatever they produce is UNTRAINED.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import (
    GroundingDinoConfig,
    GroundingDinoForObjectDetection,
    GroundingDinoProcessor,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2_5_VLProcessor,
    Qwen2VLVideoProcessor,
    SwinConfig,
)
from transformers.models.grounding_dino.image_processing_grounding_dino import (
    GroundingDinoImageProcessor,
)
from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor

from refinerank_core.models.loading import quiet
from refinerank_core.models.small_tokenizers import caption_tokenizer, chat_tokenizer


@dataclass(frozen=True)
class SmallMedVLM:
    """Sizes of a small Qwen2.5-VL. Every full_blocks entry attends to the whole frame.

    Attributes:
        depth, hidden, heads, mlp: vision tower.
        full_blocks: vision blocks with full attention; the others see one window.
        window_px: side of a window, a multiple of the merged patch (28 px).
        max_pixels: pixel budget of one frame.
        layers, width, text_heads, key_heads, text_mlp: language model.
        vocabulary: ordinary tokens of its tokenizer at most.
        text_rope_theta: base of the language model's rotary positions.
    """

    depth: int = 8
    hidden: int = 64
    heads: int = 2
    mlp: int = 128
    full_blocks: tuple[int, ...] = (1, 3, 5, 7)
    window_px: int = 56
    max_pixels: int = 28 * 28 * 96
    layers: int = 2
    width: int = 96
    text_heads: int = 4
    key_heads: int = 2
    text_mlp: int = 192
    vocabulary: int = 1200
    text_rope_theta: float = 1_000_000.0


@dataclass(frozen=True)
class SmallDetector:
    """Sizes of a small GroundingDINO with a Swin backbone."""

    embed: int = 24
    depths: tuple[int, ...] = (1, 1, 2, 1)
    heads: tuple[int, ...] = (1, 2, 4, 4)
    window: int = 7
    width: int = 64
    queries: int = 40
    encoder_layers: int = 2
    decoder_layers: int = 2
    feed_forward: int = 128
    text_width: int = 64
    text_layers: int = 2
    short_side: int = 192
    long_side: int = 352


def build_medvlm(
    size: SmallMedVLM, corpus: Sequence[str], *, seed: int
) -> tuple[Any, Qwen2_5_VLProcessor]:
    """A small Qwen2.5-VL with random weights, and its processor.

    Args:
        size: its dimensions.
        corpus: texts whose words its tokenizer keeps whole.
        seed: of the weights; the same seed gives the same weights.
    """
    processor = chat_processor(size, corpus)
    config = medvlm_config(size, processor.tokenizer)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen2_5_VLForConditionalGeneration(config)
    set_ends(model, processor.tokenizer)
    return model.float().eval(), processor


def chat_processor(size: SmallMedVLM, corpus: Sequence[str]) -> Qwen2_5_VLProcessor:
    """A processor whose tokenizer keeps the words of the corpus whole."""
    tokenizer = chat_tokenizer([*corpus, "user assistant system"], vocabulary=size.vocabulary)
    pixels = {"shortest_edge": 28 * 28 * 4, "longest_edge": size.max_pixels}
    return Qwen2_5_VLProcessor(
        image_processor=Qwen2VLImageProcessor(size=pixels),
        tokenizer=tokenizer,
        video_processor=Qwen2VLVideoProcessor(size=pixels),
        chat_template=tokenizer.chat_template,
    )


def medvlm_config(
    size: SmallMedVLM, tokenizer: Any, *, tokens: int | None = None, tied: bool = True
) -> Qwen2_5_VLConfig:
    """The configuration of a Qwen2.5-VL of a size.

    Args:
        size: its dimensions.
        tokenizer: gives the ids of the special tokens.
        tokens: rows of the embedding; None is the tokenizer's own number.
        tied: whether the output layer shares the embedding's weights.
    """
    half_head = size.width // size.text_heads // 2
    spatial = half_head * 3 // 8
    token_id = tokenizer.convert_tokens_to_ids
    return Qwen2_5_VLConfig(
        vision_config={
            "depth": size.depth,
            "hidden_size": size.hidden,
            "num_heads": size.heads,
            "intermediate_size": size.mlp,
            "fullatt_block_indexes": list(size.full_blocks),
            "window_size": size.window_px,
            "out_hidden_size": size.width,
            "tokens_per_second": 2,
        },
        text_config={
            "hidden_size": size.width,
            "num_hidden_layers": size.layers,
            "num_attention_heads": size.text_heads,
            "num_key_value_heads": size.key_heads,
            "intermediate_size": size.text_mlp,
            "vocab_size": tokens or len(tokenizer),
            "rope_scaling": {
                "type": "mrope",
                "mrope_section": [half_head - 2 * spatial, spatial, spatial],
                "rope_type": "default",
                "rope_theta": size.text_rope_theta,
            },
            "bos_token_id": None,
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
        },
        tie_word_embeddings=tied,
        image_token_id=token_id("<|image_pad|>"),
        video_token_id=token_id("<|video_pad|>"),
        vision_start_token_id=token_id("<|vision_start|>"),
        vision_end_token_id=token_id("<|vision_end|>"),
    )


def set_ends(model: Any, tokenizer: Any) -> None:
    """Tell a model which token ends its text and which fills a batch."""
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id


def build_detector(
    size: SmallDetector, words: Sequence[str], folder: Path, *, seed: int
) -> tuple[Any, GroundingDinoProcessor]:
    """A small GroundingDINO with random weights, and its processor.

    Args:
        size: its dimensions.
        words: words that its tokenizer keeps whole.
        folder: where the tokenizer writes its vocabulary.
        seed: of the weights.
    """
    tokenizer = caption_tokenizer(words, folder)
    processor = GroundingDinoProcessor(
        GroundingDinoImageProcessor(
            size={"shortest_edge": size.short_side, "longest_edge": size.long_side}
        ),
        tokenizer,
    )
    backbone = SwinConfig(
        image_size=size.long_side,
        patch_size=4,
        embed_dim=size.embed,
        depths=list(size.depths),
        num_heads=list(size.heads),
        window_size=size.window,
        out_features=["stage2", "stage3", "stage4"],
        drop_path_rate=0.0,
    )
    config = GroundingDinoConfig(
        backbone_config=backbone,
        text_config={
            "model_type": "bert",
            "vocab_size": len(tokenizer),
            "hidden_size": size.text_width,
            "num_hidden_layers": size.text_layers,
            "num_attention_heads": 4,
            "intermediate_size": 2 * size.text_width,
            "max_position_embeddings": 256,
        },
        num_queries=size.queries,
        encoder_layers=size.encoder_layers,
        decoder_layers=size.decoder_layers,
        encoder_ffn_dim=size.feed_forward,
        decoder_ffn_dim=size.feed_forward,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        text_enhancer_num_attention_heads=4,
        d_model=size.width,
        max_text_len=256,
        dropout=0.0,
        fusion_droppath=0.0,
        fusion_dropout=0.0,
        disable_custom_kernels=True,
        auxiliary_loss=True,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = GroundingDinoForObjectDetection(config)
    return model.float().eval(), processor


def save(model: Any, processor: Any, folder: Path) -> None:
    """Write a checkpoint directory that from_pretrained reads: safetensors, JSON, tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    with quiet():
        model.save_pretrained(folder)
        processor.save_pretrained(folder)

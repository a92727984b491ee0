"""The real architectures with random weights, built straight in a device's memory.

They answer nonsense at the speed of the real ones: what a card can do is measured without
downloading 18 GB. Whatever they answer is UNTRAINED.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import (
    GroundingDinoForObjectDetection,
    GroundingDinoProcessor,
    Qwen2_5_VLForConditionalGeneration,
)
from transformers.models.grounding_dino.image_processing_grounding_dino import (
    GroundingDinoImageProcessor,
)

from refinerank_core.errors import ModelError
from refinerank_core.models.official_names import transformers_config
from refinerank_core.models.official_weights import OfficialSizes
from refinerank_core.models.small import (
    SmallMedVLM,
    chat_processor,
    medvlm_config,
    set_ends,
)
from refinerank_core.models.small_tokenizers import caption_tokenizer

_WORDS = "grasper hook scissors gallbladder where is the instrument surgical tool".split()
_SPARE = 1.15
"""Memory asked for, against the bytes of the weights: what the passes themselves need at least."""


@dataclass(frozen=True)
class RandomSizes:
    """Sizes of both models.

    Attributes:
        medvlm: of the Qwen2.5-VL.
        tokens: rows of its embedding, which the output layer does not share.
        detector: of the GroundingDINO.
        short_side, long_side: size at which the detector sees frames.
    """

    medvlm: SmallMedVLM
    tokens: int
    detector: OfficialSizes
    short_side: int
    long_side: int


SIZES = {
    "random-7b": RandomSizes(
        medvlm=SmallMedVLM(
            depth=32,
            hidden=1280,
            heads=16,
            mlp=3420,
            full_blocks=(7, 15, 23, 31),
            window_px=112,
            max_pixels=1_605_632,
            layers=28,
            width=3584,
            text_heads=28,
            key_heads=4,
            text_mlp=18944,
        ),
        tokens=152_064,
        detector=OfficialSizes(
            embed=128,
            depths=(2, 2, 18, 2),
            heads=(4, 8, 16, 32),
            window=12,
            width=256,
            heads_fusion=8,
            queries=900,
            levels=4,
            encoder_layers=6,
            decoder_layers=6,
            feed_forward=2048,
            text_width=768,
            text_layers=12,
            text_feed_forward=3072,
            vocabulary=30_522,
            positions=512,
        ),
        short_side=800,
        long_side=1333,
    ),
    "random-small": RandomSizes(
        medvlm=SmallMedVLM(full_blocks=(1, 3, 5, 7), layers=1),
        tokens=1500,
        detector=OfficialSizes(
            embed=16,
            depths=(1, 1, 1, 1),
            heads=(1, 2, 4, 4),
            window=7,
            width=64,
            heads_fusion=4,
            queries=30,
            levels=4,
            encoder_layers=1,
            decoder_layers=2,  # the classes tie the second one's head to the first
            feed_forward=64,
            text_width=64,
            text_layers=1,
            text_feed_forward=64,
            vocabulary=1200,
            positions=128,
        ),
        short_side=128,
        long_side=224,
    ),
}


def build_random_medvlm(
    name: str, device: torch.device, dtype: torch.dtype, *, seed: int
) -> tuple[Any, Any]:
    """A Qwen2.5-VL with random weights on its device, and its processor.

    Args:
        name: a key of SIZES.
        device, dtype: where and in which number type.
        seed: of the weights.

    Raises:
        ModelError: the device has too little memory.
    """
    sizes = SIZES[name]
    processor = chat_processor(sizes.medvlm, _WORDS)
    config = medvlm_config(sizes.medvlm, processor.tokenizer, tokens=sizes.tokens, tied=False)
    needed = needed_bytes(Qwen2_5_VLForConditionalGeneration, config, dtype)
    refuse_small_memory(name, needed, free_bytes(device), device)
    with _seeded_on(device, dtype, seed):
        model = Qwen2_5_VLForConditionalGeneration(config)
    set_ends(model, processor.tokenizer)
    return model.eval().requires_grad_(False), processor


def build_random_detector(name: str, device: torch.device, *, seed: int) -> tuple[Any, Any]:
    """A GroundingDINO with random weights on its device in float32, and its processor.

    Args and Raises: as for build_random_medvlm.
    """
    sizes = SIZES[name]
    with tempfile.TemporaryDirectory(prefix="refinerank-") as folder:
        tokenizer = caption_tokenizer(_WORDS, Path(folder))
    config = transformers_config(sizes.detector)
    needed = needed_bytes(GroundingDinoForObjectDetection, config, torch.float32)
    refuse_small_memory(name, needed, free_bytes(device), device)
    with _seeded_on(device, torch.float32, seed):
        model = GroundingDinoForObjectDetection(config)
    pictures = GroundingDinoImageProcessor(
        size={"shortest_edge": sizes.short_side, "longest_edge": sizes.long_side}
    )
    processor = GroundingDinoProcessor(pictures, tokenizer)
    return model.eval().requires_grad_(False), processor


def needed_bytes(model_class: Any, config: Any, dtype: torch.dtype) -> int:
    """Memory that a model of this configuration takes, with what its passes need at least."""
    with torch.device("meta"):
        count = sum(parameter.numel() for parameter in model_class(config).parameters())
    return int(count * dtype.itemsize * _SPARE)


def refuse_small_memory(name: str, needed: int, free: int, device: torch.device) -> None:
    """Refuse before anything is built what a device cannot hold.

    Raises:
        ModelError: fewer bytes are free than are needed.
    """
    if needed > free:
        raise ModelError(
            f"{name} needs {needed / 1e9:.1f} GB of memory on {device.type} and "
            f"{free / 1e9:.1f} GB are free. Measure on a larger device."
        )


def free_bytes(device: torch.device) -> int:
    """Memory that a device has free."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    pages = os.sysconf("SC_AVPHYS_PAGES")
    return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def _seeded_on(device: torch.device, dtype: torch.dtype, seed: int) -> Iterator[None]:
    """Make tensors on a device, of a type and from a seed, and restore all three."""
    before = torch.get_default_dtype()
    cards = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cards), device:
        torch.manual_seed(seed)
        torch.set_default_dtype(dtype)
        try:
            yield
        finally:
            torch.set_default_dtype(before)

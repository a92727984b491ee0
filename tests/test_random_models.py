"""The real architectures with random weights, and the limits that speed is measured against."""

import json
from pathlib import Path

import pytest
import torch
from transformers import Qwen2_5_VLForConditionalGeneration

from refinerank_core.bench_limits import limit_lines
from refinerank_core.errors import ModelError
from refinerank_core.limits import decode_bytes, encode_flops, measure_rates
from refinerank_core.models.medvlm import QwenMedVLM
from refinerank_core.models.random_models import SIZES, needed_bytes, refuse_small_memory
from refinerank_core.models.small import chat_processor, medvlm_config
from refinerank_core.pipeline import RefineRank
from refinerank_core.profiles import PROFILE_FOLDER
from tests.conftest import frame

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> RefineRank:
    """The bundled profile of the published sizes, at small size."""
    told = json.loads((PROFILE_FOLDER / "random-7b.json").read_text())
    told["recipe"]["name"] = "random-small"
    told["medvlm"]["blocks"] = [1, 3, 5, 7]
    told["refinenet"]["inter_block"] = 5
    path = tmp_path_factory.mktemp("random") / "random.json"
    path.write_text(json.dumps(told))
    return RefineRank.load(str(path), device="cpu")


def medvlm_of(system: RefineRank) -> QwenMedVLM:
    assert isinstance(system.medvlm, QwenMedVLM)
    return system.medvlm


def test_models_made_on_the_device_answer_and_are_marked_untrained(
    small: RefineRank, clip_path: Path
) -> None:
    grounding = small.ground(clip_path, "Where is the hook?", [1.0])

    assert grounding.profile.untrained
    assert grounding.profile.medvlm == "random-small-medvlm@20261130"
    assert len(grounding.times[0].candidates) > 0


def test_the_random_medvlm_has_the_parameters_of_the_published_one() -> None:
    sizes = SIZES["random-7b"]
    processor = chat_processor(sizes.medvlm, ["hook"])
    config = medvlm_config(sizes.medvlm, processor.tokenizer, tokens=sizes.tokens, tied=False)

    needed = needed_bytes(Qwen2_5_VLForConditionalGeneration, config, torch.bfloat16)

    assert needed == int(8_292_166_656 * 2 * 1.15)  # parameters of Qwen2.5-VL-7B


def test_a_device_that_is_too_small_is_refused_in_one_sentence() -> None:
    with pytest.raises(ModelError, match=r"random-7b needs 19\.1 GB .* 8\.0 GB are free"):
        refuse_small_memory("random-7b", 19_100_000_000, 8_000_000_000, CPU)


def test_reading_is_counted_from_the_sizes(small: RefineRank) -> None:
    network = medvlm_of(small).network
    config = network.config
    blocks = sum(p.numel() for p in network.model.visual.blocks.parameters() if p.ndim > 1)

    once = encode_flops(network, patches=64, tokens=20)
    more_words = encode_flops(network, patches=64, tokens=40)
    layers = sum(p.numel() for p in network.model.language_model.layers.parameters() if p.ndim > 1)
    width, count = config.text_config.hidden_size, config.text_config.num_hidden_layers

    assert once > 2 * blocks * 64
    assert more_words - once == 2 * layers * 20 + 2 * width * count * (40**2 - 20**2)


def test_writing_reads_every_weight_and_the_cache_once(small: RefineRank) -> None:
    network = medvlm_of(small).network
    layers = sum(p.numel() for p in network.model.language_model.layers.parameters())

    empty = decode_bytes(network, tokens=0)

    assert empty == 4 * (layers + network.lm_head.weight.numel())
    # one layer, two key heads of 24 numbers, keys and values, four bytes each
    assert decode_bytes(network, tokens=10) - empty == 10 * 2 * 2 * 24 * 4


def test_the_bench_puts_the_limits_beside_the_figures(small: RefineRank) -> None:
    lines = limit_lines(medvlm_of(small), frame(2), "Where is the hook?", encode_ms=50.0, repeats=1)

    names = [line.name for line in lines]
    assert names[:4] == [
        "matrix product",
        "copy in memory",
        "encode, limit by matrix products",
        "encode against its limit",
    ]
    assert all(line.value > 0 for line in lines)
    assert lines[3].value == pytest.approx(50.0 / lines[2].value)
    assert all(line.met is None for line in lines)  # the aims are for cards


def test_rates_are_of_the_right_order() -> None:
    rates = measure_rates(CPU, torch.float32)

    assert 1e8 < rates.flops_per_s < 1e16
    assert 1e7 < rates.bytes_per_s < 1e14

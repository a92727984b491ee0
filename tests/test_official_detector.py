"""The authors' own GroundingDINO files: both backends, the converter, and what is refused."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import GroundingDinoForObjectDetection

from refinerank_core.__main__ import main
from refinerank_core.errors import WeightsError
from refinerank_core.models.detector import DetectorSettings, GroundingDino
from refinerank_core.models.loading import load_strictly
from refinerank_core.models.official_names import (
    convert_official,
    official_as_transformers,
    transformers_names,
)
from refinerank_core.models.official_weights import OfficialSizes, measure, read_official
from refinerank_core.models.small_tokenizers import caption_tokenizer
from tests.conftest import frame

pytest.importorskip("groundingdino", reason="groundingdino-py is not installed")

PHRASES = ("hook", "specimen bag", "clip applier")
WORDS = "hook specimen bag clip applier grasper".split()
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`small.pth`, written as the authors write theirs, and `words/`, its tokenizer."""
    from refinerank_core.models.official_detector import _build

    folder = tmp_path_factory.mktemp("official")
    tokenizer = caption_tokenizer(WORDS, folder / "words")
    sizes = OfficialSizes(
        embed=16,
        depths=(1, 1, 2, 1),
        heads=(1, 2, 4, 4),
        window=5,
        width=256,  # written into the official code
        heads_fusion=4,
        queries=30,
        levels=4,
        encoder_layers=2,
        decoder_layers=2,
        feed_forward=96,
        text_width=64,
        text_layers=2,
        text_feed_forward=96,
        vocabulary=len(tokenizer),
        positions=128,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(11)
        net, _ = _build(sizes, tokenizer)
        for parameter in net.parameters():  # some start at zero and would hide a wrong name
            parameter.data += 0.02 * torch.randn_like(parameter)
    net.transformer.encoder.text_layers[-1].norm2.weight.data *= 0.2  # scores between 0 and 1
    state = {f"module.{key}": tensor for key, tensor in net.state_dict().items()}
    state["module.label_enc.weight"] = torch.zeros(5, 256)
    state["module.bert.embeddings.position_ids"] = torch.arange(128)[None]
    torch.save({"model": state}, folder / "small.pth")
    assert measure("small.pth", read_official(folder / "small.pth")) == sizes
    return folder


@pytest.fixture(scope="module")
def through_official(folder: Path) -> GroundingDino:
    """The adapter over groundingdino-py."""
    return official(folder)


@pytest.fixture(scope="module")
def converted(folder: Path) -> Path:
    """The same weights as a checkpoint folder of the transformers classes."""
    file, words, out = folder / "small.pth", folder / "words", folder / "converted"
    assert main(["convert-detector", str(file), "--tokenizer", str(words), "--out", str(out)]) == 0
    return out


def official(folder: Path) -> GroundingDino:
    """The adapter over groundingdino-py, at a size for tests."""
    settings = DetectorSettings(
        source=str(folder / "small.pth"),
        backend="groundingdino-py",
        tokenizer=str(folder / "words"),
        short_side=128,
        long_side=224,
        box_threshold=0.0,
    )
    return GroundingDino(settings, CPU)


def test_both_backends_give_the_same_logits_and_boxes(
    folder: Path, through_official: GroundingDino, converted: Path
) -> None:
    first = through_official._model
    second = GroundingDinoForObjectDetection.from_pretrained(converted).eval()
    torch.manual_seed(5)
    pixels, mask = torch.randn(2, 3, 96, 128), torch.ones(2, 96, 128, dtype=torch.long)
    mask[1, 70:], mask[1, :, 100:] = 0, 0  # the second picture is padded
    words = caption_tokenizer(WORDS, folder / "words")
    text = words(["hook . specimen bag . grasper ."] * 2, return_tensors="pt")

    with torch.inference_mode():
        one = first(pixel_values=pixels, pixel_mask=mask, **text)
        other = second(pixel_values=pixels, pixel_mask=mask, **text)

    held = torch.isfinite(other.logits)
    assert torch.equal(held, torch.isfinite(one.logits))
    assert one.logits[held].std() > 1e-2
    torch.testing.assert_close(one.logits[held], other.logits[held], atol=1e-4, rtol=0)
    torch.testing.assert_close(one.pred_boxes, other.pred_boxes, atol=1e-4, rtol=0)


def test_the_adapter_gives_the_same_detections_through_both(
    through_official: GroundingDino, converted: Path
) -> None:
    settings = DetectorSettings(
        source=str(converted), short_side=128, long_side=224, box_threshold=0.0
    )
    frames = [frame(2), frame(7)]

    one = through_official.detect(frames, PHRASES)
    other = GroundingDino(settings, CPU).detect(frames, PHRASES)

    for ours, theirs in zip(one, other, strict=True):
        assert len(ours) > 5
        np.testing.assert_allclose(ours.scores, theirs.scores, atol=1e-4)
        np.testing.assert_allclose(ours.boxes, theirs.boxes, atol=0.1)
        assert ours.phrases == theirs.phrases


def test_remembered_frames_give_the_same_boxes(through_official: GroundingDino) -> None:
    model = through_official
    fresh = model.detect([frame(2)], ["grasper"])[0]

    model.detect([frame(2)], PHRASES, video_key="video")
    warm = model.detect([frame(2)], ["grasper"], video_key="video")[0]

    assert len(model.store) == 1
    np.testing.assert_allclose(fresh.scores, warm.scores, atol=1e-5)
    assert model.model_id.startswith("small@")


def test_the_hubs_older_files_load_with_their_extra_tables_and_copies(
    converted: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "older"
    shutil.copytree(converted, folder)
    tensors = load_file(folder / "model.safetensors")
    assert any(".attention.self.query." in key for key in tensors)  # the hub's names
    for key in [key for key in tensors if key.endswith("relative_position_bias_table")]:
        table = key.replace("bias_table", "index")
        tensors[table] = torch.zeros(25, 25, dtype=torch.long)
    for key in [key for key in tensors if key.startswith("bbox_embed.0.")]:
        tensors[f"model.decoder.{key}"] = tensors[key].clone()
        tensors[key.replace(".0.", ".1.", 1)] = tensors[key].clone()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})

    model = load_strictly(
        GroundingDinoForObjectDetection,
        str(folder),
        revision=None,
        dtype=torch.float32,
        attention=None,
    )

    assert torch.equal(
        model.bbox_embed[1].layers[0].weight, tensors["bbox_embed.0.layers.0.weight"]
    )


def test_every_official_tensor_has_a_place(folder: Path) -> None:
    state = read_official(folder / "small.pth")
    sizes = measure("small.pth", state)

    model = official_as_transformers("small.pth", state, sizes)

    place = "model.decoder.layers.1.encoder_attn_text.key.weight"
    joined = state["transformer.decoder.layers.1.ca_text.in_proj_weight"]
    assert torch.equal(model.state_dict()[place], joined[256:512])
    assert not {"label_enc.weight", "bert.embeddings.position_ids"} & set(state)


def test_a_file_with_code_is_refused_and_the_code_does_not_run(tmp_path: Path) -> None:
    trace = tmp_path / "ran"

    class Trap:
        def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
            return open, (str(trace), "w")  # type: ignore[return-value]

    path = tmp_path / "trap.pth"
    torch.save({"model": {"a": Trap()}}, path)

    with pytest.raises(WeightsError, match="holds code beside its weights"):
        read_official(path)
    assert not trace.exists()


def test_files_of_other_kinds_are_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "some.pth"
    with pytest.raises(WeightsError, match="no such detector file"):
        read_official(path)
    path.write_bytes(b"hello")
    with pytest.raises(WeightsError, match=r"damaged|not a readable torch file"):
        read_official(path)
    torch.save({"model": {"epoch": 3}}, path)
    with pytest.raises(WeightsError, match="not an official GroundingDINO file"):
        read_official(path)
    with pytest.raises(WeightsError, match="not a GroundingDINO with a Swin backbone"):
        measure("some.pth", {"transformer.level_embed": torch.zeros(4, 8)})


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda state: state.pop("transformer.enc_output.bias"), r"enc_output\.bias"),
        (lambda state: state.update(extra=torch.zeros(1)), "extra"),
        (
            lambda state: state.update({"feat_map.bias": torch.zeros(3)}),
            r"feat_map|text_projection",
        ),
    ],
    ids=["missing", "unknown", "size"],
)
def test_a_tensor_that_does_not_fit_is_named_by_both_ways(
    folder: Path, tmp_path: Path, edit: Callable[[dict[str, Tensor]], object], words: str
) -> None:
    state = read_official(folder / "small.pth")
    edit(state)
    path = tmp_path / "small.pth"
    torch.save({"model": state}, path)

    with pytest.raises(WeightsError, match=words):
        convert_official(path, str(folder / "words"), tmp_path / "out")
    (tmp_path / "words").symlink_to(folder / "words")
    with pytest.raises(WeightsError, match=words):
        official(tmp_path)


def test_another_tokenizer_is_refused(folder: Path, tmp_path: Path) -> None:
    caption_tokenizer(["hook"], tmp_path / "other")

    with pytest.raises(WeightsError, match="Use the tokenizer that it was trained with"):
        convert_official(folder / "small.pth", str(tmp_path / "other"), tmp_path / "out")


def test_names_are_translated_once_and_for_all(folder: Path) -> None:
    state = read_official(folder / "small.pth")

    names = transformers_names(state)

    assert not [key for key in names if re_official(key)]
    assert "model.backbone.conv_encoder.model.hidden_states_norms.stage2.weight" in names


def re_official(key: str) -> bool:
    """Whether a name still carries a word that only the official files use."""
    parts = set(key.split("."))
    return bool(parts & {"transformer", "cross_attn", "ca_text", "catext_norm", "bert", "qkv"})

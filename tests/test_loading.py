"""Checkpoints load strictly, and each fault is one sentence."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import Qwen2_5_VLForConditionalGeneration

from refinerank_core.checkpoint import load_refinenet, refinenet_id, save_refinenet
from refinerank_core.errors import ProfileError, RefineRankError, WeightsError
from refinerank_core.models.loading import load_strictly
from refinerank_core.models.untrained import write_untrained
from refinerank_core.pipeline import RefineRank
from refinerank_core.profiles import load_profile, profile_names
from refinerank_core.refinenet import RefineNet, RefineNetConfig

Fault = Callable[[Path], None]


def drop_key(folder: Path) -> None:
    change(folder, lambda tensors: tensors.pop("visual.blocks.2.norm1.weight"))


def add_key(folder: Path) -> None:
    change(folder, lambda tensors: tensors.update({"extra.weight": torch.zeros(3)}))


def resize_key(folder: Path) -> None:
    name = "visual.blocks.2.norm1.weight"
    change(folder, lambda tensors: tensors.update({name: torch.zeros(3)}))


def change(folder: Path, edit: Callable[[dict[str, torch.Tensor]], object]) -> None:
    path = folder / "medvlm" / "model.safetensors"
    tensors = load_file(path)
    edit(tensors)
    save_file(tensors, path, metadata={"format": "pt"})


def cut_file(folder: Path) -> None:
    path = folder / "medvlm" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:5000])


def remove_weights(folder: Path) -> None:
    (folder / "medvlm" / "model.safetensors").unlink()


def remove_config(folder: Path) -> None:
    (folder / "medvlm" / "config.json").unlink()


def remove_processor(folder: Path) -> None:
    for path in (folder / "detector").glob("*token*"):
        path.unlink()
    (folder / "detector" / "processor_config.json").unlink()


def remove_folder(folder: Path) -> None:
    shutil.rmtree(folder / "detector")


def other_widths(folder: Path) -> None:
    net = RefineNet(RefineNetConfig(query_dim=8, final_dim=8, inter_dim=8, inter_block=5))
    save_refinenet(net, folder / "refinenet.safetensors")


def other_block(folder: Path) -> None:
    net = RefineNet(RefineNetConfig(query_dim=96, final_dim=96, inter_dim=64, inter_block=3))
    save_refinenet(net, folder / "refinenet.safetensors")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (drop_key, r"missing .*blocks\.2\.norm1\.weight"),
        (add_key, r"unknown extra\.weight"),
        (resize_key, r"of another size .*blocks\.2\.norm1\.weight"),
        (cut_file, "damaged|cannot be loaded"),
        (remove_weights, r"no \.safetensors file"),
        (remove_config, r"no config\.json"),
        (remove_processor, "processor files are missing"),
        (remove_folder, "not on this machine"),
        (other_widths, "Use the RefineNet that was trained on this MedVLM"),
        (other_block, r"Correct refinenet\.inter_block"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_faulty_checkpoint_is_refused_in_one_sentence(
    untrained_profile: Path, tmp_path: Path, fault: Fault, words: str
) -> None:
    folder = tmp_path / "models"
    shutil.copytree(untrained_profile.parent, folder)
    fault(folder)

    with pytest.raises(WeightsError, match=words) as caught:
        RefineRank.load(str(folder / "profile.json"), device="cpu")

    assert "\n" not in str(caught.value)
    assert str(tmp_path) not in str(caught.value).replace(str(folder / "detector"), "")


def sharded(profile: Path, folder: Path) -> Path:
    """The profile's MedVLM as large checkpoints come: in several files, with an index."""
    source = profile.parent / "medvlm"
    model = Qwen2_5_VLForConditionalGeneration.from_pretrained(source)
    model.save_pretrained(folder, max_shard_size="300KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 2
    return folder


def load(folder: Path) -> Any:
    return load_strictly(
        Qwen2_5_VLForConditionalGeneration,
        str(folder),
        revision=None,
        dtype=torch.float32,
        attention="sdpa",
    )


def test_a_checkpoint_in_several_files_loads_as_the_one_in_one(
    untrained_profile: Path, tmp_path: Path
) -> None:
    whole = load(untrained_profile.parent / "medvlm").state_dict()

    spread = load(sharded(untrained_profile, tmp_path / "medvlm")).state_dict()

    assert spread.keys() == whole.keys()
    assert all(torch.equal(tensor, whole[name]) for name, tensor in spread.items())


def test_a_missing_file_of_several_is_named(untrained_profile: Path, tmp_path: Path) -> None:
    folder = sharded(untrained_profile, tmp_path / "medvlm")
    gone = sorted(folder.glob("model-*.safetensors"))[1]
    gone.unlink()

    with pytest.raises(WeightsError, match=rf"1 of \d+ files of weights are missing \({gone.name}"):
        load(folder)
    (folder / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(WeightsError, match="its list of weight files is damaged"):
        load(folder)


def test_the_same_seed_gives_the_same_checkpoints(tmp_path: Path) -> None:
    names = ["medvlm/model.safetensors", "detector/model.safetensors", "refinenet.safetensors"]
    for turn in ("one", "two"):
        write_untrained(tmp_path / turn, seed=3)

    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_refinenet_returns_bit_equal_with_its_block(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = RefineNet(RefineNetConfig(query_dim=6, final_dim=5, inter_dim=4, inter_block=23))
    net.standardizer_mean += torch.arange(12)
    path = tmp_path / "net.safetensors"

    save_refinenet(net, path)
    back = load_refinenet(path)

    assert back.config == net.config
    for name, tensor in net.state_dict().items():
        assert torch.equal(back.state_dict()[name], tensor)
    assert refinenet_id(path).startswith("net@")


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda t: t.pop("delta_head.bias"), r"missing delta_head\.bias"),
        (lambda t: t.update(more=torch.zeros(1)), "unknown more"),
        (lambda t: t.update({"delta_head.bias": torch.zeros(5)}), r"size delta_head\.bias"),
        (lambda t: t["quality_head.bias"].fill_(float("nan")), r"not finite quality_head\.bias"),
    ],
    ids=["missing", "unknown", "size", "nan"],
)
def test_a_refinenet_that_does_not_fit_is_refused(
    tmp_path: Path, edit: Callable[[dict[str, torch.Tensor]], object], words: str
) -> None:
    net = RefineNet(RefineNetConfig(query_dim=6, final_dim=5, inter_dim=4))
    path = tmp_path / "net.safetensors"
    save_refinenet(net, path)
    header = {"refinerank": read_header(path)}
    tensors = load_file(path)
    edit(tensors)
    save_file(tensors, path, metadata=header)

    with pytest.raises(WeightsError, match=words):
        load_refinenet(path)


def read_header(path: Path) -> str:
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    text: str = json.loads(raw[8 : 8 + size])["__metadata__"]["refinerank"]
    return text


def test_a_file_that_is_no_refinenet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    with pytest.raises(WeightsError, match="no such RefineNet file"):
        load_refinenet(path)
    path.write_text("hello")
    with pytest.raises(WeightsError, match="not a readable safetensors file"):
        load_refinenet(path)
    save_file({"a": torch.zeros(1)}, path)
    with pytest.raises(WeightsError, match="schema no schema, wanted refinerank-refinenet-1"):
        load_refinenet(path)


def test_every_bundled_profile_loads_its_settings() -> None:
    assert "untrained" in profile_names()
    for name in profile_names():
        assert load_profile(name).name == name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is wrong at"),
        ('{"name": "x"}', "is wrong at label"),
        (
            '{"name": "x", "label": "x", "medvlm": {"source": "./m", "blocks": [1]}, "detector": '
            '{"source": "./d"}, "refinenet": {"source": "./r", "inter_block": 5}}',
            "is not among",
        ),
    ],
    ids=["no JSON", "field missing", "block not kept"],
)
def test_a_wrong_profile_file_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "mine.json"
    path.write_text(text)

    with pytest.raises(ProfileError, match=words):
        load_profile(str(path))


@pytest.mark.parametrize("name", ["nonsense", "../untrained", "nowhere.json"])
def test_an_unknown_profile_names_the_known_ones(name: str) -> None:
    with pytest.raises(RefineRankError, match=r"unknown: choose one of .*untrained"):
        load_profile(name)

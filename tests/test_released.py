"""The released RefineNet file loads without running anything in it."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from refinerank_core.__main__ import main
from refinerank_core.checkpoint import load_refinenet, save_refinenet
from refinerank_core.errors import WeightsError
from refinerank_core.refinenet import RefineNet, RefineNetConfig
from refinerank_core.released import load_released


def released_content(width: int = 128) -> dict[str, Any]:
    """A file of the released layout at its real sizes, with seeded weights."""
    torch.manual_seed(5)
    net = RefineNet(RefineNetConfig(d_model=width))
    state = {
        name.replace("inter_projection", "l31_projection"): tensor.clone()
        for name, tensor in net.state_dict().items()
        if not name.startswith("standardizer")
    }
    return {
        "schema_version": 1,
        "source_feature_contract_hash": "0" * 64,
        "adapter_config": {
            "d_model": width,
            "hidden_dim": 256,
            "dropout": 0.1,
            "max_trainable_parameters": 1_500_000,
            "center_shift_scale": 0.5,
            "max_log_scale": float(np.log(2)),
            "regression_anchor_count": 8,
            "shortlist_k": 48,
            "native_anchor_count": 16,
            "quality_weight": 0.7,
            "diversity_weight": 0.3,
        },
        "train_config": {"epochs": 40, "seed": 20260719},
        "standardizer": {"mean": np.arange(12) / 10, "std": np.full(12, 2.0)},
        "model_state": state,
    }


def test_the_released_file_becomes_a_refinenet(tmp_path: Path) -> None:
    content = released_content()
    path = tmp_path / "proposal_adapter_full.pt"
    torch.save(content, path)

    net = load_refinenet(path)

    assert net.config.inter_block == 31
    assert sum(parameter.numel() for parameter in net.parameters()) == 1_251_334
    assert torch.equal(net.inter_projection.weight, content["model_state"]["l31_projection.weight"])
    assert torch.equal(net.delta_head.bias, content["model_state"]["delta_head.bias"])
    np.testing.assert_allclose(net.standardizer_mean, np.arange(12) / 10, rtol=1e-6)
    assert net.standardizer_std.tolist() == [2.0] * 12


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_standardiser_may_be_of_either_float(tmp_path: Path, kind: type) -> None:
    content = released_content()
    content["standardizer"] = {"mean": np.zeros(12, kind), "std": np.ones(12, kind)}
    torch.save(content, tmp_path / "net.pt")

    assert load_released(tmp_path / "net.pt").standardizer_std.tolist() == [1.0] * 12


class Intruder:
    """Runs a command when it is unpickled without care."""

    def __init__(self, target: Path) -> None:
        self._target = target

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return _touch, (str(self._target),)


def _touch(path: str) -> None:
    Path(path).touch()


def test_code_in_the_file_is_not_run(tmp_path: Path) -> None:
    trace = tmp_path / "it ran"
    torch.save({**released_content(), "extra": Intruder(trace)}, tmp_path / "net.pt")

    with pytest.raises(WeightsError, match="holds code"):
        load_released(tmp_path / "net.pt")

    assert not trace.exists()


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda c: c.update(schema_version=2), "schema 2, wanted 1"),
        (lambda c: c.pop("model_state"), "model_state missing"),
        (lambda c: c["model_state"].pop("delta_head.bias"), r"delta_head\.bias"),
        (lambda c: c["model_state"].update(more=torch.zeros(1)), "more"),
        (lambda c: c["model_state"].update({"quality_head.bias": torch.zeros(3)}), "quality_head"),
        (lambda c: c["model_state"].pop("l31_projection.weight"), "inter_projection|configuration"),
        (lambda c: c["model_state"].update({"l23_projection.bias": torch.zeros(2)}), "found 2"),
        (lambda c: c["standardizer"].update(mean=np.zeros(11)), "standardiser"),
        (lambda c: c["model_state"]["delta_head.bias"].fill_(float("inf")), "not finite"),
        (lambda c: c["adapter_config"].pop("d_model"), "configuration"),
        (lambda c: c.update(model_state=[1, 2]), "not a table of tensors"),
    ],
    ids="schema state missing unknown size no-block two-blocks eleven infinite config list".split(),
)
def test_a_file_that_does_not_fit_is_refused(
    tmp_path: Path, edit: Callable[[dict[str, Any]], object], words: str
) -> None:
    content = released_content()
    edit(content)
    torch.save(content, tmp_path / "net.pt")

    with pytest.raises(WeightsError, match=words) as caught:
        load_released(tmp_path / "net.pt")

    assert "\n" not in str(caught.value)


def test_what_is_no_torch_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.pt"
    with pytest.raises(WeightsError, match="no such RefineNet file"):
        load_released(path)
    for content in (b"", b"hello", pickle.dumps([1, 2, 3]), b"PK\x03\x04broken"):
        path.write_bytes(content)
        with pytest.raises(WeightsError):
            load_released(path)


def test_info_prints_both_kinds_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save(released_content(), tmp_path / "net.pt")
    save_refinenet(
        RefineNet(RefineNetConfig(query_dim=8, final_dim=8, inter_dim=6, inter_block=5)),
        tmp_path / "net.safetensors",
    )

    assert main(["refinenet", "info", str(tmp_path / "net.pt")]) == 0
    released = json.loads(capsys.readouterr().out)
    assert main(["refinenet", "info", str(tmp_path / "net.safetensors")]) == 0
    own = json.loads(capsys.readouterr().out)

    assert released["parameters"] == 1_251_334
    assert (released["source"], released["inter_block"]) == ("released", 31)
    assert (released["query_dim"], released["inter_dim"], released["final_dim"]) == (
        3584,
        1280,
        3584,
    )
    assert (own["source"], own["inter_block"], own["inter_dim"]) == ("own", 5, 6)
    assert len(own["standardizer"]["mean"]) == 12


def test_info_on_anything_else_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("notes.txt", "net.pt", "net.safetensors", "absent.pt"):
        if name != "absent.pt":
            (tmp_path / name).write_text("notes")

        assert main(["refinenet", "info", str(tmp_path / name)]) == 1

        printed = capsys.readouterr()
        assert printed.err.count("\n") == 1
        assert printed.out == ""

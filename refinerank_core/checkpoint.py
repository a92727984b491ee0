"""RefineNet on disk: one safetensors file whose header carries the configuration."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from refinerank_core.errors import WeightsError
from refinerank_core.refinenet import RefineNet, RefineNetConfig
from refinerank_core.released import load_released

SCHEMA = "refinerank-refinenet-1"
RELEASED_SUFFIXES = (".pt", ".pth")
_HEADER = "refinerank"
_SHOWN_KEYS = 3


def save_refinenet(net: RefineNet, path: Path) -> None:
    """Write weights, standardiser and configuration to a .safetensors file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.contiguous().cpu() for name, tensor in net.state_dict().items()}
    # One entry only: safetensors writes several in a random order, and equal nets must hash equal.
    header = json.dumps({"schema": SCHEMA, "config": asdict(net.config)}, sort_keys=True)
    save_file(tensors, path, metadata={_HEADER: header})


def load_refinenet(path: Path) -> RefineNet:
    """Read a RefineNet: what save_refinenet wrote, or the released torch file.

    Every parameter must be there, of its size, and finite.

    Raises:
        WeightsError: the file is absent, damaged, of another schema, or its tensors do not fit.
    """
    name = path.name
    if path.suffix in RELEASED_SUFFIXES:
        return load_released(path)
    if not path.is_file():
        raise WeightsError(f"{name}: no such RefineNet file. Check the profile's refinenet source.")
    try:
        with safe_open(path, framework="pt") as file:
            header = _read_header((file.metadata() or {}).get(_HEADER, "{}"))
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{name}: not a readable safetensors file. Copy it again.") from error
    if header.get("schema") != SCHEMA:
        found = header.get("schema", "no schema")
        raise WeightsError(f"{name}: schema {found}, wanted {SCHEMA}. Use a RefineNet checkpoint.")
    try:
        config = RefineNetConfig(**header["config"])
        net = RefineNet(config)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise WeightsError(f"{name}: its configuration cannot be read. Copy it again.") from error
    _require_same_tensors(name, net.state_dict(), tensors)
    net.load_state_dict(tensors)
    return net.eval().requires_grad_(False)


def _read_header(text: str) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except ValueError:
        return {}
    return header if isinstance(header, dict) else {}


def _require_same_tensors(
    name: str, wanted: dict[str, torch.Tensor], found: dict[str, torch.Tensor]
) -> None:
    resized = [key for key in wanted.keys() & found.keys() if wanted[key].shape != found[key].shape]
    broken = [key for key, tensor in found.items() if not bool(torch.isfinite(tensor).all())]
    faults = [
        f"{word} {', '.join(sorted(keys)[:_SHOWN_KEYS])}"
        for word, keys in (
            ("missing", wanted.keys() - found.keys()),
            ("unknown", found.keys() - wanted.keys()),
            ("of another size", resized),
            ("not finite", broken),
        )
        if keys
    ]
    if faults:
        raise WeightsError(
            f"{name}: the tensors do not fit a RefineNet ({'; '.join(faults)}). "
            "Use a complete checkpoint."
        )


def refinenet_id(path: Path) -> str:
    """File name and 12 hex digits of the SHA-256 of its bytes."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{path.stem}@{digest[:12]}"

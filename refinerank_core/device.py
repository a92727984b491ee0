"""Where models run and in which number type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refinerank_core.errors import ModelError

if TYPE_CHECKING:  # torch takes seconds to import, and `info` needs only the names
    import torch

DEVICES = ("auto", "cpu", "cuda")


def choose_device(name: str = "auto") -> torch.device:
    """The device for a name: "auto" is the first CUDA card, else the CPU.

    Raises:
        ModelError: the name asks for a card that this machine does not have.
    """
    import torch

    kind = name.split(":")[0]
    if kind not in DEVICES:
        raise ModelError(f"Device {name!r} is unknown: choose one of {', '.join(DEVICES)}.")
    if kind == "auto":
        return torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    if kind == "cuda" and not torch.cuda.is_available():
        raise ModelError("No CUDA device was found: run with --device cpu or --device auto.")
    return torch.device(name)


def choose_dtype(device: torch.device, name: str = "auto") -> torch.dtype:
    """float32 on the CPU, bfloat16 on CUDA; or the one that is named."""
    import torch

    named = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    if name != "auto":
        return named[name]
    return torch.bfloat16 if device.type == "cuda" else torch.float32

"""Read the RefineNet that the paper's authors released (`proposal_adapter_full.pt`).

The file is a torch pickle. It is read with weights_only, which runs no code of the file; only the
numpy types of the standardiser are allowed beside tensors and plain values.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from refinerank_core.errors import WeightsError
from refinerank_core.models.torch_file import read_torch_file
from refinerank_core.refinenet import METADATA_VALUES, RefineNet, RefineNetConfig

SCHEMA_VERSION = 1
_BLOCK_PROJECTION = re.compile(r"l(\d+)_projection\.(weight|bias)")
_NEEDED = ("schema_version", "adapter_config", "standardizer", "model_state")


def load_released(path: Path) -> RefineNet:
    """The released weights as a RefineNet; the block that they read is in a layer's name.

    Raises:
        WeightsError: the file is absent, damaged, holds code, is of another schema, or its tensors
            do not fit.
    """
    name = path.name
    content = _read(path)
    absent = [key for key in _NEEDED if key not in content]
    if absent:
        raise WeightsError(
            f"{name}: not a released RefineNet ({', '.join(absent)} missing). "
            "Use proposal_adapter_full.pt."
        )
    if content["schema_version"] != SCHEMA_VERSION:
        raise WeightsError(
            f"{name}: schema {content['schema_version']}, wanted {SCHEMA_VERSION}. "
            "Use a RefineNet of this release."
        )
    state = content["model_state"]
    if not isinstance(state, Mapping) or not all(isinstance(t, Tensor) for t in state.values()):
        raise WeightsError(f"{name}: model_state is not a table of tensors. Download it again.")
    renamed, block = _own_names(name, state)
    try:
        mean, std = (_twelve(content["standardizer"][key]) for key in ("mean", "std"))
        net = RefineNet(_config(content["adapter_config"], renamed, block))
    except (KeyError, TypeError, ValueError, IndexError, RuntimeError) as error:
        raise WeightsError(
            f"{name}: its configuration or standardiser cannot be read. Download it again."
        ) from error
    tensors = {**renamed, "standardizer_mean": mean, "standardizer_std": std}
    try:
        net.load_state_dict(tensors)
    except RuntimeError as error:
        first = str(error).strip().splitlines()[-1].strip()
        raise WeightsError(f"{name}: the tensors do not fit a RefineNet ({first[:160]})") from error
    if not all(bool(torch.isfinite(tensor).all()) for tensor in net.state_dict().values()):
        raise WeightsError(
            f"{name}: a tensor holds numbers that are not finite. Download it again."
        )
    return net.eval().requires_grad_(False)


def _read(path: Path) -> dict[str, Any]:
    allowed = [
        np.ndarray,
        np.dtype,
        np._core.multiarray._reconstruct,  # type: ignore[attr-defined]
        *(type(np.dtype(kind)) for kind in (np.float32, np.float64)),
    ]
    content = read_torch_file(path, kind="RefineNet", origin="released", allowed=allowed)
    if not isinstance(content, dict):
        raise WeightsError(f"{path.name}: not a released RefineNet. Use proposal_adapter_full.pt.")
    return content


def _own_names(name: str, state: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], int]:
    """The tensors under our names, and the block whose projection stood among them."""
    blocks = {int(found[1]) for key in state if (found := _BLOCK_PROJECTION.fullmatch(key))}
    if len(blocks) != 1:
        raise WeightsError(
            f"{name}: wanted the projection of one vision block, found {len(blocks)}. "
            "Use proposal_adapter_full.pt."
        )
    renamed = {
        _BLOCK_PROJECTION.sub(r"inter_projection.\2", key): tensor for key, tensor in state.items()
    }
    return renamed, blocks.pop()


def _config(adapter: Mapping[str, Any], state: Mapping[str, Tensor], block: int) -> RefineNetConfig:
    return RefineNetConfig(
        query_dim=state["query_projection.weight"].shape[1],
        final_dim=state["final_projection.weight"].shape[1],
        inter_dim=state["inter_projection.weight"].shape[1],
        inter_block=block,
        d_model=int(adapter["d_model"]),
        hidden_dim=int(adapter["hidden_dim"]),
        dropout=float(adapter["dropout"]),
    )


def _twelve(values: Any) -> Tensor:
    array = np.asarray(values, dtype=np.float32)
    if array.shape != (METADATA_VALUES,):
        raise ValueError(f"the standardiser must hold {METADATA_VALUES} values, got {array.shape}")
    return torch.from_numpy(array)

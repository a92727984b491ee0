"""Read a file of weights that others wrote with torch, without running anything in it."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from refinerank_core.errors import WeightsError


def read_torch_file(path: Path, *, kind: str, origin: str, allowed: Sequence[Any] = ()) -> Any:
    """What the file holds: tensors, plain containers and the allowed types.

    Args:
        path: of the file.
        kind: of the model, for the sentence where the file is absent.
        origin: of the file, such as "official", for the advice where it cannot be read.
        allowed: types beside torch's own that it may hold.

    Raises:
        WeightsError: the file is absent, damaged, or holds code.
    """
    try:
        with torch.serialization.safe_globals(list(allowed)):
            return torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise WeightsError(f"{path.name}: no such {kind} file. Check the profile.") from error
    except pickle.UnpicklingError as error:
        raise WeightsError(
            f"{path.name}: the file is damaged or holds code beside its weights, which is not run. "
            f"Download the {origin} file again."
        ) from error
    except (OSError, RuntimeError, EOFError, ValueError, KeyError) as error:
        raise WeightsError(
            f"{path.name}: not a readable torch file. Download the {origin} file again."
        ) from error

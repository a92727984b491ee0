"""Load a transformers checkpoint strictly, and name it by the content of its weights."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers.utils import logging as transformers_logging

from refinerank_core.errors import WeightsError

_HASH_WHOLE_BELOW_BYTES = 512 * 1024 * 1024
_SHOWN_KEYS = 3


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers' progress bars and notices off the user's terminal."""
    level = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        if bars:
            transformers_logging.enable_progress_bar()


def load_strictly(
    model_class: Any,  # a PreTrainedModel class; transformers ships no types
    source: str,
    *,
    revision: str | None,
    dtype: torch.dtype,
    attention: str,
) -> Any:
    """A frozen model in eval mode whose every parameter came from the checkpoint.

    Args:
        model_class: the transformers class to build.
        source: a checkpoint directory or a hub id.
        revision: the pinned hub revision, None for a directory.
        dtype: number type of the weights.
        attention: "sdpa" or "eager".

    Raises:
        WeightsError: the checkpoint is absent, damaged, of another architecture or size, or has
            missing or unknown keys.
    """
    _refuse_incomplete(source)
    name = Path(source).name
    try:
        with quiet():  # the keys are checked below; the library would print a table of them
            model, report = model_class.from_pretrained(
                source,
                revision=revision,
                dtype=dtype,
                attn_implementation=attention,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # reported below in our own words
            )
    except (OSError, ValueError, KeyError, RuntimeError, TypeError) as error:
        raise WeightsError(_why_not_loaded(source, error)) from error
    except Exception as error:  # safetensors raises a class of its own that it does not export
        if type(error).__name__ != "SafetensorError":
            raise
        raise WeightsError(
            f"{name}: the weights are damaged. Copy the checkpoint again."
        ) from error
    wrong = [
        f"{word} {', '.join(sorted(map(str, keys))[:_SHOWN_KEYS])}"
        for word, keys in (
            ("missing", report["missing_keys"]),
            ("unknown", report["unexpected_keys"]),
            ("of another size", [key for key, *_ in report["mismatched_keys"]]),
        )
        if keys
    ]
    if wrong:
        raise WeightsError(
            f"{name}: the checkpoint does not fit {model_class.__name__} ({'; '.join(wrong)}). "
            "Use a complete checkpoint of this architecture."
        )
    return model.eval().requires_grad_(False)


def _refuse_incomplete(source: str) -> None:
    """Refuse a folder without configuration or weights before anything is built.

    Without a config.json the library would build the architecture's default size: 72 billion
    random numbers for Qwen2.5-VL.
    """
    folder = Path(source)
    if not folder.is_dir():
        return
    for pattern, what in (("config.json", "config.json"), ("*.safetensors", ".safetensors file")):
        if not any(folder.glob(pattern)):
            raise WeightsError(
                f"{folder.name}: no {what} in the checkpoint folder. Copy the whole checkpoint."
            )


def _why_not_loaded(source: str, error: Exception) -> str:
    name = Path(source).name
    if Path(source).is_dir():
        reason = (str(error).strip().splitlines() or ["no reason given"])[0]
        return f"{name}: the checkpoint cannot be loaded ({type(error).__name__}: {reason[:120]})."
    return (
        f"{source}: the weights are not on this machine and cannot be fetched now. "
        "Connect to the internet once, or name a checkpoint folder in the profile."
    )


def weights_id(source: str, model: Any) -> str:
    """Name of a checkpoint plus 12 hex digits of its content.

    A hub checkpoint carries its commit. A directory below 512 MiB is hashed whole; of a larger one
    the safetensors headers (names, shapes, offsets) and the file sizes are hashed.
    """
    folder = Path(source)
    if not folder.is_dir():
        commit = getattr(model.config, "_commit_hash", None) or "unpinned"
        return f"{source}@{commit[:12]}"
    files = sorted(folder.glob("*.safetensors"))
    whole = sum(file.stat().st_size for file in files) < _HASH_WHOLE_BELOW_BYTES
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            if whole:
                while chunk := stream.read(1 << 20):
                    digest.update(chunk)
            else:
                header_bytes = int.from_bytes(stream.read(8), "little")
                digest.update(stream.read(header_bytes))
                digest.update(json.dumps([file.name, file.stat().st_size]).encode())
    return f"{folder.name}@{digest.hexdigest()[:12]}"

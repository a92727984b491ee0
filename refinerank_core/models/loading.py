"""Load a transformers checkpoint strictly, and name it by the content of its weights."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from transformers import AutoProcessor, BitsAndBytesConfig
from transformers.utils import logging as transformers_logging

from refinerank_core.errors import ModelError, WeightsError

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
    attention: str | None,
    quantisation: Any = None,
    device: torch.device | None = None,
) -> Any:
    """A frozen model in eval mode, on its device, whose every parameter came from the checkpoint.

    Args:
        model_class: the transformers class to build.
        source: a checkpoint directory or a hub id.
        revision: the pinned hub revision, None for a directory.
        dtype: number type of the weights.
        attention: "sdpa" or "eager" for every part of the model; None lets each part have its own.
        quantisation: what `quantisation` gave; None loads the weights as they are.
        device: where the model goes; None leaves it on the CPU.

    Raises:
        WeightsError: the checkpoint is absent, damaged, of another architecture or size, or has
            missing or unknown keys.
    """
    _refuse_incomplete(source)
    name = Path(source).name
    how: dict[str, Any] = {}
    if attention is not None:
        how["attn_implementation"] = attention
    if quantisation is not None:  # quantised weights cannot be moved once they are loaded
        how |= {"quantization_config": quantisation, "device_map": {"": device}}
    try:
        with quiet():  # the keys are checked below; the library would print a table of them
            model, report = model_class.from_pretrained(
                source,
                revision=revision,
                dtype=dtype,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # reported below in our own words
                **how,
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
    if device is not None and quantisation is None:
        model = model.to(device)
    return model.eval().requires_grad_(False)


def quantisation(bits: int | None, dtype: torch.dtype) -> Any:
    """How bitsandbytes is to load a language model; the vision tower is left as it is.

    Args:
        bits: 8, 4 (nf4), or None for weights as they are.
        dtype: number type that 4-bit weights are computed in.

    Returns:
        A BitsAndBytesConfig, or None.

    Raises:
        ModelError: the package is not installed.
    """
    if bits is None:
        return None
    if find_spec("bitsandbytes") is None:
        raise ModelError(
            f"Loading in {bits} bits needs the package bitsandbytes. Run 'pip install "
            "bitsandbytes', or set medvlm.load_bits to null."
        )
    return BitsAndBytesConfig(
        load_in_8bit=bits == 8,
        load_in_4bit=bits == 4,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_compute_dtype=dtype,
        llm_int8_skip_modules=["visual", "lm_head"],
    )


def load_processor(source: str, revision: str | None) -> Any:
    """The processor of a checkpoint.

    Raises:
        WeightsError: its files are missing or damaged.
    """
    try:
        processor = AutoProcessor.from_pretrained(source, revision=revision)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WeightsError(
            f"{source.rsplit('/', 1)[-1]}: the processor files are missing or damaged. "
            "Copy the whole checkpoint."
        ) from error
    return processor


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
    shards = shards_of(folder)
    if absent := [name for name in shards if not (folder / name).is_file()]:
        raise WeightsError(
            f"{folder.name}: {len(absent)} of {len(shards)} files of weights are missing "
            f"({absent[0]}). Copy the whole checkpoint."
        )


def shards_of(folder: Path) -> list[str]:
    """Names of the files that a checkpoint's weights are spread over; empty where it has no index.

    Raises:
        WeightsError: the index is damaged.
    """
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return []
    try:
        told = json.loads(index.read_text(encoding="utf-8"))
        return sorted({str(name) for name in told["weight_map"].values()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise WeightsError(
            f"{folder.name}: its list of weight files is damaged. Copy the whole checkpoint."
        ) from error


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

    A hub checkpoint carries its commit, also as a folder of the hub's cache. Another directory
    below 512 MiB is hashed whole; of a larger one the safetensors headers (names, shapes, offsets)
    and the file sizes are hashed.
    """
    folder = Path(source)
    if not folder.is_dir():
        commit = getattr(model.config, "_commit_hash", None) or "unpinned"
        return f"{source}@{commit[:12]}"
    if folder.parent.name == "snapshots":
        owner, _, name = folder.parent.parent.name.removeprefix("models--").partition("--")
        return f"{owner}/{name}@{folder.name[:12]}"
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

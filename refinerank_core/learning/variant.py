"""A profile with another RefineNet: what a training from reviews leaves behind.

FOLDER/NAME.json         the profile, which the app and every command take by path
FOLDER/NAME.safetensors  its RefineNet
FOLDER/NAME.card.json    how it came to be: which reviews, which videos, before and after
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from refinerank_core.checkpoint import save_refinenet
from refinerank_core.errors import RefineRankError
from refinerank_core.profiles import Learned, Profile
from refinerank_core.refinenet import RefineNet

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
CARD = ".card.json"


def require_name(name: str) -> None:
    """Raise RefineRankError unless a variant may be called so."""
    if not _NAME.fullmatch(name):
        raise RefineRankError(
            f"The name {name[:80]!r} cannot be used: choose small letters, digits, '-' and '_'."
        )


def write_variant(
    folder: Path,
    name: str,
    profile: Profile,
    net: RefineNet,
    learned: Learned,
    card: dict[str, Any],
) -> Path:
    """Write the three files; the profile comes last, so that one that is there is whole.

    Args:
        folder: of variants.
        name: of the variant; one of the same name is replaced.
        profile: whose other models it uses.
        net: its RefineNet.
        learned: what it was taught by.
        card: the whole story.

    Returns:
        The path of the profile.

    Raises:
        RefineRankError: it cannot be written.
    """
    require_name(name)
    told = profile.model_dump(mode="json", exclude={"folder"})
    told |= {
        "name": name,
        "label": f"{profile.label}; RefineNet taught by {learned.cases} reviewed boxes",
        "learned": learned.model_dump(mode="json"),
        "refinenet": {"source": f"./{name}.safetensors", "inter_block": net.config.inter_block},
    }
    for part in ("medvlm", "detector"):
        told[part]["source"] = _seen_from(folder, profile, told[part]["source"])
    told["detector"]["tokenizer"] = _seen_from(folder, profile, told["detector"]["tokenizer"])
    path = folder / f"{name}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        save_refinenet(net, folder / f"{name}.safetensors")
        _write(folder / f"{name}{CARD}", card)
        _write(path, told)
    except OSError as error:
        raise RefineRankError(f"{folder.name} cannot be written ({error.strerror}).") from error
    return path


def _seen_from(folder: Path, profile: Profile, source: str) -> str:
    """A source of the profile as a profile in this folder has to name it."""
    if not source.startswith("."):
        return source
    there = os.path.relpath(profile.locate(source), folder.resolve())
    return there if there.startswith(".") else f"./{there}"


def _write(path: Path, content: dict[str, Any]) -> None:
    scratch = path.with_name(f".{path.name}.part")
    scratch.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    scratch.replace(path)

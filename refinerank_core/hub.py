"""Where a profile's checkpoints lie on this machine: its own folders, or the hub's cache.

Nothing is downloaded here. What is missing is named together with the command that fetches it.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import constants
from huggingface_hub.file_download import repo_folder_name

from refinerank_core.errors import WeightsError
from refinerank_core.hub_lock import locked_commit
from refinerank_core.profiles import Profile, is_hub_id

_COMMIT = re.compile("[0-9a-f]{40}")
_WHOLE = (".json", ".safetensors", ".txt", ".jinja", ".model")
_TOKENIZER = (
    "config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
)


@dataclass(frozen=True)
class Part:
    """What one model of a profile needs from one repository of the hub.

    Attributes:
        role: "medvlm", "detector", "tokenizer" or "refinenet".
        repo: hub id, "owner/name".
        revision: pinned commit, branch or tag; None is the main branch, as it was when it was
            first fetched here.
        file: the one file that is needed, wherever in the repository; None for a whole checkpoint.
    """

    role: str
    repo: str
    revision: str | None
    file: str | None = None

    @property
    def is_pinned(self) -> bool:
        """Whether the revision is a whole commit, which never moves."""
        return self.revision is not None and bool(_COMMIT.fullmatch(self.revision))

    @property
    def in_words(self) -> str:
        """What is wanted, for a sentence."""
        return self.repo if self.file is None else f"{self.file} of {self.repo}"

    def chosen(self, names: list[str]) -> list[str]:
        """The files of the repository that are needed, in order.

        A whole checkpoint is its configuration, tokenizer and safetensors at the top level.
        """
        if self.file is not None:
            named = [name for name in names if name.rsplit("/", 1)[-1] == self.file]
            return sorted(named, key=lambda name: (name.count("/"), name))[:1]
        if self.role == "tokenizer":
            return [name for name in names if name in _TOKENIZER]
        return [name for name in names if "/" not in name and name.endswith(_WHOLE)]


def parts_of(profile: Profile) -> list[Part]:
    """What a profile needs from the hub; empty where it names folders or a recipe."""
    if profile.recipe is not None:
        return []
    medvlm, detector, refinenet = profile.medvlm, profile.detector, profile.refinenet
    parts = [
        Part("medvlm", medvlm.source, medvlm.revision),
        Part("detector", detector.source, detector.revision, detector.file),
    ]
    if detector.backend == "groundingdino-py":
        parts.append(Part("tokenizer", detector.tokenizer, detector.tokenizer_revision))
    if refinenet.source is not None:
        parts.append(Part("refinenet", refinenet.source, refinenet.revision, refinenet.file))
    return [part for part in parts if is_hub_id(part.repo)]


def find(part: Part, cache: Path | None = None) -> Path | None:
    """The part's folder or file in the cache; None when it is not there whole.

    Args:
        part: what is wanted.
        cache: the hub's cache folder; None is the library's own (HF_HOME, HF_HUB_CACHE).
    """
    snapshot = snapshot_folder(part, cache)
    if snapshot is None or not snapshot.is_dir():
        return None
    if part.file is not None:
        names = [str(path.relative_to(snapshot)) for path in snapshot.rglob(part.file)]
        chosen = part.chosen(names)
        return snapshot / chosen[0] if chosen else None
    if part.role == "tokenizer":
        return snapshot if any((snapshot / name).is_file() for name in _TOKENIZER[2:]) else None
    return snapshot if _is_whole(snapshot) else None


def snapshot_folder(part: Part, cache: Path | None = None) -> Path | None:
    """Where the cache keeps this revision; None when it has never heard of it."""
    root = cache or Path(constants.HF_HUB_CACHE)
    folder = root / repo_folder_name(repo_id=part.repo, repo_type="model")
    wanted = part.revision or "main"
    if not part.is_pinned:
        wanted = locked_commit(root, part.repo, part.revision) or wanted
    if (folder / "snapshots" / wanted).is_dir():
        return folder / "snapshots" / wanted
    ref = folder / "refs" / wanted
    return folder / "snapshots" / ref.read_text().strip() if ref.is_file() else None


def _is_whole(snapshot: Path) -> bool:
    """Whether configuration and every file of weights are there."""
    if not (snapshot / "config.json").is_file():
        return False
    index = snapshot / "model.safetensors.index.json"
    if not index.is_file():
        return any(snapshot.glob("*.safetensors"))
    try:
        shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    except (ValueError, KeyError, AttributeError):
        return False
    return all((snapshot / shard).is_file() for shard in shards)


def on_this_machine(profile: Profile, cache: Path | None = None) -> Profile:
    """The profile with every hub id replaced by the folder or file that holds it here.

    Raises:
        WeightsError: something is missing; every missing repository is named.
    """
    places = {part.role: (part, find(part, cache)) for part in parts_of(profile)}
    missing = [part.in_words for part, place in places.values() if place is None]
    if missing:
        raise WeightsError(
            f"Profile {profile.name}: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} "
            "not on this machine. "
            f"Fetch once with 'python -m refinerank_core fetch --profile {profile.name}' "
            "(needs the internet), or name folders in a profile of your own."
        )
    medvlm, detector, refinenet = profile.medvlm, profile.detector, profile.refinenet
    found = {role: str(place) for role, (_, place) in places.items()}
    return profile.model_copy(
        update={
            "medvlm": medvlm.model_copy(update={"source": found.get("medvlm", medvlm.source)}),
            "detector": detector.model_copy(
                update={
                    "source": found.get("detector", detector.source),
                    "tokenizer": found.get("tokenizer", detector.tokenizer),
                }
            ),
            "refinenet": refinenet.model_copy(
                update={"source": found.get("refinenet", refinenet.source)}
            ),
        }
    )

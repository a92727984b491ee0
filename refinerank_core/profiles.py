"""Profiles: which models answer, and with which settings. One JSON file each."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from refinerank_core.errors import ProfileError
from refinerank_core.models.prompts import ANSWER_PROMPT

PROFILE_FOLDER = Path(__file__).resolve().parent.parent / "assets" / "profiles"
DEFAULT_PROFILE = "phantom"


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class MedVLMProfile(_Section):
    """The MedVLM. source: hub id, or a folder when it starts with "." (relative to the profile).

    coordinates is the space of the boxes in its answers: pixels of the frame, pixels of the
    processor-resized frame (Qwen2.5-VL), thousandths (Qwen2-VL, Qwen3-VL), or fractions.
    dtype "auto" is bfloat16 on CUDA and float32 on the CPU. load_bits 8 or 4 loads the language
    model quantised (package bitsandbytes, CUDA only); compile runs torch.compile on its layers.
    batch null fits the batch to the memory that is free.
    """

    source: str
    revision: str | None = None
    blocks: tuple[int, ...] = Field(min_length=1)
    coordinates: Literal["pixels", "resized", "thousand", "unit"] = "resized"
    max_pixels: int | None = Field(default=None, gt=0)
    answer_prompt: str = ANSWER_PROMPT
    answer_frames: int = Field(default=32, ge=1, le=256)
    batch: int | None = Field(default=8, ge=1)
    cache_mb: int = Field(default=1024, ge=0)
    attention: Literal["sdpa", "eager"] = "sdpa"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    load_bits: Literal[4, 8] | None = None
    compile: bool = False


class DetectorProfile(_Section):
    """The detector and its thresholds; the frame is resized to short_side, long_side at most.

    backend "transformers" reads a checkpoint folder; "groundingdino-py" reads the authors' own
    .pth: source is the file, or the repository that holds it somewhere under the name `file`.
    Its text encoder's tokenizer is not in the file and has a source of its own.
    """

    source: str
    revision: str | None = None
    backend: Literal["transformers", "groundingdino-py"] = "transformers"
    file: str | None = None
    tokenizer: str = "google-bert/bert-base-uncased"
    tokenizer_revision: str | None = None
    box_threshold: float = Field(default=0.05, ge=0, le=1)
    text_threshold: float = Field(default=0.10, ge=0, le=1)
    max_raw: int = Field(default=12, ge=1)
    short_side: int | None = Field(default=None, gt=0)
    long_side: int | None = Field(default=None, gt=0)
    batch: int | None = Field(default=8, ge=1)


class RefineNetProfile(_Section):
    """The RefineNet and the vision block that it was trained to read.

    source is a file, or a repository that holds one somewhere under the name `file`. null says that
    none is trained for this MedVLM: candidates keep their boxes and their native score.
    The rest are options beyond the paper. ensemble names files of further RefineNets, such as those
    of other seeds, whose scores and corrections are averaged with the first one's; reencode scores
    a refined box by the features inside it; calibration turns scores into expected IoU by knots.
    """

    source: str | None
    revision: str | None = None
    file: str | None = None
    inter_block: int
    ensemble: tuple[str, ...] = ()
    reencode: bool = False
    calibration: tuple[tuple[float, float], ...] = ()


class Learned(_Section):
    """How a variant of a profile came to its RefineNet: taught by reviewed boxes.

    variant_of is the profile whose other models it uses, reviews_sha256 the hash of the decisions.
    """

    variant_of: str
    started_from: str
    reviews_sha256: str
    cases: int = Field(ge=1)


class Recipe(_Section):
    """Models that are made on the spot instead of read: seeded random weights.

    "untrained" writes small checkpoints; "random-7b" builds the published sizes straight in the
    device's memory, to measure speed without a download; "random-small" is the same at small size.
    """

    name: Literal["untrained", "random-7b", "random-small"]
    seed: int = 0


class Profile(_Section):
    """One line-up of models.

    Attributes:
        phantom: trained on phantom surgery only: every screen says so.
        untrained: random weights: every screen says so.
        recipe: set when the sources below are made on the spot.
        learned: set when the RefineNet was taught by reviews.
        folder: where the file lies; relative sources start there.
    """

    name: str
    label: str
    phantom: bool = False
    untrained: bool = False
    recipe: Recipe | None = None
    learned: Learned | None = None
    medvlm: MedVLMProfile
    detector: DetectorProfile
    refinenet: RefineNetProfile
    pool_limit: int = Field(default=128, ge=19, le=512)
    folder: Path = Field(default=PROFILE_FOLDER, exclude=True)

    def locate(self, source: str) -> str:
        """A source with its folder filled in; hub ids and whole paths stay as they are."""
        return str((self.folder / source).resolve()) if source.startswith(".") else source


def profile_names() -> list[str]:
    """Names of the profiles that come with the project."""
    return sorted(path.stem for path in PROFILE_FOLDER.glob("*.json"))


def variants(folder: Path | None) -> list[Profile]:
    """The profiles that trainings from reviews left in a folder, by name.

    Raises:
        ProfileError: one of them is wrong.
    """
    if folder is None or not folder.is_dir():
        return []
    paths = sorted(path for path in folder.glob("*.json") if not path.stem.endswith(".card"))
    return [load_profile(str(path)) for path in paths if not path.name.startswith(".")]


def load_profile(name: str) -> Profile:
    """A bundled profile by name, or a profile file by its path.

    Raises:
        ProfileError: no such profile, or its file is wrong.
    """
    path = Path(name) if name.endswith(".json") else PROFILE_FOLDER / f"{name}.json"
    if "/" in name and not name.endswith(".json"):
        path = Path(name)
    if not path.is_file():
        known = ", ".join(profile_names())
        raise ProfileError(
            f"Profile {Path(name).name!r} is unknown: choose one of {known}, or a .json file."
        )
    try:
        profile = Profile.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ProfileError(
            f"Profile {path.name} is wrong at {where}: {first['msg']}. Correct the file."
        ) from error
    except OSError as error:
        raise ProfileError(f"Profile {path.name} cannot be read ({error.strerror}).") from error
    if fault := _fault(profile):
        raise ProfileError(f"Profile {path.name}: {fault}")
    return profile.model_copy(update={"folder": path.resolve().parent})


def is_hub_id(source: str) -> bool:
    """Whether a source names a repository of the model hub and not a path."""
    return source.count("/") == 1 and source[0] not in "./~"


def _fault(profile: Profile) -> str:
    """What fits nowhere in one field: a sentence, or ""."""
    medvlm, detector, refinenet = profile.medvlm, profile.detector, profile.refinenet
    if refinenet.inter_block not in medvlm.blocks:
        return (
            f"refinenet.inter_block {refinenet.inter_block} is not "
            f"among medvlm.blocks {list(medvlm.blocks)}. Add it there."
        )
    official = detector.backend == "groundingdino-py"
    if official and detector.file is None and not detector.source.endswith(".pth"):
        return (
            "detector.backend groundingdino-py reads an official .pth file. "
            "Name it in detector.source, or in detector.file for a repository of the hub."
        )
    if detector.file is not None and not official:
        return "detector.file is for the backend groundingdino-py. Set detector.backend to it."
    if detector.file is not None and not detector.file.endswith(".pth"):
        return f"detector.file {detector.file} is no .pth file. Name the official one."
    return "" if profile.recipe is not None else _hub_fault(profile)


def _hub_fault(profile: Profile) -> str:
    """What is wrong with sources, revisions and files of the hub: a sentence, or ""."""
    medvlm, detector, refinenet = profile.medvlm, profile.detector, profile.refinenet
    for name, source, revision in (
        ("medvlm", medvlm.source, medvlm.revision),
        ("detector", detector.source, detector.revision),
        ("refinenet", refinenet.source, refinenet.revision),
    ):
        if revision is not None and (source is None or not is_hub_id(source)):
            return f"{name}.revision is set and {name}.source is no hub id. Remove the revision."
    if refinenet.source is not None and is_hub_id(refinenet.source) and refinenet.file is None:
        return "refinenet.source is a repository of the hub. Name the file in refinenet.file."
    return ""

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
    """

    source: str
    revision: str | None = None
    blocks: tuple[int, ...] = Field(min_length=1)
    coordinates: Literal["pixels", "resized", "thousand", "unit"] = "resized"
    max_pixels: int | None = Field(default=None, gt=0)
    answer_prompt: str = ANSWER_PROMPT
    answer_frames: int = Field(default=32, ge=1, le=256)
    batch: int = Field(default=8, ge=1)
    cache_mb: int = Field(default=1024, ge=0)
    attention: Literal["sdpa", "eager"] = "sdpa"


class DetectorProfile(_Section):
    """The detector and its thresholds; the frame is resized to short_side, long_side at most."""

    source: str
    revision: str | None = None
    box_threshold: float = Field(default=0.05, ge=0, le=1)
    text_threshold: float = Field(default=0.10, ge=0, le=1)
    max_raw: int = Field(default=12, ge=1)
    short_side: int | None = Field(default=None, gt=0)
    long_side: int | None = Field(default=None, gt=0)
    batch: int = Field(default=8, ge=1)


class RefineNetProfile(_Section):
    """The RefineNet and the vision block that it was trained to read."""

    source: str
    inter_block: int


class Recipe(_Section):
    """Checkpoints that are made on the spot instead of read: seeded random weights."""

    name: Literal["untrained"]
    seed: int = 0


class Profile(_Section):
    """One line-up of models.

    Attributes:
        phantom: trained on phantom surgery only: every screen says so.
        untrained: random weights: every screen says so.
        recipe: set when the sources below are made on the spot.
        folder: where the file lies; relative sources start there.
    """

    name: str
    label: str
    phantom: bool = False
    untrained: bool = False
    recipe: Recipe | None = None
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
    if profile.refinenet.inter_block not in profile.medvlm.blocks:
        raise ProfileError(
            f"Profile {path.name}: refinenet.inter_block {profile.refinenet.inter_block} is not "
            f"among medvlm.blocks {list(profile.medvlm.blocks)}. Add it there."
        )
    return profile.model_copy(update={"folder": path.resolve().parent})

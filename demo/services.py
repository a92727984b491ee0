"""What the screen may ask of the rest: one frozen set of callables, wired in app.py."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from refinerank_core.grounding import Box
from refinerank_core.video import Video

if TYPE_CHECKING:
    from refinerank_core.progress import News
    from refinerank_core.responses import ResponseMaps


@dataclass(frozen=True)
class ProfileCard:
    """What the badge says of the models that answer; ids carry a hash of the weights."""

    name: str
    label: str
    phantom: bool
    untrained: bool
    medvlm: str
    detector: str
    refinenet: str
    device: str

    @property
    def badge(self) -> str:
        """The loud words of the badge."""
        if self.untrained:
            return "UNTRAINED random weights"
        return "EMBEDDED PHANTOM MODELS" if self.phantom else "FULL MODELS"

    @property
    def caution(self) -> str:
        """One word that every picture and export carries, "" for trained models."""
        if self.untrained:
            return "UNTRAINED"
        return "PHANTOM MODELS" if self.phantom else ""


_CASES_MB = 32


@dataclass(frozen=True)
class Limits:
    """What an upload may be; uploads False takes no clips."""

    upload_mb: int = 500
    duration_s: float = 7200.0
    uploads: bool = True

    @property
    def largest_mb(self) -> int:
        """The largest file that is let in: a clip, else a file of cases to review."""
        return self.upload_mb if self.uploads else min(self.upload_mb, _CASES_MB)


Ground = Callable[[Video, str, "Sequence[float] | None", float, bool], "Generator[News]"]
"""(video, question, times or None, current second, smooth) -> the news of the run."""


@dataclass(frozen=True)
class Services:
    """All that the tabs get.

    Attributes:
        profile: the models that answer.
        stages: names of the pipeline's stages in order.
        caveat: what a response map is not, in words.
        samples: folder of the bundled clips; it may be empty or absent.
        limits: of uploads.
        open_video: open a clip for exact reading.
        ground: (video, question, times or None, current second, smooth) -> the news of the run,
            step by step, the whole answer last; closing it stops the work.
        maps_at: (video, frame index, target box) -> response maps.
        seen: (video, frame indices) -> how many of them are already in the feature cache.
        map_arrays: maps by position of the requested time -> arrays of the .npz contract.
        variants: the same models with other RefineNets, as they are there now.
        ground_as: name of a variant -> what `ground` is for it.
    """

    profile: ProfileCard
    stages: tuple[str, ...]
    caveat: str
    samples: Path
    limits: Limits
    open_video: Callable[[Path], Video]
    ground: Ground
    maps_at: Callable[[Video, int, Box], ResponseMaps]
    seen: Callable[[Video, Sequence[int]], int]
    map_arrays: Callable[[Mapping[int, ResponseMaps]], dict[str, NDArray[np.float16]]]
    variants: Callable[[], Sequence[ProfileCard]] = tuple
    ground_as: Callable[[str], Ground] | None = None

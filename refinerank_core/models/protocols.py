"""What the pipeline asks of a MedVLM and of a detector."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from refinerank_core.structures import Detections, Frame, Query, Question


@dataclass(frozen=True, eq=False)
class VisionFeatures:
    """What the vision tower says of one frame, in raster order, on the model's device.

    Attributes:
        blocks: block number -> (h, w, C) grid of patches.
        final: (h / merge, w / merge, D) grid of merged tokens.
        resized_wh: the size in pixels at which the processor showed the frame to the model.
    """

    blocks: dict[int, torch.Tensor]
    final: torch.Tensor
    resized_wh: tuple[int, int]

    @property
    def nbytes(self) -> int:
        """Memory held by the grids."""
        return sum(grid.nbytes for grid in (*self.blocks.values(), self.final))


@dataclass(frozen=True, eq=False)
class Encoding:
    """The MedVLM's features of one (frame, question, time).

    Attributes:
        q_last: (Dq,) last-layer hidden state at the last token of the prompt.
        vision: the frame's vision features.
    """

    q_last: torch.Tensor
    vision: VisionFeatures


@dataclass(frozen=True)
class AnswerText:
    """What the MedVLM wrote as its direct answer.

    Attributes:
        text: its words, untouched.
        cut: True when the token limit ended it.
        notes: sentences on how the frame times were told to the model, where that needs saying.
    """

    text: str
    cut: bool
    notes: tuple[str, ...]


class MedVLM(Protocol):
    """A Qwen2.5-VL-architecture model that understands the question."""

    @property
    def model_id(self) -> str:
        """Name and content hash of the weights."""
        ...

    @property
    def attention(self) -> str:
        """The attention implementation in use."""
        ...

    @property
    def merged_patch_px(self) -> int:
        """Side of one merged patch in pixels: smaller frames cannot be shown to the model."""
        ...

    def see(self, frames: Sequence[Frame], video_key: str) -> list[VisionFeatures]:
        """Vision features of each frame, from the cache where they are there already."""
        ...

    def remembered(self, video_key: str, indices: Sequence[int]) -> int:
        """How many of these frames are in the cache of vision features."""
        ...

    def encode(
        self, frames: Sequence[Frame], times_s: Sequence[float], question: str, video_key: str
    ) -> list[Encoding]:
        """q_last and grids for each (frame, time), as one batch."""
        ...

    def answer(
        self, frames: Sequence[Frame], times_s: Sequence[float], question: str, video_key: str
    ) -> AnswerText:
        """The direct baseline: the model's greedy text for the timestamped question."""
        ...

    def query(self, question: Question) -> Query:
        """Detector phrases for the question; the rules' phrases where the text is unusable."""
        ...

    def take_notes(self) -> tuple[str, ...]:
        """Sentences for the user since the last call, such as that memory ran short."""
        ...


class Detector(Protocol):
    """An open-vocabulary detector that proposes boxes for phrases."""

    @property
    def model_id(self) -> str:
        """Name and content hash of the weights."""
        ...

    def detect(
        self, frames: Sequence[Frame], phrases: Sequence[str], *, video_key: str = ""
    ) -> list[Detections]:
        """Boxes above the thresholds on each frame, best first.

        Under a video_key, what a frame's picture alone decides may be kept for the next question.
        """
        ...

    def take_notes(self) -> tuple[str, ...]:
        """Sentences for the user since the last call, such as that memory ran short."""
        ...

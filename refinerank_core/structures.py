"""What travels between the steps: frozen arrays that say their shapes and check them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]
Image = NDArray[np.uint8]

SOURCES = ("raw", "sub_box", "anchor")


def require_array(
    name: str, array: np.ndarray, shape: tuple[int | None, ...], dtype: type[np.generic]
) -> None:
    """Raise ValueError unless array has this dtype and shape (None: any size)."""
    fits = len(shape) == array.ndim and all(
        want in (None, got) for want, got in zip(shape, array.shape, strict=True)
    )
    if not fits or array.dtype != dtype:
        wanted = str(shape).replace("None", "any")
        raise ValueError(
            f"{name} must be {wanted} {np.dtype(dtype)}, got {array.shape} {array.dtype}"
        )


def _freeze(arrays: Sequence[np.ndarray]) -> None:
    for array in arrays:
        array.setflags(write=False)


@dataclass(frozen=True, eq=False)  # eq=False: == on arrays has no single answer
class Frame:
    """One decoded picture.

    Attributes:
        image: (H, W, 3) uint8 RGB in display size and orientation.
        index: 0-based position in presentation order.
        time_s: seconds from the video's first frame, from the stream's own timestamps.
    """

    image: Image
    index: int
    time_s: float

    def __post_init__(self) -> None:
        require_array("image", self.image, (None, None, 3), np.uint8)

    @property
    def size_wh(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self.image.shape[1], self.image.shape[0]


@dataclass(frozen=True)
class Question:
    """A procedural question, read by rule.

    Attributes:
        text: the clean text, as shown and as handed to the models.
        requested_s: the requested times in ascending order, seconds from the first frame; empty
            when the text names none (the frame the user is on is then the requested time).
        target: the words that name what is asked for ("surgical instrument" when none are read).
        phrases: detector phrases by rule, most specific first; never empty.
    """

    text: str
    requested_s: tuple[float, ...]
    target: str
    phrases: tuple[str, ...]


@dataclass(frozen=True)
class Query:
    """What the detector is asked for.

    Attributes:
        phrases: 1 to 6 distinct lower-case phrases.
        source: "medvlm" when the model's own words were used, "rules" when the rules stepped in.
        text: the model's raw words ("" when it was not asked).
    """

    phrases: tuple[str, ...]
    source: str
    text: str = ""


@dataclass(frozen=True, eq=False)
class Detections:
    """Boxes that a detector proposes on one frame, best first.

    Attributes:
        boxes: (N, 4) float32, x0 y0 x1 y1 in pixels of the frame. N may be 0.
        scores: (N,) float32 in [0, 1], falling.
        phrases: N strings, the phrase of the query that each box answers.
    """

    boxes: Float32
    scores: Float32
    phrases: tuple[str, ...]

    def __post_init__(self) -> None:
        count = len(self.phrases)
        require_array("boxes", self.boxes, (count, 4), np.float32)
        require_array("scores", self.scores, (count,), np.float32)
        _freeze((self.boxes, self.scores))

    def __len__(self) -> int:
        return len(self.phrases)


@dataclass(frozen=True, eq=False)
class CandidatePool:
    """Everything that may be the answer on one frame, in rank order (row = candidate id).

    Attributes:
        boxes: (N, 4) float32, x0 y0 x1 y1 in pixels of the frame, inside it. N is at least 1.
        sources: N of "raw", "sub_box", "anchor".
        phrases: N strings; "" for an anchor.
        confidences: (N,) float32 in [0, 1]; NaN for an anchor (no detector spoke).
        parents: (N,) int64: the row of a sub-box's raw box, -1 elsewhere.
        native_scores: (N,) float32, the detector-side score of METHOD section 2.
        metadata: (N, 12) float32, the raw values of f_dino; NaN where missing.
        rejected: how many boxes were dropped (outside the frame, degenerate, or doubles).
    """

    boxes: Float32
    sources: tuple[str, ...]
    phrases: tuple[str, ...]
    confidences: Float32
    parents: NDArray[np.int64]
    native_scores: Float32
    metadata: Float32
    rejected: int

    def __post_init__(self) -> None:
        count = len(self.sources)
        require_array("boxes", self.boxes, (count, 4), np.float32)
        require_array("confidences", self.confidences, (count,), np.float32)
        require_array("parents", self.parents, (count,), np.int64)
        require_array("native_scores", self.native_scores, (count,), np.float32)
        require_array("metadata", self.metadata, (count, 12), np.float32)
        if len(self.phrases) != count or not set(self.sources) <= set(SOURCES):
            raise ValueError(f"a pool of {count} needs {count} phrases and sources of {SOURCES}")
        _freeze((self.boxes, self.confidences, self.parents, self.native_scores, self.metadata))

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def missing(self) -> Bool:
        """(N, 12) bool: which values of f_dino are missing."""
        return np.isnan(self.metadata)


@dataclass(frozen=True, eq=False)
class Refinement:
    """What RefineNet says of a pool of N candidates.

    Attributes:
        score_original: (N,) float32, logit of the original box's quality.
        score_refined: (N,) float32, logit of the refined box's quality.
        delta: (N, 4) float32: dx, dy in box widths and heights, log width and log height ratio.
        boxes: (N, 4) float32, refined boxes in pixels of the frame, inside it.
        valid: (N,) bool: False where the refined box is degenerate and was discarded.
    """

    score_original: Float32
    score_refined: Float32
    delta: Float32
    boxes: Float32
    valid: Bool

    def __post_init__(self) -> None:
        count = len(self.score_original)
        require_array("score_original", self.score_original, (count,), np.float32)
        require_array("score_refined", self.score_refined, (count,), np.float32)
        require_array("delta", self.delta, (count, 4), np.float32)
        require_array("boxes", self.boxes, (count, 4), np.float32)
        require_array("valid", self.valid, (count,), np.bool_)
        _freeze((self.score_original, self.score_refined, self.delta, self.boxes, self.valid))

    def __len__(self) -> int:
        return len(self.score_original)


@dataclass(frozen=True)
class Choice:
    """One member of the joint pool.

    Attributes:
        candidate: row of the candidate pool.
        refined: True for the refined box of that row, False for the original.
        score: RefineNet's logit for exactly this box.
    """

    candidate: int
    refined: bool
    score: float


@dataclass(frozen=True)
class Ranking:
    """The joint pool after the filter, and the answer.

    Attributes:
        kept: at most 48 members in the order the filter kept them.
        chosen: the answer.
        margin: score of the answer minus the next best score in kept (0 when it is alone).
    """

    kept: tuple[Choice, ...]
    chosen: Choice
    margin: float

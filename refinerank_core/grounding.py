"""A Grounding: everything one question brought to light, as plain data that goes to JSON and back.

No tensors and no pixels: it can be saved, kept in a browser session, replayed without a model.
The field names are the public contract of `ground --json` (README, "Grounding JSON").
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from refinerank_core.errors import FormatError

Box = tuple[float, float, float, float]
"""x0, y0, x1, y1 in display pixels of the source frame."""


class _Plain(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True
    )


class VideoFacts(_Plain):
    """The video that was asked about. Sizes are display pixels, sha256 is of the file's bytes."""

    name: str
    sha256: str
    width: int
    height: int
    frames: int
    duration_s: float


class QuestionFacts(_Plain):
    """The clean question and its requested times in seconds."""

    text: str
    times_s: tuple[float, ...]
    target: str = ""


class ProfileFacts(_Plain):
    """Which models answered. Model names carry the content hash of their weights."""

    name: str
    medvlm: str
    detector: str
    refinenet: str
    phantom: bool
    untrained: bool
    device: str = "cpu"
    dtype: str = "float32"
    attention: str = ""
    inter_block: int = 0
    blocks: tuple[int, ...] = ()


class QueryFacts(_Plain):
    """The detector's phrases, where they came from, and the model's own words for them."""

    phrases: tuple[str, ...]
    source: Literal["medvlm", "rules"]
    text: str = ""


class Candidate(_Plain):
    """One row of the pool with everything that was computed about it.

    Scores are RefineNet logits; None only where the box they belong to was discarded.
    """

    id: int
    box: Box
    source: Literal["raw", "sub_box", "anchor"]
    phrase: str
    confidence: float | None
    native_score: float
    parent: int | None
    score_original: float
    score_refined: float
    delta: tuple[float, float, float, float]
    refined_box: Box | None
    kept_original: bool
    kept_refined: bool


class RefineRankAnswer(_Plain):
    """The best original or refined box of the joint pool.

    expected_iou is there only where the profile calibrates scores.
    """

    box: Box
    score: float
    candidate_id: int
    refined: bool
    margin: float
    expected_iou: float | None = None

    @model_serializer(mode="wrap")
    def _without_none(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        told: dict[str, Any] = plain(self)
        if told.get("expected_iou") is None:
            told.pop("expected_iou", None)
        return told


class MedVLMAnswer(_Plain):
    """The direct baseline: the box the model wrote for this time, and all that it wrote."""

    box: Box | None
    text: str


class DetectorAnswer(_Plain):
    """MedVLM + GroundingDINO: the box of highest detector confidence.

    confidence is None when the detector found nothing and the first fixed anchor stands in.
    """

    box: Box
    confidence: float | None
    candidate_id: int


class Answers(_Plain):
    """The three answers at one requested time."""

    refinerank: RefineRankAnswer
    medvlm: MedVLMAnswer
    medvlm_groundingdino: DetectorAnswer


class TimeGrounding(_Plain):
    """One requested time: the frame it fell on, the pool, the answers.

    kept lists (candidate id, refined) of the filtered joint pool in the order it was kept.
    """

    requested_s: float
    frame_index: int
    frame_s: float
    candidates: tuple[Candidate, ...]
    kept: tuple[tuple[int, bool], ...]
    answers: Answers


class Grounding(_Plain):
    """The whole answer to one question. seconds maps a stage's name to the seconds it took."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    video: VideoFacts
    question: QuestionFacts
    profile: ProfileFacts
    query: QueryFacts
    times: tuple[TimeGrounding, ...]
    seconds: dict[str, float]
    warnings: tuple[str, ...]

    def to_json(self, indent: int | None = 1) -> str:
        """Strict JSON (no NaN, no Infinity)."""
        return self.model_dump_json(by_alias=True, indent=indent)

    @classmethod
    def from_json(cls, text: str | bytes) -> "Grounding":
        """Read back what to_json wrote.

        Raises:
            FormatError: text is not a grounding of schema 1.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "the file"
            raise FormatError(
                f"Not a RefineRank grounding (schema 1): {where}: {first['msg']}. "
                "Choose a file written by `ground --json`."
            ) from error

    @classmethod
    def load(cls, path: Path) -> "Grounding":
        """Read a JSON file. Raises FormatError when it is missing or not a grounding."""
        try:
            return cls.from_json(path.read_bytes())
        except OSError as error:
            raise FormatError(f"{path.name}: cannot be read ({error.strerror}).") from error

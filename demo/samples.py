"""The bundled clips: a video each, and beside it what it is about and an answer kept from before.

`clip.mp4` may have `clip.json` (a `Sidecar`) and `clip.grounding.json` (written by
`ground --json`); both are optional. Answers to further questions are `clip.q2.grounding.json`...
"""

import glob
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from refinerank_core.errors import FormatError
from refinerank_core.grounding import Box, Grounding

SUFFIXES = (".mp4", ".webm", ".mkv")


class SampleQuestion(BaseModel):
    """A question that suits a clip; truth maps a frame index to the right box, where known."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    text: str
    truth: Mapping[int, Box] = {}


class Sidecar(BaseModel):
    """What is known of a clip."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    title: str = ""
    about: str = ""
    rank: int = 100
    procedure: str = ""
    phantom: bool = False
    questions: tuple[SampleQuestion | str, ...] = ()


@dataclass(frozen=True)
class Sample:
    """One bundled clip.

    Attributes:
        name: its file name without suffix; this is what links carry.
        path: of the video.
        title: for people.
        about: one sentence, or "".
        rank: the lowest is shown first.
        procedure: what operation it shows, or "".
        phantom: a drawn scene.
        questions: that suit it; may be empty.
    """

    name: str
    path: Path
    title: str
    about: str = ""
    rank: int = 100
    procedure: str = ""
    phantom: bool = False
    questions: tuple[SampleQuestion, ...] = field(default=())

    def truth_for(self, text: str) -> Mapping[int, Box]:
        """Frame index -> the right box, empty where the question's answer is not known."""
        return next((q.truth for q in self.questions if q.text == text), {})

    def stored_answer(self) -> Grounding | None:
        """The answer kept beside the clip, or None. Raises FormatError when it is damaged."""
        path = self.path.with_suffix(".grounding.json")
        return Grounding.load(path) if path.is_file() else None

    def stored_answers(self) -> list[Grounding]:
        """All answers kept beside the clip, the first one first. Raises FormatError, as above."""
        first = self.path.with_suffix(".grounding.json")
        more = self.path.parent.glob(f"{glob.escape(self.name)}.q*.grounding.json")
        paths = [first] * first.is_file() + sorted(more)
        return [Grounding.load(path) for path in paths]


def list_samples(folder: Path) -> list[Sample]:
    """The bundled clips by rank and name; none when the folder is absent.

    Raises:
        FormatError: a sidecar is not what it should be.
    """
    if not folder.is_dir():
        return []
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    return sorted((_read_sample(path) for path in paths), key=lambda s: (s.rank, s.name))


def _read_sample(path: Path) -> Sample:
    beside = path.with_suffix(".json")
    try:
        facts = Sidecar.model_validate_json(beside.read_bytes()) if beside.is_file() else Sidecar()
    except (ValidationError, OSError) as error:
        raise FormatError(f"{beside.name}: not a description of a sample clip.") from error
    return Sample(
        name=path.stem,
        path=path,
        title=facts.title or path.stem.replace("-", " ").replace("_", " "),
        about=facts.about,
        rank=facts.rank,
        procedure=facts.procedure,
        phantom=facts.phantom,
        questions=tuple(
            SampleQuestion(text=one) if isinstance(one, str) else one for one in facts.questions
        ),
    )

"""Links: a case in the address itself, so that it survives a restart. Bundled clips only."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from refinerank_core.grounding import QuestionFacts


class Link(BaseModel):
    """What an address may carry; whatever cannot be read is left out.

    Attributes:
        clip: name of a bundled clip.
        q: the question.
        t: requested seconds, None when the text or the frame says them.
        frame: index looked at.
        layers: letters of the layers that are on, None for the usual ones.
        map: name of the response map laid over the frame, "" for none.
        profile: name of the models that answered where the link was made, "" where not told.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    clip: str = ""
    q: str = ""
    t: tuple[float, ...] | None = None
    frame: int | None = None
    layers: str | None = None
    map: str = ""
    profile: str = ""

    def asks_for(self, question: QuestionFacts) -> bool:
        """Whether an answer to this question is what the link shows."""
        if self.q and self.q != question.text:
            return False
        if self.t is None:
            return True
        return len(self.t) == len(question.times_s) and all(
            abs(mine - theirs) < 1e-5 for mine, theirs in zip(self.t, question.times_s, strict=True)
        )

    @field_validator("t", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return value.split(",") if isinstance(value, str) else value


def read_link(query: Mapping[str, str]) -> Link:
    """The link in a query string."""
    kept = {name: value[:4000] for name, value in query.items() if name in Link.model_fields}
    while True:
        try:
            return Link.model_validate(kept)
        except ValidationError as error:
            for fault in error.errors():
                kept.pop(str(fault["loc"][0]), None)

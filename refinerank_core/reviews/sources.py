"""Groundings as cases: one for each requested time."""

import hashlib

from refinerank_core.grounding import Grounding
from refinerank_core.reviews.chain import canonical_json
from refinerank_core.reviews.records import Case, MethodAnswer

METHODS = ("refinerank", "medvlm", "medvlm_groundingdino")
"""Names of the three answers of a grounding, the one under review first."""


def grounding_id(grounding: Grounding) -> str:
    """Hash of what a grounding says; how long it took and where does not count."""
    data = grounding.model_dump(mode="json")
    for passing in ("seconds", "warnings", "schema_version"):
        data.pop(passing, None)
    data["video"].pop("name")
    data["profile"].pop("device")
    return hashlib.sha256(canonical_json(data).encode()).hexdigest()


def cases_of(grounding: Grounding, *, dataset: str = "", procedure: str = "") -> list[Case]:
    """One case for each requested time of a grounding."""
    identity = grounding_id(grounding)
    video, profile = grounding.video, grounding.profile
    cases = []
    for place, one in enumerate(grounding.times):
        best, spoken = one.answers.refinerank, one.answers.medvlm
        top = one.answers.medvlm_groundingdino
        answers = (
            MethodAnswer(method=METHODS[0], box=best.box, score=best.score),
            MethodAnswer(method=METHODS[1], box=spoken.box, text=spoken.text[:10_000]),
            MethodAnswer(method=METHODS[2], box=top.box, score=top.confidence),
        )
        cases.append(
            Case(
                video_name=video.name,
                video_sha256=video.sha256,
                width=video.width,
                height=video.height,
                question=grounding.question.text,
                target=grounding.question.target,
                requested_s=one.requested_s,
                frame_index=one.frame_index,
                frame_s=one.frame_s,
                dataset=dataset,
                procedure=procedure,
                answers=answers,
                margin=best.margin,
                models=(profile.medvlm, profile.detector, profile.refinenet),
                grounding_id=identity,
                time_index=place,
            )
        )
    return cases

"""A small grounding by hand: two times, a pool of three, known boxes."""

from refinerank_core.grounding import (
    Answers,
    Box,
    Candidate,
    DetectorAnswer,
    Grounding,
    MedVLMAnswer,
    ProfileFacts,
    QueryFacts,
    QuestionFacts,
    RefineRankAnswer,
    TimeGrounding,
    VideoFacts,
)


def candidate(number: int, box: Box, refined: Box | None, *, kept: bool = True) -> Candidate:
    """A raw candidate; kept tells whether original and refined box passed the filter."""
    return Candidate(
        id=number,
        box=box,
        source="raw",
        phrase="hook",
        confidence=0.5,
        native_score=0.5,
        parent=None,
        score_original=0.0,
        score_refined=1.0,
        delta=(0.0, 0.0, 0.0, 0.0),
        refined_box=refined,
        kept_original=kept,
        kept_refined=kept and refined is not None,
    )


def time_grounding(
    time_s: float, candidates: tuple[Candidate, ...], *, chosen: int, refined: bool
) -> TimeGrounding:
    """One time at which RefineRank chose a box of the pool and the MedVLM wrote none."""
    picked = candidates[chosen]
    box = picked.refined_box if refined and picked.refined_box else picked.box
    kept = tuple((one.id, False) for one in candidates if one.kept_original)
    kept += tuple((one.id, True) for one in candidates if one.kept_refined)
    return TimeGrounding(
        requested_s=time_s,
        frame_index=round(time_s * 25),
        frame_s=time_s,
        candidates=candidates,
        kept=kept,
        answers=Answers(
            refinerank=RefineRankAnswer(
                box=box, score=1.0, candidate_id=chosen, refined=refined, margin=0.25
            ),
            medvlm=MedVLMAnswer(box=None, text="no box"),
            medvlm_groundingdino=DetectorAnswer(
                box=candidates[0].box, confidence=0.5, candidate_id=0
            ),
        ),
    )


def grounding() -> Grounding:
    """A hook asked for at 1 and 2 seconds."""
    pool = (
        candidate(0, (0.0, 0.0, 100.0, 100.0), (0.0, 0.0, 110.0, 100.0)),
        candidate(1, (200.0, 100.0, 300.0, 200.0), None),
        candidate(2, (20.0, 0.0, 120.0, 100.0), (10.0, 0.0, 110.0, 100.0)),
    )
    return Grounding(
        video=VideoFacts(
            name="clip.mp4", sha256="ab" * 32, width=640, height=360, frames=100, duration_s=4.0
        ),
        question=QuestionFacts(text="Where is the hook?", times_s=(1.0, 2.0), target="hook"),
        profile=ProfileFacts(
            name="test",
            medvlm="m-1",
            detector="d-1",
            refinenet="r-1",
            phantom=True,
            untrained=False,
        ),
        query=QueryFacts(phrases=("hook",), source="rules"),
        times=(
            time_grounding(1.0, pool, chosen=0, refined=True),
            time_grounding(2.0, pool, chosen=1, refined=False),
        ),
        seconds={"detect": 0.5},
        warnings=(),
    )

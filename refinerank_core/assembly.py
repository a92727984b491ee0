"""Turn what the steps gave at each requested time into the plain data of a Grounding."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from refinerank_core.calibration import Calibration
from refinerank_core.decode import smooth_over_time
from refinerank_core.grounding import (
    Answers,
    Box,
    Candidate,
    DetectorAnswer,
    MedVLMAnswer,
    RefineRankAnswer,
    TimeGrounding,
    VideoFacts,
)
from refinerank_core.structures import CandidatePool, Choice, Ranking, Refinement
from refinerank_core.video import Video


@dataclass(frozen=True, eq=False)
class TimeWork:
    """One requested time after all steps.

    Attributes:
        requested_s, frame_index, frame_s: the time asked for and the frame that answers it.
        pool, refinement, ranking: the candidates, RefineNet's word on them, and the choice.
        direct: the MedVLM's own answer for this time.
        calibration: what a score is worth, where the profile knows.
    """

    requested_s: float
    frame_index: int
    frame_s: float
    pool: CandidatePool
    refinement: Refinement
    ranking: Ranking
    direct: MedVLMAnswer
    calibration: Calibration | None = None

    @property
    def chosen_box(self) -> Box:
        """The answer's box."""
        return chosen_box(self.pool, self.refinement, self.ranking.chosen)


def chosen_box(pool: CandidatePool, refinement: Refinement, choice: Choice) -> Box:
    """The box of a member of the joint pool, pixels of the frame."""
    boxes = refinement.boxes if choice.refined else pool.boxes
    return as_box(boxes[choice.candidate])


def as_box(row: np.ndarray) -> Box:
    """Four numbers of an array as plain floats."""
    x0, y0, x1, y1 = (float(side) for side in row)
    return x0, y0, x1, y1


def smoothed(work: Sequence[TimeWork]) -> tuple[list[TimeWork], list[int]]:
    """The same times with choices that do not jump, and the places where the choice changed."""
    rankings = smooth_over_time(
        [one.ranking for one in work],
        [one.pool for one in work],
        [one.refinement for one in work],
    )
    changed = [
        k
        for k, (one, ranking) in enumerate(zip(work, rankings, strict=True))
        if one.ranking.chosen != ranking.chosen
    ]
    return [replace(one, ranking=r) for one, r in zip(work, rankings, strict=True)], changed


def video_facts(video: Video) -> VideoFacts:
    """What a grounding keeps of its video."""
    width, height = video.size_wh
    return VideoFacts(
        name=video.name,
        sha256=video.sha256,
        width=width,
        height=height,
        frames=len(video),
        duration_s=float(video.duration_s),
    )


def time_grounding(work: TimeWork) -> TimeGrounding:
    """One requested time as plain data."""
    pool, chosen = work.pool, work.ranking.chosen
    confidence = float(pool.confidences[0])
    return TimeGrounding(
        requested_s=float(work.requested_s),
        frame_index=int(work.frame_index),
        frame_s=float(work.frame_s),
        candidates=_candidates(work),
        kept=tuple((choice.candidate, choice.refined) for choice in work.ranking.kept),
        answers=Answers(
            refinerank=RefineRankAnswer(
                box=work.chosen_box,
                score=chosen.score,
                candidate_id=chosen.candidate,
                refined=chosen.refined,
                margin=work.ranking.margin,
                expected_iou=None
                if work.calibration is None
                else float(work.calibration.expected_iou(np.array([chosen.score]))[0]),
            ),
            medvlm=work.direct,
            # The pool is in the detector's order: its first row is the most confident box.
            medvlm_groundingdino=DetectorAnswer(
                box=as_box(pool.boxes[0]),
                confidence=None if np.isnan(confidence) else confidence,
                candidate_id=0,
            ),
        ),
    )


def _candidates(work: TimeWork) -> tuple[Candidate, ...]:
    pool, fix = work.pool, work.refinement
    kept = {(choice.candidate, choice.refined) for choice in work.ranking.kept}
    rows = []
    for row in range(len(pool)):
        confidence, parent = float(pool.confidences[row]), int(pool.parents[row])
        dx, dy, dw, dh = (float(part) for part in fix.delta[row])
        rows.append(
            Candidate.model_validate(
                {
                    "id": row,
                    "box": as_box(pool.boxes[row]),
                    "source": pool.sources[row],
                    "phrase": pool.phrases[row],
                    "confidence": None if np.isnan(confidence) else confidence,
                    "native_score": float(pool.native_scores[row]),
                    "parent": None if parent < 0 else parent,
                    "score_original": float(fix.score_original[row]),
                    "score_refined": float(fix.score_refined[row]),
                    "delta": (dx, dy, dw, dh),
                    "refined_box": as_box(fix.boxes[row]) if fix.valid[row] else None,
                    "kept_original": (row, False) in kept,
                    "kept_refined": (row, True) in kept,
                }
            )
        )
    return tuple(rows)

"""The frozen steps of the pipeline for one question: phrases, features, boxes, candidate pools.

What RefineNet is trained on, on phantoms and on real rows alike, comes from here and from nowhere
else. The answers never enter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from refinerank_core.candidates import build_pool
from refinerank_core.direct import direct_answers
from refinerank_core.errors import ProfileError
from refinerank_core.feature_sets import Example
from refinerank_core.models.protocols import Detector, Encoding, MedVLM
from refinerank_core.profiles import Profile
from refinerank_core.question import parse_question
from refinerank_core.refinenet import region_features
from refinerank_core.structures import CandidatePool, Float32, Frame, Query, Question

if TYPE_CHECKING:
    import torch

NO_BOX = (np.nan,) * 4


@dataclass(frozen=True, eq=False)
class Backbones:
    """The frozen models of a profile and the settings that steer them."""

    profile: Profile
    medvlm: MedVLM
    detector: Detector

    @classmethod
    def load(cls, profile: Profile, device: torch.device) -> Backbones:
        """Load MedVLM and detector as the pipeline does; the RefineNet need not be there.

        Raises:
            ProfileError: the profile is made on the spot and names no models.
            WeightsError: a checkpoint is absent, damaged or does not fit.
        """
        from refinerank_core.lineup import load_frozen  # seconds of imports, for this alone

        if profile.recipe is not None:
            raise ProfileError(f"Profile {profile.name} holds no trained models. Choose another.")
        return cls(profile, *load_frozen(profile, device))

    @property
    def model_ids(self) -> tuple[str, str]:
        """Content names of both checkpoints."""
        return self.medvlm.model_id, self.detector.model_id


@dataclass(frozen=True, eq=False)
class FrozenResult:
    """What the frozen models make of one question.

    Attributes:
        examples: one a requested time.
        query: what the detector was asked for.
        answers: lets the MedVLM answer directly: (T, 4) float32 in pixels, NaN where it gives none.
    """

    examples: list[Example]
    query: Query
    answers: Callable[[], Float32]


def ask_frozen(
    backbones: Backbones,
    text: str,
    frames: Sequence[Frame],
    times_s: Sequence[float],
    *,
    row: str,
    video: str,
    video_key: str,
    duration_s: float | None,
) -> FrozenResult:
    """The frozen steps for one question, which sees its words and its frames and no more.

    Args:
        backbones: the frozen models.
        text: the question.
        frames: one a requested time.
        times_s: the requested times.
        row: name of the question row.
        video: name of the video.
        video_key: under which its vision features are remembered.
        duration_s: of the video, None where not known.
    """
    profile = backbones.profile
    question = parse_question(text, duration_s=duration_s)
    times = list(times_s)
    query = backbones.medvlm.query(question)
    encodings = backbones.medvlm.encode(frames, times, question.text, video_key)
    found = backbones.detector.detect(frames, query.phrases, video_key=video_key)
    examples = [
        _example(
            row,
            video,
            frame,
            time_s,
            encoding,
            build_pool(
                detections,
                frame.size_wh,
                raw_limit=profile.detector.max_raw,
                pool_limit=profile.pool_limit,
            ),
            profile.medvlm.blocks,
        )
        for frame, time_s, encoding, detections in zip(frames, times, encodings, found, strict=True)
    ]

    def answers() -> Float32:
        return direct_boxes(backbones, question, frames, times, video_key=video_key)[0]

    return FrozenResult(examples, query, answers)


def direct_boxes(
    backbones: Backbones,
    question: Question,
    frames: Sequence[Frame],
    times_s: Sequence[float],
    *,
    video_key: str,
) -> tuple[Float32, str]:
    """The MedVLM's own answer: (T, 4) float32 in pixels, NaN where it gives none, and its words."""
    written = backbones.medvlm.answer(frames, times_s, question.text, video_key)
    vision = backbones.medvlm.see(frames[:1], video_key)[0]
    boxes, _ = direct_answers(
        written.text,
        times_s,
        space=backbones.profile.medvlm.coordinates,
        resized_wh=vision.resized_wh,
        frame_wh=frames[0].size_wh,
    )
    return np.array([NO_BOX if box is None else box for box in boxes], np.float32), written.text


def _example(
    row: str,
    video: str,
    frame: Frame,
    time_s: float,
    encoding: Encoding,
    pool: CandidatePool,
    blocks: Sequence[int],
) -> Example:
    """One example with the features of every block."""
    by_block = {
        block: region_features(encoding, pool, size_wh=frame.size_wh, inter_block=block)
        for block in blocks
    }
    first = by_block[blocks[0]]
    return Example(
        row=row,
        video=video,
        time_s=time_s,
        size_wh=frame.size_wh,
        pool=pool,
        q_last=first.q_last.cpu().numpy(),
        r_final=first.r_final.cpu().numpy(),
        r_blocks={block: one.r_inter.cpu().numpy() for block, one in by_block.items()},
    )

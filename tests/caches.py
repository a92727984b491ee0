"""Small frozen models of our own, and MedVidBench rows of drawn frames to cache."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch

from refinerank_core.feature_build import Engine, build_cache, local_engine
from refinerank_core.feature_plan import SHARD_EXAMPLES, plan_units, settings_of
from refinerank_core.formats.medvidbench_rows import read_question_rows
from refinerank_core.formats.medvidbench_space import convention_of, to_canvas
from refinerank_core.frozen_steps import Backbones
from refinerank_core.models.protocols import AnswerText, Encoding, VisionFeatures
from refinerank_core.profiles import DetectorProfile, MedVLMProfile, Profile, RefineNetProfile
from refinerank_core.structures import Detections, Frame, Query, Question

SIZE_WH = (96, 64)
SQUARE = 24  # side of the bright square that every question asks for
PROFILE = Profile(
    name="fake",
    label="fake",
    medvlm=MedVLMProfile(source="fake", blocks=(1, 3)),
    detector=DetectorProfile(source="fake"),
    refinenet=RefineNetProfile(source="fake", inter_block=3),
)


class FakeMedVLM:
    """Grids of mean colours; the question's letters as its hidden state."""

    model_id = "fake-medvlm@0"
    attention = "none"
    merged_patch_px = 8

    def __init__(self) -> None:
        self.asked: list[str] = []

    def see(self, frames: Sequence[Frame], video_key: str) -> list[VisionFeatures]:
        return [_grids(frame) for frame in frames]

    def remembered(self, video_key: str, indices: Sequence[int]) -> int:
        return 0

    def encode(
        self, frames: Sequence[Frame], times_s: Sequence[float], question: str, video_key: str
    ) -> list[Encoding]:
        self.asked += [f"{question}@{time_s:g}" for time_s in times_s]
        return [
            Encoding(_state(question, time_s), vision)
            for time_s, vision in zip(times_s, self.see(frames, video_key), strict=True)
        ]

    def answer(
        self, frames: Sequence[Frame], times_s: Sequence[float], question: str, video_key: str
    ) -> AnswerText:
        return AnswerText("", False, ())

    def query(self, question: Question) -> Query:
        return Query(question.phrases, "rules")

    def take_notes(self) -> tuple[str, ...]:
        return ()


class FakeDetector:
    """Boxes near the bright square; the most confident one is far off."""

    model_id = "fake-detector@0"

    def take_notes(self) -> tuple[str, ...]:
        return ()

    def detect(
        self, frames: Sequence[Frame], phrases: Sequence[str], *, video_key: str = ""
    ) -> list[Detections]:
        found = []
        for frame in frames:
            ys, xs = np.nonzero(frame.image[..., 0] > 200)
            x, y = float(xs.min()), float(ys.min())
            boxes = [
                (0.0, 0.0, 30.0, 20.0),
                (x + 4, y + 3, x + 4 + SQUARE, y + 3 + SQUARE),
                (60.0, 40.0, 96.0, 64.0),
            ]
            clipped = np.minimum(np.array(boxes, np.float32), np.array([*SIZE_WH, *SIZE_WH]))
            scores = np.array([0.9, 0.5, 0.3], np.float32)
            found.append(Detections(clipped.astype(np.float32), scores, ("tool",) * 3))
        return found


def _grids(frame: Frame) -> VisionFeatures:
    small = cv2.resize(frame.image, (12, 8), interpolation=cv2.INTER_AREA) / 255.0
    patches = torch.from_numpy(np.concatenate((small, small[..., :1] ** 2), axis=-1)).float()
    final = patches.reshape(4, 2, 6, 2, 4).mean(dim=(1, 3))
    return VisionFeatures({1: patches, 3: patches * 2 - 1}, final, SIZE_WH)


def _state(question: str, time_s: float) -> torch.Tensor:
    drawn = hashlib.sha256(f"{question}{time_s}".encode()).digest()[:6]
    return torch.tensor([byte / 255 for byte in drawn])


def fake_backbones() -> Backbones:
    """The fake models under their profile."""
    return Backbones(PROFILE, FakeMedVLM(), FakeDetector())


def write_rows(
    folder: Path, videos: Mapping[str, Sequence[str]], *, annotated: bool = True, seed: int = 0
) -> Path:
    """Draw frames of some videos and ask two questions about each.

    Args:
        folder: gets rows.json and the frames.
        videos: data set -> names of its videos.
        annotated: write the answers.
        seed: of the places of the square.
    """
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for dataset, names in videos.items():
        for name in names:
            (folder / name).mkdir(parents=True)
            frames, boxes = [], []
            for number in range(3):
                x, y = int(rng.integers(0, 60)), int(rng.integers(0, 36))
                image = np.full((SIZE_WH[1], SIZE_WH[0], 3), 40, np.uint8)
                image[y : y + SQUARE, x : x + SQUARE] = 230
                frames.append(f"{name}/{name}_{number:04d}.png")
                cv2.imwrite(str(folder / frames[-1]), image)
                box = (float(x), float(y), float(x + SQUARE), float(y + SQUARE))
                boxes.append(list(to_canvas(box, convention_of(dataset), SIZE_WH)))
            for word in ("grasper", "knife"):
                row: dict[str, Any] = {
                    "id": name,
                    "qa_type": "stg",
                    "data_source": dataset,
                    "video": [f"/root/data/{frame}" for frame in frames],
                    "metadata": {"fps": 1.0, "video_id": name, "input_video_start_frame": 0},
                    "question": f"Where is the {word} every 2 seconds from 0 to 2 seconds?",
                }
                if annotated:
                    row["struc_info"] = [{"bbox_dict": {"0.0": boxes[0], "2.0": boxes[2]}}]
                rows.append(row)
    path = folder / "rows.json"
    path.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return path


def cache(
    rows: Path,
    out: Path,
    *,
    backbones: Backbones | None = None,
    engine: Engine | None = None,
    shard_examples: int = SHARD_EXAMPLES,
    answers: Engine | None = None,
) -> dict[str, Any]:
    """Build a cache of some rows with the fake models."""
    models = backbones or fake_backbones()
    settings = settings_of(models)
    read = read_question_rows(rows.read_text(encoding="utf-8"), data=rows.parent)
    units, faults = plan_units(read, rows.parent, settings)
    return build_cache(
        read,
        units,
        out,
        faults=faults,
        settings=settings,
        profile=PROFILE,
        engine=engine or local_engine(models),
        shard_examples=shard_examples,
        answers=answers,
    )

"""The MedVLM's direct answers beside a feature cache, for tables that set the methods side by side.

FOLDER/answers/         one file a question (a part of it, where it asks about many times)
FOLDER/answers.json     the box of each example of the manifest, pixels of its frame, null for none

A file's name follows from the keys of its examples and from how answers are asked for and read.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from refinerank_core.errors import RefineRankError
from refinerank_core.feature_plan import Chunk, Planned
from refinerank_core.formats import strict_json
from refinerank_core.frame_folder import read_picture
from refinerank_core.frozen_steps import Backbones, direct_boxes
from refinerank_core.profiles import Profile
from refinerank_core.question import parse_question
from refinerank_core.structures import Frame

ANSWERS = "answers"


def answer_chunks(units: Planned, profile: Profile) -> list[Chunk]:
    """The times of each question that the MedVLM answers together, as the pipeline groups them."""
    size = profile.medvlm.answer_frames
    chunks: list[Chunk] = []
    for _, group in groupby((unit for _, unit in units), key=lambda unit: unit.place):
        mine = list({unit.key: unit for unit in group}.values())
        chunks += [tuple(mine[k : k + size]) for k in range(0, len(mine), size)]
    return chunks


def answer_path(folder: Path, profile: Profile, chunk: Chunk) -> Path:
    """Where the answer to a part of a question is kept."""
    medvlm = profile.medvlm
    asked = [medvlm.answer_prompt, medvlm.coordinates, [unit.key for unit in chunk]]
    return folder / f"{hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:32]}.json"


def compute_answer(backbones: Backbones, chunk: Chunk, folder: Path) -> Path:
    """Let the MedVLM answer one question about its frames; what it cannot see has no box."""
    path = answer_path(folder, backbones.profile, chunk)
    shown = []
    for unit in chunk:
        try:
            frame = Frame(image=read_picture(unit.path), index=unit.frame, time_s=unit.time_s)
            shown.append((unit, frame))
        except RefineRankError:
            continue  # the examples say that this frame is not there
    boxes: dict[str, Any] = {}
    text = ""
    if shown:
        question = parse_question(chunk[0].question, duration_s=None)
        found, text = direct_boxes(
            backbones,
            question,
            [frame for _, frame in shown],
            [unit.time_s for unit, _ in shown],
            video_key=path.stem,
        )
        boxes = {
            unit.key: box.tolist()
            for (unit, _), box in zip(shown, found, strict=True)
            if not np.isnan(box).any()
        }
    scratch = path.with_name(f".{path.stem}.{os.getpid()}.part")
    scratch.write_text(strict_json.dumps({"text": text, "boxes": boxes}), encoding="utf-8")
    scratch.replace(path)
    return path


def missing_answers(chunks: Sequence[Chunk], folder: Path, profile: Profile) -> list[Chunk]:
    """The chunks whose answer is not kept."""
    return [chunk for chunk in chunks if not answer_path(folder, profile, chunk).is_file()]


def read_answers(chunks: Sequence[Chunk], folder: Path, profile: Profile) -> dict[str, list[float]]:
    """Key of an example -> the box that the MedVLM gave it; those without one are left out."""
    found: dict[str, list[float]] = {}
    for chunk in chunks:
        found |= json.loads(answer_path(folder, profile, chunk).read_text(encoding="utf-8"))[
            "boxes"
        ]
    return found

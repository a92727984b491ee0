"""A pretended core: real frames, invented boxes and maps, no torch. Fast and always the same."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Semaphore
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demo.services import Limits, ProfileCard, Services
from refinerank_core.boxes import decode_delta, denormalise, normalise
from refinerank_core.grounding import Box, Grounding, TimeGrounding
from refinerank_core.progress import (
    STAGES,
    UNWRITTEN,
    Begun,
    Grounded,
    News,
    Passed,
    Ranked,
    Written,
)
from refinerank_core.question import parse_question
from refinerank_core.structures import Image
from refinerank_core.video import Video, open_video

CAVEAT = "Similarity with the features inside the target box. Not attention, not confidence."
GRID = (6, 10)  # rows, columns of a pretended map
CARD = ProfileCard(
    name="untrained",
    label="UNTRAINED random weights: shows the path, not the skill",
    phantom=False,
    untrained=True,
    medvlm="medvlm@aaaaaaaaaaaa",
    detector="detector@bbbbbbbbbbbb",
    refinenet="refinenet@cccccccccccc",
    device="cpu",
)


@dataclass(frozen=True, eq=False)
class FakeMaps:
    """Stands for ResponseMaps."""

    target: Box
    raw: Mapping[str, NDArray[np.float16]]


def one_hot_maps(video: Video, frame_index: int, target: Box) -> FakeMaps:
    """Maps that are 1 in the cell under the target's centre and -0.2 elsewhere."""
    width, height = video.size_wh
    rows, columns = GRID
    values = np.full(GRID, -0.2, np.float16)
    row = int((target[1] + target[3]) / 2 / height * rows)
    column = int((target[0] + target[2]) / 2 / width * columns)
    values[min(row, rows - 1), min(column, columns - 1)] = 1.0
    names = ("block1", "block3", "block5", "block7", "final")
    return FakeMaps(target=target, raw=dict.fromkeys(names, values))


def candidates(size_wh: tuple[int, int], seed: int, count: int = 128) -> list[dict[str, Any]]:
    """A pool of the contract: every third row a sub-box, the last three filtered entirely."""
    rng = np.random.default_rng(seed)
    width, height = size_wh
    rows = []
    for row in range(count):
        w, h = rng.uniform(0.12, 0.42, 2) * (width, height)
        x, y = rng.uniform(0, width - w), rng.uniform(0, height - h)
        box = np.array([[x, y, x + w, y + h]], np.float32)
        delta = rng.uniform(-0.25, 0.25, (1, 4)).astype(np.float32)
        decoded = decode_delta(normalise(box, size_wh=size_wh), delta)[0]
        refined = denormalise(decoded, size_wh=size_wh)[0]
        rows.append(
            {
                "id": row,
                "box": box[0].tolist(),
                "source": "sub_box" if row % 3 == 2 else "raw",
                "phrase": ("grasper", "hook cautery", "surgical grasper")[row % 3],
                "confidence": round(0.9 * 0.97**row, 4),
                "native_score": round(0.5 * 0.97**row, 4),
                "parent": row - 1 if row % 3 == 2 else None,
                "score_original": round(float(rng.normal(-1 - row / 60, 0.6)), 4),
                "score_refined": round(float(rng.normal(-0.7 - row / 60, 0.6)), 4),
                "delta": delta[0].tolist(),
                "refined_box": refined.tolist(),
                "kept_original": row < 16,
                "kept_refined": row < 32,
            }
        )
    return rows


def time_grounding(video: Video, requested_s: float, direct: bool) -> dict[str, Any]:
    """One requested time of the contract."""
    index = video.nearest(requested_s)[0]
    rows = candidates(video.size_wh, seed=index)
    kept = [(r["id"], False) for r in rows if r["kept_original"]]
    kept += [(r["id"], True) for r in rows if r["kept_refined"]]
    score = {(i, f): rows[i]["score_refined" if f else "score_original"] for i, f in kept}
    order = sorted(kept, key=lambda one: (-score[one], one))
    best, second = order[0], order[1]
    row = rows[best[0]]
    width, height = video.size_wh
    return {
        "requested_s": requested_s,
        "frame_index": index,
        "frame_s": float(video.times_s[index]),
        "candidates": rows,
        "kept": kept,
        "answers": {
            "refinerank": {
                "box": row["refined_box"] if best[1] else row["box"],
                "score": score[best],
                "candidate_id": best[0],
                "refined": best[1],
                "margin": score[best] - score[second],
            },
            "medvlm": {
                "box": [width * 0.1, height * 0.2, width * 0.5, height * 0.7] if direct else None,
                "text": f"{requested_s} seconds: " + ("[10, 20, 50, 70]" if direct else "none"),
            },
            "medvlm_groundingdino": {
                "box": rows[0]["box"],
                "confidence": rows[0]["confidence"],
                "candidate_id": 0,
            },
        },
    }


class FakeCore:
    """Answers at once, or after `pause_s` in each stage, in batches of `batch` requested times.

    With `permits`, each batch and each direct answer waits for one.
    """

    batch = 4

    def __init__(self, pause_s: float = 0.0) -> None:
        self.pause_s = pause_s
        self.permits: Semaphore | None = None
        self.asked: list[str] = []

    def ground(
        self,
        video: Video,
        question: str,
        times: Sequence[float] | None,
        current_s: float,
        smooth: bool,
    ) -> Generator[News]:
        """One invented answer; a question that names a suction gets no box from the MedVLM."""
        self.asked.append(question)
        asked = parse_question(question, duration_s=video.duration_s)
        wanted = list(times or asked.requested_s or (current_s,))
        whole = grounding_of(video, asked.text, asked.target, asked.phrases, wanted)
        yield self._passed("query", len(wanted), len(wanted))
        yield Begun(whole.model_copy(update={"times": ()}))
        for first in range(0, len(wanted), self.batch):
            self._permit()
            done = min(first + self.batch, len(wanted))
            for stage in STAGES[1:-1]:
                yield self._passed(stage, done, len(wanted))
            ranked = [unwritten(one) for one in whole.times[first:done]]
            yield Ranked(first, tuple(ranked), {}, whole.seconds, ())
        self._permit()
        yield self._passed(STAGES[-1], len(wanted), len(wanted))
        answers = tuple(one.answers.medvlm for one in whole.times)
        yield Written(0, answers, whole.seconds, ())
        yield Grounded(whole, {})

    def _permit(self) -> None:
        if self.permits is not None:
            self.permits.acquire(timeout=120)

    def _passed(self, stage: str, done: int, total: int) -> Passed:
        time.sleep(self.pause_s)
        return Passed(stage, done, total)


def unwritten(time_: TimeGrounding) -> TimeGrounding:
    """A time as it is told before the MedVLM has written its own answer."""
    answers = time_.answers.model_copy(update={"medvlm": UNWRITTEN})
    return time_.model_copy(update={"answers": answers})


def grounding_of(
    video: Video, text: str, target: str, phrases: Sequence[str], times: Sequence[float]
) -> Grounding:
    """A whole answer of the contract."""
    width, height = video.size_wh
    return Grounding.model_validate(
        {
            "schema": 1,
            "video": {
                "name": video.name,
                "sha256": video.sha256,
                "width": width,
                "height": height,
                "frames": len(video),
                "duration_s": float(video.duration_s),
            },
            "question": {"text": text, "times_s": list(times), "target": target},
            "profile": {
                "name": CARD.name,
                "medvlm": CARD.medvlm,
                "detector": CARD.detector,
                "refinenet": CARD.refinenet,
                "phantom": False,
                "untrained": True,
                "inter_block": 5,
                "blocks": [1, 3, 5, 7],
            },
            "query": {"phrases": list(phrases), "source": "rules", "text": ""},
            "times": [time_grounding(video, t, "suction" not in text) for t in times],
            "seconds": dict.fromkeys(STAGES, 0.1),
            "warnings": [],
        }
    )


def fake_services(core: FakeCore, samples: Path, limits: Limits | None = None) -> Services:
    """Services over a pretended core."""
    wired: dict[str, Any] = {
        "ground": core.ground,
        "maps_at": one_hot_maps,
        "map_arrays": lambda maps: {
            f"t{k}_raw_{name}": values
            for k, one in maps.items()
            for name, values in one.raw.items()
        },
    }
    return Services(
        profile=CARD,
        stages=STAGES,
        caveat=CAVEAT,
        samples=samples,
        limits=limits or Limits(),
        open_video=open_video,
        seen=lambda video, indices: 0,
        **wired,
    )


def tissue(number: int, size_wh: tuple[int, int] = (320, 180)) -> Image:
    """A reddish picture with a bright bar whose place tells the frame's number."""
    width, height = size_wh
    image = np.empty((height, width, 3), np.uint8)
    image[:] = (132, 62, 58)
    image[::6] = (120, 52, 50)
    left = (number * 7) % (width - 24)
    image[height // 3 : height // 3 * 2, left : left + 24] = (214, 212, 206)
    return image

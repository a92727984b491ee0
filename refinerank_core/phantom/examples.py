"""Examples for RefineNet and the study: phantom scenes through the pipeline's own steps.

Scene, question and times come from seeds; phrases, features and boxes from the frozen models by
the calls that the pipeline makes. The truth goes into `Labels` and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from refinerank_core.feature_sets import (
    Example,
    FeatureSet,
    Labels,
    load_features,
    save_features,
    stack,
)
from refinerank_core.frozen_steps import NO_BOX, Backbones, FrozenResult, ask_frozen
from refinerank_core.phantom.effects import Sensor
from refinerank_core.phantom.questions import PhantomQuestion, ask_about
from refinerank_core.phantom.rows import video_id
from refinerank_core.phantom.scene import Scene
from refinerank_core.phantom.seeds import seed_for
from refinerank_core.phantom.shift import Shift
from refinerank_core.phantom.wording import Timing, draw_timing
from refinerank_core.structures import Frame

_ASKING = 31  # salt of the stream that questions are drawn from
_TRIES = 6


@dataclass(frozen=True)
class ExamplePlan:
    """Which scenes are asked about, and how.

    Attributes:
        purpose: whose seeds, a key of seeds.SEED_RANGES.
        first_scene, scenes: the scene numbers of each procedure.
        timings: moments or spans of each scene that are asked about.
        questions: different questions at each of them.
        most_times: requested times of a question at most.
        size_wh: of the frames.
        with_answers: let the MedVLM answer directly too.
    """

    purpose: str
    first_scene: int
    scenes: int
    timings: int = 2
    questions: int = 3
    most_times: int = 3
    size_wh: tuple[int, int] = (448, 252)
    with_answers: bool = False


@dataclass(frozen=True)
class Asked:
    """One question row, for breakdowns.

    Attributes:
        row: its name in the FeatureSet.
        kind: how it points, one of pointers.KINDS.
        text: its words.
        phrases: what the detector was asked for.
        phrase_source: "medvlm" or "rules".
    """

    row: str
    kind: str
    text: str
    phrases: tuple[str, ...]
    phrase_source: str


@dataclass(frozen=True, eq=False)
class ExampleSet:
    """All examples of one procedure.

    Attributes:
        features: what the models say.
        labels: where the target is.
        asked: one entry a question row.
        direct: (E, 4) float32, the MedVLM's own box in pixels, NaN where it gave none or was not
            asked.
    """

    features: FeatureSet
    labels: Labels
    asked: tuple[Asked, ...]
    direct: np.ndarray

    def kind_of(self) -> dict[str, str]:
        """Row name -> how it points."""
        return {one.row: one.kind for one in self.asked}


def build_examples(
    backbones: Backbones, plan: ExamplePlan, procedure: str, *, shift: Shift | None = None
) -> ExampleSet:
    """Ask about every scene of a plan and run the frozen steps on what is asked for."""
    examples: list[Example] = []
    boxes: list[np.ndarray] = []
    direct: list[np.ndarray] = []
    asked: list[Asked] = []
    numbers = range(plan.first_scene, plan.first_scene + plan.scenes)
    for number in tqdm(numbers, desc=f"examples: {procedure}", unit="scene"):
        scene = Scene.from_seed(seed_for(plan.purpose, number), procedure, shift=shift)
        for question, frames in ask_scene(scene, plan):
            row = f"{video_id(scene)}-q{len(asked)}"
            result = ask_models(
                backbones,
                question.text,
                frames,
                row=row,
                video=video_id(scene),
                duration_s=scene.duration_s,
            )
            if plan.with_answers:
                direct.append(result.answers())
            else:
                direct.append(np.array([NO_BOX] * len(frames), np.float32))
            examples += result.examples
            boxes.append(question.boxes)
            query = result.query
            asked.append(Asked(row, question.kind, question.text, query.phrases, query.source))
    return ExampleSet(
        stack(procedure, examples),
        Labels(np.concatenate(boxes).astype(np.float32)),
        tuple(asked),
        np.concatenate(direct),
    )


def ask_scene(scene: Scene, plan: ExamplePlan) -> Iterator[tuple[PhantomQuestion, list[Frame]]]:
    """Yield a scene's questions with the frames at their requested times."""
    rng = np.random.default_rng([scene.seed, _ASKING])
    sensor = Sensor(noise=float(rng.uniform(0, 4)), jpeg_quality=int(rng.integers(70, 96)))
    for _ in range(plan.timings):
        timing = draw_timing(rng, scene.duration_s, most=plan.most_times)
        drawn = [scene.render(time, plan.size_wh, sensor=sensor) for time in timing.times_s]
        frames = [
            Frame(image=image, index=round(time * scene.fps), time_s=time)
            for (image, _), time in zip(drawn, timing.times_s, strict=True)
        ]
        for question in _different(drawn, timing, scene.procedure, rng, plan.questions):
            yield question, frames


def _different(
    drawn: Sequence[tuple[np.ndarray, Any]],
    timing: Timing,
    procedure: str,
    rng: np.random.Generator,
    count: int,
) -> list[PhantomQuestion]:
    """Up to count questions that have an answer, no two of the same kind about the same thing."""
    truths = [truth for _, truth in drawn]
    found: dict[tuple[str, int], PhantomQuestion] = {}
    for _ in range(count * _TRIES):
        question = ask_about(truths, timing, procedure, rng)
        if question is not None and question.instance is not None and len(found) < count:
            found.setdefault((question.kind, question.instance), question)
    return list(found.values())


def ask_models(
    backbones: Backbones,
    text: str,
    frames: Sequence[Frame],
    *,
    row: str,
    video: str,
    duration_s: float,
) -> FrozenResult:
    """The frozen steps at the frames' own times; see `frozen_steps.ask_frozen`."""
    return ask_frozen(
        backbones,
        text,
        frames,
        [frame.time_s for frame in frames],
        row=row,
        video=video,
        video_key=video,
        duration_s=duration_s,
    )


def cached_examples(
    backbones: Backbones, plan: ExamplePlan, procedure: str, folder: Path
) -> ExampleSet:
    """Examples out of a folder, built there first when models or plan are new to it."""
    slug = procedure.replace(" ", "-")
    path = folder / f"{plan.purpose}-{plan.first_scene:06d}-{plan.scenes:03d}-{slug}.npz"
    side = path.with_suffix(".json")
    made_with = json.loads(json.dumps({"plan": asdict(plan), "models": list(backbones.model_ids)}))
    if path.is_file() and side.is_file():
        card = json.loads(side.read_text(encoding="utf-8"))
        if card["made_with"] == made_with:
            features, labels = load_features(path)
            asked = tuple(
                Asked(**{**one, "phrases": tuple(one["phrases"])}) for one in card["asked"]
            )
            direct = np.array([box or NO_BOX for box in card["direct"]], np.float32)
            if labels is not None:
                return ExampleSet(features, labels, asked, direct)
    built = build_examples(backbones, plan, procedure)
    save_features(path, built.features, built.labels)
    card = {
        "made_with": made_with,
        "asked": [asdict(one) for one in built.asked],
        "direct": [None if np.isnan(box[0]) else box.tolist() for box in built.direct],
    }
    side.write_text(json.dumps(card), encoding="utf-8")
    return built

"""The bundled sample clips: two per procedure, each with truth and four ready questions.

A clip `NAME.mp4` stands beside `NAME.json`: its title, what it shows, and the questions with the
right box of every requested frame. Their seeds belong to no training, validation or study scene.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from refinerank_core.phantom.clip import write_clip
from refinerank_core.phantom.questions import PhantomQuestion, ask
from refinerank_core.phantom.scene import Scene
from refinerank_core.phantom.seeds import SEED_RANGES, seed_for
from refinerank_core.phantom.vocabulary import PROCEDURES

SIZE_WH = (480, 270)
CRF = 26
DURATION_S = 20.0
PER_PROCEDURE = 2

_KINDS = {  # the four ready questions, by what they point with
    "laparoscopy": ("target", "name", "action", "side"),
    "endoscopic dissection": ("target", "action", "name", "category"),
    "open surgery": ("action", "name", "hand", "owner"),
}
_LEAST_TIMES = 3
_LEAST_TOOLS = 1.8
_ATTEMPTS = 40


@dataclass(frozen=True, eq=False)
class SamplePlan:
    """One clip to be made.

    Attributes:
        name: file name without suffix.
        scene: what it shows.
        questions: four of different kinds, each over at least one time.
    """

    name: str
    scene: Scene
    questions: tuple[PhantomQuestion, ...]


def plan_samples(*, duration_s: float = DURATION_S) -> list[SamplePlan]:
    """Choose, by rule, the first scenes of the samples' seeds that make good clips.

    A good clip holds several tools at once most of the time, and every kind of question of its
    procedure can be asked about it, most of them over several times.
    """
    plans: list[SamplePlan] = []
    indices = iter(range(len(SEED_RANGES["samples"])))
    for procedure in PROCEDURES:
        made = 0
        while made < PER_PROCEDURE:
            scene = Scene.from_seed(
                seed_for("samples", next(indices)), procedure, duration_s=duration_s
            )
            questions = _questions_for(scene, _KINDS[procedure])
            if questions is None or _tools_in_view(scene) < _LEAST_TOOLS:
                continue
            made += 1
            name = f"{procedure.replace(' ', '-')}-{made}"
            plans.append(SamplePlan(name=name, scene=scene, questions=questions))
    return plans


def _tools_in_view(scene: Scene) -> float:
    """Mean count of tools in view, looked at every two seconds."""
    times = np.arange(1.0, scene.duration_s - 0.5, 2.0)
    return float(np.mean([len(scene.truth_at(t, SIZE_WH).in_view("tool")) for t in times]))


def _questions_for(scene: Scene, kinds: tuple[str, ...]) -> tuple[PhantomQuestion, ...] | None:
    """A question of each kind, the first over several times; None when the scene allows it not."""
    chosen: list[PhantomQuestion] = []
    for place, kind in enumerate(kinds):
        least = _LEAST_TIMES if place < 2 else 1
        found = _first_question(scene, kind, least, {one.instance for one in chosen})
        if found is None:
            return None
        chosen.append(found)
    return tuple(chosen)


def _first_question(
    scene: Scene, kind: str, least_times: int, known: set[int | None]
) -> PhantomQuestion | None:
    """The first that points at a thing not yet asked for; else the first at all."""
    spare: PhantomQuestion | None = None
    for attempt in range(_ATTEMPTS):
        rng = np.random.default_rng((scene.seed, len(kind), attempt))
        question = ask(scene, rng, size_wh=SIZE_WH, kind=kind)
        if question is None or len(question.times_s) < least_times:
            continue
        if question.instance not in known:
            return question
        spare = spare or question
    return spare


def write_samples(
    plans: list[SamplePlan], folder: Path, *, told: Callable[[str], None] = lambda _: None
) -> list[Path]:
    """Write every clip and its sidecar.

    Args:
        plans: what plan_samples chose.
        folder: is made; files of the same names are replaced.
        told: called with the name of each clip when it is written.

    Returns:
        The clips.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for plan in plans:
        path = folder / f"{plan.name}.mp4"
        write_clip(plan.scene, path, size_wh=SIZE_WH, crf=CRF)
        path.with_suffix(".json").write_text(
            json.dumps(sidecar(plan), indent=1) + "\n", encoding="utf-8"
        )
        paths.append(path)
        told(plan.name)
    return paths


def sidecar(plan: SamplePlan) -> dict[str, object]:
    """What stands beside a clip; boxes are x0 y0 x1 y1 in pixels of its frames."""
    scene = plan.scene
    return {
        "title": f"{scene.procedure.capitalize()} {plan.name.rsplit('-', 1)[1]} (phantom)",
        "about": "A drawn scene with exact truth; no patient and no real tissue.",
        "rank": PROCEDURES.index(scene.procedure),
        "phantom": True,
        "procedure": scene.procedure,
        "seed": scene.seed,
        "questions": [
            {
                "text": question.text,
                "kind": question.kind,
                "thing": question.thing,
                "truth": {
                    str(round(time_s * scene.fps)): [round(float(edge), 2) for edge in box]
                    for time_s, box in zip(question.times_s, question.boxes, strict=True)
                },
            }
            for question in plan.questions
        ],
    }

"""Does a RefineNet learn from reviews? The proof on phantoms of other looks.

Videos of scenes under a shift are answered by a profile's own models; a simulated reviewer, who
knows the truth, accepts what lies well and corrects the rest in a real review store; `learn` is run
on that store; and the RefineNets before and after answer questions about videos that nobody
reviewed.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from refinerank_core.boxes import iou
from refinerank_core.checkpoint import load_refinenet
from refinerank_core.feature_sets import FeatureSet, Labels, load_features, save_features
from refinerank_core.frozen_steps import Backbones
from refinerank_core.grounding import Box, Grounding, TimeGrounding
from refinerank_core.learning.held_out import Comparison, compare
from refinerank_core.learning.learn import LearnPlan, LearnTask, learn
from refinerank_core.phantom.clip import write_clip
from refinerank_core.phantom.examples import ExamplePlan, build_examples
from refinerank_core.phantom.questions import PhantomQuestion, ask
from refinerank_core.phantom.rows import video_id
from refinerank_core.phantom.run_state import command_line, revision
from refinerank_core.phantom.scene import Scene
from refinerank_core.phantom.seeds import seed_for
from refinerank_core.phantom.shift import Shift
from refinerank_core.phantom.vocabulary import PROCEDURES
from refinerank_core.pipeline import RefineRank
from refinerank_core.progress import Begun, Ranked
from refinerank_core.reviews.records import Action, Case, Judgement
from refinerank_core.reviews.sources import cases_of
from refinerank_core.reviews.store import Store
from refinerank_core.reviews.worklist import Wanted
from refinerank_core.video import Video, open_video
from refinerank_core.whole_file import whole_file

SIZE_WH = (448, 252)
FPS = 5  # every time that phantom questions ask for lies on a frame
REVIEWER = "simulated reviewer"
DATABASE, VIDEOS, VARIANTS = "reviews.db", "videos", "variants"
_ASKING, _DRAWING = 41, 43
_TRIES = 20


@dataclass(frozen=True)
class LearnStudyPlan:
    """How the proof is made.

    Attributes:
        shift: seed of the looks.
        corrections: boxes that the reviewer corrects.
        questions: of each reviewed video.
        reviewed_from, unseen_from: first scene number of each side.
        unseen: videos of each procedure that are answered before and after and never reviewed.
        accepted: IoU from which on the reviewer lets a box stand.
        hand_px: deviation of a corner that the reviewer draws.
        seed: of questions, hand and order.
    """

    shift: int = 8
    corrections: int = 200
    questions: int = 4
    reviewed_from: int = 0
    unseen_from: int = 10_000
    unseen: int = 8
    accepted: float = 0.8
    hand_px: float = 1.0
    seed: int = 0


def learn_study(
    profile: str,
    work: Path,
    plan: LearnStudyPlan,
    learning: LearnPlan,
    *,
    told: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Make the proof; what is in the work folder already is not made again.

    Args:
        profile: name or path; where learning starts.
        work: keeps videos, reviews, features and the variant.
        plan: of the study. learning: of the training.
        told: called with a line now and then.
    """
    began = time.perf_counter()
    rank = RefineRank.load(profile, device="cpu")
    # Answers follow from the models: other models get a store of their own.
    folder = work / _name_of(rank, plan)
    folder.mkdir(parents=True, exist_ok=True)
    with Store(folder / DATABASE) as store:
        reviewed = review_videos(rank, store, work / VIDEOS, plan, told)
        told(f"{reviewed['corrected']} boxes corrected, {reviewed['accepted']} accepted")
        task = LearnTask(
            profile=profile,
            videos=(work / VIDEOS,),
            work=folder / "learning",
            variants=folder / VARIANTS,
            name="shifted",
        )
        result = learn(store, task, learning)
    told(result["say"])
    backbones = Backbones(rank.profile, rank.medvlm, rank.detector)
    sets = unseen_sets(backbones, folder / "unseen", plan)
    after = load_refinenet(folder / VARIANTS / result["refinenet"])
    if rank.net is None:
        raise ValueError("a variant cannot come from a profile without a RefineNet")
    compared = compare(rank.net, after, sets)
    return {
        "plan": asdict(plan),
        "learning": asdict(learning),
        "reviewer": reviewed,
        "unseen": compared.as_json(),
        "procedures": {
            features.dataset: compare(rank.net, after, [(features, labels)]).as_json()
            for features, labels in sets
        },
        "say": _sentence(compared, reviewed),
        "learned": result,
        "models": [*backbones.model_ids, rank.facts.refinenet],
        "seconds": round(time.perf_counter() - began),
        "command": command_line(),
        "revision": revision(),
    }


def review_videos(
    rank: RefineRank,
    store: Store,
    videos: Path,
    plan: LearnStudyPlan,
    told: Callable[[str], None],
) -> dict[str, int]:
    """Answer and review one video after the other until there are enough corrections.

    Returns:
        Videos, questions, and boxes that were accepted and corrected.
    """
    counted = {"videos": 0, "questions": 0, "accepted": 0, "corrected": 0}
    with tqdm(total=plan.corrections, desc="corrections", unit="box") as bar:
        for scene in _scenes(plan):
            path = videos / f"{video_id(scene)}.mp4"
            if not path.is_file():
                videos.mkdir(parents=True, exist_ok=True)
                with whole_file(path) as fresh:
                    write_clip(scene, fresh, size_wh=SIZE_WH)
            counted["videos"] += 1
            for question in _questions(scene, plan):
                counted["questions"] += 1
                for case, truth in _asked(rank, store, path, scene, question):
                    how = _review(store, case, truth, plan)
                    counted["corrected" if how == "fix" else "accepted"] += 1
                    bar.update(how == "fix")
                    if counted["corrected"] >= plan.corrections:
                        return counted
    told("the scenes are used up")
    return counted


def unseen_sets(
    backbones: Backbones, folder: Path, plan: LearnStudyPlan
) -> list[tuple[FeatureSet, Labels]]:
    """Features and exact truth of videos that nobody reviewed, kept in folder."""
    examples = ExamplePlan("shifted", plan.unseen_from, scenes=plan.unseen)
    sets = []
    for procedure in PROCEDURES:
        path = folder / f"{procedure.replace(' ', '-')}.npz"
        if not path.is_file():
            built = build_examples(backbones, examples, procedure, shift=Shift(plan.shift))
            save_features(path, built.features, built.labels)
        features, labels = load_features(path)
        if labels is None:
            raise ValueError(f"{path.name} holds no labels")
        sets.append((features, labels))
    return sets


def _scenes(plan: LearnStudyPlan) -> Iterator[Scene]:
    """Scenes to review, the procedures taking turns."""
    for number in range(plan.reviewed_from, plan.unseen_from):
        for procedure in PROCEDURES:
            yield Scene.from_seed(
                seed_for("shifted", number), procedure, fps=FPS, shift=Shift(plan.shift)
            )


def _questions(scene: Scene, plan: LearnStudyPlan) -> list[PhantomQuestion]:
    """Different questions that have an answer on the frames of the video."""
    rng = np.random.default_rng([plan.seed, scene.seed, _ASKING])
    found: dict[str, PhantomQuestion] = {}
    for _ in range(_TRIES):
        question = ask(scene, rng, size_wh=SIZE_WH)
        if question is None or question.instance is None or len(found) == plan.questions:
            continue
        if round(question.times_s[-1] * scene.fps) < scene.frame_count:
            found.setdefault(question.text, question)
    return list(found.values())


def _asked(
    rank: RefineRank, store: Store, path: Path, scene: Scene, question: PhantomQuestion
) -> list[tuple[Case, Box]]:
    """Put the answer to a question into the store; each of its cases with the true box."""
    with open_video(path) as video:
        known = store.views(Wanted(text=question.text))
        cases = [view.case for view in known if view.case.video_sha256 == video.sha256]
        if len(cases) != len(question.times_s):
            grounding = _ranked(rank, video, question)
            cases = cases_of(grounding, procedure=scene.procedure)
            store.add(cases, by=REVIEWER, grounding=grounding)
    boxes = [(float(a), float(b), float(c), float(d)) for a, b, c, d in question.boxes]
    cases.sort(key=lambda case: case.requested_s or 0.0)
    return list(zip(cases, boxes, strict=True))


def _ranked(rank: RefineRank, video: Video, question: PhantomQuestion) -> Grounding:
    """RefineRank's answer, without waiting for the MedVLM's own, which nobody reviews here."""
    begun: Grounding | None = None
    times: list[TimeGrounding] = []
    steps = rank.steps(video, question.text, question.times_s, with_maps=False)
    with closing(steps):
        for news in steps:
            if isinstance(news, Begun):
                begun = news.grounding
            elif isinstance(news, Ranked):
                times += news.times
            if begun is not None and len(times) == len(question.times_s):
                return begun.model_copy(update={"times": tuple(times)})
    raise ValueError("the run ended before all of its times were ranked")


def _review(store: Store, case: Case, truth: Box, plan: LearnStudyPlan) -> str:
    """Accept a box that lies well, else draw the true one with an unsteady hand."""
    before = case.box_of(case.method)
    state = store.case(case.case_id).state
    if state.current is not None:
        return state.current.judgement.decision
    fits = before is not None and float(iou(np.array(before), np.array(truth))) >= plan.accepted
    how: Any = "accept" if fits else "fix"
    judgement = Judgement(
        decision=how,
        shown=case.method,
        box_before=before,
        box_after=None if fits else _drawn(truth, case, plan),
        models=case.models,
    )
    name = hashlib.sha256(f"{case.case_id}{plan.seed}".encode()).hexdigest()
    store.record(
        Action(
            client_id=f"simulated:{name[:40]}",
            case_id=case.case_id,
            reviewer=REVIEWER,
            kind="decided",
            body=judgement,
            based_on=state.version,
        )
    )
    return str(how)


def _drawn(truth: Box, case: Case, plan: LearnStudyPlan) -> Box:
    rng = np.random.default_rng([plan.seed, _DRAWING, int(case.case_id[:12], 16)])
    x0, y0, x1, y1 = np.asarray(truth) + rng.normal(0, plan.hand_px, 4)
    x0, y0 = max(0.0, float(x0)), max(0.0, float(y0))
    return (
        x0,
        y0,
        max(x0 + 1, min(float(x1), float(case.width))),
        max(y0 + 1, min(float(y1), float(case.height))),
    )


def _sentence(compared: Comparison, reviewed: dict[str, int]) -> str:
    mean, low, high = compared.difference
    return (
        f"{reviewed['corrected']} corrections: mIoU on {compared.videos} unseen shifted videos "
        f"{compared.before[0]:.3f} before, {compared.after[0]:.3f} after; difference {mean:+.3f}, "
        f"95 % interval {low:+.3f} to {high:+.3f}."
    )


def _name_of(rank: RefineRank, plan: LearnStudyPlan) -> str:
    facts = rank.facts
    named = f"{facts.medvlm} {facts.detector} {facts.refinenet} {sorted(asdict(plan).items())}"
    return hashlib.sha256(named.encode()).hexdigest()[:12]

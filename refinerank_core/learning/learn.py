"""Teach a RefineNet the boxes that reviewers stand for, and say what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from refinerank_core.cached_training import require_fit
from refinerank_core.checkpoint import load_refinenet, refinenet_id
from refinerank_core.errors import RefineRankError
from refinerank_core.feature_sets import FeatureSet, Labels
from refinerank_core.folds import fold_of_videos
from refinerank_core.frozen_steps import Backbones
from refinerank_core.hub import on_this_machine
from refinerank_core.learning.features import reviewed_cache
from refinerank_core.learning.held_out import compare, sentence_of, verdict_of
from refinerank_core.learning.pictures import Picture, take_pictures
from refinerank_core.learning.targets import LeftOut, counts_of, digest_of, targets_of
from refinerank_core.learning.variant import require_name, write_variant
from refinerank_core.profiles import Learned, Profile, load_profile
from refinerank_core.refinenet import RefineNet
from refinerank_core.reviews.store import Store
from refinerank_core.training import BATCH, TrainingPlan, TrainingRun, fit

STAGES = ("reviews", "features", "training", "scoring")
LEAST_CASES = 8
_SHORT = 8

Told = Callable[[str, int, int, float | None], None]
"""Called with a stage of STAGES, how much of it is done, of how much, and an epoch's loss."""


@dataclass(frozen=True)
class LearnPlan:
    """How a RefineNet is taught by reviews.

    Attributes:
        epochs, rate, seed: of the training; what is not named here is as published.
        kept: share of the old weights in the new ones, which holds on to what few reviews cannot
            teach anew.
        held_out: share of the reviewed videos that are held out to compare before and after.

    Source: of mixing old and new weights: Wortsman et al. 2022, arXiv:2109.01903.
    """

    epochs: int = 20
    rate: float = 3e-4
    seed: int = 20260719
    kept: float = 0.3
    held_out: float = 0.25


@dataclass(frozen=True)
class LearnTask:
    """What to learn from, and where it goes.

    Attributes:
        profile: name or path; its frozen models make the features.
        videos: folders with the videos of the cases.
        work: keeps frames and features.
        variants: folder that gets the new profile.
        name: of the new profile; "": made from the profile's and the reviews' hash.
        refinenet: file to start from; None: the profile's own.
        device: where models run.
    """

    profile: str
    videos: tuple[Path, ...]
    work: Path
    variants: Path
    name: str = ""
    refinenet: Path | None = None
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))


def learn(
    store: Store,
    task: LearnTask,
    plan: LearnPlan,
    *,
    told: Told = lambda *_: None,
) -> dict[str, Any]:
    """Train on reviewed boxes from a given RefineNet on; write the variant.

    Returns:
        What came of it (see the README): reviews used and left out, before and after on held-out
        cases, the verdict, the names of the files.

    Raises:
        RefineRankError: there is nothing to start from, or too little to learn from.
    """
    began = time.perf_counter()
    profile = load_profile(task.profile)
    start, started_from = _start(profile, task.refinenet)
    variant_of = profile.learned.variant_of if profile.learned else profile.name
    named = f"{variant_of}-reviews-"
    require_name(task.name or named + "0" * _SHORT)  # refused now, not after the training
    told("reviews", 0, 1, None)
    targets, left_out = targets_of(store)
    pictures, absent = take_pictures(
        targets,
        task.videos,
        task.work / "frames",
        told=lambda done, total: told("reviews", done, total, None),
    )
    left_out += absent
    if len(pictures) < LEAST_CASES:
        raise RefineRankError(_too_few(len(pictures), len(targets), left_out))
    cache, used, failed = reviewed_cache(
        Backbones.load(profile, task.device),
        pictures,
        task.work / "features",
        told=lambda done, total: told("features", done, total, None),
    )
    left_out += failed
    features, labels = cache.sets[0].annotated()
    require_fit(start, features)
    taught, held = split(features, labels, share=plan.held_out, seed=plan.seed)
    told("training", 0, plan.epochs, None)
    run = _train(start, taught, plan, task, told)
    net = mixed(start, run.net, kept=plan.kept)
    told("scoring", 0, 1, None)
    compared = None if held is None else compare(start, net, [held])
    digest = digest_of(picture.target for picture in used)
    name = task.name or named + digest[:_SHORT]
    result = {
        "name": name,
        "profile": f"{name}.json",
        "refinenet": f"{name}.safetensors",
        "started_from": started_from,
        "reviews": {"sha256": digest, "cases": len(used)} | _counts(used),
        "left_out": [asdict(one) for one in left_out],
        "training": {"cases": len(taught[0]), "videos": len(set(taught[0].videos))},
        "losses": [round(loss, 6) for loss in run.losses],
        "held_out": None if compared is None else compared.as_json(),
        "held_out_by_decision": _by_decision(start, net, held, features, used),
        "verdict": verdict_of(compared),
        "say": sentence_of(compared),
        "seconds": round(time.perf_counter() - began, 1),
    }
    learned = Learned(
        variant_of=variant_of,
        started_from=started_from,
        reviews_sha256=digest,
        cases=len(used),
    )
    write_variant(
        task.variants, name, profile, net, learned, _card(result, plan, net, used, features, held)
    )
    told("scoring", 1, 1, None)
    return result


def split(
    features: FeatureSet, labels: Labels, *, share: float, seed: int
) -> tuple[tuple[FeatureSet, Labels], tuple[FeatureSet, Labels] | None]:
    """Hold whole videos out.

    Returns:
        The two sides; the second is None where one video is all there is, or none shall be held.
    """
    videos = len(set(features.videos))
    count = min(max(1, round(share * videos)), videos - 1) if share > 0 else 0
    if count < 1:
        return (features, labels), None
    order = fold_of_videos(features.videos, folds=videos, seed=seed)
    out = np.array([order[video] < count for video in features.videos])
    sides = [
        (features.subset(places), Labels(labels.boxes[places]))
        for places in (np.flatnonzero(~out), np.flatnonzero(out))
    ]
    return sides[0], sides[1]


def mixed(old: RefineNet, new: RefineNet, *, kept: float) -> RefineNet:
    """A RefineNet whose weights are this share of the old ones and the rest of the new ones."""
    net = RefineNet(new.config)
    before, after = old.state_dict(), new.state_dict()
    net.load_state_dict(
        {
            name: kept * before[name].cpu() + (1 - kept) * tensor.cpu()
            for name, tensor in after.items()
        }
    )
    return net.eval().requires_grad_(False)


def _start(profile: Profile, path: Path | None) -> tuple[RefineNet, str]:
    """The RefineNet to start from and its name."""
    if path is None:
        if profile.refinenet.source is None or profile.recipe is not None:
            raise RefineRankError(
                f"Profile {profile.name} has no trained RefineNet to start from. "
                "Give one with --refinenet."
            )
        found = on_this_machine(profile)
        path = Path(found.locate(str(found.refinenet.source)))
    return load_refinenet(path), refinenet_id(path)


def _train(
    start: RefineNet,
    taught: tuple[FeatureSet, Labels],
    plan: LearnPlan,
    task: LearnTask,
    told: Told,
) -> TrainingRun:
    training = TrainingPlan(
        epochs=plan.epochs, rate=plan.rate, seed=plan.seed, batch=min(BATCH, len(taught[0]))
    )
    return fit(
        start.config,
        training,
        [taught],
        device=task.device,
        start=start,
        told=lambda epoch, loss: told("training", epoch, plan.epochs, loss),
    )


def _counts(used: Sequence[Picture]) -> dict[str, int]:
    return asdict(counts_of(picture.target for picture in used))


def _by_decision(
    before: RefineNet,
    after: RefineNet,
    held: tuple[FeatureSet, Labels] | None,
    features: FeatureSet,
    used: Sequence[Picture],
) -> dict[str, Any]:
    """The comparison for accepted and for corrected boxes alone: accepted ones favour `before`."""
    if held is None:
        return {}
    how = {
        (row, float(time)): picture.target.how
        for row, time, picture in zip(features.rows, features.times_s, used, strict=True)
    }
    told: dict[str, Any] = {}
    for name in ("accept", "fix"):
        mine = [
            place
            for place, key in enumerate(zip(held[0].rows, held[0].times_s, strict=True))
            if how[key[0], float(key[1])] == name
        ]
        if mine:
            places = np.array(mine)
            part = held[0].subset(places), Labels(held[1].boxes[places])
            told[name] = compare(before, after, [part]).as_json()
    return told


def _card(
    result: dict[str, Any],
    plan: LearnPlan,
    net: RefineNet,
    used: Sequence[Picture],
    features: FeatureSet,
    held: tuple[FeatureSet, Labels] | None,
) -> dict[str, Any]:
    """The whole story of a checkpoint; every review by its case and the hash of its decision."""
    out = set() if held is None else set(held[0].videos)
    return result | {
        "plan": asdict(plan),
        "config": asdict(net.config),
        "videos": sorted(set(features.videos) - out),
        "held_out_videos": sorted(out),
        "decisions": [[one.target.case.case_id, one.target.event] for one in used],
    }


def _too_few(found: int, reviewed: int, left_out: Sequence[LeftOut]) -> str:
    why = f" Left out: {len(left_out)}, the first because {left_out[0].why}." if left_out else ""
    return (
        f"{found} of {reviewed} reviewed boxes can be learned from; it takes {LEAST_CASES}.{why} "
        "Review more cases, or name the folders of their videos."
    )

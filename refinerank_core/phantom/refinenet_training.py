"""Train the embedded RefineNet, and run the study, from a profile's frozen models."""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from refinerank_core.checkpoint import save_refinenet
from refinerank_core.errors import ProfileError
from refinerank_core.frozen_steps import Backbones
from refinerank_core.joint_pool import outcomes
from refinerank_core.phantom.examples import ExamplePlan, cached_examples
from refinerank_core.phantom.run_state import command_line, revision, write_card
from refinerank_core.phantom.study import require_split, run_study
from refinerank_core.phantom.study_figures import (
    Side,
    decomposition,
    refinerank_scores,
    split_facts,
)
from refinerank_core.phantom.vocabulary import PROCEDURES
from refinerank_core.profiles import Profile, load_profile
from refinerank_core.refinenet import RefineNetConfig
from refinerank_core.study import SEEDS, state_path
from refinerank_core.training import TrainingPlan, fit

D_MODEL, HIDDEN = 64, 128
# Scene numbers from here on train RefineNet; the backbones saw scenes below.
FIRST_SCENE = 100_000
TRAINING = ExamplePlan("training", FIRST_SCENE, scenes=200, questions=4)
VALIDATION = ExamplePlan("validation", 1_000, scenes=8)
EVALUATION = ExamplePlan("evaluation", 0, scenes=60, with_answers=True)
QUICK_TRAINING = ExamplePlan("training", FIRST_SCENE, scenes=14, questions=4)
QUICK_EVALUATION = ExamplePlan("evaluation", 0, scenes=8, with_answers=True)


def config_for(profile: Profile, widths: tuple[int, int, int]) -> RefineNetConfig:
    """RefineNet of the embedded size over these widths of q_last, merged token and patch."""
    return RefineNetConfig(
        query_dim=widths[0],
        final_dim=widths[1],
        inter_dim=widths[2],
        inter_block=profile.refinenet.inter_block,
        d_model=D_MODEL,
        hidden_dim=HIDDEN,
    )


def side_of(backbones: Backbones, plan: ExamplePlan, folder: Path) -> Side:
    """Examples of every procedure, kept in folder."""
    return Side(tuple(cached_examples(backbones, plan, name, folder) for name in PROCEDURES))


def widths_of(side: Side) -> tuple[int, int, int]:
    """Widths of q_last, of a merged token, and of a block's patch."""
    features = side.sets[0].features
    block = next(iter(features.r_blocks.values()))
    return features.q_last.shape[-1], features.r_final.shape[-1], block.shape[-1]


def train_embedded(
    profile_name: str, out: Path, work: Path, *, epochs: int, seed: int, quick: bool
) -> dict[str, Any]:
    """Train on the training scenes, score on the validation scenes, write weights and card.

    Args:
        profile_name: profile of the frozen models; its refinenet section says which block.
        out: the .safetensors file; its card goes beside it.
        work: keeps features and the training's state.
        epochs, seed: of the training.
        quick: fewer scenes.

    Returns:
        The card.
    """
    profile = load_profile(profile_name)
    started = time.perf_counter()
    backbones = Backbones.load(profile, torch.device("cpu"))
    training_plan = QUICK_TRAINING if quick else TRAINING
    training = side_of(backbones, training_plan, work)
    validation = side_of(backbones, VALIDATION, work)
    require_split(training, validation)
    features_s = time.perf_counter() - started
    plan = TrainingPlan(epochs=epochs, seed=seed)
    config = config_for(profile, widths_of(training))
    run = fit(
        config,
        plan,
        training.for_training(),
        device=torch.device("cpu"),
        checkpoint=state_path(work, plan, config),
    )
    save_refinenet(run.net, out)
    found = {
        one.features.dataset: (outcomes(run.net, one.features), one) for one in validation.sets
    }
    card = {
        "plan": asdict(plan),
        "config": asdict(config),
        "parameters": sum(p.numel() for p in run.net.parameters()),
        "models": list(backbones.model_ids),
        "data": {"training": asdict(training_plan), "validation": asdict(VALIDATION)},
        "split": {"training": split_facts(training), "validation": split_facts(validation)},
        "epochs": run.epoch,
        "losses": [round(loss, 6) for loss in run.losses],
        "seconds": {"features": round(features_s), "training": round(run.seconds)},
        "scores": {
            name: _asked_scores(refinerank_scores(said, one)) for name, (said, one) in found.items()
        },
        "decomposition": {name: decomposition(said, one) for name, (said, one) in found.items()},
        "revision": revision(),
        "command": command_line(),
    }
    write_card(card, out.with_suffix(".card.json"))
    return card


def _asked_scores(scores: dict[str, float]) -> dict[str, float]:
    """Scores without the MedVLM's direct answers, which validation does not ask for."""
    return {name: round(value, 4) for name, value in scores.items() if name != "medvlm"}


def study_of_profile(
    profile_name: str, *, quick: bool, work: Path | None, scenes: int | None = None
) -> dict[str, Any]:
    """The study on a profile's frozen models; every RefineNet in it is trained here.

    Args:
        profile_name: profile of the frozen models.
        quick: fewer videos on both sides.
        work: keeps features and states between runs; None keeps nothing.
        scenes: training videos of each procedure, None for the plan's own.

    Raises:
        ProfileError: the profile is made on the spot and names no frozen models.
    """
    profile = load_profile(profile_name)
    if profile.recipe is not None:
        raise ProfileError(f"Profile {profile.name} holds no trained models. Choose another.")
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="refinerank-study-") as scratch:
        folder = work or Path(scratch)
        backbones = Backbones.load(profile, torch.device("cpu"))
        plan = QUICK_TRAINING if quick else TRAINING
        training = side_of(backbones, replace(plan, scenes=scenes or plan.scenes), folder)
        evaluation = side_of(backbones, QUICK_EVALUATION if quick else EVALUATION, folder)
    figures, _ = run_study(
        training,
        evaluation,
        config_for(profile, widths_of(training)),
        seeds=SEEDS,
        work=work,
        progress=lambda line: print(line, file=sys.stderr),
    )
    return {
        **figures,
        "quick": quick,
        "models": list(backbones.model_ids),
        "seconds": round(time.perf_counter() - started),
        "command": command_line(),
        "revision": revision(),
    }

"""The training of the embedded MedVLM from stills to a checkpoint folder with its card."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from refinerank_core.models.small import save
from refinerank_core.phantom.medvlm_language import LanguagePlan, LanguageRun, plan_json
from refinerank_core.phantom.medvlm_scores import score_answers, score_q_last
from refinerank_core.phantom.medvlm_tower import TowerPlan, TowerRun, tower_plan_json
from refinerank_core.phantom.run_state import revision, write_card
from refinerank_core.phantom.stills import Still, StillSet

CARD = "card.json"


@dataclass(frozen=True)
class MedVLMTraining:
    """Where a training reads and writes.

    Attributes:
        stills: folder of the stills, training and validation.
        work: folder of the checkpoints between the stages.
        tower, language: plans of the stages.
        weights: a finished model to go on from; the tower's stage is then left out.
        keep_every_s: seconds between two checkpoints.
        scored: validation stills of each procedure that are scored.
        command: as typed, for the card.
    """

    stills: Path
    work: Path
    tower: TowerPlan
    language: LanguagePlan
    weights: Path | None = None
    keep_every_s: float = 120.0
    scored: int = 96
    command: str = ""


def train_medvlm(job: MedVLMTraining, folder: Path) -> dict[str, Any]:
    """Train what is left to train, write the checkpoint to folder, and return its card."""
    stills = StillSet(job.stills, "training")
    tower = TowerRun(job.tower, stills, job.work)
    if job.weights is None:
        tower.train(keep_every_s=job.keep_every_s)
        run = LanguageRun(job.language, stills, job.work, tower=tower.path)
    else:
        run = LanguageRun(job.language, stills, job.work, tower=None, weights=job.weights)
    run.train(keep_every_s=job.keep_every_s)
    return write_medvlm(job, run, tower, folder)


def write_medvlm(
    job: MedVLMTraining, run: LanguageRun, tower: TowerRun, folder: Path
) -> dict[str, Any]:
    """Write the checkpoint as it stands, score it, and put the card beside it."""
    scratch = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(scratch, ignore_errors=True)
    run.model.eval()
    save(run.model, run.processor, scratch)
    stills = StillSet(job.stills, "training")
    validation = held_out(StillSet(job.stills, "validation"), job.scored)
    tower.visual.load_state_dict(run.model.model.visual.state_dict())
    tower.heads.load_state_dict(run.dense.state_dict())
    card = {
        "what": "small Qwen2.5-VL trained on phantom surgery only",
        "parameters": sum(weights.numel() for weights in run.model.parameters()),
        "stills": {
            name: {"count": len(places), "seeds": _seeds(stills, places)}
            for name, places in stills.by_procedure().items()
        },
        "started_from": run.started_from,
        "tower": None
        if job.weights
        else {
            "plan": tower_plan_json(tower.plan),
            "steps": tower.step,
            "seconds": round(tower.seconds),
        },
        "language": {
            "plan": plan_json(run.plan),
            "steps": run.step,
            "seconds": round(run.seconds),
        },
        "validation": {
            "stills": len(validation),
            "cells": tower.score(validation),
            "q_last": score_q_last(run, validation),
            "answers": score_answers(scratch, validation[:: max(1, len(validation) // 60)]),
        },
        "threads": torch.get_num_threads(),
        "revision": revision(),
        "command": job.command,
    }
    write_card(card, scratch / CARD)
    run.model.train()
    if folder.exists():
        shutil.rmtree(folder)
    scratch.rename(folder)
    return card


def held_out(stills: StillSet, each: int) -> list[Still]:
    """Return stills spread over every procedure's scenes, each of them."""
    picked: list[Still] = []
    for places in stills.by_procedure().values():
        step = max(1, len(places) // each)
        picked += [stills[place] for place in places[::step][:each]]
    return picked


def _seeds(stills: StillSet, places: Sequence[int]) -> list[int]:
    """Return the lowest and the highest seed of some stills."""
    seeds = [int(stills.records[place]["seed"]) for place in places]
    return [min(seeds), max(seeds)]

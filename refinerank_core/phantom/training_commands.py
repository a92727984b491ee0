"""`phantom train-detector`, `phantom train-refinenet` and `phantom study`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

Commands = argparse._SubParsersAction
_QUICK = "fewer videos, minutes instead of an hour"


def add_training(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the three commands to those of `phantom`."""
    add_train_detector(commands)
    add_train_refinenet(commands)
    add_study(commands)


def add_train_detector(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("train-detector", help="train the embedded GroundingDINO")
    parser.add_argument("stills", type=Path, help="folder of `phantom make`, training stills")
    parser.add_argument("out", type=Path, help="folder of the finished checkpoint")
    parser.add_argument("--work", type=Path, required=True, help="folder of resumable state")
    parser.add_argument("--validation", type=Path, help="folder of validation stills to score on")
    parser.add_argument("--start-from", type=Path, help="a finished detector to train further")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--cool-steps", type=int, default=300, help="last steps of falling rate")
    parser.add_argument("--peak-rate", type=float, default=7e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.set_defaults(run=run_train_detector)


def run_train_detector(args: argparse.Namespace) -> int:
    from refinerank_core.phantom import detector_training as training
    from refinerank_core.phantom.stills import StillSet

    begun = args.start_from is not None
    plan = training.DetectorPlan(
        stages=training.GOING_ON if begun else training.FROM_SEED,
        steps=args.steps,
        cool_steps=args.cool_steps,
        peak_rate=args.peak_rate,
        seed=args.seed,
        threads=args.threads,
        size=training.FINE if begun else training.SMALL,
    )
    stills = StillSet(args.stills, "training")
    run = training.train_detector(plan, stills, args.work, weights=args.start_from)
    validation = StillSet(args.validation, "validation") if args.validation else None
    command = f"phantom train-detector --steps {args.steps} --cool-steps {args.cool_steps} "
    command += f"--peak-rate {args.peak_rate} --seed {args.seed} --threads {args.threads}"
    command += f" --start-from {args.start_from.name}" if begun else ""
    card = training.finish_detector(run, stills, validation, args.out, command=command)
    print(json.dumps(card, indent=2))
    return 0


def add_train_refinenet(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("train-refinenet", help="train the embedded RefineNet")
    parser.add_argument("profile", help="profile (name or .json) whose frozen models are used")
    parser.add_argument("out", type=Path, help="the .safetensors file to write")
    parser.add_argument("--work", type=Path, required=True, help="folder of features and state")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=20260719)
    parser.add_argument("--quick", action="store_true", help=_QUICK)
    parser.set_defaults(run=run_train_refinenet)


def run_train_refinenet(args: argparse.Namespace) -> int:
    from refinerank_core.phantom.refinenet_training import train_embedded

    card = train_embedded(
        args.profile, args.out, args.work, epochs=args.epochs, seed=args.seed, quick=args.quick
    )
    print(json.dumps(card, indent=2))
    return 0


def add_study(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("study", help="reproduce the paper's tables on phantom surgery")
    parser.add_argument("--profile", default="phantom", help="profile of the frozen models")
    parser.add_argument("--quick", action="store_true", help=_QUICK)
    parser.add_argument("--scenes", type=int, help="training videos of each procedure")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--markdown", type=Path, help="write the tables to this file")
    parser.add_argument("--work", type=Path, help="folder that keeps features between runs")
    parser.add_argument(
        "--against", type=Path, help="a kept study of the same kind; fails where figures differ"
    )
    parser.set_defaults(run=run_study_command)


def run_study_command(args: argparse.Namespace) -> int:
    from refinerank_core.phantom.refinenet_training import study_of_profile
    from refinerank_core.phantom.run_state import write_figures
    from refinerank_core.phantom.study_compare import differences
    from refinerank_core.phantom.study_tables import as_markdown

    figures: dict[str, Any] = study_of_profile(
        args.profile, quick=args.quick, work=args.work, scenes=args.scenes
    )
    write_figures(args.json, json.dumps(figures, indent=2) + "\n")
    write_figures(args.markdown, as_markdown(figures))
    print(as_markdown(figures) if args.json else json.dumps(figures, indent=2))
    if args.against is None:
        return 0
    found = differences(figures, json.loads(args.against.read_text(encoding="utf-8")))
    for line in found:
        print(f"refinerank: not as in {args.against.name}: {line}", file=sys.stderr)
    return 1 if found else 0

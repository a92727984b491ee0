"""The `phantom` commands: draw stills, train the embedded models."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from refinerank_core.phantom.learn_commands import add_learning
from refinerank_core.phantom.samples_command import add_samples
from refinerank_core.phantom.seeds import SEED_RANGES
from refinerank_core.phantom.training_commands import add_training
from refinerank_core.phantom.vocabulary import PROCEDURES

Commands = argparse._SubParsersAction


def add_phantom(subparsers: Commands[argparse.ArgumentParser]) -> None:
    """Add `phantom` with its own commands to the program's."""
    parser = subparsers.add_parser("phantom", help="make phantom surgery and train on it")
    commands = parser.add_subparsers(dest="phantom_command", required=True)
    add_make(commands)
    add_rows(commands)
    add_train_medvlm(commands)
    add_training(commands)
    add_samples(commands)
    add_learning(commands)


def add_make(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("make", help="draw the stills that trainings read")
    parser.add_argument("folder", type=Path, help="where the shards go")
    parser.add_argument("--purpose", choices=sorted(SEED_RANGES), default="training")
    parser.add_argument("--procedures", nargs="+", choices=PROCEDURES, default=list(PROCEDURES))
    parser.add_argument("--first-scene", type=int, default=0)
    parser.add_argument("--scenes", type=int, default=512, help="scenes of each procedure")
    parser.add_argument("--shard-scenes", type=int, default=64)
    parser.set_defaults(run=run_make)


def run_make(args: argparse.Namespace) -> int:
    from refinerank_core.phantom.stills import StillPlan, make_stills

    plan = StillPlan(
        purpose=args.purpose,
        procedures=tuple(args.procedures),
        first_scene=args.first_scene,
        scenes=args.scenes,
        shard_scenes=args.shard_scenes,
    )
    print(make_stills(plan, args.folder))
    return 0


def add_rows(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("rows", help="write MedVidBench-like rows and their frames")
    parser.add_argument("folder", type=Path, help="gets rows.json and one folder of frames a video")
    parser.add_argument("--purpose", choices=sorted(SEED_RANGES), default="training")
    parser.add_argument("--procedures", nargs="+", choices=PROCEDURES, default=list(PROCEDURES))
    parser.add_argument("--first-scene", type=int, default=0)
    parser.add_argument("--scenes", type=int, default=2, help="videos of each procedure")
    parser.add_argument("--questions", type=int, default=4, help="questions about each video")
    parser.add_argument("--duration", type=float, default=20.0, help="seconds of each video")
    parser.add_argument("--seed", type=int, default=0, help="of the questions")
    parser.set_defaults(run=run_rows)


def run_rows(args: argparse.Namespace) -> int:
    from refinerank_core.phantom.rows import FRAME_WH, write_rows
    from refinerank_core.phantom.scene import Scene
    from refinerank_core.phantom.seeds import seed_for

    scenes = [
        Scene.from_seed(seed_for(args.purpose, number), procedure, duration_s=args.duration)
        for procedure in args.procedures
        for number in range(args.first_scene, args.first_scene + args.scenes)
    ]
    path = write_rows(
        scenes, args.folder, size_wh=FRAME_WH, per_scene=args.questions, seed=args.seed
    )
    print(path.name)
    return 0


def add_train_medvlm(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("train-medvlm", help="train the embedded Qwen2.5-VL")
    parser.add_argument("stills", type=Path, help="folder of `phantom make`, both purposes")
    parser.add_argument("out", type=Path, help="folder of the finished checkpoint")
    parser.add_argument("--work", type=Path, required=True, help="folder of resumable state")
    parser.add_argument(
        "--start-from", type=Path, help="a finished MedVLM to train further, without tower steps"
    )
    parser.add_argument("--tower-steps", type=int, default=3000)
    parser.add_argument("--language-steps", type=int, default=3000)
    parser.add_argument("--joint-from", type=int, default=1500, help="step the tower joins in at")
    parser.add_argument("--videos-from", type=int, default=700, help="step of the first videos")
    parser.add_argument("--peak-rate", type=float, default=1.5e-3)
    parser.add_argument("--tower-rate", type=float, default=3e-4, help="peak rate while joined in")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.set_defaults(run=run_train_medvlm)


def run_train_medvlm(args: argparse.Namespace) -> int:
    import torch

    from refinerank_core.phantom.medvlm_language import LanguagePlan
    from refinerank_core.phantom.medvlm_tower import TowerPlan
    from refinerank_core.phantom.medvlm_training import MedVLMTraining, train_medvlm

    torch.set_num_threads(args.threads)
    begun = f"--tower-steps {args.tower_steps}"
    if args.start_from is not None:
        begun = f"--start-from {args.start_from.name}"
    job = MedVLMTraining(
        stills=args.stills,
        work=args.work,
        tower=TowerPlan(steps=args.tower_steps, seed=args.seed),
        language=LanguagePlan(
            steps=args.language_steps,
            joint_from=args.joint_from,
            videos_from=args.videos_from,
            peak_rate=args.peak_rate,
            tower_rate=args.tower_rate,
            seed=args.seed,
        ),
        weights=args.start_from,
        command=f"phantom train-medvlm {begun} --language-steps {args.language_steps} "
        f"--joint-from {args.joint_from} --videos-from {args.videos_from} "
        f"--peak-rate {args.peak_rate} --tower-rate {args.tower_rate} --seed {args.seed}",
    )
    print(json.dumps(train_medvlm(job, args.out)["validation"], indent=2))
    return 0

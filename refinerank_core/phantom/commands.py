"""The `phantom` commands: draw stills, train the embedded models."""

from __future__ import annotations

import argparse
from pathlib import Path

from refinerank_core.phantom.seeds import SEED_RANGES
from refinerank_core.phantom.vocabulary import PROCEDURES

Commands = argparse._SubParsersAction


def add_phantom(subparsers: Commands[argparse.ArgumentParser]) -> None:
    """Add `phantom` with its own commands to the program's."""
    parser = subparsers.add_parser("phantom", help="make phantom surgery and train on it")
    commands = parser.add_subparsers(dest="phantom_command", required=True)
    add_make(commands)


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

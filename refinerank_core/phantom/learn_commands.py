"""`phantom learn` and `phantom beyond`: what reviews teach, what the options are worth."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from refinerank_core.profiles import DEFAULT_PROFILE

Commands = argparse._SubParsersAction


def add_learning(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add both commands to those of `phantom`."""
    add_learn(commands)
    add_beyond(commands)


def add_learn(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "learn", help="learn from simulated reviews of instruments and tissue of other looks"
    )
    parser.add_argument("--profile", default=DEFAULT_PROFILE, help="whose models answer and learn")
    parser.add_argument("--work", type=Path, required=True, help="keeps videos, reviews, features")
    parser.add_argument("--corrections", type=int, default=200, help="boxes that are corrected")
    parser.add_argument("--unseen", type=int, default=8, help="unseen videos of each procedure")
    parser.add_argument("--shift", type=int, default=8, help="seed of the looks")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.set_defaults(run=run_learn)


def run_learn(args: argparse.Namespace) -> int:
    """Make the proof; print its sentence, or all figures."""
    from refinerank_core.learning.learn import LearnPlan
    from refinerank_core.phantom.learn_study import LearnStudyPlan, learn_study
    from refinerank_core.phantom.run_state import write_figures

    plan = LearnStudyPlan(shift=args.shift, corrections=args.corrections, unseen=args.unseen)
    # The unseen videos are the held-out side: every correction teaches.
    figures = learn_study(args.profile, args.work, plan, LearnPlan(held_out=0.0), told=_said)
    write_figures(args.json, json.dumps(figures, indent=1) + "\n")
    print(figures["say"] if args.json else json.dumps(figures, indent=1))
    return 0


def add_beyond(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("beyond", help="measure the options beyond the paper")
    parser.add_argument("--profile", default=DEFAULT_PROFILE, help="profile of the frozen models")
    parser.add_argument("--work", type=Path, required=True, help="work folder of `phantom study`")
    parser.add_argument("--quick", action="store_true", help="the sides of the quick study")
    parser.add_argument("--scenes", type=int, help="training videos of each procedure")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.set_defaults(run=run_beyond)


def run_beyond(args: argparse.Namespace) -> int:
    """Measure; print one line an option, or all figures."""
    from refinerank_core.phantom.beyond import beyond_of_profile
    from refinerank_core.phantom.run_state import write_figures

    figures = beyond_of_profile(
        args.profile, args.work, quick=args.quick, scenes=args.scenes, told=_said
    )
    write_figures(args.json, json.dumps(figures, indent=1) + "\n")
    if not args.json:
        print(json.dumps(figures, indent=1))
        return 0
    for option, cells in figures["options"].items():
        gap = figures["differences"].get(option, {}).get("average")
        ends = f", {gap['mean']:+.4f} ({gap['low']:+.4f} to {gap['high']:+.4f})" if gap else ""
        print(f"{option}: mIoU {cells['average']['mean']:.4f}{ends}")
    error = figures["calibration"]["ece"]
    print(f"calibration error: {error['before']:.4f} before, {error['after']:.4f} after")
    return 0


def _said(line: str) -> None:
    print(line, file=sys.stderr)

"""`train --reviews`: teach a RefineNet the boxes that reviewers stand for."""

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from refinerank_core.errors import RefineRankError
from refinerank_core.profiles import DEFAULT_PROFILE
from refinerank_core.reviews.database import DEFAULT_DATABASE

if TYPE_CHECKING:
    from refinerank_core.learning.learn import LearnPlan, LearnTask
    from refinerank_core.learning.runner import Reporter

FROM_ENVIRONMENT = ""
_LOWER_PRIORITY = 10
_SHOWN = 20


def add_options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Add `--reviews`, and what belongs to it alone: None says that it was not given."""
    group = parser.add_argument_group("learning from reviews")
    add = group.add_argument
    add(
        "--reviews",
        nargs="?",
        const=FROM_ENVIRONMENT,
        metavar="DB",
        help=f"learn from this review database; without DB REFINERANK_DB, else {DEFAULT_DATABASE}",
    )
    return [
        add("--videos", type=Path, nargs="+", help="folders with the videos of the cases"),
        add(
            "--profile",
            help=f"whose frozen models and RefineNet to start from; else {DEFAULT_PROFILE}",
        ),
        add("--refinenet", type=Path, help="the RefineNet to start from instead"),
        add("--variants", type=Path, help="folder that gets the new profile"),
        add("--name", help="of the new profile; else the reviews' hash"),
        add("--held-out-share", type=float, help="share of the videos to compare on; else 0.25"),
        add("--state", type=Path, help="folder that tells how far it is (the app's)"),
    ]


def run(args: argparse.Namespace) -> int:
    """Learn; print what came of it as JSON, what was left out on stderr."""
    share = args.held_out_share
    if args.variants is None:
        args.refuse("Learning from reviews writes a profile: give --variants FOLDER.")
    if share is not None and not 0 <= share < 1:
        args.refuse(f"--held-out-share is {share:g}; give 0 to below 1.")
    if args.state is None:
        result = _learn(args, lambda *_: None)
    else:
        from refinerank_core.learning.runner import Reporter

        result = _reported(args, Reporter(args.state))
    for one in result["left_out"][:_SHOWN]:
        print(f"refinerank: {one['video']}: left out, {one['why']}", file=sys.stderr)
    if len(result["left_out"]) > _SHOWN:
        print(f"refinerank: and {len(result['left_out']) - _SHOWN} more", file=sys.stderr)
    print(f"refinerank: {result['say']}", file=sys.stderr)
    print(json.dumps(result, indent=1))
    return 0


def _reported(args: argparse.Namespace, reporter: "Reporter") -> dict[str, Any]:
    """Learn beside a running app: gently, every step told, stopped by SIGTERM."""
    import torch

    if hasattr(os, "nice"):
        os.nice(_LOWER_PRIORITY)
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        result = _learn(args, reporter.told)
    except RefineRankError as error:
        reporter.end("failed", str(error))
        raise
    except KeyboardInterrupt:
        reporter.end("cancelled", "Stopped; nothing was changed.")
        raise
    except BaseException as error:
        reporter.end("failed", f"The training failed by a fault of ours ({type(error).__name__}).")
        raise
    reporter.end("done", result["say"], result)
    return result


def _learn(
    args: argparse.Namespace, told: Callable[[str, int, int, float | None], None]
) -> dict[str, Any]:
    from refinerank_core.learning.learn import learn
    from refinerank_core.reviews.store import Store

    task, plan = _asked(args)
    with Store(args.reviews) as store:
        return learn(store, task, plan, told=told)


def _asked(args: argparse.Namespace) -> "tuple[LearnTask, LearnPlan]":
    from refinerank_core.device import choose_device
    from refinerank_core.learning.learn import LearnPlan, LearnTask

    task = LearnTask(
        profile=args.profile or DEFAULT_PROFILE,
        videos=tuple(args.videos or ()),
        work=args.work,
        variants=args.variants,
        name=args.name or "",
        refinenet=args.refinenet,
        device=choose_device(args.device),
    )
    plan = LearnPlan(
        epochs=LearnPlan.epochs if args.epochs is None else args.epochs,
        seed=args.seeds[0],
        held_out=LearnPlan.held_out if args.held_out_share is None else args.held_out_share,
    )
    return task, plan

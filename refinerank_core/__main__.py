"""The core's own door: `python -m refinerank_core COMMAND`.

Exit codes: 0 done, 1 a fault of the input or the world (one line on stderr), 2 a wrong command
line (argparse).
"""

import argparse
import os
import sys
from collections.abc import Sequence

from refinerank_core.commands import (
    bench,
    bench_training,
    convert_detector,
    deidentify,
    evaluate,
    export,
    features,
    fetch,
    ground,
    import_,
    info,
    predict,
    refinenet,
    reviews,
    rows,
    space,
    submit,
    tables,
    train,
    untrained,
)
from refinerank_core.commands.train_reviews import FROM_ENVIRONMENT
from refinerank_core.errors import RefineRankError
from refinerank_core.phantom.commands import add_phantom
from refinerank_core.reviews.database import DEFAULT_DATABASE


def build_parser() -> argparse.ArgumentParser:
    """The command line, one sub-command per job."""
    parser = argparse.ArgumentParser(
        prog="python -m refinerank_core",
        description="Answer procedural questions on surgical video with one box per time.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in (ground, info, reviews, export, import_, bench, untrained, refinenet):
        command.add_to(commands)
    for command in (rows, features, train, predict, evaluate, tables, submit, bench_training):
        command.add_to(commands)
    for command in (fetch, convert_detector, space, deidentify):
        command.add_to(commands)
    add_phantom(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code."""
    args = build_parser().parse_args(argv)
    if "db" in args and args.db is None:
        args.db = os.environ.get("REFINERANK_DB", DEFAULT_DATABASE)
    if getattr(args, "reviews", None) == FROM_ENVIRONMENT:
        args.reviews = os.environ.get("REFINERANK_DB", DEFAULT_DATABASE)
    try:
        return int(args.run(args))
    except RefineRankError as error:
        print(f"refinerank: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("refinerank: stopped.", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

"""`make-untrained --out DIR`: small checkpoints with random weights, and a profile for them."""

import argparse
from pathlib import Path

from refinerank_core.errors import RefineRankError


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = commands.add_parser(
        "make-untrained",
        help="write small checkpoints of the real architectures with random weights",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder to write into")
    parser.add_argument("--seed", type=int, default=20261130, help="seed of all weights")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the checkpoints and print the profile's path."""
    from refinerank_core.models.untrained import write_untrained

    try:
        print(write_untrained(args.out, seed=args.seed))
    except OSError as error:
        raise RefineRankError(
            f"{args.out.name} cannot be written ({error.strerror}). Choose another folder."
        ) from error
    return 0

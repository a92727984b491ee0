"""`space --check`: whether the repository can be pushed to Hugging Face as a Space."""

import argparse
import sys
from pathlib import Path

import refinerank_core
from refinerank_core.errors import RefineRankError


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = commands.add_parser("space", help="check what a Hugging Face Space needs")
    parser.add_argument(
        "--check",
        action="store_true",
        required=True,
        help="front matter, file sizes, requirements, and that the page builds",
    )
    parser.add_argument(
        "--no-build", action="store_true", help="look at the files only, start no app"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print every fault; exit code 1 when there is one."""
    from refinerank_core.space import check_space

    root = Path(refinerank_core.__file__).parents[1]
    if not (root / "README.md").is_file():
        raise RefineRankError("space --check needs the repository: run it in a checkout.")
    faults = check_space(root, build=not args.no_build)
    for fault in faults:
        print(f"refinerank: {fault}", file=sys.stderr)
    if faults:
        return 1
    print("The repository can be pushed as a Space; no packages.txt is needed.")
    return 0

"""`refinenet info FILE`: what a RefineNet checkpoint holds."""

import argparse
import json
from pathlib import Path


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = commands.add_parser("refinenet", help="look into a RefineNet checkpoint")
    jobs = parser.add_subparsers(dest="job", required=True, metavar="JOB")
    info = jobs.add_parser("info", help="print its sizes, block and standardiser as JSON")
    info.add_argument("file", type=Path, help="a .safetensors file, or the released .pt file")
    info.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the facts of a checkpoint."""
    from refinerank_core.checkpoint import RELEASED_SUFFIXES, load_refinenet

    net = load_refinenet(args.file)
    facts = {
        "parameters": sum(parameter.numel() for parameter in net.parameters()),
        "query_dim": net.config.query_dim,
        "inter_dim": net.config.inter_dim,
        "final_dim": net.config.final_dim,
        "inter_block": net.config.inter_block,
        "source": "released" if args.file.suffix in RELEASED_SUFFIXES else "own",
        "standardizer": {
            "mean": net.standardizer_mean.tolist(),
            "std": net.standardizer_std.tolist(),
        },
    }
    print(json.dumps(facts))
    return 0

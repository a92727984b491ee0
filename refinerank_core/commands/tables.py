"""`tables`: methods, selectors and features on cached rows, as Markdown and JSON."""

import argparse
import json
import sys
from pathlib import Path

from refinerank_core.commands.outputs import refuse_unwritable, write_whole
from refinerank_core.commands.train import DEFAULT_SEED
from refinerank_core.device import DEVICES


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = commands.add_parser(
        "tables", help="the paper's Tables 3 to 5 on cached rows: methods, selectors, features"
    )
    parser.add_argument(
        "--features", type=Path, nargs="+", required=True, help="caches of annotated rows"
    )
    parser.add_argument("--work", type=Path, required=True, help="folder of resumable state")
    parser.add_argument("--held-out", type=Path, help="cache to score; no video may be shared")
    parser.add_argument("--folds", type=int, help="or: score each video out of fold")
    parser.add_argument("--json", type=Path, metavar="OUT", help="every figure, for the app too")
    parser.add_argument("--markdown", type=Path, metavar="OUT", help="the tables")
    parser.add_argument("--block", type=int, help="vision block to read; else the profile's")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seeds", type=int, nargs="+", default=[DEFAULT_SEED])
    parser.add_argument("--d-model", type=int, default=128)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--device", default="auto", choices=DEVICES)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Train and score everything; print the tables."""
    refuse_unwritable(args.json, args.markdown)
    from refinerank_core import cached_tables as tables
    from refinerank_core.cached_training import NetSize
    from refinerank_core.device import choose_device
    from refinerank_core.feature_cache import open_cache

    plan = tables.TablesPlan(
        seeds=tuple(args.seeds),
        epochs=args.epochs,
        block=args.block,
        size=NetSize(args.d_model, args.hidden),
        folds=args.folds,
    )
    figures = tables.cached_tables(
        [open_cache(folder) for folder in args.features],
        None if args.held_out is None else open_cache(args.held_out),
        plan,
        work=args.work,
        device=choose_device(args.device),
        told=lambda line: print(line, file=sys.stderr),
    )
    text = tables.as_markdown(figures)
    if args.json is not None:
        write_whole(args.json, (json.dumps(figures, indent=1) + "\n").encode())
    if args.markdown is not None:
        write_whole(args.markdown, text.encode())
    print(text, end="")
    return 0

"""`convert-detector FILE --out DIR`: the authors' GroundingDINO file as a checkpoint folder."""

import argparse
from pathlib import Path

from refinerank_core.commands.outputs import refuse_unwritable


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = commands.add_parser(
        "convert-detector", help="turn an official GroundingDINO .pth into a checkpoint folder"
    )
    parser.add_argument("file", type=Path, help="such as groundingdino_swinb_cogcoor.pth")
    parser.add_argument("--out", type=Path, required=True, help="folder to write into")
    parser.add_argument(
        "--tokenizer",
        default="google-bert/bert-base-uncased",
        help="folder or hub id of the text encoder's tokenizer",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Convert and print the folder, which a profile's detector.source may name."""
    from refinerank_core.models.official_names import convert_official

    refuse_unwritable(args.out / "config.json" if args.out.is_dir() else args.out)
    convert_official(args.file, args.tokenizer, args.out)
    print(args.out)
    return 0

"""`submit`: the predictions of STG rows laid over a full prediction file."""

import argparse
from pathlib import Path

from refinerank_core.commands.inputs import read_text
from refinerank_core.commands.outputs import write_whole
from refinerank_core.formats.medvidbench_rows import read_question_rows
from refinerank_core.formats.medvidbench_submission import overlay, read_predictions


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = commands.add_parser("submit", help="write a MedVidBench submission")
    parser.add_argument("--rows", type=Path, required=True, help="the question rows, every kind")
    parser.add_argument("--stg", type=Path, required=True, help="what `predict` wrote")
    parser.add_argument(
        "--full", type=Path, help="predictions of every row in order; needed for other kinds"
    )
    parser.add_argument("--out", type=Path, required=True, help="the submission to write")
    parser.add_argument(
        "--public-test", action="store_true", help="require the size of the public test set"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the submission and read it back."""
    source = read_text(args.rows)
    text = overlay(
        source,
        None if args.full is None else read_text(args.full),
        read_text(args.stg),
        public_test=args.public_test,
    )
    again = read_predictions(text, read_question_rows(source))
    boxes = sum(len(answer.timed) for answer in again.by_place.values())
    write_whole(args.out, text.encode())
    print(f"{len(again.by_place)} stg predictions with {boxes} timed boxes, all read back")
    return 0

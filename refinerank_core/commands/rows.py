"""`rows check FILE`: every bad row of a MedVidBench file with its line."""

import argparse
from pathlib import Path

from refinerank_core.commands.inputs import read_text
from refinerank_core.formats.medvidbench_rows import read_question_rows


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = commands.add_parser("rows", help="look into a file of MedVidBench question rows")
    jobs = parser.add_subparsers(dest="job", required=True, metavar="JOB")
    check = jobs.add_parser("check", help="list every bad row with its line")
    check.add_argument("file", type=Path, help="the JSON list of rows")
    check.add_argument(
        "--data", type=Path, help="folder that stands for /root/data: also look for each frame"
    )
    check.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the faults; 1 when there is one."""
    read = read_question_rows(read_text(args.file), data=args.data)
    for kind, found in (("fault", read.faults), ("note", read.remarks)):
        for one in found:
            print(f"line {one.line}: {kind}: {one.text}")
    annotated = sum(bool(row.boxes) for row in read.rows)
    print(
        f"{read.total} rows, {read.kinds['stg']} of the kind stg: {len(read.rows)} usable, "
        f"{annotated} annotated; {len(read.faults)} faults, {len(read.remarks)} notes"
    )
    return 1 if read.faults else 0

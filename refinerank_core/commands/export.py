"""`export`: reviewed boxes, truths or a method's answers, in one of the formats."""

import argparse
import sys
from pathlib import Path

from refinerank_core.commands.outputs import write_whole
from refinerank_core.formats.catalogue import FORMATS, pack
from refinerank_core.reviews.exchange import REVIEWED, rows_of
from refinerank_core.reviews.fold import Status
from refinerank_core.reviews.store import Store
from refinerank_core.reviews.worklist import Wanted


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = commands.add_parser("export", help="write reviews in a format that others read")
    parser.add_argument("format", choices=tuple(FORMATS))
    parser.add_argument("out", type=Path, help="file to write (a ZIP for formats of many files)")
    parser.add_argument("--db", help="review database: file or URL (REFINERANK_DB)")
    parser.add_argument(
        "--what",
        default=REVIEWED,
        help='"review" for the reviewed boxes, "truth" for annotated ones, or a method\'s name',
    )
    parser.add_argument("--dataset", default="", help="only cases of this data set")
    parser.add_argument("--decided", action="store_true", help="only cases accepted or fixed")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the file; what the format cannot hold goes to stderr."""
    status: tuple[Status, ...] = ("accepted", "fixed") if args.decided else ()
    wanted = Wanted(dataset=args.dataset, status=status, sort="video")
    with Store(args.db) as store:
        rows = list(rows_of(store.views(wanted), args.what))
    written = FORMATS[args.format].write(rows)
    _, content = pack(written)
    write_whole(args.out, content)
    for sentence in written.losses:
        print(f"refinerank: {sentence}", file=sys.stderr)
    print(f"{len(rows)} rows to {args.out.name}")
    return 0

"""`deidentify VIDEO OUT`: a copy without metadata and, on demand, without the border's text."""

import argparse
import sys
from pathlib import Path

from refinerank_core.commands.outputs import refuse_unwritable
from refinerank_core.deidentify import looked_at, masked_copy, outside_note, without_metadata
from refinerank_core.video import open_video


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = commands.add_parser(
        "deidentify", help="copy a video without metadata; an aid, it may miss"
    )
    parser.add_argument("video", type=Path, help="a video file")
    parser.add_argument("out", type=Path, help="the copy, such as clip.mp4")
    parser.add_argument(
        "--mask-border",
        action="store_true",
        help="black out what stands outside the content circle (encodes anew)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Copy, and warn of frames that may have been taken outside the body."""
    refuse_unwritable(args.out)
    with open_video(args.video) as video:
        if note := outside_note(looked_at(video)):  # said before anything is written
            print(f"refinerank: {note}", file=sys.stderr)
        if args.mask_border:
            masked_copy(video, args.out)
    if not args.mask_border:
        without_metadata(args.video, args.out)
    print(f"{args.out.name}: no metadata, no sound. An aid, it may miss: look before you share.")
    return 0

"""`import`: groundings, predictions and annotated boxes into the review database."""

import argparse
import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import get_args

from refinerank_core.boxes import Space
from refinerank_core.formats.catalogue import FORMATS, load_files, read_rows
from refinerank_core.formats.rows import Asked
from refinerank_core.grounding import Grounding
from refinerank_core.reviews.exchange import (
    Imported,
    VideoInfo,
    import_rows,
    stated_facts,
)
from refinerank_core.reviews.sources import cases_of
from refinerank_core.reviews.store import Store
from refinerank_core.video import open_video

GROUNDING = "grounding"
_MOST_FAULTS = 50


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = commands.add_parser("import", help="put cases, predictions or truths into the queue")
    parser.add_argument("format", choices=(GROUNDING, *FORMATS))
    parser.add_argument("file", type=Path, help="a file, a folder or a ZIP")
    parser.add_argument("--db", help="review database: file or URL (REFINERANK_DB)")
    parser.add_argument("--by", default="import", help="who imports, for the record")
    parser.add_argument(
        "--method", default="", help="whose predictions they are; without it they are truths"
    )
    parser.add_argument("--dataset", default="", help="data set of a grounding")
    parser.add_argument("--procedure", default="", help="procedure of a grounding")
    parser.add_argument("--rows", type=Path, help="question rows that a submission answers")
    parser.add_argument(
        "--video", type=Path, action="append", default=[], help="a video of the file; repeatable"
    )
    parser.add_argument("--size", type=_size, help="frame size as 1920x1080, for all videos")
    parser.add_argument("--space", choices=get_args(Space), help="how boxes are to be read")
    parser.add_argument("--frame-base", type=int, choices=(0, 1), help="number of the first frame")
    parser.add_argument(
        "--rescale", action="store_true", help="scale boxes made on another picture size"
    )
    parser.set_defaults(run=run)


def _size(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"([1-9]\d{0,4})x([1-9]\d{0,4})", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"wanted a size such as 1920x1080, got {text}")
    return int(match[1]), int(match[2])


def run(args: argparse.Namespace) -> int:
    """Import the good lines; 1 when there was a bad one."""
    if args.format == GROUNDING:
        grounding = Grounding.load(args.file)
        cases = cases_of(grounding, dataset=args.dataset, procedure=args.procedure)
        with Store(args.db) as store:
            added = store.add(cases, by=args.by, grounding=grounding)
        return _tell(Imported(added, (), ()))
    videos = _videos(args.video)
    sizes, frames = stated_facts(videos)
    asked = Asked(
        space=args.space,
        frame_base=args.frame_base,
        sizes=sizes,
        frames=frames,
        rescale=args.rescale,
        method=args.method,
        any_size=args.size,
    )
    companion = load_files(args.rows) if args.rows else None
    reading = read_rows(args.format, load_files(args.file), asked, companion)
    by_stem = dict(zip(sizes, videos, strict=True))
    with Store(args.db) as store:
        return _tell(import_rows(store, reading, by=args.by, method=args.method, videos=by_stem))


def _videos(paths: list[Path]) -> list[VideoInfo]:
    infos: dict[str, VideoInfo] = {}
    for path in paths:
        with ExitStack() as stack:
            video = stack.enter_context(open_video(path))
            info = VideoInfo(video.name, video.sha256, video.size_wh, video.times_s)
            infos[stated_facts([info])[0].popitem()[0]] = info
    return list(infos.values())


def _tell(imported: Imported) -> int:
    for sentence in imported.notes:
        print(f"refinerank: {sentence}", file=sys.stderr)
    for fault in imported.faults[:_MOST_FAULTS]:
        print(f"refinerank: line {fault.line}: {fault.text}", file=sys.stderr)
    if len(imported.faults) > _MOST_FAULTS:
        print(f"refinerank: and {len(imported.faults) - _MOST_FAULTS} more", file=sys.stderr)
    added = imported.added
    print(
        f"{added.new} new cases, {added.known} known, {added.truths} truths, "
        f"{len(imported.faults)} lines left out"
    )
    return 1 if imported.faults else 0

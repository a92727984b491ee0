"""`info VIDEO`: what the frame table says of a video."""

import argparse
from pathlib import Path

import numpy as np

from refinerank_core.video import Video, open_video


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = commands.add_parser("info", help="print the frame table summary of a video")
    parser.add_argument("video", type=Path, help="a video file or a folder of numbered frames")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print one fact a line."""
    with open_video(args.video) as video:
        for name, value in facts(video):
            print(f"{name:<14}{value}")
    return 0


def facts(video: Video) -> list[tuple[str, str]]:
    """Name and value of what a person wants to know of an open video."""
    width, height = video.size_wh
    stored_width, stored_height = video.stored_size_wh
    rows = [
        ("name", video.name),
        ("sha256", video.sha256),
        ("codec", video.codec),
        ("size", f"{width}x{height} shown, {stored_width}x{stored_height} stored"),
        ("frames", f"{len(video)} (0 to {len(video) - 1})"),
        ("duration", f"{video.duration_s:.3f} s"),
        ("key frames", str(len(video.key_frames))),
    ]
    if len(video) > 1:
        gaps = np.diff(video.times_s)
        kind = "constant" if float(gaps.max() - gaps.min()) < 2e-3 else "variable"
        rows.append(
            (
                "rate",
                f"{kind}, {1 / float(np.median(gaps)):.3f} frames/s at the median, "
                f"gaps {gaps.min() * 1000:.1f} to {gaps.max() * 1000:.1f} ms",
            )
        )
    return rows + [("warning", sentence) for sentence in video.warnings]

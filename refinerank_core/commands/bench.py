"""`bench`: a table of medians and ratios on this machine."""

import argparse
import platform
from pathlib import Path

from refinerank_core.device import DEVICES
from refinerank_core.profiles import DEFAULT_PROFILE, load_profile


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = commands.add_parser("bench", help="measure speed and memory on this machine")
    parser.add_argument("--profile", default=DEFAULT_PROFILE, help="a profile's name or .json file")
    parser.add_argument("--video", type=Path, help="a video; without it a test clip is made")
    parser.add_argument("--device", default="auto", choices=DEVICES)
    parser.add_argument("--repeats", type=_at_least_one, default=5, help="measurements per line")
    parser.add_argument(
        "--two-hours", action="store_true", help="also make and open a file of two hours"
    )
    parser.set_defaults(run=run)


def _at_least_one(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"wanted 1 or more, got {count}")
    return count


def run(args: argparse.Namespace) -> int:
    """Measure and print the table."""
    profile = load_profile(args.profile)

    import torch

    from refinerank_core import bench
    from refinerank_core.pipeline import RefineRank

    system = RefineRank.load(profile, device=args.device)
    lines = bench.run(system, args.video, repeats=args.repeats, two_hours=args.two_hours)
    video = "made 854x480 clip" if args.video is None else args.video.name
    print(f"profile {profile.name} ({profile.label}); video {video}")
    print(
        f"Python {platform.python_version()}, torch {torch.__version__}, "
        f"{torch.get_num_threads()} threads, device {system.device}"
    )
    for line in lines:
        aim = f"  {'met' if line.met else 'MISSED'} ({line.target})" if line.target else ""
        print(f"{line.name:<44}{line.value:>10.2f} {line.unit:<3}{line.repeats:>4} runs{aim}")
    return 0

"""`bench`: a table of medians and ratios on this machine."""

import argparse
import platform
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import refinerank_core
from refinerank_core.device import DEVICES
from refinerank_core.errors import RefineRankError
from refinerank_core.profiles import DEFAULT_PROFILE, load_profile

_SCENE = 7  # of the tests' seeds: no model was trained or scored on it


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = commands.add_parser("bench", help="measure speed and memory on this machine")
    parser.add_argument("--profile", default=DEFAULT_PROFILE, help="a profile's name or .json file")
    parser.add_argument("--video", type=Path, help="a video; without it a clip is made")
    parser.add_argument("--device", default="auto", choices=DEVICES)
    parser.add_argument("--repeats", type=_at_least_one, default=5, help="measurements per line")
    parser.add_argument(
        "--two-hours", action="store_true", help="also make and open a file of two hours"
    )
    parser.add_argument(
        "--ui",
        action="store_true",
        help="measure the page instead: pretended models in headless Chromium",
    )
    parser.set_defaults(run=run)


def _at_least_one(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"wanted 1 or more, got {count}")
    return count


def run(args: argparse.Namespace) -> int:
    """Measure and print the table."""
    if args.ui:
        return run_ui(args.repeats)
    profile = load_profile(args.profile)

    import torch

    from refinerank_core import bench
    from refinerank_core.pipeline import RefineRank

    system = RefineRank.load(profile, device=args.device)
    with tempfile.TemporaryDirectory(prefix="refinerank-bench-") as folder:
        path, video = args.video, "made 854x480 clip, a moving disc"
        if path is not None:
            video = path.name
        elif profile.phantom:  # on a disc their answers would be noise of any length
            path, video = _drawn_clip(Path(folder)), "drawn 854x480 clip of laparoscopy"
        lines = bench.run(system, path, repeats=args.repeats, two_hours=args.two_hours)
    print(f"profile {profile.name} ({profile.label}); video {video}")
    print(
        f"Python {platform.python_version()}, torch {torch.__version__}, "
        f"{torch.get_num_threads()} threads, device {system.device}"
    )
    for line in lines:
        aim = f"  {'met' if line.met else 'MISSED'} ({line.target})" if line.target else ""
        print(f"{line.name:<44}{line.value:>10.2f} {line.unit:<3}{line.repeats:>4} runs{aim}")
    return 0


def _drawn_clip(folder: Path) -> Path:
    from refinerank_core.phantom.clip import write_clip
    from refinerank_core.phantom.scene import Scene

    path = folder / "laparoscopy.mp4"
    write_clip(Scene.from_seed(_SCENE, "laparoscopy", duration_s=12.0), path, size_wh=(854, 480))
    return path


def run_ui(repeats: int) -> int:
    """Measure the page with the bench that stands beside its tests, in a process of its own.

    Raises:
        RefineRankError: this is no checkout of the repository, or there is no Playwright.
    """
    home = Path(refinerank_core.__file__).parents[1]
    if not (home / "tests" / "browser" / "bench.py").is_file():
        raise RefineRankError("bench --ui needs the tests folder: run it in the repository.")
    if find_spec("playwright") is None:
        raise RefineRankError("bench --ui needs Playwright: pip install -r .ci/requirements.txt.")
    command = [sys.executable, "-m", "tests.browser.bench", "--repeats", str(repeats)]
    return subprocess.run(command, cwd=home, check=False).returncode

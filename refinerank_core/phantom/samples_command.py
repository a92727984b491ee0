"""`phantom samples`: the bundled clips, and the answers kept beside them."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

Commands = argparse._SubParsersAction


def add_samples(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command to those of `phantom`."""
    parser = commands.add_parser(
        "samples", help="write the bundled clips, or answer their ready questions"
    )
    parser.add_argument("folder", type=Path, help="where the clips are, assets/samples")
    parser.add_argument(
        "--answers",
        metavar="PROFILE",
        help="leave the clips as they are and ground their questions with this profile",
    )
    parser.set_defaults(run=run_samples)


def run_samples(args: argparse.Namespace) -> int:
    """Write the six clips, or the groundings of their questions."""
    if args.answers is None:
        from refinerank_core.phantom.samples import plan_samples, write_samples

        for path in write_samples(plan_samples(), args.folder, told=_say):
            print(path.name)
        return 0
    for path in answer_samples(args.folder, args.answers):
        print(path.name)
    return 0


def _say(name: str) -> None:
    print(f"wrote {name}", file=sys.stderr)


def answer_samples(folder: Path, profile: str) -> list[Path]:
    """Ground every ready question of every clip.

    The first, which a visitor sees at once, becomes CLIP.grounding.json; the others
    CLIP.q2.grounding.json and so on.

    Args:
        folder: of clips with sidecars.
        profile: name or file of the profile that answers, on the CPU.

    Returns:
        The files written.
    """
    from refinerank_core.pipeline import RefineRank
    from refinerank_core.video import open_video

    system = RefineRank.load(profile, device="cpu")
    written = []
    for clip in sorted(folder.glob("*.mp4")):
        facts = json.loads(clip.with_suffix(".json").read_text(encoding="utf-8"))
        with open_video(clip) as video:
            for number, question in enumerate(facts["questions"], start=1):
                grounding = system.ground(video, question["text"])
                which = "" if number == 1 else f".q{number}"
                path = clip.with_name(f"{clip.stem}{which}.grounding.json")
                path.write_text(grounding.to_json(indent=None) + "\n", encoding="utf-8")
                written.append(path)
        _say(clip.stem)
    return written

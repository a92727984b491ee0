"""`ground VIDEO QUESTION`: boxes, scores and maps for each requested time."""

import argparse
import sys
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from tqdm import tqdm

from refinerank_core.commands.outputs import refuse_unwritable, write_whole
from refinerank_core.device import DEVICES
from refinerank_core.drawing import draw_grounding, png_bytes
from refinerank_core.grounding import Box, Grounding
from refinerank_core.profiles import DEFAULT_PROFILE, load_profile
from refinerank_core.progress import STAGES
from refinerank_core.times import parse_times
from refinerank_core.video import open_video


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = commands.add_parser("ground", help="answer a question with one box per time")
    parser.add_argument("video", type=Path, help="a video file or a folder of numbered frames")
    parser.add_argument(
        "question",
        help="such as 'which instrument is dissecting the gallbladder every 2 seconds from 12 to "
        "20 seconds?'",
    )
    parser.add_argument(
        "--time",
        action="append",
        metavar="T",
        help="requested time (12.5 or 1:05); repeat or separate by commas. Goes before the "
        "question's own times; neither: the first frame",
    )
    parser.add_argument("--profile", default=DEFAULT_PROFILE, help="a profile's name or .json file")
    parser.add_argument("--device", default="auto", choices=DEVICES)
    parser.add_argument(
        "--smooth", action="store_true", help="choose over time so that the box does not jump"
    )
    parser.add_argument(
        "--json", type=Path, metavar="OUT", help="write the grounding; - for stdout"
    )
    parser.add_argument("--draw", type=Path, metavar="OUT.png", help="draw the answers")
    parser.add_argument("--maps", type=Path, metavar="OUT.npz", help="write the response maps")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Ground, write what was asked for, print one line per time."""
    times = None if args.time is None else parse_times(" ".join(args.time))
    profile = load_profile(args.profile)
    refuse_unwritable(args.json, args.draw, args.maps)
    with open_video(args.video) as video:
        from refinerank_core.pipeline import RefineRank  # seconds of imports: after checks

        system = RefineRank.load(profile, device=args.device)
        with StageBars(STAGES) as bars:
            grounded = system.run(
                video, args.question, times, smooth=args.smooth, progress=bars.update
            )
        grounding = grounded.grounding
        if args.draw is not None:
            frames = [video.read_frame(one.frame_index) for one in grounding.times]
            write_whole(args.draw, png_bytes(draw_grounding(grounding, frames)))
    if args.maps is not None:
        from refinerank_core.responses import as_arrays

        buffer = BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **as_arrays(grounded.maps))
        write_whole(args.maps, buffer.getvalue())
    for sentence in grounding.warnings:
        print(f"refinerank: {sentence}", file=sys.stderr)
    if args.json == Path("-"):
        print(grounding.to_json())
        return 0
    if args.json is not None:
        write_whole(args.json, (grounding.to_json() + "\n").encode())
    print(summary(grounding))
    return 0


def summary(grounding: Grounding) -> str:
    """One line per requested time, under a line that says what the models are."""
    profile = grounding.profile
    kind = "UNTRAINED random weights" if profile.untrained else ""
    kind = "EMBEDDED PHANTOM MODELS" if profile.phantom else kind
    lines = [f"{profile.name}: {kind or 'models'} {profile.medvlm} {profile.detector}"]
    lines[0] += f" {profile.refinenet}"
    lines.append(
        f"detector asked for: {', '.join(grounding.query.phrases)} (from {grounding.query.source})"
    )
    for one in grounding.times:
        best, spoken = one.answers.refinerank, one.answers.medvlm.box
        lines.append(
            f"{one.requested_s:.3f} s  frame {one.frame_index}  "
            f"RefineRank {_words(best.box)} score {best.score:.3f} margin {best.margin:.3f}"
            f"{' refined' if best.refined else ''}  "
            f"MedVLM {'no box' if spoken is None else _words(spoken)}  "
            f"MedVLM+GroundingDINO {_words(one.answers.medvlm_groundingdino.box)}"
        )
    return "\n".join(lines)


def _words(box: Box) -> str:
    return "[" + ", ".join(f"{side:.1f}" for side in box) + "]"


class StageBars:
    """One progress bar per stage on stderr; nothing is drawn where stderr is no terminal."""

    def __init__(self, stages: tuple[str, ...]) -> None:
        self._stages = stages
        self._bars: dict[str, tqdm[Any]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for bar in self._bars.values():
            bar.close()

    def update(self, stage: str, done: int, total: int) -> None:
        """Show that `done` of `total` requested times have passed a stage."""
        if stage not in self._bars:
            self._bars[stage] = tqdm(
                total=total,
                desc=f"{stage:<7}",
                unit="time",
                position=self._stages.index(stage),
                disable=None,
                file=sys.stderr,
            )
        bar = self._bars[stage]
        bar.update(done - bar.n)

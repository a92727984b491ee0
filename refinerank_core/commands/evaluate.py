"""`evaluate`: scores of a submission on annotated rows, without any model."""

import argparse
from pathlib import Path
from typing import Any

from refinerank_core.commands.inputs import read_text
from refinerank_core.commands.outputs import write_whole
from refinerank_core.errors import RefineRankError
from refinerank_core.evaluation import THRESHOLDS, compare, report, require_apart, shared_row_videos
from refinerank_core.formats import strict_json
from refinerank_core.formats.medvidbench_rows import read_question_rows
from refinerank_core.formats.medvidbench_submission import read_predictions


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = commands.add_parser("evaluate", help="score predictions on annotated MedVidBench rows")
    parser.add_argument("--rows", type=Path, required=True, help="question rows with annotation")
    parser.add_argument(
        "--predictions", type=Path, required=True, help="a submission, or what `predict` wrote"
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every figure; - for stdout")
    parser.add_argument(
        "--against", type=Path, help="predictions of another method, for paired difference tests"
    )
    parser.add_argument(
        "--train-rows", type=Path, help="rows trained on; refuse when a video is on both sides"
    )
    parser.add_argument("--features", type=Path, help="feature cache of the rows, for the oracle")
    parser.add_argument("--refinenet", type=Path, help="checkpoint, for the oracle with it")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Score and print a table."""
    rows = read_question_rows(read_text(args.rows))
    if args.train_rows is not None:
        require_apart(shared_row_videos(read_question_rows(read_text(args.train_rows)), rows))
    predictions = read_predictions(read_text(args.predictions), rows)
    figures = report(rows, predictions)
    if args.against is not None:
        other = read_predictions(read_text(args.against), rows)
        figures["difference"] = compare(rows, predictions, other)
    if args.features is not None:
        figures["oracle"] = oracles(args.features, args.refinenet)
    text = strict_json.dumps(figures, indent=1) + "\n"
    if args.json == Path("-"):
        print(text, end="")
        return 0
    if args.json is not None:
        write_whole(args.json, text.encode())
    print(table(figures))
    return 0


def oracles(features: Path, refinenet: Path | None) -> dict[str, dict[str, float]]:
    """mIoU of the best boxes that could have been chosen: "original" and "joint" -> name -> mIoU.

    Raises:
        RefineRankError: there is no checkpoint, or it does not fit the cache.
    """
    if refinenet is None:
        raise RefineRankError("The oracle needs --refinenet beside --features.")
    from refinerank_core.cached_training import cache_scores
    from refinerank_core.checkpoint import load_refinenet
    from refinerank_core.feature_cache import open_cache

    scores = cache_scores(load_refinenet(refinenet), open_cache(features))
    return {name: scores[name] for name in ("original", "joint")}


def table(figures: dict[str, Any]) -> str:
    """The main figures as lines of text."""
    counts = figures["counts"]
    lines = [
        f"{counts['rows']} rows with {counts['times']} annotated times, "
        f"{counts['predicted']} of them predicted; {len(figures['problems'])} problems"
    ]
    for name in figures["strict"]["datasets"]:
        lines.append(_line(name, figures, lambda side, name=name: side["datasets"][name]))
    lines.append(_line("average", figures, lambda side: side["average"]))
    lines.append(_line("all rows", figures, lambda side: side["mIoU"]))
    shares = (f"{at:g}: {_shown(figures['acc'][f'{at:g}'])}" for at in THRESHOLDS)
    lines.append("share of times with IoU at least " + ", ".join(shares))
    for name, gap in figures.get("difference", {}).items():
        lines.append(
            f"difference {name}: {gap['mean']:+.4f} [{gap['low']:+.4f}, {gap['high']:+.4f}], "
            f"p {gap['p']:.4f} over {gap['videos']:.0f} videos"
        )
    for name, best in figures.get("oracle", {}).items():
        shown = ", ".join(f"{key} {value:.4f}" for key, value in best.items())
        lines.append(f"oracle {name}: {shown}")
    lines += [f"line {one['line']} of {one['file']}: {one['what']}" for one in _first(figures)]
    return "\n".join(lines)


def _line(name: str, figures: dict[str, Any], read: Any) -> str:
    strict, leaderboard = figures["strict"], figures["leaderboard"]
    interval = strict["intervals"].get(name)
    spread = f" [{interval['low']:.4f}, {interval['high']:.4f}]" if interval else ""
    return (
        f"{name:<28} strict {_shown(read(strict))}{spread}  leaderboard {_shown(read(leaderboard))}"
    )


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.4f}"


def _first(figures: dict[str, Any], most: int = 20) -> list[dict[str, Any]]:
    return list(figures["problems"][:most])

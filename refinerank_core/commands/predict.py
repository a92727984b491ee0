"""`predict`: a RefineNet's boxes for cached rows, written as MedVidBench wants them."""

import argparse
import json
from pathlib import Path

from refinerank_core.commands.inputs import read_text
from refinerank_core.commands.outputs import write_whole
from refinerank_core.errors import RefineRankError


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = commands.add_parser("predict", help="answer cached rows with a RefineNet")
    parser.add_argument("--features", type=Path, required=True, help="cache of the rows")
    parser.add_argument("--refinenet", type=Path, required=True, help=".safetensors, or released")
    parser.add_argument("--out", type=Path, required=True, help="predictions with source_index")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Predict; a checkpoint whose card names a video of the rows is refused."""
    from refinerank_core.cached_training import predict, require_unseen
    from refinerank_core.checkpoint import load_refinenet
    from refinerank_core.feature_cache import open_cache

    cache = open_cache(args.features)
    net = load_refinenet(args.refinenet)
    require_unseen(trained_on(args.refinenet), cache)
    documents = predict(net, cache)
    content = json.dumps(documents, indent=1, ensure_ascii=False) + "\n"
    write_whole(args.out, content.encode())
    empty = sum(not one["prediction"] for one in documents)
    without = f", {empty} of them without a box: not usable, see `rows check`" if empty else ""
    print(f"{len(documents)} rows{without}")
    return 0


def trained_on(checkpoint: Path) -> list[str]:
    """The videos that a checkpoint's card names; none where it has no card or names none.

    Raises:
        RefineRankError: the card cannot be read.
    """
    path = checkpoint.with_suffix(".card.json")
    if not path.is_file():
        return []
    try:
        card = json.loads(read_text(path))
        return [str(video) for video in card.get("videos", [])]
    except (ValueError, AttributeError, TypeError) as error:
        raise RefineRankError(f"{path.name} is damaged. Copy it again.") from error

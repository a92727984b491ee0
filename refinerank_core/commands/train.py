"""`train`: RefineNet on cached features or reviews, with folds, seeds and a log of its curves."""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from refinerank_core.commands import train_reviews
from refinerank_core.commands.outputs import write_whole
from refinerank_core.device import DEVICES
from refinerank_core.errors import RefineRankError

if TYPE_CHECKING:
    import torch

    from refinerank_core.cached_training import EpochTold
    from refinerank_core.feature_cache import FeatureCache
    from refinerank_core.folds import Sets
    from refinerank_core.refinenet import RefineNetConfig

DEFAULT_SEED = 20260719
EPOCHS = 40


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = commands.add_parser("train", help="train a RefineNet on cached features or reviews")
    parser.add_argument("--features", type=Path, nargs="+", help="caches of annotated rows")
    parser.add_argument("--work", type=Path, required=True, help="folder of resumable state")
    parser.add_argument(
        "--out", type=Path, help="the .safetensors file; with several seeds -SEED is added"
    )
    parser.add_argument("--held-out", type=Path, help="cache to score on; no video may be shared")
    parser.add_argument("--block", type=int, help="vision block to read; else the profile's")
    parser.add_argument("--epochs", type=int, help=f"{EPOCHS}; fewer for reviews")
    parser.add_argument("--seeds", type=int, nargs="+", default=[DEFAULT_SEED])
    parser.add_argument("--d-model", type=int, default=128)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--folds", type=int, help="also predict out of fold, grouped by video")
    parser.add_argument(
        "--predictions", type=Path, help="write the out-of-fold predictions (first seed)"
    )
    parser.add_argument("--tensorboard", type=Path, help="log loss curves; needs tensorboard")
    parser.add_argument("--device", default="auto", choices=DEVICES)
    train_reviews.add_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Train what was asked for; print the cards as JSON."""
    if (args.features is None) == (args.reviews is None):
        raise RefineRankError("Give what to train on: either --features or --reviews.")
    if args.reviews is not None:
        return train_reviews.run(args)
    epochs = EPOCHS if args.epochs is None else args.epochs
    if args.out is None and args.folds is None:
        raise RefineRankError("Nothing to make: give --out, --folds, or both.")
    if args.predictions is not None and args.folds is None:
        raise RefineRankError("Out-of-fold predictions need --folds.")
    from refinerank_core import cached_training as training
    from refinerank_core.device import choose_device
    from refinerank_core.feature_cache import open_cache

    caches = [open_cache(folder) for folder in args.features]
    held = None if args.held_out is None else open_cache(args.held_out)
    sets = training.annotated_sets(caches)
    if held is not None:
        training.require_split(sets, held)
    block = caches[0].manifest["inter_block"] if args.block is None else args.block
    config = training.config_of(sets, block, training.NetSize(args.d_model, args.hidden))
    device = choose_device(args.device)
    told: dict[str, Any] = {}
    with _logged(args.tensorboard) as log:
        if args.folds is not None:
            documents, scores = training.out_of_fold(
                caches,
                config,
                folds=args.folds,
                seed=args.seeds[0],
                epochs=epochs,
                device=device,
                work=args.work,
                told=log,
            )
            told["out_of_fold"] = scores
            if args.predictions is not None:
                content = json.dumps(documents, indent=1, ensure_ascii=False) + "\n"
                write_whole(args.predictions, content.encode())
        if args.out is not None:
            told["seeds"] = {
                str(seed): _trained(args, caches, sets, held, config, seed, epochs, device, log)
                for seed in args.seeds
            }
    print(json.dumps(told, indent=1))
    return 0


def _trained(
    args: argparse.Namespace,
    caches: "list[FeatureCache]",
    sets: "Sets",
    held: "FeatureCache | None",
    config: "RefineNetConfig",
    seed: int,
    epochs: int,
    device: "torch.device",
    log: "EpochTold",
) -> dict[str, Any]:
    """Train one seed; writes weights and card, returns what is worth printing."""
    from refinerank_core import cached_training as training
    from refinerank_core.checkpoint import save_refinenet

    started = time.perf_counter()
    made = training.train_on(
        sets, config, seed=seed, epochs=epochs, device=device, work=args.work, told=log
    )
    path: Path = args.out
    if len(args.seeds) > 1:
        path = path.with_name(f"{path.stem}-{seed}{path.suffix}")
    card = training.card_of(made, sets, caches, seconds=time.perf_counter() - started)
    if held is not None:
        card["held_out"] = training.cache_scores(made.net, held)
    save_refinenet(made.net, path)
    write_whole(path.with_suffix(".card.json"), (json.dumps(card, indent=1) + "\n").encode())
    return {
        "file": path.name,
        "loss": card["losses"][-1] if card["losses"] else None,
        "seconds": card["seconds"],
        **({"held_out": card["held_out"]} if held is not None else {}),
    }


@contextmanager
def _logged(folder: Path | None) -> "Iterator[EpochTold]":
    """A function that writes losses for TensorBoard, or does nothing."""
    if folder is None:
        yield lambda *_: None
        return
    try:
        from torch.utils.tensorboard.writer import SummaryWriter
    except ImportError as error:
        raise RefineRankError(
            "TensorBoard is not installed. Install it with: pip install tensorboard."
        ) from error
    writers: dict[str, Any] = {}

    def told(name: str, epoch: int, loss: float) -> None:
        if name not in writers:
            writers[name] = SummaryWriter(str(folder / name))
        writers[name].add_scalar("loss", loss, epoch)

    try:
        yield told
    finally:
        for writer in writers.values():
            writer.close()
        if writers:
            print(f"losses of {len(writers)} runs are in {folder.name}", file=sys.stderr)

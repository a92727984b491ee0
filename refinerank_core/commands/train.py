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
    parser.add_argument("--epochs", type=int, help=f"{EPOCHS}; fewer for reviews")
    parser.add_argument("--seeds", type=int, nargs="+", default=[DEFAULT_SEED])
    parser.add_argument("--device", default="auto", choices=DEVICES)
    foreign = {"--reviews": _add_options(parser), "--features": train_reviews.add_options(parser)}
    parser.set_defaults(run=run, refuse=parser.error, foreign=foreign)


def _add_options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """What belongs to `--features` alone; None says that it was not given."""
    group = parser.add_argument_group("training on cached features")
    add = group.add_argument
    return [
        add("--out", type=Path, help="the .safetensors file; with several seeds -SEED is added"),
        add("--held-out", type=Path, help="cache to score on; no video may be shared"),
        add("--block", type=int, help="vision block to read; else the profile's"),
        add("--d-model", type=int, help="128"),
        add("--hidden", type=int, help="256"),
        add("--folds", type=int, help="also predict out of fold, grouped by video"),
        add("--predictions", type=Path, help="write the out-of-fold predictions (first seed)"),
        add("--tensorboard", type=Path, help="log loss curves; needs tensorboard"),
    ]


def run(args: argparse.Namespace) -> int:
    """Train what was asked for; print the cards as JSON."""
    if (args.features is None) == (args.reviews is None):
        args.refuse("Give what to train on: either --features or --reviews.")
    _refuse_foreign(args, "--features" if args.reviews is None else "--reviews")
    if args.reviews is not None:
        return train_reviews.run(args)
    epochs = EPOCHS if args.epochs is None else args.epochs
    if args.out is None and args.folds is None:
        args.refuse("Nothing to make: give --out, --folds, or both.")
    if args.predictions is not None and args.folds is None:
        args.refuse("Out-of-fold predictions need --folds.")
    if args.held_out is not None and args.out is None:
        args.refuse("--held-out scores the file of --out, which is not given: give it too.")
    from refinerank_core import cached_training as training
    from refinerank_core.device import choose_device
    from refinerank_core.feature_cache import open_cache

    caches = [open_cache(folder) for folder in args.features]
    held = None if args.held_out is None else open_cache(args.held_out)
    sets = training.annotated_sets(caches)
    if held is not None:
        training.require_split(sets, held)
    block = caches[0].manifest["inter_block"] if args.block is None else args.block
    given = {"d_model": args.d_model, "hidden_dim": args.hidden}
    size = training.NetSize(**{name: n for name, n in given.items() if n is not None})
    config = training.config_of(sets, block, size)
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


def _refuse_foreign(args: argparse.Namespace, source: str) -> None:
    """End with a wrong command line where an option would have no effect."""
    other = "--features" if source == "--reviews" else "--reviews"
    given = [
        action.option_strings[0]
        for action in args.foreign[source]
        if getattr(args, action.dest) is not None
    ]
    if given:
        args.refuse(
            f"{', '.join(given)} does nothing with {source}: leave it out, or train with {other}."
        )
    if source == "--reviews" and len(args.seeds) > 1:
        args.refuse(f"--reviews trains with one seed, got {len(args.seeds)}: give --seeds one.")


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

"""`bench-training`: how long RefineNet trains at the published size."""

import argparse

from refinerank_core.device import DEVICES

AIM_S = {"cpu": 12 * 60, "cuda": 60}
"""Aims for the whole training: on 2 CPU cores, on one card."""


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = commands.add_parser(
        "bench-training", help="time a training of the published size on random features"
    )
    parser.add_argument(
        "--steps",
        type=_at_least_one,
        help="measure so many steps and extrapolate; else train whole",
    )
    parser.add_argument("--device", default="auto", choices=DEVICES)
    parser.set_defaults(run=run)


def _at_least_one(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"wanted 1 or more, got {count}")
    return count


def run(args: argparse.Namespace) -> int:
    """Measure and print one line."""
    import torch

    from refinerank_core.device import choose_device
    from refinerank_core.refinenet import RefineNetConfig
    from refinerank_core.training import TrainingPlan
    from refinerank_core.training_bench import CANDIDATES, EXAMPLES, measure_training

    device = choose_device(args.device)
    found = measure_training(RefineNetConfig(), device=device, steps=args.steps)
    how = (
        "measured whole"
        if found.measured_s is not None
        else f"extrapolated from {found.steps} steps"
    )
    aim = AIM_S[device.type]
    verdict = "met" if found.whole_s <= aim else "MISSED"
    print(
        f"{sum(EXAMPLES.values())} examples x {TrainingPlan().epochs} epochs, {CANDIDATES} "
        f"candidates, random features: step {found.step_s * 1000:.0f} ms, whole training "
        f"{found.whole_s / 60:.1f} min ({how}) on {device.type}, {torch.get_num_threads()} "
        f"threads; aim {aim / 60:.0f} min: {verdict}"
    )
    return 0

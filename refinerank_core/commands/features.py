"""`features build`: the frozen models' features of MedVidBench rows, kept on disk."""

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from refinerank_core.commands.inputs import read_text
from refinerank_core.device import DEVICES
from refinerank_core.formats.medvidbench_rows import read_question_rows
from refinerank_core.profiles import DEFAULT_PROFILE, Profile, load_profile

if TYPE_CHECKING:
    from refinerank_core.frozen_steps import Backbones

ENGINES = ("local", "ray")
_SHOWN = 20


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = commands.add_parser("features", help="keep the frozen models' features on disk")
    jobs = parser.add_subparsers(dest="job", required=True, metavar="JOB")
    build = jobs.add_parser("build", help="compute what is missing for these rows")
    build.add_argument("--profile", default=DEFAULT_PROFILE, help="whose frozen models are used")
    build.add_argument("--rows", type=Path, required=True, help="MedVidBench question rows")
    build.add_argument(
        "--data", type=Path, help="folder that stands for /root/data; else that of the rows"
    )
    build.add_argument("--out", type=Path, required=True, help="folder of the cache")
    build.add_argument("--device", default="auto", choices=DEVICES)
    build.add_argument("--shard", type=int, default=64, help="examples in a shard")
    build.add_argument("--engine", choices=ENGINES, default="local")
    build.add_argument("--workers", type=int, default=2, help="of --engine ray")
    build.add_argument("--gpus", type=float, default=0.0, help="cards of each worker, ray only")
    build.add_argument("--ray-address", help="a Ray cluster; without it Ray starts here")
    build.add_argument(
        "--answers", action="store_true", help="keep the MedVLM's direct answers too"
    )
    build.set_defaults(run=run)


def load_backbones(profile: Profile, device: str) -> "Backbones":
    """The frozen models on a device."""
    from refinerank_core.device import choose_device
    from refinerank_core.frozen_steps import Backbones

    return Backbones.load(profile, choose_device(device))


def run(args: argparse.Namespace) -> int:
    """Build; 1 when something of the rows could not be used."""
    from refinerank_core.feature_answers import compute_answer
    from refinerank_core.feature_build import Engine, build_cache, local_engine
    from refinerank_core.feature_plan import plan_units, settings_of

    data = args.data or args.rows.parent
    rows = read_question_rows(read_text(args.rows), data=data)
    profile = load_profile(args.profile)
    loader = partial(load_backbones, profile, args.device)
    engine: Engine
    speaker: Engine
    if args.engine == "ray":
        from refinerank_core.feature_ray import ray_engine, remote_settings, start_ray

        start_ray(args.workers, args.ray_address)
        settings = remote_settings(loader, gpus=args.gpus)
        spread = partial(ray_engine, loader, workers=args.workers, gpus=args.gpus)
        engine, speaker = spread(), spread(compute=compute_answer)
    else:
        backbones = loader()
        settings, engine = settings_of(backbones), local_engine(backbones)
        speaker = local_engine(backbones, compute=compute_answer)
    units, faults = plan_units(rows, data, settings)
    with tqdm(desc="features", unit="example", file=sys.stderr, dynamic_ncols=True) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        manifest = build_cache(
            rows,
            units,
            args.out,
            faults=faults,
            settings=settings,
            profile=profile,
            engine=engine,
            shard_examples=max(1, args.shard),
            answers=speaker if args.answers else None,
            progress=progress,
        )
    return tell(manifest)


def tell(manifest: dict[str, Any]) -> int:
    """Say what is in the cache and what is not."""
    for fault in manifest["faults"][:_SHOWN]:
        print(f"refinerank: line {fault['line']}: {fault['what']}", file=sys.stderr)
    if len(manifest["faults"]) > _SHOWN:
        print(f"refinerank: and {len(manifest['faults']) - _SHOWN} more", file=sys.stderr)
    print(
        f"{len(manifest['examples'])} examples in {len(manifest['shards'])} shards, "
        f"{manifest['computed']} computed now, {len(manifest['faults'])} faults, "
        f"hash {manifest['digest'][:12]}"
    )
    return 1 if manifest["faults"] else 0

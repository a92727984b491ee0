"""The door of the app: command line and environment in, a page out."""

import argparse
import os
import signal
import sys
from collections.abc import Generator, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from demo import place, ui, zero_gpu
from demo.identity import Identity
from demo.results_learning import Learning
from demo.results_services import ResultsSetup
from demo.review_services import Reviews
from demo.runs import in_turns
from demo.services import Ground, Limits, Services
from demo.sessions import Sessions
from demo.variants import Variants, card_of
from refinerank_core.errors import RefineRankError
from refinerank_core.fetch import fetch_missing
from refinerank_core.grounding import Box
from refinerank_core.learning.runner import LearnAsk, Runner, RunState
from refinerank_core.learning.targets import counts
from refinerank_core.pipeline import RefineRank
from refinerank_core.profiles import DEFAULT_PROFILE, load_profile, profile_names
from refinerank_core.progress import STAGES, News
from refinerank_core.responses import CAVEAT, ResponseMaps, as_arrays
from refinerank_core.reviews.accounts import Accounts
from refinerank_core.reviews.database import DEFAULT_DATABASE
from refinerank_core.reviews.pictures import Pictures
from refinerank_core.reviews.store import Store
from refinerank_core.video import Video, open_video

SHOWN_TOGETHER = 4  # requested times that are ranked, and then shown, together
ASSETS = Path(__file__).resolve().parent / "assets"
SAMPLES = ASSETS / "samples"
RESULTS = ("study/study.json", "study/beyond.json", "models/phantom-refinenet.card.json")


def build_parser() -> argparse.ArgumentParser:
    """The command line; the environment gives the defaults that a Space sets."""
    parser = argparse.ArgumentParser(prog="python app.py", description="Start RefineRank's page.")
    known = ", ".join(profile_names())
    parser.add_argument(
        "--profile",
        default=os.environ.get("REFINERANK_PROFILE", DEFAULT_PROFILE),
        help=f"models that answer: {known}, or a profile file (REFINERANK_PROFILE)",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument(
        "--host",
        default=os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1"),
        help="address to listen on (GRADIO_SERVER_NAME)",
    )
    parser.add_argument(
        "--port",
        type=int,
        default=int(os.environ.get("GRADIO_SERVER_PORT", "7860")),
        help="port to listen on (GRADIO_SERVER_PORT)",
    )
    parser.add_argument("--share", action="store_true", help="open a public tunnel through Gradio")
    parser.add_argument("--mcp", action="store_true", help="offer the endpoints as MCP tools too")
    parser.add_argument(
        "--db",
        default=os.environ.get("REFINERANK_DB"),
        help="review database: a file, or a PostgreSQL URL (REFINERANK_DB); else "
        f"{DEFAULT_DATABASE}, which is in {place.STORAGE} on a Space that has storage",
    )
    parser.add_argument(
        "--auth", type=Path, help="file of reviewers with passwords; without a login one looks only"
    )
    parser.add_argument("--videos", type=Path, help="folder with the videos of imported cases")
    parser.add_argument("--check", action="store_true", help="build the page, serve nothing, stop")
    parser.add_argument("--samples", type=Path, default=SAMPLES, help="folder of bundled clips")
    parser.add_argument(
        "--variants",
        type=Path,
        default=os.environ.get("REFINERANK_VARIANTS"),
        help="folder of profiles that reviews have taught and will teach (REFINERANK_VARIANTS)",
    )
    parser.add_argument(
        "--results",
        type=Path,
        nargs="+",
        help="what the Results tab shows: files of `evaluate`, `tables`, `phantom study`, cards of "
        "trainings, or folders of them; else the study that ships",
    )
    parser.add_argument(
        "--uploads",
        action=argparse.BooleanOptionalAction,
        default=place.told(os.environ, "REFINERANK_UPLOADS", not place.on_space(os.environ)),
        help="take visitors' own clips; on, but off on a Space (REFINERANK_UPLOADS=1 or 0)",
    )
    parser.add_argument(
        "--fetch",
        action=argparse.BooleanOptionalAction,
        default=place.told(os.environ, "REFINERANK_FETCH", False),
        help="first download what is missing of the profile, as on a Space (REFINERANK_FETCH=1)",
    )
    parser.add_argument(
        "--max-upload-mb", type=int, default=Limits.upload_mb, help="largest upload"
    )
    parser.add_argument(
        "--max-upload-s", type=float, default=Limits.duration_s, help="longest upload"
    )
    return parser


def wire(
    rank: RefineRank,
    samples: Path,
    limits: Limits,
    spaces: Any = None,
    variants: Path | None = None,
) -> Services:
    """What the screen may ask of loaded models. They answer one question at a time.

    Args:
        rank: the loaded models.
        samples: folder of bundled clips.
        limits: of uploads.
        spaces: the package that lends a card to each call, where ZeroGPU is on.
        variants: folder of other RefineNets for these models; not with ZeroGPU.
    """
    busy = Lock()

    def ground_with(answering: RefineRank) -> Ground:
        def ground(
            video: Video,
            question: str,
            times: Sequence[float] | None,
            current_s: float,
            smooth: bool,
        ) -> Generator[News, None, None]:
            steps = answering.steps(
                video, question, times, current_s=current_s, smooth=smooth, batch=SHOWN_TOGETHER
            )
            yield from in_turns(busy, steps)

        return ground

    def maps_at(video: Video, frame_index: int, target: Box) -> ResponseMaps:
        with busy:
            return rank.maps_at(video, frame_index, target)

    own = ground_with(rank)
    lent = (own, maps_at) if spaces is None else zero_gpu.lend(spaces, own, maps_at)
    others = Variants(rank, variants if spaces is None else None, ground_with)
    return Services(
        profile=card_of(rank),
        stages=STAGES,
        caveat=CAVEAT,
        samples=samples,
        limits=limits,
        open_video=open_video,
        ground=lent[0],
        maps_at=lent[1],
        seen=rank.frames_in_cache,
        map_arrays=as_arrays,
        variants=others.cards,
        ground_as=others.ground_as,
    )


def learning_of(
    args: argparse.Namespace, reviews: Reviews, environment: Mapping[str, str]
) -> Learning | None:
    """The training that the Results tab may start; None without a folder for what it makes."""
    if args.variants is None:
        return None
    folder = Path(args.variants)
    database = str(place.database(args.db, environment, place.STORAGE)[0])
    runner = Runner(folder / ".training")
    videos = [args.samples, *([args.videos] if args.videos else [])]

    def start(name: str) -> RunState:
        return runner.start(
            LearnAsk(
                reviews=database,
                videos=tuple(map(str, videos)),
                profile=args.profile,
                variants=str(folder),
                name=name,
            )
        )

    return Learning(partial(counts, reviews.store), start, runner.state, runner.cancel)


def result_files(given: Sequence[Path] | None) -> tuple[Path, ...]:
    """What the Results tab shows: the files of the command line, else those that ship."""
    bundled = (ASSETS / name for name in RESULTS)
    return tuple(given or (one for one in bundled if one.is_file()))


def upload_limits(args: argparse.Namespace) -> Limits:
    """What the command line lets visitors upload."""
    return Limits(upload_mb=args.max_upload_mb, duration_s=args.max_upload_s, uploads=args.uploads)


def open_reviews(
    args: argparse.Namespace, environment: Mapping[str, str], storage: Path = place.STORAGE
) -> Reviews:
    """The review store and who may write to it.

    Args:
        args: the command line.
        environment: a Space sets SPACE_ID, and OAUTH_CLIENT_ID where its login is on.
        storage: what a Space keeps, where it has persistent storage.

    Raises:
        StoreError: the database or the file of reviewers cannot be used.
    """
    if args.auth is not None:
        identity = Identity("accounts", Accounts.load(args.auth))
    else:
        by_hub = place.on_space(environment) and "OAUTH_CLIENT_ID" in environment
        identity = Identity("hub" if by_hub else "open")
    database, lasts = place.database(args.db, environment, storage)
    # Beside a review file that lasts; a server's database has no such place.
    beside = None if "://" in str(database) else Path(f"{database}.pictures")
    return Reviews(
        Store(database),
        identity,
        ephemeral=not lasts,
        videos=args.videos,
        pictures=Pictures(beside) if lasts and beside else None,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until stopped. 0 stopped, 1 a RefineRankError, 2 a wrong command line (argparse)."""
    args = build_parser().parse_args(argv)
    try:
        spaces = zero_gpu.package(os.environ)  # before anything touches CUDA
        reviews = open_reviews(args, os.environ)
        profile = load_profile(args.profile)
        if spaces is not None:
            zero_gpu.refuse_compiled(profile.medvlm.compile)
        if args.fetch:
            fetch_missing(profile, told=lambda line: print(f"refinerank: {line}", flush=True))
        rank = RefineRank.load(profile, device=args.device)
    except RefineRankError as error:
        print(f"refinerank: {error}", file=sys.stderr)
        return 1
    services = wire(rank, args.samples, upload_limits(args), spaces, args.variants)
    sessions = Sessions(services)
    results = ResultsSetup(result_files(args.results), learning_of(args, reviews, os.environ))
    if args.check:
        ui.build(services, sessions, reviews, results)
        sessions.close()
        reviews.store.close()
        print("refinerank: the page can be built.")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uploads are removed on the way out
    try:
        ui.build(services, sessions, reviews, results).launch(
            server_name=args.host,
            server_port=args.port,
            share=args.share,
            mcp_server=args.mcp,
            **ui.launch_settings(services),
        )
    finally:
        sessions.close()
        reviews.store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`fetch --profile P`: download the checkpoints that a profile names, sizes first."""

import argparse
import sys

from refinerank_core.profiles import load_profile


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = commands.add_parser("fetch", help="download the models of a profile")
    parser.add_argument("--profile", required=True, help="a profile's name or .json file")
    parser.add_argument("--dry-run", action="store_true", help="say the sizes and download nothing")
    parser.add_argument(
        "--endpoint", metavar="URL", help="a mirror of the model hub (else HF_ENDPOINT)"
    )
    parser.add_argument(
        "--update",
        action="store_true",
        help="take the newest commit of what the profile does not pin, not the one fetched before",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Say what will come, fetch it, and say which commits it is."""
    from refinerank_core.fetch import Hub, fetch, in_words, plan, refuse_small_disk
    from refinerank_core.hub import parts_of
    from refinerank_core.hub_lock import LOCK_NAME

    profile = load_profile(args.profile)
    parts = parts_of(profile)
    if not parts:
        print(f"{profile.name}: its models are folders on this machine; nothing to fetch.")
        return 0
    hub = Hub(args.endpoint)
    files = plan(parts, hub, update=args.update)
    for part in parts:
        own = [file for file in files if file.part == part]
        size = in_words(sum(file.size_bytes for file in own))
        print(f"{part.role:<10} {part.repo}@{own[0].commit[:12]}  {len(own)} files, {size}")
    wanted = [file for file in files if not file.here]
    print(
        f"to fetch: {len(wanted)} of {len(files)} files, "
        f"{in_words(sum(file.size_bytes for file in wanted))}"
    )
    if args.dry_run:
        return 0
    refuse_small_disk(files, hub)
    fetch(
        files,
        hub,
        progress=lambda file: print(f"{file.name} {in_words(file.size_bytes)}", file=sys.stderr),
    )
    for part in parts:
        if not part.is_pinned:
            commit = next(file.commit for file in files if file.part == part)
            print(
                f"{part.role} is not pinned by the profile: {LOCK_NAME} in the model cache fixes it"
                f' to {commit}; "revision": "{commit}" in the profile pins it everywhere.'
            )
    print(f"{profile.name}: everything is here and its hashes are right.")
    return 0

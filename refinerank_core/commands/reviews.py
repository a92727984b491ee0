"""`reviews`: check the record, measure its reliability, sum up failures and agreement."""

import argparse
import getpass
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from refinerank_core.agreement import Interval, pairs, with_methods
from refinerank_core.errors import RefineRankError
from refinerank_core.failure_figures import Judged, count_by, decompose
from refinerank_core.failures import CATEGORIES
from refinerank_core.reviews.accounts import add_account
from refinerank_core.reviews.inspection import judged, method_views, reviewer_views
from refinerank_core.reviews.store import Store
from refinerank_core.reviews.worklist import Wanted


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command and its own commands."""
    parser = commands.add_parser("reviews", help="check, measure and sum up the review database")
    own = parser.add_subparsers(dest="review_command", required=True, metavar="WHAT")
    _with_database(own, "verify", "check the hash chain and the tables folded from it", _verify)
    _with_database(own, "rebuild", "fold the record anew into the queue's tables", _rebuild)
    failures = _with_database(own, "failures", "count failures and split the loss", _failures)
    failures.add_argument("--method", default="", help="the method; without it the one reviewed")
    _with_database(own, "agreement", "kappa and IoU between reviewers and methods", _agreement)
    account = own.add_parser("account", help="add a reviewer with a password to a file (--auth)")
    account.add_argument("file", type=Path, help="the file that `app.py --auth` reads")
    account.add_argument("name", help="the reviewer; a known one gets the new password")
    account.set_defaults(run=_account)
    stress = own.add_parser("stress", help="measure the reliability figures of the README")
    for name, count, words in (
        ("reviewers", 8, "processes that decide at once"),
        ("decisions", 200, "decisions of each"),
        ("kills", 50, "times a writer is killed"),
        ("events", 100_000, "events in the long record"),
    ):
        stress.add_argument(f"--{name}", type=_count, default=count, help=words)
    stress.set_defaults(run=_stress)


def _with_database(
    own: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    words: str,
    work: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    parser = own.add_parser(name, help=words)
    parser.add_argument("--db", help="review database: file or URL (REFINERANK_DB)")
    parser.set_defaults(run=work)
    return parser


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"wanted 1 or more, got {count}")
    return count


def _verify(args: argparse.Namespace) -> int:
    with Store(args.db) as store:
        report = store.verify()
    print(f"{report.events} events, {report.cases} cases, head {report.head}")
    if report.sound:
        print("sound: the chain is whole, and the tables are what its events say")
        return 0
    for problem in report.problems:
        print(f"refinerank: {problem}", file=sys.stderr)
    return 1


def _rebuild(args: argparse.Namespace) -> int:
    with Store(args.db) as store:
        print(f"{store.rebuild()} cases folded from the record")
    return 0


def _stress(args: argparse.Namespace) -> int:
    from refinerank_core.reviews.stress import run
    from refinerank_core.reviews.stress_load import Load

    load = Load(
        reviewers=args.reviewers, decisions=args.decisions, kills=args.kills, events=args.events
    )
    with tempfile.TemporaryDirectory(prefix="refinerank-stress-") as folder:
        findings = run(Path(folder), load, lambda line: print(line, file=sys.stderr))
    for finding in findings:
        print(f"{'met   ' if finding.met else 'MISSED'}  {finding.name}: {finding.result}")
    return 0 if all(finding.met for finding in findings) else 1


def _account(args: argparse.Namespace) -> int:
    """The password is asked for, or read from a pipe; it is never an argument."""
    if sys.stdin.isatty():
        password = getpass.getpass(f"Password of {args.name}: ")
    else:
        password = sys.stdin.readline().rstrip("\n")
    add_account(args.file, args.name, password)
    print(f"{args.name} may log in when the app is started with --auth {args.file}")
    return 0


def _failures(args: argparse.Namespace) -> int:
    with Store(args.db) as store:
        rows = list(judged(store, Wanted(), method=args.method))
    if not rows:
        raise RefineRankError("No case has a truth or a reviewed box yet. Review or import some.")
    for dataset, counts in count_by(rows, _dataset).items():
        mine = [one for one in rows if _dataset(one) == dataset]
        print(f"{dataset}: {len(mine)} times, {sum(one.reviewed for one in mine)} against reviews")
        for category in CATEGORIES:
            print(f"  {category:<18}{counts[category]:>6}")
        loss = decompose(mine)
        if loss is not None:
            print(
                f"  selected {loss.selected:.4f}, oracle {loss.oracle:.4f}: candidates lose "
                f"{loss.candidate_loss:.4f}, filter {loss.filter_loss:.4f}, ranking "
                f"{loss.ranking_loss:.4f}; refinement rescued {loss.rescued}, harmed {loss.harmed}"
            )
    return 0


def _dataset(one: Judged) -> str:
    return one.dataset or "no data set"


def _agreement(args: argparse.Namespace) -> int:
    with Store(args.db) as store:
        views = list(store.views(Wanted()))
    reviews = list(reviewer_views(views))
    for pair in pairs(reviews):
        print(
            f"{pair.one} and {pair.other}: kappa {_words(pair.kappa)}, IoU {_words(pair.mean_iou)}"
        )
    for reviewer, methods in with_methods(reviews, method_views(views)).items():
        for method, overlap in methods.items():
            print(f"{reviewer} and {method}: IoU {_words(overlap)}")
    return 0


def _words(interval: Interval) -> str:
    if interval.value is None:
        return f"none (n = {interval.n})"
    if interval.low is None or interval.high is None:
        return f"{interval.value:.3f} (n = {interval.n})"
    return f"{interval.value:.3f} [{interval.low:.3f}, {interval.high:.3f}] (n = {interval.n})"

"""Failures in figures: counts, where IoU is lost, and two runs side by side."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from refinerank_core.failures import TAU, Category, Verdict


@dataclass(frozen=True)
class Judged:
    """A verdict with what it is about.

    Attributes:
        case_id: of the review store, "" elsewhere.
        method: who answered.
        dataset, procedure, tool: of the case, for counts.
        row: question row; times of one row weigh together as one.
        key: what is the same in two runs: video, question and time.
        truth_share: share of the frame that the truth covers.
        reviewed: the truth is a reviewer's box, for want of an annotation.
    """

    verdict: Verdict
    method: str
    dataset: str = ""
    procedure: str = ""
    tool: str = ""
    row: str = ""
    key: tuple[str, str, float] = ("", "", 0.0)
    truth_share: float = 0.0
    case_id: str = ""
    reviewed: bool = False


def size_band(judged: Judged) -> str:
    """The size of the target in words, for counts."""
    bands = ((0.01, "under 1 %"), (0.05, "1 to 5 %"), (0.2, "5 to 20 %"))
    return next((name for limit, name in bands if judged.truth_share < limit), "over 20 %")


def count_by(
    judged: Iterable[Judged], key: Callable[[Judged], str]
) -> dict[str, Counter[Category]]:
    """Cases in each category, for each value of a key such as `size_band`; keys sorted."""
    counts: dict[str, Counter[Category]] = {}
    for one in judged:
        counts.setdefault(key(one), Counter())[one.verdict.category] += 1
    return dict(sorted(counts.items()))


@dataclass(frozen=True)
class Decomposition:
    """Where IoU is lost. candidate_loss + filter_loss + ranking_loss = 1 - selected.

    Attributes:
        times: requested times. rows: question rows, each of the same weight.
        selected: mean IoU of the answers. oracle: of the best box of the whole pool.
        kept_oracle: of the best box after the filter.
        rescued, harmed: times at which refinement made a wrong box right, or a right one wrong.
    """

    times: int
    rows: int
    selected: float
    oracle: float
    kept_oracle: float
    rescued: int
    harmed: int

    @property
    def candidate_loss(self) -> float:
        """What no choice could have won back: 1 - oracle."""
        return 1.0 - self.oracle

    @property
    def filter_loss(self) -> float:
        """Part of oracle - selected that the filter lost."""
        return self.oracle - self.kept_oracle

    @property
    def ranking_loss(self) -> float:
        """Part of oracle - selected that the choice among the kept lost."""
        return self.kept_oracle - self.selected

    @property
    def selection_loss(self) -> float:
        """oracle - selected: what a perfect choice in the whole pool would win."""
        return self.oracle - self.selected


def decompose(judged: Sequence[Judged], *, tau: float = TAU) -> Decomposition | None:
    """Decompose the loss of one method on one dataset; None without any time."""
    if not judged:
        return None
    rows: dict[str, list[Verdict]] = {}
    for one in judged:
        rows.setdefault(one.row, []).append(one.verdict)

    def mean(value: Callable[[Verdict], float]) -> float:
        return fmean(fmean(value(verdict) for verdict in row) for row in rows.values())

    verdicts = [one.verdict for one in judged]
    return Decomposition(
        times=len(judged),
        rows=len(rows),
        selected=mean(lambda verdict: verdict.iou),
        oracle=mean(lambda verdict: verdict.best_iou),
        kept_oracle=mean(lambda verdict: verdict.kept_iou),
        rescued=sum(verdict.sub_tag == "rescued by refinement" for verdict in verdicts),
        harmed=sum(verdict.parent_iou >= tau > verdict.iou for verdict in verdicts),
    )


@dataclass(frozen=True)
class Change:
    """One time in two runs."""

    before: Judged
    after: Judged

    @property
    def gain(self) -> float:
        """IoU won (negative: lost)."""
        return self.after.verdict.iou - self.before.verdict.iou


@dataclass(frozen=True)
class Comparison:
    """Two runs on the same times.

    Attributes:
        better, worse: changes of more than a hundredth in IoU, the largest first.
        same: how many changed less.
        only_before, only_after: times that one run alone has.
        moved: how many went from one category to another.
        iou_before, iou_after: means over the times that both have; None without any.
    """

    better: tuple[Change, ...]
    worse: tuple[Change, ...]
    same: int
    only_before: int
    only_after: int
    moved: Counter[tuple[Category, Category]]
    iou_before: float | None
    iou_after: float | None


def compare(
    before: Sequence[Judged], after: Sequence[Judged], *, least: float = 0.01
) -> Comparison:
    """Set two runs side by side; a time that occurs twice in a run counts with its last one."""
    old, new = ({one.key: one for one in run} for run in (before, after))
    changes = [Change(old[key], new[key]) for key in old if key in new]
    moved = Counter(
        (change.before.verdict.category, change.after.verdict.category) for change in changes
    )
    better = sorted((c for c in changes if c.gain > least), key=lambda c: -c.gain)
    worse = sorted((c for c in changes if c.gain < -least), key=lambda c: c.gain)
    return Comparison(
        better=tuple(better),
        worse=tuple(worse),
        same=len(changes) - len(better) - len(worse),
        only_before=len(old.keys() - new.keys()),
        only_after=len(new.keys() - old.keys()),
        moved=moved,
        iou_before=fmean(c.before.verdict.iou for c in changes) if changes else None,
        iou_after=fmean(c.after.verdict.iou for c in changes) if changes else None,
    )

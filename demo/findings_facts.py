"""From verdicts to what the Failures tab shows: plain rows and sentences. No Gradio, no HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from demo.present import short
from demo.review_asks import FindingsAsk
from demo.review_facts import label
from refinerank_core.agreement import Disagreement, Interval, Pair
from refinerank_core.failure_figures import (
    Comparison,
    Decomposition,
    Judged,
    count_by,
    decompose,
    size_band,
)
from refinerank_core.failures import CATEGORIES
from refinerank_core.grounding import Box
from refinerank_core.reviews.inspection import Evidence
from refinerank_core.reviews.records import Case

Plain = dict[str, Any]
PAGE = 24
MOST_CHANGES = 12
NONE = "(none)"

DIMENSIONS: Mapping[str, Callable[[Judged], str]] = {
    "method": lambda one: label(one.method),
    "dataset": lambda one: one.dataset or NONE,
    "procedure": lambda one: one.procedure or NONE,
    "tool": lambda one: one.tool or NONE,
    "size": size_band,
}
"""What counts can go by, and what each calls a verdict."""


def methods_of(everything: Iterable[Evidence]) -> list[str]:
    """The methods that have a verdict, in the order they were met."""
    return list(dict.fromkeys(one.judged.method for one in everything))


def filtered(mine: Iterable[Evidence], ask: FindingsAsk) -> list[Evidence]:
    """Those that the filters let through, the worst first."""
    wanted = {name: getattr(ask, name) for name in ("dataset", "procedure", "tool", "size")}
    kept = [
        one
        for one in mine
        if ask.category in ("", one.judged.verdict.category)
        and all(value in ("", DIMENSIONS[name](one.judged)) for name, value in wanted.items())
    ]
    return sorted(kept, key=lambda one: (one.judged.verdict.iou, one.judged.case_id))


def run_of(one: Evidence) -> str:
    """The checkpoints that answered, as one name."""
    return " + ".join(one.case.models)


def findings_facts(
    everything: Sequence[Evidence],
    mine: Sequence[Evidence],
    shown: Sequence[Evidence],
    method: str,
    ask: FindingsAsk,
) -> Plain:
    """All that the tab shows for one choice of method and filters."""
    rows = [one.judged for one in mine]
    return {
        "methods": [{"name": one, "label": label(one)} for one in methods_of(everything)],
        "method": method,
        "choices": {
            name: sorted({DIMENSIONS[name](one) for one in rows})
            for name in ("dataset", "procedure", "tool", "size")
        }
        | {"category": list(CATEGORIES)},
        "runs": sorted({run_of(one) for one in mine}),
        "total": len(rows),
        "reviewed": sum(one.reviewed for one in rows),
        "shown": len(shown),
        "loss": [
            loss_facts(name, decompose([one for one in rows if DIMENSIONS["dataset"](one) == name]))
            for name in sorted({DIMENSIONS["dataset"](one) for one in rows})
        ],
        "gallery": [evidence_facts(one) for one in shown[ask.offset : ask.offset + PAGE]],
        "page": PAGE,
        "comparison": None,
    }


def loss_facts(dataset: str, loss: Decomposition | None) -> Plain:
    """Where IoU is lost on one data set, in figures that add up to 1."""
    if loss is None:
        return {"dataset": dataset, "times": 0}
    return {
        "dataset": dataset,
        "times": loss.times,
        "rows": loss.rows,
        "selected": loss.selected,
        "oracle": loss.oracle,
        "candidate": loss.candidate_loss,
        "filter": loss.filter_loss,
        "ranking": loss.ranking_loss,
        "rescued": loss.rescued,
        "harmed": loss.harmed,
    }


def evidence_facts(one: Evidence) -> Plain:
    """One picture of the gallery, with the boxes that explain its category."""
    case, verdict = one.case, one.judged.verdict
    return {
        "case_id": case.case_id,
        "question": case.question,
        "target": case.target or case.question,
        "video": case.video_name,
        "seconds": case.frame_s if case.frame_s is not None else case.requested_s,
        "size": [case.width, case.height],
        "category": verdict.category,
        "sub": verdict.sub_tag,
        "tags": list(verdict.tags),
        "iou": verdict.iou,
        "words": verdict_words(one),
        "reviewed": one.judged.reviewed,
        "boxes": explaining(one),
    }


def explaining(one: Evidence) -> list[Plain]:
    """The boxes to draw: the truth always, the answer, and what explains the difference."""
    category = one.judged.verdict.category
    boxes: list[tuple[str, Box | None]] = [("truth", one.truth)]
    if category in ("candidate miss", "filter miss", "ranking miss"):
        boxes.append(("best", one.best))
    if category == "refinement harm" or one.judged.verdict.sub_tag == "rescued by refinement":
        boxes.append(("parent", one.parent))
    boxes.append((one.judged.method, one.chosen))
    return [{"role": role, "box": box} for role, box in boxes if box is not None]


def verdict_words(one: Evidence) -> str:
    """The figures behind a category."""
    verdict = one.judged.verdict
    words = [f"IoU {short(verdict.iou)}"]
    if one.parent is not None:
        words.append(f"before refinement {short(verdict.parent_iou)}")
    if one.best is not None and verdict.best_iou > verdict.iou:
        words.append(f"best in the pool {short(verdict.best_iou)}")
    if verdict.kept_iou < verdict.best_iou:
        words.append(f"after the filter {short(verdict.kept_iou)}")
    return ", ".join(words)


def comparison_facts(compared: Comparison, by_case: Mapping[str, Evidence]) -> Plain:
    """Two runs on the same times."""

    def change(before: Judged, after: Judged, gain: float) -> Plain:
        return evidence_facts(by_case[after.case_id]) | {
            "gain": gain,
            "words": f"IoU {short(before.verdict.iou)} to {short(after.verdict.iou)}; "
            f"{before.verdict.category} to {after.verdict.category}",
        }

    return {
        "words": f"{len(compared.better)} better, {len(compared.worse)} worse, {compared.same} the "
        f"same; {compared.only_before} and {compared.only_after} in one run alone.",
        "better": [change(c.before, c.after, c.gain) for c in compared.better[:MOST_CHANGES]],
        "worse": [change(c.before, c.after, c.gain) for c in compared.worse[:MOST_CHANGES]],
        "moved": [
            {"from": old, "to": new, "count": count}
            for (old, new), count in compared.moved.most_common()
            if old != new
        ],
    }


def counts_for(everything: Sequence[Evidence], mine: Sequence[Evidence], by: str) -> Plain:
    """Category -> count for each value of a dimension, values in order."""
    source = everything if by == "method" else mine
    counts = count_by((one.judged for one in source), DIMENSIONS[by])
    return {
        "names": list(counts),
        "counts": {category: [row[category] for row in counts.values()] for category in CATEGORIES},
    }


def agreement_facts(
    found: Sequence[Pair],
    methods: Mapping[str, Mapping[str, Interval]],
    differing: Sequence[Disagreement],
    cases: Mapping[str, Case],
) -> Plain:
    """The tables of agreement, and the queue of disagreements."""
    return {
        "pairs": [
            {
                "one": pair.one,
                "other": pair.other,
                "kappa": interval_words(pair.kappa),
                "iou": interval_words(pair.mean_iou),
            }
            for pair in found
        ],
        "methods": [
            {"reviewer": reviewer, "method": label(method), "iou": interval_words(interval)}
            for reviewer, row in methods.items()
            for method, interval in row.items()
        ],
        "differing": [
            {
                "case_id": one.case_id,
                "question": cases[one.case_id].question,
                "video": cases[one.case_id].video_name,
                "raters": list(one.raters),
                "decisions": list(one.decisions),
                "iou": one.iou,
            }
            for one in differing[:100]
        ],
        "total": len(differing),
    }


def interval_words(interval: Interval) -> str:
    """A figure with its interval and its n."""
    if interval.value is None:
        return f"none (n = {interval.n})"
    if interval.low is None or interval.high is None:
        return f"{interval.value:.2f} (n = {interval.n})"
    return f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}] (n = {interval.n})"

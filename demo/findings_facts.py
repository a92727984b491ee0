"""From verdicts to what the Failures tab shows: plain rows and sentences. No Gradio, no HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from demo.present import short
from demo.review_asks import FindingsAsk
from demo.review_facts import label
from refinerank_core.agreement import Disagreement, Interval, Pair
from refinerank_core.failure_figures import (
    Change,
    Comparison,
    Decomposition,
    Judged,
    compare,
    count_by,
    decompose,
    size_band,
)
from refinerank_core.failures import CATEGORIES
from refinerank_core.grounding import Box
from refinerank_core.reviews.inspection import Evidence
from refinerank_core.reviews.names import video_stem
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
    kept = [one for one in narrowed(mine, ask) if ask.category in ("", category_of(one))]
    return sorted(kept, key=lambda one: (one.judged.verdict.iou, one.judged.case_id))


def narrowed(mine: Iterable[Evidence], ask: FindingsAsk) -> list[Evidence]:
    """Those of the wanted data set, procedure, tool, target size and video, in any category."""
    wanted = {name: getattr(ask, name) for name in ("dataset", "procedure", "tool", "size")}
    return [
        one
        for one in mine
        if all(value in ("", DIMENSIONS[name](one.judged)) for name, value in wanted.items())
        and ask.video in ("", video_stem(one.case.video_name))
    ]


def category_of(one: Evidence) -> str:
    """The category of a verdict."""
    return one.judged.verdict.category


def run_of(one: Evidence) -> str:
    """A method of one profile and its checkpoints, as a browser names it."""
    return "|".join((one.judged.method, one.profile, *one.case.models))


def runs_facts(everything: Iterable[Evidence]) -> list[Plain]:
    """The runs that can be set side by side, with names for people, in the order of these."""
    found = {run_of(one): one for one in everything}
    sets = {(one.profile, one.case.models) for one in found.values()}
    named = [(run_words(one, several=len(sets) > 1), run) for run, one in found.items()]
    return [{"run": run, "label": words} for words, run in sorted(named)]


def run_words(one: Evidence, *, several: bool) -> str:
    """A run in words. several: there are answers of other checkpoints, so they are named."""
    words = label(one.judged.method)
    if not several:
        return words
    models = ", ".join(one.case.models) or "checkpoints not named"
    return f"{words}, {one.profile}: {models}" if one.profile else f"{words}: {models}"


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
        | {
            "category": list(CATEGORIES),
            "video": sorted({video_stem(one.case.video_name) for one in mine}),
        },
        "runs": runs_facts(everything),
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


def comparison_facts(everything: Sequence[Evidence], ask: FindingsAsk) -> Plain:
    """Two runs on the same times: how many got better or worse, and which."""
    old, new = (
        {one.judged.case_id: one for one in narrowed(everything, ask) if run_of(one) == run}
        for run in (ask.before, ask.after)
    )
    compared = compare(*([one.judged for one in run.values()] for run in (old, new)))

    def change(one: Change) -> Plain:
        before, after = old[one.before.case_id], new[one.after.case_id]
        was, now = one.before.verdict, one.after.verdict
        facts = evidence_facts(after) | {
            "gain": one.gain,
            "words": f"IoU {short(was.iou)} to {short(now.iou)}; {was.category} to {now.category}",
        }
        if before.chosen is not None:
            facts["boxes"] = [{"role": "old", "box": before.chosen}, *facts["boxes"]]
        return facts

    return {
        "words": comparison_words(compared),
        "better": [change(one) for one in compared.better[:MOST_CHANGES]],
        "worse": [change(one) for one in compared.worse[:MOST_CHANGES]],
        "counts": {"better": len(compared.better), "worse": len(compared.worse)},
        "moved": [
            {"from": old, "to": new, "count": count}
            for (old, new), count in compared.moved.most_common()
            if old != new
        ],
    }


def comparison_words(compared: Comparison) -> str:
    """Two runs in a sentence or two."""
    shared = len(compared.better) + len(compared.worse) + compared.same
    if compared.iou_before is None or compared.iou_after is None:
        return "These two have no time in common that could be judged."
    alone = compared.only_before + compared.only_after
    return (
        f"{shared} time{'s'[: shared != 1]} in both: mean IoU {short(compared.iou_before)} before, "
        f"{short(compared.iou_after)} after; {len(compared.better)} better, "
        f"{len(compared.worse)} worse, {compared.same} the same."
        + (f" {alone} more {'is' if alone == 1 else 'are'} in one of them alone." if alone else "")
    )


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
                "seconds": cases[one.case_id].requested_s,
                "frame": cases[one.case_id].frame_index,
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

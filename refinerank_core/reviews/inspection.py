"""From the store to failures and agreement: verdicts on cases, views of reviewers and methods."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from refinerank_core.agreement import View
from refinerank_core.boxes import Corners, iou
from refinerank_core.failure_figures import Judged
from refinerank_core.failures import Attempt, Scene, classify
from refinerank_core.grounding import Grounding, TimeGrounding
from refinerank_core.reviews.intake import video_stem
from refinerank_core.reviews.records import Case
from refinerank_core.reviews.sources import METHODS
from refinerank_core.reviews.store import CaseView, Store
from refinerank_core.reviews.worklist import Wanted


def attempt_of(one: TimeGrounding, method: str) -> Attempt:
    """What a method did at one time of a grounding.

    Raises:
        ValueError: no such method.
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}, got {method!r}")
    answers = one.answers
    if method == "medvlm":
        return Attempt.single(answers.medvlm.box)
    originals = [candidate.box for candidate in one.candidates]
    if method == "medvlm_groundingdino":
        return Attempt(
            chosen=answers.medvlm_groundingdino.box,
            pool=np.array(originals, dtype=np.float32).reshape(-1, 4),
            kept=np.array(originals, dtype=np.float32).reshape(-1, 4),
        )
    refined = {c.id: c.refined_box for c in one.candidates if c.refined_box is not None}
    by_id = {candidate.id: candidate.box for candidate in one.candidates}
    kept = [refined[name] if is_refined else by_id[name] for name, is_refined in one.kept]
    best = answers.refinerank
    return Attempt(
        chosen=best.box,
        parent=by_id[best.candidate_id] if best.refined else None,
        pool=np.array([*originals, *refined.values()], dtype=np.float32).reshape(-1, 4),
        kept=np.array(kept, dtype=np.float32).reshape(-1, 4),
    )


@dataclass(frozen=True)
class Evidence:
    """A verdict and the boxes that explain it.

    Attributes:
        case: what it is about. judged: the verdict.
        truth: the box that the answer is measured by. chosen: the answer.
        parent: the original of a chosen refined box, None for an original.
        best: the box of the whole pool that lies best, None where there is no pool.
    """

    case: Case
    judged: Judged
    truth: Corners
    chosen: Corners | None
    parent: Corners | None
    best: Corners | None


def examine(
    view: CaseView, grounding: Grounding | None, *, method: str = "", time_index: int | None = None
) -> Evidence | None:
    """The verdict on one method in one case, with its boxes; None: nothing to judge it by.

    Args:
        view: the case and its state. The annotated box is the truth; where there is none, the
            reviewed box takes its place (`Judged.reviewed`).
        grounding: where the answers come from; None: the method's box alone is known.
        method: "": the one under review.
        time_index: the case's time in the grounding.
    """
    case, state = view.case, view.state
    truth: Corners | None = state.truth if state.has_truth else state.reviewed_box
    method = method or case.method
    if truth is None or method not in {one.method for one in case.answers}:
        return None
    attempt, scene = _tried(case, grounding, method, time_index, truth)
    area = (truth[2] - truth[0]) * (truth[3] - truth[1])
    judged = Judged(
        verdict=classify(attempt, scene),
        method=method,
        dataset=case.dataset,
        procedure=case.procedure,
        tool=case.target,
        row=_row(case),
        key=(video_stem(case.video_name), case.question, _time(case)),
        truth_share=area / (case.width * case.height),
        case_id=case.case_id,
        reviewed=not state.has_truth,
    )
    return Evidence(case, judged, truth, attempt.chosen, attempt.parent, _nearest(attempt, truth))


def judge(
    view: CaseView, grounding: Grounding | None, *, method: str = "", time_index: int | None = None
) -> Judged | None:
    """The verdict alone; see `examine`."""
    found = examine(view, grounding, method=method, time_index=time_index)
    return found.judged if found else None


def suggested_tags(case: Case, grounding: Grounding | None, box: Corners) -> tuple[str, ...]:
    """Tags that would fit the answer under review if this box were right; people decide."""
    if not case.answers:
        return ()
    verdict = classify(*_tried(case, grounding, case.method, case.time_index, box))
    why = () if verdict.category == "correct" else (verdict.category,)
    return (*why, *verdict.tags)


def _tried(
    case: Case,
    grounding: Grounding | None,
    method: str,
    time_index: int | None,
    truth: Corners,
) -> tuple[Attempt, Scene]:
    """What a method did in a case, and what is true there."""
    if grounding is not None and time_index is not None and method in METHODS:
        attempt = attempt_of(grounding.times[time_index], method)
        phrases = grounding.query.phrases
    else:
        attempt, phrases = Attempt.single(case.box_of(method)), ()
    size_wh = (case.width, case.height)
    return attempt, Scene(truth=truth, size_wh=size_wh, label=case.target, phrases=phrases)


def _nearest(attempt: Attempt, truth: Corners) -> Corners | None:
    if not len(attempt.pool):
        return None
    x0, y0, x1, y1 = attempt.pool[int(iou(attempt.pool, np.array(truth)).argmax())].tolist()
    return x0, y0, x1, y1


def judged(store: Store, wanted: Wanted, *, method: str = "") -> Iterator[Judged]:
    """Verdicts on all cases that a filter lets through and that can be judged.

    Args:
        store: the reviews.
        wanted: the filter; its page counts for nothing.
        method: "": each case's method under review.
    """
    for one in evidence(store, wanted, methods=(method,)):
        yield one.judged


def evidence(store: Store, wanted: Wanted, *, methods: Sequence[str] = ("",)) -> Iterator[Evidence]:
    """What `judged` gives, with the boxes, for several methods in one pass over the cases."""
    last: tuple[str, Grounding | None] = ("", None)
    for view in store.views(wanted):
        case = view.case
        if case.time_index is not None and case.grounding_id != last[0]:
            found = store.grounding(case.case_id)
            last = (case.grounding_id, found[0] if found else None)
        grounding = last[1] if case.time_index is not None else None
        for method in methods:
            one = examine(view, grounding, method=method, time_index=case.time_index)
            if one is not None:
                yield one


def reviewer_views(views: Iterable[CaseView]) -> Iterator[View]:
    """What each reviewer decided and drew, one view a reviewer and case."""
    for view in views:
        for one in view.state.opinions:
            judgement = one.judgement
            yield View(view.case.case_id, one.reviewer, judgement.decision, judgement.reviewed_box)


def method_views(views: Iterable[CaseView]) -> Iterator[View]:
    """The boxes of the methods."""
    for view in views:
        for one in view.case.answers:
            yield View(view.case.case_id, one.method, "", one.box)


def _row(case: Case) -> str:
    return f"{case.row_id or case.question}|{video_stem(case.video_name)}|{case.grounding_id}"


def _time(case: Case) -> float:
    return case.requested_s if case.requested_s is not None else float(case.frame_index or 0)

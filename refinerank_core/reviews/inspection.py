"""From the store to failures and agreement: verdicts on cases, views of reviewers and methods."""

from collections.abc import Iterable, Iterator

import numpy as np

from refinerank_core.agreement import View
from refinerank_core.boxes import Corners
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


def judge(
    view: CaseView, grounding: Grounding | None, *, method: str = "", time_index: int | None = None
) -> Judged | None:
    """The verdict on one method in one case; None where nothing is known to judge it by.

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
    if grounding is not None and time_index is not None and method in METHODS:
        attempt = attempt_of(grounding.times[time_index], method)
        phrases = grounding.query.phrases
    else:
        attempt, phrases = Attempt.single(case.box_of(method)), ()
    size_wh = (case.width, case.height)
    scene = Scene(truth=truth, size_wh=size_wh, label=case.target, phrases=phrases)
    area = (truth[2] - truth[0]) * (truth[3] - truth[1])
    return Judged(
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


def judged(store: Store, wanted: Wanted, *, method: str = "") -> Iterator[Judged]:
    """Verdicts on all cases that a filter lets through and that can be judged.

    Args:
        store: the reviews.
        wanted: the filter; its page counts for nothing.
        method: "": each case's method under review.
    """
    last: tuple[str, Grounding | None] = ("", None)
    for view in store.views(wanted):
        case = view.case
        if case.time_index is not None and case.grounding_id != last[0]:
            found = store.grounding(case.case_id)
            last = (case.grounding_id, found[0] if found else None)
        grounding = last[1] if case.time_index is not None else None
        one = judge(view, grounding, method=method, time_index=case.time_index)
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

"""From the store to failures and agreement: verdicts on cases, views of reviewers and methods."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from refinerank_core.agreement import View
from refinerank_core.boxes import Corners, iou
from refinerank_core.failure_figures import Judged
from refinerank_core.failures import TAU, Attempt, Neighbour, Scene, classify
from refinerank_core.grounding import Grounding, TimeGrounding
from refinerank_core.reviews.kin import Known
from refinerank_core.reviews.names import video_stem
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
        profile: name of the profile that answered, "" where it is not known.
    """

    case: Case
    judged: Judged
    truth: Corners
    chosen: Corners | None
    parent: Corners | None
    best: Corners | None
    profile: str = ""


@dataclass(frozen=True)
class Surroundings:
    """What the rest of the record says of a case's picture.

    Attributes:
        reviewed: the box of a reviewer who judged another run's answer to the same question.
        others: annotated boxes of other targets in the same frame.
    """

    reviewed: Corners | None = None
    others: tuple[Neighbour, ...] = ()


_ALONE = Surroundings()


@dataclass(frozen=True, eq=False)
class _Record:
    """The boxes of the record, by what they are about."""

    reviewed: dict[tuple[str, str, float], Known] = field(default_factory=dict)
    frames: dict[tuple[str, int], list[Known]] = field(default_factory=dict)

    @classmethod
    def of(cls, known: Iterable[Known]) -> "_Record":
        record = cls()
        for one in known:
            if one.truth is not None and one.frame_index is not None:
                place = (one.video_stem, one.frame_index)
                record.frames.setdefault(place, []).append(one)
            if one.reviewed is not None:
                time = _moment(one.requested_s, one.frame_index)
                key = (one.video_stem, one.question, time)
                if key not in record.reviewed or record.reviewed[key].decided_at < one.decided_at:
                    record.reviewed[key] = one
        return record

    def around(self, case: Case) -> Surroundings:
        found = self.reviewed.get(_key(case))
        place = (video_stem(case.video_name), -1 if case.frame_index is None else case.frame_index)
        return Surroundings(
            reviewed=found.reviewed if found else None,
            others=tuple(
                Neighbour(one.truth, one.target)
                for one in self.frames.get(place, ())
                if one.truth is not None and one.target.casefold() != case.target.casefold()
            ),
        )


def examine(
    view: CaseView,
    grounding: Grounding | None,
    *,
    method: str = "",
    time_index: int | None = None,
    around: Surroundings = _ALONE,
) -> Evidence | None:
    """The verdict on one method in one case, with its boxes; None: nothing to judge it by.

    Args:
        view: the case and its state. The annotated box is the truth; where there is none, the
            reviewed box takes its place (`Judged.reviewed`), the case's own before another run's.
        grounding: where the answers come from; None: the method's box alone is known.
        method: "": the one under review.
        time_index: the case's time in the grounding.
        around: what else is known of the picture.
    """
    case, state = view.case, view.state
    truth = _truth(view, around)
    method = method or case.method
    if truth is None or method not in {one.method for one in case.answers}:
        return None
    attempt, scene = _tried(case, grounding, method, time_index, truth, around.others)
    area = (truth[2] - truth[0]) * (truth[3] - truth[1])
    judged = Judged(
        verdict=classify(attempt, scene),
        method=method,
        dataset=case.dataset,
        procedure=case.procedure,
        tool=case.target,
        row=_row(case),
        key=_key(case),
        truth_share=area / (case.width * case.height),
        case_id=case.case_id,
        reviewed=not state.has_truth,
    )
    return Evidence(
        case,
        judged,
        truth,
        attempt.chosen,
        attempt.parent,
        _nearest(attempt, truth),
        grounding.profile.name if grounding else "",
    )


def _truth(view: CaseView, around: Surroundings) -> Corners | None:
    state = view.state
    if state.has_truth:
        return state.truth
    gone = state.current is not None and state.current.judgement.not_visible
    return state.reviewed_box or (None if gone else around.reviewed)


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
    others: Iterable[Neighbour] = (),
) -> tuple[Attempt, Scene]:
    """What a method did in a case, and what is true there."""
    if grounding is not None and time_index is not None and method in METHODS:
        attempt = attempt_of(grounding.times[time_index], method)
        phrases = grounding.query.phrases
    else:
        attempt, phrases = Attempt.single(case.box_of(method)), ()
    # A box on the truth itself is the same thing under another name, such as "the left grasper".
    apart = tuple(one for one in others if iou(np.array(one.box), np.array(truth)) < TAU)
    size_wh = (case.width, case.height)
    return attempt, Scene(truth, size_wh, label=case.target, others=apart, phrases=phrases)


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
    record = _Record.of(store.known_boxes())
    for view in store.views(wanted):
        case = view.case
        if case.time_index is not None and case.grounding_id != last[0]:
            found = store.grounding(case.case_id)
            last = (case.grounding_id, found[0] if found else None)
        grounding = last[1] if case.time_index is not None else None
        around = record.around(case)
        for method in methods:
            one = examine(view, grounding, method=method, time_index=case.time_index, around=around)
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


def _key(case: Case) -> tuple[str, str, float]:
    time = _moment(case.requested_s, case.frame_index)
    return (video_stem(case.video_name), case.question, time)


def _moment(requested_s: float | None, frame_index: int | None) -> float:
    return requested_s if requested_s is not None else float(frame_index or 0)

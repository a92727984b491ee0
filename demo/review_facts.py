"""From reviews to what the tabs show: plain rows and sentences. No Gradio, no HTML."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from demo.present import overlap, ranked, time_table
from demo.sessions import Clip
from refinerank_core.grounding import Box, TimeGrounding
from refinerank_core.reviews.conflicts import ConflictError
from refinerank_core.reviews.fold import CaseState, Opinion
from refinerank_core.reviews.ledger import Receipt
from refinerank_core.reviews.records import (
    Assignment,
    Case,
    Comment,
    Conflicted,
    Event,
    Imported,
    Judgement,
    Truth,
)
from refinerank_core.reviews.store import CaseView
from refinerank_core.reviews.worklist import Choices, Page, Progress

Plain = dict[str, Any]

LABELS = {
    "refinerank": "RefineRank",
    "medvlm": "MedVLM",
    "medvlm_groundingdino": "MedVLM + GroundingDINO",
}
ROLES = {"refinerank": "rank", "medvlm": "medvlm", "medvlm_groundingdino": "detector"}
_KEYS = {"refinerank": "R", "medvlm": "V", "medvlm_groundingdino": "D"}
_DONE = {
    "accept": "accepted",
    "reject": "rejected",
    "fix": "fixed and accepted",
    "unsure": "was unsure",
    "skip": "skipped",
}


def label(method: str) -> str:
    """A method's name for people."""
    return LABELS.get(method, method)


def keys_of(case: Case, *, me: str, blind: bool) -> dict[str, str]:
    """Key on the screen -> method, in the order shown.

    Blind: letters from A on, in an order that is the same for one reviewer and case whenever it is
    asked for, and another for others.
    """
    methods = [one.method for one in case.answers]
    if not blind:
        return {_KEYS.get(name, f"M{place + 1}"): name for place, name in enumerate(methods)}
    salt = f"{case.case_id}|{me}|"
    shuffled = sorted(methods, key=lambda name: hashlib.sha256((salt + name).encode()).digest())
    return {chr(ord("A") + place): name for place, name in enumerate(shuffled)}


def queue_facts(page: Page, choices: Choices, progress: Progress, *, blind: bool, me: str) -> Plain:
    """The queue, what its filters can be, and how far the work is.

    Blind: without methods, and without what others decided.
    """
    items = [one.model_dump(mode="json") for one in page.items]
    for item in items if blind else ():
        for told in ("method", "margin", "iou"):
            del item[told]
        if item["status"] != "new" and item["reviewer"] != me:
            item["status"] = "decided"
    methods = [] if blind else [{"name": one, "label": label(one)} for one in choices.methods]
    return {
        "items": items,
        "total": page.total,
        "choices": choices.model_dump(mode="json") | {"methods": methods},
        "progress": progress.model_dump(mode="json") | {"words": progress_words(progress)},
    }


def progress_words(progress: Progress) -> str:
    """Progress and pace in one line."""
    done = progress.total - progress.by_status.get("new", 0)
    words = [f"{done} of {progress.total} decided"]
    if progress.decisions:
        words.append(f"{progress.decisions} decision{'s'[: progress.decisions != 1]} of yours")
    if progress.median_s is not None:
        words.append(f"{progress.median_s:.0f} s each")
    if progress.per_hour is not None:
        words.append(f"{progress.per_hour:.0f} an hour")
    return ", ".join(words)


def case_facts(
    view: CaseView,
    events: Sequence[Event],
    clip: Clip | None,
    *,
    me: str,
    blind: bool,
    hidden: bool,
) -> Plain:
    """A case as the reviewer may see it: blind without names, hidden without any answer."""
    case, state = view.case, view.state
    keys = keys_of(case, me=me, blind=blind)
    key_of = {method: key for key, method in keys.items()}
    open_eyes = not blind and not hidden
    standing = state_facts(state, events, me=me, names=not blind)
    mine = next((one for one in state.opinions if one.reviewer == me), None)
    if mine is not None:
        standing["mine"]["shown"] = key_of.get(mine.judgement.shown, "")
    return {
        "case_id": case.case_id,
        "video": case.video_name,
        "question": case.question,
        "target": case.target,
        "requested_s": case.requested_s,
        "frame": frame_of(case, clip),
        "width": case.width,
        "height": case.height,
        "dataset": case.dataset,
        "procedure": case.procedure,
        "clip": clip_facts(clip) if clip else None,
        "answers": [] if hidden else answers_facts(case, keys, blind=blind),
        "count": len(case.answers),
        "candidates": case.time_index is not None and not hidden,
        "margin": case.margin if open_eyes else None,
        "truth": state.truth if open_eyes else None,
        "blind": blind,
        "hidden": hidden,
        "state": standing,
        "history": [event_facts(one, me=me, names=not blind) for one in events],
        "conflicts": conflicts_facts(state, events, key_of if blind else None),
    }


def frame_of(case: Case, clip: Clip | None) -> int:
    """The frame that the case is about."""
    if case.frame_index is not None:
        return case.frame_index
    if clip is None or case.requested_s is None:
        return 0
    return clip.video.nearest(case.requested_s)[0]


def clip_facts(clip: Clip) -> Plain:
    """The video of a case."""
    return {
        "token": clip.token,
        "title": clip.sample.title if clip.sample else clip.video.name,
        "count": len(clip.video),
        "times": time_table(clip.video),
    }


def answers_facts(case: Case, keys: Mapping[str, str], *, blind: bool) -> list[Plain]:
    """The answers under their keys; blind: boxes alone."""
    rows = []
    for key, method in keys.items():
        answer = next(one for one in case.answers if one.method == method)
        row: Plain = {"key": key, "box": answer.box, "role": "blind", "label": f"Answer {key}"}
        if not blind:
            row |= {
                "role": ROLES.get(method, "rank"),
                "label": label(method),
                "method": method,
                "score": answer.score,
            }
        rows.append(row)
    return rows


def state_facts(state: CaseState, events: Sequence[Event], *, me: str, names: bool) -> Plain:
    """Where a case stands. names=False: what others decided stays hidden, too."""
    mine = next((one for one in state.opinions if one.reviewer == me), None)
    undone = {one.seq for one in events if one.reviewer == me} & set(state.redoable)
    shown = state.opinions if names else tuple(one for one in state.opinions if one is mine)
    return {
        "version": state.version,
        "status": state.status if names or mine else "new",
        "assigned_to": state.assigned_to,
        "mine": opinion_facts(mine, names=names) if mine else None,
        "opinions": [opinion_facts(one, names=names) for one in shown],
        "remarks": [
            {"by": one.reviewer, "at": one.at, **one.comment.model_dump(mode="json")}
            for one in state.remarks
        ],
        "undoable": bool(mine and mine.seq in state.undoable),
        "redoable": bool(undone),
    }


def opinion_facts(one: Opinion, *, names: bool) -> Plain:
    """A decision that stands."""
    judgement = one.judgement
    return {
        "seq": one.seq,
        "by": one.reviewer,
        "at": one.at,
        "decision": judgement.decision,
        "box": judgement.reviewed_box,
        "words": decision_words(judgement, names=names),
        "confidence": judgement.confidence,
        "tags": list(judgement.tags),
        "comment": judgement.comment,
        "not_visible": judgement.not_visible,
        "question_unclear": judgement.question_unclear,
    }


def decision_words(judgement: Judgement, *, names: bool) -> str:
    """A decision in a few words."""
    words = [_DONE[judgement.decision]]
    if judgement.shown and names and judgement.decision != "fix":
        words[0] += f" {label(judgement.shown)}"
    if judgement.not_visible:
        words.append("target not visible")
    if judgement.question_unclear:
        words.append("question unclear")
    if judgement.best and names:
        words.append(f"best: {label(judgement.best)}")
    if judgement.confidence:
        words.append(f"sure {judgement.confidence}/5")
    if judgement.tags:
        words.append(", ".join(judgement.tags))
    if judgement.comment:
        words.append(f"“{judgement.comment}”")
    moved = overlap(judgement.box_before, judgement.reviewed_box)
    if judgement.decision == "fix" and moved is not None:
        words.append(f"IoU {moved:.2f} with the box before")
    return "; ".join(words)


def event_facts(event: Event, *, me: str, names: bool) -> Plain:
    """One line of a case's history."""
    body = event.body
    seconds = body.seconds if isinstance(body, Judgement) else 0.0
    visible = names or event.reviewer == me or event.kind in ("imported", "commented", "assigned")
    return {
        "seq": event.seq,
        "at": event.at,
        "by": event.reviewer,
        "words": event_words(event, names=names) if visible else "did something (blind)",
        "seconds": round(seconds, 1),
        "blind": isinstance(body, Judgement) and body.blind,
    }


def event_words(event: Event, *, names: bool) -> str:
    """What happened."""
    body = event.body
    if isinstance(body, Judgement):
        return decision_words(body, names=names)
    if isinstance(body, Comment):
        return f"said: {body.text}"
    if isinstance(body, Assignment):
        return f"assigned it to {body.to}" if body.to else "took the assignment back"
    if isinstance(body, Truth):
        return "gave the annotated box" if body.box else "said that the target is not in the frame"
    if isinstance(body, Imported):
        return "brought it in"
    if isinstance(body, Conflicted):
        return "came too late with a change; it is kept here without effect"
    verbs = {"undone": "took back", "redone": "put back", "settled": "settled the conflict"}
    return f"{verbs[event.kind]} #{body.target}"


def conflicts_facts(
    state: CaseState, events: Sequence[Event], blind_keys: Mapping[str, str] | None
) -> list[Plain]:
    """Late attempts that nobody has settled yet, each beside what stood then.

    blind_keys: method -> key of the blind reader, who is told no name; None: eyes are open.
    """
    names = blind_keys is None
    facts = []
    for event in events:
        if event.seq in state.open_conflicts and isinstance(event.body, Conflicted):
            tried = event.body.attempt if event.body.kind == "decided" else None
            one = _conflict(event.seq, event.reviewer, tried, state, names=names)
            if tried and blind_keys is not None:
                tried = blind_judgement(tried, blind_keys)
            one["yours"]["judgement"] = tried
            facts.append(one)
    return facts


def conflict_facts(conflict: ConflictError, *, names: bool) -> Plain:
    """A conflict as the one who came too late is told of it; the case has it to be settled."""
    body = conflict.yours.body
    tried = body.model_dump(mode="json") if isinstance(body, Judgement) else None
    who = conflict.yours.reviewer
    return {"words": str(conflict)} | _conflict(
        conflict.kept_as, who, tried, conflict.state, names=names
    )


def blind_judgement(tried: Plain, key_of: Mapping[str, str]) -> Plain:
    """A decision with the reader's keys in place of methods, to be sent back as it is."""
    hidden = {name: value for name, value in tried.items() if name != "models"}
    for name in ("shown", "best"):
        if isinstance(tried.get(name), str):
            hidden[name] = key_of.get(tried[name], tried[name])
    return hidden | {"blind": True}


def _conflict(
    seq: int, by: str, tried: dict[str, Any] | None, state: CaseState, *, names: bool
) -> Plain:
    yours = Judgement.model_validate(tried) if tried else None
    return {
        "seq": seq,
        "by": by,
        "yours": {
            "words": decision_words(yours, names=names) if yours else "an undo or redo",
            "box": yours.reviewed_box if yours else None,
        },
        "theirs": opinion_facts(state.current, names=names) if state.current else None,
        "version": state.version,
    }


def receipt_facts(receipt: Receipt, *, me: str) -> Plain:
    """A confirmation."""
    return {
        "ok": True,
        "seq": receipt.event.seq,
        "version": receipt.state.version,
        "replayed": receipt.replayed,
        "by": receipt.event.reviewer,
        "status": receipt.state.status,
        "me": me,
    }


def candidates_facts(time: TimeGrounding, *, blind: bool) -> list[Plain]:
    """The kept joint pool to pick from by number: in rank order, blind from left to right.

    Blind: boxes alone, since the rank tells which answer is RefineRank's.
    """
    rows: list[Plain] = []
    for place, one in enumerate(ranked(time)):
        row = time.candidates[one.candidate]
        box: Box | None = row.refined_box if one.refined else row.box
        if box is not None:
            rows.append(
                {
                    "rank": place + 1,
                    "id": one.candidate + 1,
                    "refined": one.refined,
                    "box": box,
                    "phrase": row.phrase,
                    "score": one.score,
                }
            )
    if not blind:
        return rows
    boxes = sorted(row["box"] for row in rows)
    return [{"rank": place + 1, "box": box} for place, box in enumerate(boxes)]

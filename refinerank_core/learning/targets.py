"""What reviews teach: the box that stands for each reviewed case, and the record it comes from."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from refinerank_core.boxes import clip_to_frame
from refinerank_core.grounding import Box
from refinerank_core.reviews.fold import CaseState
from refinerank_core.reviews.names import video_stem
from refinerank_core.reviews.records import Case
from refinerank_core.reviews.store import CaseView, Store
from refinerank_core.reviews.worklist import Wanted

How = Literal["accept", "fix"]
DECIDED_AGAIN = "the same picture was decided again later"
_TAUGHT = Wanted(status=("accepted", "fixed"))


@dataclass(frozen=True)
class Target:
    """A reviewed case with the box to learn.

    Attributes:
        case: what was asked, of which picture.
        box: the reviewed box, pixels of the frame.
        how: accepted as it stood, or corrected.
        seq, event: number and hash of the decision in the record.
        content: hash of its video's content, once that was opened; "" before.
    """

    case: Case
    box: Box
    how: How
    seq: int
    event: str
    content: str = ""

    @property
    def video(self) -> str:
        """Name of its video: the same bytes have the same name, whatever the file is called.

        Until the video is opened, a case that was reviewed without a hash goes by the file's name.
        """
        known = self.content or self.case.video_sha256
        return known[:16] or video_stem(self.case.video_name)


@dataclass(frozen=True)
class LeftOut:
    """A reviewed case that teaches nothing, and why."""

    case_id: str
    video: str
    why: str

    @classmethod
    def of(cls, case: Case, why: str) -> LeftOut:
        """A case and the reason."""
        return cls(case.case_id, case.video_name, why)


@dataclass(frozen=True)
class Counts:
    """How much there is to learn from."""

    accepted: int
    corrected: int
    videos: int


def counts(store: Store) -> Counts:
    """How much a training would learn from, before any video is looked for."""
    found, _ = targets_of(store)
    return counts_of(found)


def counts_of(targets: Iterable[Target]) -> Counts:
    """Accepted and corrected boxes, and the videos that they lie in."""
    listed = list(targets)
    corrected = sum(target.how == "fix" for target in listed)
    return Counts(len(listed) - corrected, corrected, len({target.video for target in listed}))


def targets_of(store: Store) -> tuple[list[Target], list[LeftOut]]:
    """The boxes that reviews stand for, as the record has them now.

    Returns:
        One target for each question and picture, in the order of the decisions, and what was
        reviewed without giving one: nothing to be seen, a box outside the frame, decisions that
        conflict, or a picture that was decided again about another answer (the last one counts).
    """
    decided: list[tuple[CaseView, int, Box]] = []
    left_out: list[LeftOut] = []
    for view in store.views(_TAUGHT):
        why, box = _unusable(view.state), _inside(view)
        if not why and box is None:
            why = "its box lies outside the frame"
        current = view.state.current
        if why or box is None or current is None:
            left_out.append(LeftOut.of(view.case, why))
        else:
            decided.append((view, current.seq, box))
    hashes = _hashes(store, {seq for _, seq, _ in decided})
    latest: dict[tuple[object, ...], Target] = {}
    for view, seq, box in sorted(decided, key=lambda one: one[1]):
        how: How = "accept" if view.state.status == "accepted" else "fix"
        target = Target(view.case, box, how, seq, hashes[seq])
        before = latest.pop(_picture(target), None)
        if before is not None:
            left_out.append(LeftOut.of(before.case, DECIDED_AGAIN))
        latest[_picture(target)] = target
    return list(latest.values()), left_out


def digest_of(targets: Iterable[Target]) -> str:
    """SHA-256 of which decisions these are, hex."""
    named = sorted([target.case.case_id, target.event] for target in targets)
    return hashlib.sha256(json.dumps(named).encode()).hexdigest()


def _unusable(state: CaseState) -> str:
    if state.open_conflicts:
        return "its decisions conflict and nobody has settled that"
    if state.reviewed_box is None:
        return "the target is not to be seen, so there is no box to learn"
    return ""


def _inside(view: CaseView) -> Box | None:
    """The reviewed box as far as the frame goes; None where there is none, or nothing is left."""
    box, case = view.state.reviewed_box, view.case
    if box is None:
        return None
    whole = clip_to_frame(
        np.array([box], dtype=np.float64), size_wh=(case.width, case.height), overhang=math.inf
    )
    x0, y0, x1, y1 = (float(edge) for edge in whole[0][0])
    return (x0, y0, x1, y1) if whole[1][0] else None


def _picture(target: Target) -> tuple[object, ...]:
    case = target.case
    time = case.requested_s if case.requested_s is not None else f"frame {case.frame_index}"
    return target.video, case.question, time


def _hashes(store: Store, wanted: set[int]) -> dict[int, str]:
    """Hash of each of these events."""
    found: dict[int, str] = {}
    after = min(wanted, default=1) - 1
    while len(found) < len(wanted):
        events = store.events(after)
        if not events:
            break
        found |= {event.seq: event.hash for event in events if event.seq in wanted}
        after = events[-1].seq
    return found

"""The tables that the queue reads: where each case stands, folded from the record."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa

from refinerank_core.boxes import iou
from refinerank_core.reviews.fold import CaseState
from refinerank_core.reviews.records import Case
from refinerank_core.reviews.schema import CASE_STATES, CASE_TAGS, OPINIONS

_CASE_ID: sa.BindParameter[str] = sa.bindparam("about")
_SET_STATE = sa.update(CASE_STATES).where(CASE_STATES.c.case_id == _CASE_ID)
_DROP_TAGS = sa.delete(CASE_TAGS).where(CASE_TAGS.c.case_id == _CASE_ID)
_DROP_OPINIONS = sa.delete(OPINIONS).where(OPINIONS.c.case_id == _CASE_ID)


def keep_states(connection: sa.Connection, states: Iterable[tuple[Case, CaseState]]) -> None:
    """Write folded states into the tables that the queue reads."""
    pairs = [(case.case_id, case, state) for case, state in states]
    if not pairs:
        return
    about = [{"about": case_id} for case_id, _, _ in pairs]
    rows = [{"about": case_id, **state_columns(case, state)} for case_id, case, state in pairs]
    connection.execute(_SET_STATE, rows)
    connection.execute(_DROP_TAGS, about)
    connection.execute(_DROP_OPINIONS, about)
    tags = [
        {"case_id": case_id, "tag": tag}
        for case_id, _, state in pairs
        for tag in sorted(set(state.tags))
    ]
    if tags:
        connection.execute(sa.insert(CASE_TAGS), tags)
    opinions = [
        {
            "case_id": case_id,
            "reviewer": one.reviewer,
            "seq": one.seq,
            "decision": one.judgement.decision,
            "opinion": one.model_dump_json(),
        }
        for case_id, _, state in pairs
        for one in state.opinions
    ]
    if opinions:
        connection.execute(sa.insert(OPINIONS), opinions)


def state_columns(case: Case, state: CaseState) -> dict[str, Any]:
    """What the queue filters and sorts by."""
    current, overlap = state.current, None
    if state.truth and case.answers:
        box = case.answers[0].box
        overlap = float(iou(np.array(box), np.array(state.truth))) if box else 0.0
    return {
        "version": state.version,
        "last_seq": state.last_seq,
        "status": state.status,
        "reviewer": current.reviewer if current else "",
        "assigned_to": state.assigned_to,
        "decided_at": current.at if current else None,
        "conflicts": len(state.open_conflicts),
        "iou": overlap,
        "state": state.model_dump_json(),
    }


def open_states(connection: sa.Connection, imported: Sequence[tuple[Case, int]]) -> None:
    """Give new cases, with the numbers of their imports, a row in the tables of the queue."""
    if imported:
        rows = [
            {
                "case_id": case.case_id,
                "imported_seq": seq,
                **state_columns(case, CaseState(last_seq=seq)),
            }
            for case, seq in imported
        ]
        connection.execute(sa.insert(CASE_STATES), rows)

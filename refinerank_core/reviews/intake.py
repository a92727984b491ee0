"""Put cases and annotated boxes into the store, each once however often they come."""

import hashlib
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean

import numpy as np
import sqlalchemy as sa

from refinerank_core.boxes import iou
from refinerank_core.grounding import Grounding
from refinerank_core.reviews.chain import canonical_json
from refinerank_core.reviews.kin import cases_about, truth_holders
from refinerank_core.reviews.ledger import Chain, Writer
from refinerank_core.reviews.names import video_stem
from refinerank_core.reviews.records import Action, Case, Imported, Plain, Truth
from refinerank_core.reviews.schema import CASES, GROUNDINGS
from refinerank_core.reviews.standing import open_states


class Added(Plain):
    """What an import did: cases new to the store, cases it knew, annotated boxes written."""

    new: int = 0
    known: int = 0
    truths: int = 0
    case_ids: tuple[str, ...] = ()


def disagreement(case: Case) -> float | None:
    """1 - mean IoU between the methods' boxes; a missing box agrees with none. None for one."""
    boxes = [one.box for one in case.answers]
    if len(boxes) < 2:
        return None
    return 1.0 - fmean(
        float(iou(np.array(a), np.array(b))) if a and b else float(a is None and b is None)
        for a, b in combinations(boxes, 2)
    )


def add_cases(
    connection: sa.Connection,
    cases: Sequence[Case],
    *,
    by: str,
    at: str,
    grounding: Grounding | None = None,
    truths: Sequence[Truth | None] = (),
) -> Added:
    """See `Store.add`."""
    if truths and len(truths) != len(cases):
        raise ValueError(f"{len(cases)} cases need as many truths, got {len(truths)}")
    body = "" if grounding is None else grounding.to_json(indent=None)
    if body and cases:
        _keep_grounding(connection, cases[0].grounding_id, body)
    ids = tuple(case.case_id for case in cases)
    known = _known(connection, ids)
    fresh = {
        case_id: case for case_id, case in zip(ids, cases, strict=True) if case_id not in known
    }
    chain = Chain(connection)
    _import(connection, chain, fresh, by=by, at=at, grounding_sha256=_sha256(body) if body else "")
    pairs = [(case_id, truth) for case_id, truth in zip(ids, truths, strict=False) if truth]
    given = {case_id for case_id, _ in pairs}
    writer = Writer(connection, lambda: at, chain)
    for case_id, holder in truth_holders(connection, fresh.values()).items():
        state = writer.open(holder).state
        if case_id not in given and state.has_truth:
            label = fresh[case_id].target
            pairs.append((case_id, Truth(box=state.truth, label=label, source="known before")))
    written = _write_truths(writer, pairs, by)
    return Added(new=len(fresh), known=len(cases) - len(fresh), truths=written, case_ids=tuple(ids))


def _import(
    connection: sa.Connection,
    chain: Chain,
    fresh: Mapping[str, Case],
    *,
    by: str,
    at: str,
    grounding_sha256: str,
) -> None:
    if not fresh:
        return
    contents = {case_id: case.model_dump_json() for case_id, case in fresh.items()}
    connection.execute(
        sa.insert(CASES), [_case_columns(case, contents[name]) for name, case in fresh.items()]
    )
    imported = []
    for case_id, case in fresh.items():
        event = chain.append(
            client_id=f"import:{case_id}",
            at=at,
            kind="imported",
            case_id=case_id,
            reviewer=by,
            body=Imported(
                content_sha256=_sha256(contents[case_id]), grounding_sha256=grounding_sha256
            ),
        )
        imported.append((case, event.seq))
    chain.flush()
    open_states(connection, imported)


def add_truths(
    connection: sa.Connection, cases: Sequence[Case], truths: Sequence[Truth], *, by: str, at: str
) -> Added:
    """See `Store.add_truths`."""
    found = [cases_about(connection, about) for about in cases]
    lonely = [about for about, ids in zip(cases, found, strict=True) if not ids]
    new = add_cases(connection, lonely, by=by, at=at).new
    pairs = [
        (case_id, truth)
        for about, ids, truth in zip(cases, found, truths, strict=True)
        for case_id in ids or [about.case_id]
    ]
    return Added(
        new=new,
        known=sum(map(len, found)),
        truths=_write_truths(Writer(connection, lambda: at), pairs, by),
        case_ids=tuple(case_id for case_id, _ in pairs),
    )


def _write_truths(writer: Writer, pairs: Sequence[tuple[str, Truth]], by: str) -> int:
    """Write truths unless a case has just this box as its last one; returns how many."""
    last: dict[str, Truth | None] = {}
    actions: list[Action] = []
    for case_id, truth in pairs:
        if case_id not in last:
            state = writer.open(case_id).state
            last[case_id] = Truth(box=state.truth) if state.has_truth else None
        before = last[case_id]
        if before is not None and before.box == truth.box:
            continue
        last[case_id] = truth
        events = len(writer.open(case_id).events) + len(actions)
        text = canonical_json([case_id, events, truth.model_dump(mode="json")])
        actions.append(
            Action(
                client_id=f"truth:{_sha256(text)}",
                case_id=case_id,
                reviewer=by,
                kind="truth",
                body=truth,
            )
        )
    writer.write_all(actions)
    return len(actions)


def _keep_grounding(connection: sa.Connection, grounding_id: str, body: str) -> None:
    column = GROUNDINGS.c.grounding_id
    if connection.execute(sa.select(column).where(column == grounding_id)).first() is None:
        connection.execute(sa.insert(GROUNDINGS), {"grounding_id": grounding_id, "body": body})


def _known(connection: sa.Connection, case_ids: Sequence[str]) -> set[str]:
    known: set[str] = set()
    for start in range(0, len(case_ids), 500):
        query = sa.select(CASES.c.case_id).where(CASES.c.case_id.in_(case_ids[start : start + 500]))
        known.update(connection.execute(query).scalars())
    return known


def _case_columns(case: Case, content: str) -> dict[str, object]:
    names = "case_id video_sha256 video_name question target requested_s frame_index dataset"
    return {
        **{name: getattr(case, name) for name in f"{names} procedure method margin".split()},
        "video_stem": video_stem(case.video_name),
        "disagreement": disagreement(case),
        "content": content,
    }


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

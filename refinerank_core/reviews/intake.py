"""Put cases and annotated boxes into the store, each once however often they come."""

import hashlib
import unicodedata
from collections.abc import Sequence
from itertools import combinations
from pathlib import PurePath
from statistics import fmean

import numpy as np
import sqlalchemy as sa

from refinerank_core.boxes import iou
from refinerank_core.grounding import Grounding
from refinerank_core.reviews.chain import canonical_json
from refinerank_core.reviews.fold import fold
from refinerank_core.reviews.ledger import Chain, case_of, history, keep_state, open_state
from refinerank_core.reviews.records import Case, Imported, Plain, Truth
from refinerank_core.reviews.schema import CASE_STATES, CASES, GROUNDINGS

VIDEO_SUFFIXES = frozenset(".mp4 .mov .m4v .mkv .avi .webm .mpg .mpeg .ts .mts .wmv .gif".split())
SAME_TIME_S = 1e-3


class Added(Plain):
    """What an import did: cases new to the store, cases it knew, annotated boxes written."""

    new: int = 0
    known: int = 0
    truths: int = 0
    case_ids: tuple[str, ...] = ()


def video_stem(name: str) -> str:
    """A video's name in composed Unicode, without folders and a video suffix."""
    pure = PurePath(unicodedata.normalize("NFC", name).replace("\\", "/"))
    return pure.stem if pure.suffix.lower() in VIDEO_SUFFIXES else pure.name


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
    grounding_sha256 = _sha256(body) if body else ""
    if body and cases:
        _keep_grounding(connection, cases[0].grounding_id, body)
    chain = Chain(connection)
    new = 0
    for case in cases:
        if _known(connection, case.case_id):
            continue
        new += 1
        content = case.model_dump_json()
        connection.execute(sa.insert(CASES), _case_columns(case, content))
        event = chain.append(
            client_id=f"import:{case.case_id}",
            at=at,
            kind="imported",
            case_id=case.case_id,
            reviewer=by,
            body=Imported(content_sha256=_sha256(content), grounding_sha256=grounding_sha256),
        )
        open_state(connection, case, event.seq)
    pairs = [(case, truth) for case, truth in zip(cases, truths, strict=False) if truth is not None]
    written = sum(_write_truth(connection, chain, case, truth, by, at) for case, truth in pairs)
    return Added(
        new=new,
        known=len(cases) - new,
        truths=written,
        case_ids=tuple(case.case_id for case in cases),
    )


def add_truths(
    connection: sa.Connection, cases: Sequence[Case], truths: Sequence[Truth], *, by: str, at: str
) -> Added:
    """See `Store.add_truths`."""
    new = known = written = 0
    ids: list[str] = []
    for about, truth in zip(cases, truths, strict=True):
        found = _cases_about(connection, about)
        if found:
            known += len(found)
        else:
            new += add_cases(connection, [about], by=by, at=at).new
            found = [about.case_id]
        chain = Chain(connection)
        for case_id in found:
            case = case_of(connection, case_id)
            written += _write_truth(connection, chain, case, truth, by, at)
        ids += found
    return Added(new=new, known=known, truths=written, case_ids=tuple(ids))


def _cases_about(connection: sa.Connection, about: Case) -> list[str]:
    """Ids of the cases that ask the same of the same picture, whatever answered them."""
    columns = CASES.c
    query = sa.select(CASES).where(columns.video_stem == video_stem(about.video_name))
    if about.requested_s is not None:
        low, high = about.requested_s - SAME_TIME_S, about.requested_s + SAME_TIME_S
        query = query.where(columns.requested_s.between(low, high))
    else:
        query = query.where(columns.frame_index == about.frame_index)
    return [
        str(row["case_id"])
        for row in connection.execute(query).mappings()
        if _same_video(str(row["video_sha256"]), about.video_sha256)
        and _same_question(str(row["question"]), str(row["target"]), about)
    ]


def _same_video(one: str, other: str) -> bool:
    return not one or not other or one == other


def _same_question(question: str, target: str, about: Case) -> bool:
    if question == about.question:
        return True
    return bool(about.target) and target.casefold() == about.target.casefold()


def _write_truth(
    connection: sa.Connection, chain: Chain, case: Case, truth: Truth, by: str, at: str
) -> bool:
    """Write a truth unless the case has just this one."""
    text = canonical_json(truth.model_dump(mode="json"))
    events = history(connection, case.case_id)
    last = [event.body for event in events if event.kind == "truth"][-1:]
    if last == [truth]:
        return False
    event = chain.append(
        client_id=f"truth:{_sha256(f'{case.case_id} {len(events)} {text}')}",
        at=at,
        kind="truth",
        case_id=case.case_id,
        reviewer=by,
        body=truth,
    )
    keep_state(connection, case, fold([*events, event]))
    return True


def _keep_grounding(connection: sa.Connection, grounding_id: str, body: str) -> None:
    column = GROUNDINGS.c.grounding_id
    if connection.execute(sa.select(column).where(column == grounding_id)).first() is None:
        connection.execute(sa.insert(GROUNDINGS), {"grounding_id": grounding_id, "body": body})


def _known(connection: sa.Connection, case_id: str) -> bool:
    query = sa.select(CASE_STATES.c.case_id).where(CASE_STATES.c.case_id == case_id)
    return connection.execute(query).first() is not None


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

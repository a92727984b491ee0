"""What the stress figures are made with: cases, decisions, amounts, lines of the table."""

from dataclasses import dataclass

from refinerank_core.reviews.records import Action, Case, Judgement, MethodAnswer

_SIZE_WH = (854, 480)


@dataclass(frozen=True)
class Finding:
    """One line of the table: what was tried, what came of it, whether that is as promised."""

    name: str
    result: str
    met: bool


@dataclass(frozen=True)
class Load:
    """How much to try; the defaults are the figures of the README."""

    reviewers: int = 8
    decisions: int = 200
    kills: int = 50
    events: int = 100_000
    seed: int = 20261130


def made_cases(count: int, *, start: int = 0) -> list[Case]:
    """Cases that nobody needs to keep, each different."""
    return [
        Case(
            video_name=f"stress-{k % 40:03d}.mp4",
            width=_SIZE_WH[0],
            height=_SIZE_WH[1],
            question="Where is the hook?",
            target="hook",
            requested_s=float(k),
            dataset=("CholecTrack20", "CoPESD", "EgoSurgery")[k % 3],
            procedure=("laparoscopy", "endoscopy", "open surgery")[k % 3],
            answers=(
                MethodAnswer(method="refinerank", box=(10.0, 20.0, 110.0 + k % 50, 220.0)),
                MethodAnswer(method="medvlm", box=(12.0, 24.0, 150.0, 200.0 + k % 70)),
            ),
            margin=(k * 7919 % 1000) / 1000.0,
        )
        for k in range(start, start + count)
    ]


def decision(case: Case, reviewer: str, name: str, *, based_on: int, turn: int) -> Action:
    """A decision as a reviewer would send it."""
    box = case.answers[0].box
    judgement = Judgement(
        decision=("accept", "fix", "reject", "unsure")[turn % 4],
        shown="refinerank",
        box_before=box,
        box_after=(11.0, 21.0, 109.5 + turn % 30, 219.25) if turn % 4 == 1 else None,
        tags=("small target",) if turn % 5 == 0 else (),
        seconds=2.5,
    )
    return Action(
        client_id=name,
        case_id=case.case_id,
        reviewer=reviewer,
        kind="decided",
        body=judgement,
        based_on=based_on,
    )


def sound_words(sound: bool) -> str:
    """How a table says whether a chain is sound."""
    return "valid" if sound else "BROKEN"

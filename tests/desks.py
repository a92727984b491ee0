"""The Review tab's server side over an empty record, and what a browser sends to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from demo.frames import FrameImages
from demo.identity import Identity
from demo.review_desk import ReviewDesk
from demo.review_files import ReviewFiles
from demo.review_services import Reviews
from demo.sessions import Sessions
from demo.shelf import Shelf
from refinerank_core.reviews.store import Store
from refinerank_core.reviews.worklist import Wanted
from refinerank_core.video import open_video
from tests.browser.fakes import FakeCore, fake_services, grounding_of
from tests.clips import encode, numbered
from tests.stores import Ticking

QUESTION = "Where is the grasper at 1 and 2 seconds?"
TRUTH = [30.0, 20.0, 60.0, 50.0]
Facts = dict[str, Any]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A numbered clip with a kept answer to two times and the truth of the first."""
    folder = tmp_path_factory.mktemp("samples")
    path = encode(folder / "numbers.mp4", (numbered(k) for k in range(60)))
    with open_video(path) as video:
        kept = grounding_of(video, QUESTION, "grasper", ["grasper"], [1.0, 2.0])
    (folder / "numbers.grounding.json").write_text(kept.to_json())
    question = {"text": QUESTION, "truth": {"25": TRUTH}}
    facts = {"procedure": "laparoscopy", "phantom": True, "questions": [question]}
    (folder / "numbers.json").write_text(json.dumps(facts))
    return folder


class Desk:
    """A page's server side over an empty record."""

    def __init__(self, samples: Path, db: Path, identity: Identity | None = None) -> None:
        self.sessions = Sessions(fake_services(FakeCore(), samples))
        self.store = Store(db, clock=Ticking())
        self.reviews = Reviews(self.store, identity or Identity(), ephemeral=False, videos=None)
        self.shelf = Shelf(self.sessions, None)
        self.look = ReviewDesk(self.reviews, self.shelf, FrameImages())
        self.files = ReviewFiles(self.reviews, self.sessions, self.shelf)

    def close(self) -> None:
        self.store.close()
        self.sessions.close()

    def fill(self) -> list[str]:
        """Put the kept answer in; gives the ids of its cases in order of time."""
        self.files.review_fill({"who": {"name": "Dr A"}})
        return [one.case_id for one in self.store.queue(Wanted()).items]


@pytest.fixture
def desk(samples: Path, tmp_path: Path) -> Iterator[Desk]:
    opened = Desk(samples, tmp_path / "reviews.db")
    yield opened
    opened.close()


def action(case_id: str, client_id: str = "web-12345678", **changes: Any) -> Facts:
    """An accepting decision as the browser keeps it."""
    plain = {
        "client_id": client_id,
        "case_id": case_id,
        "by": "Dr A",
        "kind": "decided",
        "based_on": 0,
        "body": {"decision": "accept", "shown": "R"},
    }
    return plain | changes


def send(desk: Desk, *actions: Facts, token: str = "") -> list[Facts]:
    reply = desk.look.review_act({"actions": list(actions), "token": token})
    outcomes: list[Facts] = reply["outcomes"]
    return outcomes

"""The record seals itself: whatever is changed, cut out or put beside it is found."""

import hashlib
import json
import sqlite3
from pathlib import Path

import pytest

from refinerank_core.reviews.chain import canonical_json
from refinerank_core.reviews.records import Step, Truth
from refinerank_core.reviews.sources import cases_of, grounding_id
from refinerank_core.reviews.store import Store
from refinerank_core.reviews.worklist import Item, Wanted
from tests.groundings import grounding
from tests.stores import REJECT, act, case, fix


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed database: two cases, a truth, two decisions, an undo (six events)."""
    place = tmp_path / "reviews.db"
    cases = [case(1.0), case(2.0)]
    with Store(place) as store:
        store.add(cases, by="import", truths=[Truth(box=(1, 1, 9, 9)), None])
        store.record(act(cases[0], "decided", fix(tags=("small target",))))
        store.record(act(cases[0], "decided", REJECT, based_on=1, by="Dr B"))
        store.record(act(cases[0], "undone", Step(), based_on=2, by="Dr B"))
    return place


def _problems(path: Path, tampering: str) -> tuple[str, ...]:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA foreign_keys=OFF")
        connection.executescript(tampering)
    with Store(path) as store:
        return store.verify().problems


def test_an_untouched_record_is_sound(path: Path) -> None:
    with Store(path) as store:
        report = store.verify()

    assert report.sound
    assert (report.events, report.cases) == (6, 2)


def test_a_hash_is_the_sha256_of_the_sealed_fields_and_the_hash_before(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.row_factory = sqlite3.Row
        rows = [dict(row) for row in connection.execute("SELECT * FROM events ORDER BY seq")]
    for row in rows:
        sealed = {name: value for name, value in row.items() if name != "hash"}
        text = json.dumps(sealed, sort_keys=True, separators=(",", ":"))
        assert row["hash"] == hashlib.sha256(text.encode()).hexdigest()
    assert [row["prev"] for row in rows[1:]] == [row["hash"] for row in rows[:-1]]


@pytest.mark.parametrize(
    ("tampering", "words"),
    [
        (
            "UPDATE events SET body = replace(body, 'reject', 'accept') WHERE kind = 'decided'",
            "event 5 was changed",
        ),
        ("UPDATE events SET reviewer = 'Dr C' WHERE seq = 4", "event 4 was changed"),
        ("UPDATE events SET at = '2020' WHERE seq = 1", "event 1 was changed"),
        ("DELETE FROM events WHERE seq = 3", "event 3 is missing"),
        ("UPDATE events SET prev = 'x' WHERE seq = 2", "event 2 does not follow"),
        (
            "UPDATE cases SET content = replace(content, 'hook', 'clip')",
            "was changed after it was imported",
        ),
        ("UPDATE case_states SET status = 'accepted'", "is not what its events say"),
        ("DELETE FROM case_tags", "is not what its events say"),
        ("UPDATE opinions SET opinion = '{}'", "is not what its events say"),
        (
            "INSERT INTO cases SELECT 'intruder', video_sha256, video_name, video_stem, question,"
            " target, requested_s, frame_index, dataset, procedure, method, margin, disagreement,"
            " content FROM cases LIMIT 1",
            "case intruder is in no event",
        ),
    ],
)
def test_tampering_is_found(path: Path, tampering: str, words: str) -> None:
    assert any(words in problem for problem in _problems(path, tampering))


def test_the_last_events_cut_off_show_in_the_head(path: Path) -> None:
    with Store(path) as store:
        noted = store.verify().head

    _problems(path, "DELETE FROM events WHERE seq = 6")

    with Store(path) as store:
        assert store.verify().head != noted


def test_a_rebuild_from_the_record_mends_the_folded_tables(path: Path) -> None:
    with Store(path) as store:
        before = _queue(store)
    assert _problems(path, "DELETE FROM case_states; DELETE FROM opinions; DELETE FROM case_tags")

    with Store(path) as store:
        assert store.rebuild() == 2
        assert store.verify().sound
        assert _queue(store) == before


def _queue(store: Store) -> tuple[Item, ...]:
    return store.queue(Wanted()).items


def test_two_databases_with_the_same_reviews_have_different_chains(tmp_path: Path) -> None:
    heads = []
    for name in ("a.db", "b.db"):
        with Store(tmp_path / name) as store:
            heads.append(store.verify().head)

    assert heads[0] != heads[1]


def test_canonical_json_is_sorted_dense_ascii_and_strict() -> None:
    assert canonical_json({"b": [1.5, None], "a": "é"}) == '{"a":"\\u00e9","b":[1.5,null]}'
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical_json(float("nan"))


def test_a_grounding_becomes_one_case_a_time_and_comes_back_whole(tmp_path: Path) -> None:
    whole = grounding()
    cases = cases_of(whole, dataset="Phantom", procedure="laparoscopy")
    with Store(tmp_path / "reviews.db") as store:
        store.add(cases, by="import", grounding=whole)
        places = [store.grounding(one.case_id) for one in cases]
        found = store.case(cases[1].case_id).case

    assert places == [(whole, 0), (whole, 1)]
    assert found.answers[0].box == whole.times[1].answers.refinerank.box
    assert found.margin == whole.times[1].answers.refinerank.margin
    assert found.models == ("m-1", "d-1", "r-1")


def test_how_long_a_grounding_took_and_the_files_name_do_not_change_its_identity() -> None:
    again = grounding().model_copy(update={"seconds": {"detect": 9.0}, "warnings": ("slow",)})
    renamed = again.model_copy(
        update={"video": again.video.model_copy(update={"name": "renamed.mp4"})}
    )

    assert grounding_id(renamed) == grounding_id(grounding())
    assert [c.case_id for c in cases_of(renamed)] == [c.case_id for c in cases_of(grounding())]


def test_a_changed_grounding_is_found(tmp_path: Path) -> None:
    place = tmp_path / "reviews.db"
    with Store(place) as store:
        store.add(cases_of(grounding()), by="import", grounding=grounding())

    problems = _problems(place, "UPDATE groundings SET body = replace(body, 'hook', 'clip')")

    assert any("grounding of case" in problem for problem in problems)

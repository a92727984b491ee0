"""The queue: which cases, in which order, page by page; pace and progress."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from refinerank_core.errors import StoreError
from refinerank_core.reviews.records import Assignment, Case, Judgement, MethodAnswer, Truth
from refinerank_core.reviews.store import Store
from refinerank_core.reviews.worklist import Wanted
from tests.stores import REJECT, Ticking, act, case, fix, new_database

__all__ = ["new_database"]  # a fixture

SPREAD = [
    case(
        float(k),
        dataset="CoPESD" if k % 2 else "CholecTrack20",
        procedure="endoscopy" if k % 2 else "laparoscopy",
        question=f"Where is the hook number {k}?",
        margin=[0.5, None, 0.1, 0.9, 0.3, 0.7][k],
        video_name=f"video0{k // 2}.mp4",
        box=(10.0, 10.0, 50.0, 50.0 - 5 * k),
    )
    for k in range(6)
]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    place = str(tmp_path_factory.mktemp("queue") / "reviews.db")
    if request.param == "postgresql":
        place = request.getfixturevalue("new_database")()
    with Store(place, clock=Ticking()) as opened:
        truths = [Truth(box=(10, 10, 50, 50)) for _ in SPREAD[:3]]
        opened.add(SPREAD, by="import", truths=[*truths, None, None, None])
        opened.record(act(SPREAD[0], "decided", fix(tags=("small target",), seconds=2.0)))
        opened.record(act(SPREAD[1], "decided", REJECT, by="Dr B"))
        opened.record(act(SPREAD[2], "decided", fix(seconds=4.0)))
        opened.record(act(SPREAD[3], "assigned", Assignment(to="Dr B")))
        yield opened


def _places(store: Store, wanted: Wanted) -> list[int]:
    numbers = {one.case_id: k for k, one in enumerate(SPREAD)}
    return [numbers[item.case_id] for item in store.queue(wanted).items]


@pytest.mark.parametrize(
    ("wanted", "places"),
    [
        (Wanted(), [0, 1, 2, 3, 4, 5]),
        (Wanted(status=("fixed", "rejected")), [0, 1, 2]),
        (Wanted(status=("new",)), [3, 4, 5]),
        (Wanted(dataset="CoPESD"), [1, 3, 5]),
        (Wanted(procedure="laparoscopy"), [0, 2, 4]),
        (Wanted(method="refinerank", tag="small target"), [0]),
        (Wanted(method="medvlm"), []),
        (Wanted(reviewer="Dr A"), [0, 2]),
        (Wanted(not_by="Dr A"), [1, 3, 4, 5]),
        (Wanted(assigned_to="Dr B"), [3]),
        (Wanted(margin=(0.3, 0.7)), [0, 4, 5]),
        (Wanted(margin=(None, 0.3)), [2, 4]),
        (Wanted(iou=(0.8, None)), [0, 1]),
        (Wanted(disagreement=(None, 0.3)), [3, 4, 5]),
        (Wanted(text="NUMBER 4"), [4]),
        (Wanted(text="video02"), [4, 5]),
        (Wanted(text="100%"), []),
        (Wanted(sort="margin"), [2, 4, 0, 5, 3, 1]),
        (Wanted(sort="margin", descending=True), [3, 5, 0, 4, 2, 1]),
        (Wanted(sort="iou"), [2, 1, 0, 3, 4, 5]),
        (Wanted(sort="decided", descending=True), [2, 1, 0, 3, 4, 5]),
        (Wanted(sort="video", offset=2, limit=2), [2, 3]),
        (Wanted(sort="imported", descending=True, limit=2), [5, 4]),
        (Wanted(conflicts=True), []),
    ],
    ids=str,
)
def test_a_filter_lets_through_just_these(store: Store, wanted: Wanted, places: list[int]) -> None:
    assert _places(store, wanted) == places


def test_a_page_says_how_many_there_are_in_all(store: Store) -> None:
    page = store.queue(Wanted(dataset="CoPESD", limit=1))

    assert (len(page.items), page.total) == (1, 3)


def test_a_seed_gives_everyone_the_same_shuffle(store: Store) -> None:
    orders = [_places(store, Wanted(sort="shuffle", seed=seed)) for seed in (3, 3, 4)]

    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    assert [sorted(order) for order in orders] == [list(range(6))] * 3


def test_all_cases_come_in_order_whatever_the_page(store: Store) -> None:
    views = list(store.views(Wanted(sort="margin", limit=1)))

    assert [view.case.margin for view in views] == [0.1, 0.3, 0.5, 0.7, 0.9, None]


@pytest.mark.parametrize("wanted", [Wanted(offset=-1), Wanted(limit=0), Wanted(limit=1001)])
def test_a_page_out_of_bounds_is_refused(store: Store, wanted: Wanted) -> None:
    with pytest.raises(StoreError, match="1 to 1000"):
        store.queue(wanted)


def test_the_choices_are_what_occurs(store: Store) -> None:
    choices = store.choices()

    assert choices.datasets == ("CholecTrack20", "CoPESD")
    assert choices.procedures == ("endoscopy", "laparoscopy")
    assert choices.methods == ("refinerank",)
    assert choices.tags == ("small target",)
    assert choices.reviewers == ("Dr A", "Dr B")
    assert choices.assignees == ("Dr B",)


def test_progress_counts_cases_and_measures_the_pace(store: Store) -> None:
    all_of_it, mine = store.progress(), store.progress("Dr A")

    assert all_of_it.by_status == {"fixed": 2, "rejected": 1, "new": 3}
    assert (all_of_it.total, all_of_it.decisions, mine.decisions) == (6, 3, 2)
    assert mine.median_s == 3.0
    assert all_of_it.per_hour == pytest.approx(360.0)  # one every ten seconds of the clock


@pytest.mark.parametrize(
    ("boxes", "value"),
    [
        ([(0, 0, 10, 10), (0, 0, 10, 10), (0, 0, 10, 10)], 0.0),
        ([(0, 0, 10, 10), (0, 0, 10, 5), None], 1 - 0.5 / 3),
        ([(0, 0, 10, 10), None, None], 1 - 1 / 3),
        ([(0, 0, 10, 10)], None),
    ],
)
def test_disagreement_is_one_less_the_mean_iou_of_the_answers(
    boxes: list[tuple[float, float, float, float] | None], value: float | None, tmp_path: Path
) -> None:
    answers = tuple(MethodAnswer(method=f"m{k}", box=box) for k, box in enumerate(boxes))
    one: Case = case(answers=answers)
    with Store(tmp_path / "reviews.db") as store:
        store.add([one], by="import")
        found = store.queue(Wanted()).items[0].disagreement

    assert found == (None if value is None else pytest.approx(value))


def test_an_accepted_box_is_the_one_that_was_shown() -> None:
    accepted = Judgement(decision="accept", box_before=(1, 2, 3, 4))
    gone = Judgement(decision="accept", box_before=(1, 2, 3, 4), not_visible=True)
    unsure = Judgement(decision="unsure", box_before=(1, 2, 3, 4))

    boxes = [one.reviewed_box for one in (accepted, gone, unsure)]
    assert boxes == [(1.0, 2.0, 3.0, 4.0), None, None]

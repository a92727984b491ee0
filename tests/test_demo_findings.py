"""The Failures tab's server side: counts, boxes that explain, runs, agreement."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from demo import findings_plots
from demo.findings_desk import FindingsDesk
from demo.findings_facts import counts_for
from demo.review_asks import FindingsAsk
from refinerank_core.failures import CATEGORIES
from refinerank_core.reviews.records import MethodAnswer, Truth
from tests.desks import Desk, samples
from tests.stores import REJECT, act, case, fix

__all__ = ["samples"]  # a fixture

GOOD = Truth(box=(10.0, 10.0, 50.0, 50.0))


@pytest.fixture
def desk(samples: Path, tmp_path: Path) -> Iterator[Desk]:
    """Three judged cases: right, wrong, and wrong by another run; one more without any truth."""
    opened = Desk(samples, tmp_path / "reviews.db")
    right = case(1.0, dataset="A", models=("old",))
    wrong = case(2.0, dataset="B", box=(300.0, 300.0, 340.0, 340.0), models=("old",))
    other = case(2.0, dataset="B", models=("new",), grounding_id="new")
    opened.store.add([right, wrong, other], by="import", truths=[GOOD, GOOD, GOOD])
    opened.store.add([case(9.0, models=("old",))], by="import")
    yield opened
    opened.close()


@pytest.fixture
def tab(desk: Desk) -> FindingsDesk:
    return FindingsDesk(desk.reviews, desk.shelf)


def test_each_judged_time_is_counted_and_the_worst_comes_first(tab: FindingsDesk) -> None:
    facts = tab.findings({"method": "refinerank"})

    assert (facts["total"], facts["shown"], facts["reviewed"]) == (3, 3, 0)
    assert [one["category"] for one in facts["gallery"]] == ["candidate miss", "correct", "correct"]
    roles = [box["role"] for box in facts["gallery"][0]["boxes"]]
    assert roles[0] == "truth"
    assert roles[-1] == "refinerank"


def test_filters_narrow_the_gallery_and_not_the_counts(tab: FindingsDesk) -> None:
    facts = tab.findings({"method": "refinerank", "category": "correct", "dataset": "A"})

    assert (facts["total"], facts["shown"]) == (3, 1)


def test_the_losses_of_a_data_set_add_up_to_one(tab: FindingsDesk) -> None:
    rows = {one["dataset"]: one for one in tab.findings({"method": "refinerank"})["loss"]}

    for row in rows.values():
        total = row["selected"] + row["ranking"] + row["filter"] + row["candidate"]
        assert total == pytest.approx(1.0)
    assert rows["A"]["selected"] == pytest.approx(1.0)


def test_counts_go_by_method_over_all_methods(tab: FindingsDesk) -> None:
    mine, _ = tab.chosen(FindingsAsk(method="refinerank"))

    counted = counts_for(tab.everything(), mine, "method")

    assert counted["names"] == ["MedVLM", "RefineRank"]
    assert sum(sum(row) for row in counted["counts"].values()) == 6
    figure = findings_plots.counts(counted, "method")
    assert [one.name for one in figure.data]
    assert len(figure.data) == len(CATEGORIES)
    assert list(figure.data[0].customdata[0]) == ["method", "MedVLM", "correct"]


def test_two_runs_are_set_side_by_side(tab: FindingsDesk) -> None:
    asked = {"before": "refinerank||old", "after": "refinerank||new"}

    facts = tab.findings({"method": "refinerank", **asked})

    found = facts["comparison"]
    assert [one["run"] for one in facts["runs"]][2:] == ["refinerank||new", "refinerank||old"]
    assert [one["label"] for one in facts["runs"]][2:] == ["RefineRank: new", "RefineRank: old"]
    assert (len(found["better"]), found["worse"]) == (1, [])
    assert found["better"][0]["gain"] == pytest.approx(1.0)
    roles = [one["role"] for one in found["better"][0]["boxes"]]
    assert roles == ["old", "truth", "refinerank"]
    assert found["moved"] == [{"from": "candidate miss", "to": "correct", "count": 1}]
    assert found["words"] == (
        "1 time in both: mean IoU 0.00 before, 1.00 after; 1 better, 0 worse, 0 the same. "
        "1 more is in one of them alone."
    )


def test_filters_hold_for_two_runs_too(tab: FindingsDesk) -> None:
    asked = {"before": "refinerank||old", "after": "refinerank||new", "dataset": "A"}

    found = tab.findings({"method": "refinerank", **asked})["comparison"]

    assert found["words"] == "These two have no time in common that could be judged."


def test_two_methods_are_set_side_by_side(tab: FindingsDesk) -> None:
    found = tab.findings({"before": "medvlm||old", "after": "refinerank||old"})["comparison"]

    assert found["counts"] == {"better": 1, "worse": 1}
    assert found["worse"][0]["gain"] == pytest.approx(-0.5)


def test_a_reviewed_box_stands_in_where_there_is_no_truth(desk: Desk, tab: FindingsDesk) -> None:
    assert tab.findings({})["total"] == 3
    lonely = case(9.0, models=("old",))

    desk.store.record(act(lonely, "decided", fix()))

    facts = tab.findings({"method": "refinerank"})
    assert (facts["total"], facts["reviewed"]) == (4, 1)


def test_reviewers_are_compared_and_their_differences_queued(desk: Desk, tab: FindingsDesk) -> None:
    first, second = case(1.0, dataset="A", models=("old",)), case(9.0, models=("old",))
    desk.store.record(act(first, "decided", fix()))
    desk.store.record(act(first, "decided", REJECT, by="Dr B", based_on=1))
    desk.store.record(act(second, "decided", fix()))
    desk.store.record(act(second, "decided", fix(), by="Dr B", based_on=1))

    facts = tab.agreement({})

    assert (facts["pairs"][0]["one"], facts["pairs"][0]["other"]) == ("Dr A", "Dr B")
    assert "(n = 2)" in facts["pairs"][0]["kappa"]
    assert [one["case_id"] for one in facts["differing"]] == [first.case_id]
    assert (facts["differing"][0]["seconds"], facts["differing"][0]["video"]) == (
        1.0,
        first.video_name,
    )
    assert {one["method"] for one in facts["methods"]} == {"RefineRank", "MedVLM"}


def test_an_empty_record_has_nothing_to_show(samples: Path, tmp_path: Path) -> None:
    empty = Desk(samples, tmp_path / "empty.db")
    tab = FindingsDesk(empty.reviews, empty.shelf)

    facts: dict[str, Any] = tab.findings({})

    assert (facts["total"], facts["gallery"], facts["loss"]) == (0, [], [])
    assert tab.agreement({})["pairs"] == []
    empty.close()


def test_a_picture_is_small_and_none_where_the_video_is_not_here(
    desk: Desk, tab: FindingsDesk
) -> None:
    ids = desk.fill()

    here = [tab.thumb({"case_id": one})["src"] for one in ids]

    assert here[0] is None  # an imported case of another video
    assert any(src and src.startswith("data:image/jpeg") for src in here)


def test_an_answer_without_a_box_is_a_format_failure(desk: Desk, tab: FindingsDesk) -> None:
    mute = case(5.0, answers=(MethodAnswer(method="medvlm", box=None),), dataset="C")
    desk.store.add([mute], by="import", truths=[GOOD])

    facts = tab.findings({"method": "medvlm", "dataset": "C"})

    assert [one["category"] for one in facts["gallery"]] == ["format"]

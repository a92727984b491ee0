"""Agreement: kappa against scikit-learn and by hand, overlaps, intervals, the worst first."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from refinerank_core.agreement import (
    View,
    cohen_kappa,
    disagreements,
    mean_interval,
    pairs,
    with_methods,
)

BOX = (0.0, 0.0, 10.0, 10.0)
HALF = (0.0, 0.0, 10.0, 5.0)


def test_kappa_of_a_textbook_table_is_known() -> None:
    # 50 cases: both yes 20, both no 15, A only 5, B only 10 -> (0.7 - 0.5) / 0.5
    one = ["yes"] * 20 + ["no"] * 15 + ["yes"] * 5 + ["no"] * 10
    other = ["yes"] * 20 + ["no"] * 15 + ["no"] * 5 + ["yes"] * 10

    assert cohen_kappa(one, other) == pytest.approx(0.4)


def test_kappa_equals_scikit_learns() -> None:
    chance = np.random.default_rng(1)
    names = np.array(["accept", "reject", "fix", "unsure"])
    one = names[chance.integers(0, 4, 200)]
    other = np.where(chance.random(200) < 0.6, one, names[chance.integers(0, 4, 200)])

    assert cohen_kappa(list(one), list(other)) == pytest.approx(cohen_kappa_score(one, other))


@pytest.mark.parametrize(
    ("one", "other", "kappa"),
    [(["a", "b"], ["a", "b"], 1.0), (["a", "b"], ["b", "a"], -1.0), (["a"], ["a"], None),
     ([], [], None)],
)  # fmt: skip
def test_kappa_at_its_ends(one: list[str], other: list[str], kappa: float | None) -> None:
    assert cohen_kappa(one, other) == kappa


def test_decisions_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="two decisions"):
        cohen_kappa(["a"], [])


def test_a_pair_counts_the_cases_that_both_have_seen() -> None:
    views = [View(f"c{k}", "A", "accept", BOX) for k in range(4)]
    views += [View(f"c{k}", "B", "accept" if k else "reject", HALF) for k in range(3)]
    views += [View("c9", "C", "accept", BOX)]

    found = pairs(views, repeats=50)

    assert [(pair.one, pair.other) for pair in found] == [("A", "B")]
    assert found[0].mean_iou.value == pytest.approx(0.5)
    assert (found[0].mean_iou.n, found[0].kappa.n) == (3, 3)
    assert found[0].kappa.value == pytest.approx(0.0)


def test_a_raters_last_view_of_a_case_counts() -> None:
    views = [View("c", "A", "reject", HALF), View("c", "A", "accept", BOX),
             View("c", "B", "accept", BOX)]  # fmt: skip

    assert pairs(views, repeats=10)[0].mean_iou.value == pytest.approx(1.0)


def test_a_bootstrap_interval_holds_the_mean_and_comes_again() -> None:
    values = np.random.default_rng(2).normal(0.6, 0.1, 400)

    one, again = mean_interval(values), mean_interval(values)

    assert one == again
    assert one.low is not None
    assert one.high is not None
    assert one.value == pytest.approx(float(values.mean()))
    # 1.96 standard errors on each side for a mean of many values
    half = 1.96 * float(values.std()) / 20
    assert one.low == pytest.approx(float(values.mean()) - half, abs=0.002)
    assert one.high == pytest.approx(float(values.mean()) + half, abs=0.002)


@pytest.mark.parametrize(("values", "n"), [([], 0), ([0.4], 1)])
def test_too_few_values_have_no_interval(values: list[float], n: int) -> None:
    found = mean_interval(values)

    assert (found.low, found.high, found.n) == (None, None, n)


def test_reviewers_are_compared_with_each_method() -> None:
    reviews = [View("c1", "A", "fix", BOX), View("c2", "A", "fix", BOX), View("c3", "A", "reject")]
    methods = [View("c1", "refinerank", "", HALF), View("c2", "refinerank", "", None),
               View("c1", "medvlm", "", BOX), View("c3", "medvlm", "", BOX)]  # fmt: skip

    found = with_methods(reviews, methods, repeats=10)

    assert found["A"]["refinerank"].value == pytest.approx(0.25)  # half, and nothing at all
    assert found["A"]["medvlm"].value == pytest.approx(1.0)
    assert found["A"]["medvlm"].n == 1


def test_the_worst_disagreement_comes_first() -> None:
    views = [
        View("alike", "A", "accept", BOX), View("alike", "B", "accept", BOX),
        View("boxes", "A", "fix", BOX), View("boxes", "B", "fix", (0, 0, 10, 2)),
        View("decisions", "A", "accept", BOX), View("decisions", "B", "reject"),
        View("one box", "A", "fix", BOX), View("one box", "B", "fix", None),
        View("alone", "A", "accept", BOX),
    ]  # fmt: skip

    found = disagreements(views)

    assert [one.case_id for one in found] == ["decisions", "one box", "boxes"]
    assert found[2].iou == pytest.approx(0.2)
    assert found[0].decisions == ("accept", "reject")

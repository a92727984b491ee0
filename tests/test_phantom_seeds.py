"""No scene is on two sides of a split."""

from __future__ import annotations

from itertools import pairwise

import pytest

from refinerank_core.phantom.seeds import (
    SEED_RANGES,
    overlapping_purposes,
    purpose_of,
    seed_for,
)


def test_no_two_purposes_share_a_seed() -> None:
    assert overlapping_purposes() == []


def test_all_seeds_of_all_purposes_are_distinct_numbers() -> None:
    edges = sorted((seeds.start, seeds.stop) for seeds in SEED_RANGES.values())

    assert all(before[1] <= after[0] for before, after in pairwise(edges))


@pytest.mark.parametrize("purpose", list(SEED_RANGES))
def test_a_seed_belongs_to_the_purpose_it_was_taken_from(purpose: str) -> None:
    last = len(SEED_RANGES[purpose]) - 1

    assert purpose_of(seed_for(purpose, 0)) == purpose
    assert purpose_of(seed_for(purpose, last)) == purpose


def test_training_and_evaluation_have_seeds_to_spare() -> None:
    assert len(SEED_RANGES["training"]) >= 100_000
    assert len(SEED_RANGES["evaluation"]) >= 1_000


def test_an_unknown_purpose_is_refused() -> None:
    with pytest.raises(ValueError, match="purpose must be one of training"):
        seed_for("holiday", 0)


@pytest.mark.parametrize("index", [pytest.param(-1, id="negative"), pytest.param(1_000, id="past")])
def test_an_index_outside_the_range_is_refused(index: int) -> None:
    with pytest.raises(ValueError, match="samples has seeds 0 to 999"):
        seed_for("samples", index)


def test_a_seed_of_nobody_is_refused() -> None:
    with pytest.raises(ValueError, match="lies in no registered range"):
        purpose_of(999_999_999)

"""Measuring in turns: who runs when, and what is compared with what."""

import time

import pytest

from refinerank_core.timing import compare_ms


def test_jobs_take_turns_and_each_is_compared_within_its_turn() -> None:
    order: list[str] = []
    pauses = iter([0.01, 0.02, 0.04])
    pause = 0.0

    def first() -> None:
        order.append("first")
        time.sleep(pause)

    def second() -> None:
        order.append("second")
        time.sleep(pause / 2)

    def before() -> None:
        nonlocal pause
        pause = next(pauses)
        order.append("before")

    compared = compare_ms(first, second, 3, before=before, between=lambda: order.append("between"))
    assert order == ["before", "first", "between", "second"] * 3
    assert compared.first_ms == pytest.approx(20, rel=0.5)
    assert compared.ratio == pytest.approx(0.5, rel=0.3)

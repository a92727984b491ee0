"""The candidate pool: order, sub-boxes, anchors, f_dino."""

import math

import numpy as np
import pytest

from refinerank_core.candidates import build_pool, shortlist
from refinerank_core.structures import Detections

SIZE_WH = (800, 400)


def found(*rows: tuple[list[float], float]) -> Detections:
    return Detections(
        boxes=np.array([box for box, _ in rows], dtype=np.float32).reshape(-1, 4),
        scores=np.array([score for _, score in rows], dtype=np.float32),
        phrases=("hook",) * len(rows),
    )


def test_a_large_box_is_followed_by_its_three_parts() -> None:
    pool = build_pool(found(([100, 100, 300, 300], 0.5), ([10, 10, 40, 40], 0.4)), SIZE_WH)

    assert pool.sources == ("raw", "sub_box", "sub_box", "sub_box", "raw")
    np.testing.assert_allclose(pool.boxes[1], [100, 136, 210, 204])
    np.testing.assert_allclose(pool.boxes[2], [100, 124, 216, 196])
    np.testing.assert_allclose(pool.boxes[3], [110, 136, 224, 212])
    np.testing.assert_allclose(pool.confidences, [0.5, 0.47, 0.455, 0.445, 0.4], rtol=1e-6)
    assert pool.parents.tolist() == [-1, 0, 0, 0, -1]


@pytest.mark.parametrize(
    ("box", "parts"),
    [
        pytest.param([0, 0, 300, 63.9], 0, id="63.9 px high"),
        pytest.param([0, 0, 300, 64], 3, id="64 px high and exactly 6 percent"),
        pytest.param([0, 0, 299, 64], 0, id="less than 6 percent"),
    ],
)
def test_only_a_large_box_has_parts(box: list[float], parts: int) -> None:
    pool = build_pool(found((box, 0.5)), SIZE_WH)

    assert len(pool) == 1 + parts


def test_native_score_counts_sub_boxes_in_the_rank() -> None:
    pool = build_pool(found(([100, 100, 300, 300], 0.5), ([10, 10, 40, 40], 0.4)), SIZE_WH)

    # 0.45 * 0.4 + 0.05 * coverage 1 + 0.02 / rank 5
    assert pool.native_scores[4] == pytest.approx(0.45 * 0.4 + 0.05 + 0.02 / 5)


def test_boxes_just_outside_snap_and_farther_ones_are_counted() -> None:
    pool = build_pool(
        found(
            ([-2.5, -1, 50, 50], 0.9),
            ([-2.6, 0, 60, 60], 0.8),
            ([30, 30, 30, 60], 0.7),
            ([10, 10, 40, 40], 0.6),
            ([10, 10, 40, 40], 0.5),
        ),
        SIZE_WH,
    )

    np.testing.assert_allclose(pool.boxes, [[0, 0, 50, 50], [10, 10, 40, 40]])
    assert pool.rejected == 3


def test_twelve_raw_detections_are_kept() -> None:
    rows = [([10.0 * k, 10, 10.0 * k + 8, 40], 0.9 - k / 100) for k in range(20)]

    assert len(build_pool(found(*rows), SIZE_WH)) == 12


def test_the_pool_is_capped() -> None:
    rows = [([10.0 * k, 10, 10.0 * k + 8, 40], 0.9 - k / 1000) for k in range(30)]

    assert len(build_pool(found(*rows), SIZE_WH, raw_limit=30, pool_limit=20)) == 20


def test_nineteen_anchors_stand_in_when_nothing_is_found() -> None:
    pool = build_pool(found(), SIZE_WH)

    assert set(pool.sources) == {"anchor"}
    assert len(pool) == 19
    np.testing.assert_allclose(pool.boxes[0], [0, 0, 800, 400])
    np.testing.assert_allclose(pool.boxes[1], [0, 0, 400, 200])
    np.testing.assert_allclose(pool.boxes[9], [400, 200, 800, 400])
    np.testing.assert_allclose(pool.boxes[10], [100, 50, 300, 150])
    np.testing.assert_allclose(pool.boxes[18], [500, 250, 700, 350])
    np.testing.assert_allclose(pool.native_scores, [1 / r for r in range(1, 20)], rtol=1e-6)
    assert pool.missing[:, :4].all()
    assert not pool.missing[:, 4:].any()


def test_boxes_that_are_all_refused_leave_the_anchors() -> None:
    pool = build_pool(found(([-50, 0, 60, 60], 0.8)), SIZE_WH)

    assert pool.sources[0] == "anchor"
    assert pool.rejected == 1


def test_metadata_holds_the_twelve_values_in_order() -> None:
    pool = build_pool(found(([80, 100, 240, 140], 0.25)), SIZE_WH)

    expected = [0.25, 0, 1, 1, 0, 1, 0.1, 0.25, 0.3, 0.35, math.log(0.02), math.log(2.0)]
    np.testing.assert_allclose(pool.metadata[0], expected, rtol=1e-5)


def test_the_shortlist_starts_with_the_best_and_then_spreads() -> None:
    rows = [([5.0, 5, 30, 30 + k / 10], 0.9 - k / 100) for k in range(5)]
    rows.append(([700, 300, 790, 390], 0.1))
    pool = build_pool(found(*rows), SIZE_WH)

    chosen = shortlist(pool, keep=3, first=2)

    assert chosen == [0, 1, 5]


def test_a_small_pool_is_its_own_shortlist() -> None:
    pool = build_pool(found(), SIZE_WH)

    assert shortlist(pool) == list(range(19))

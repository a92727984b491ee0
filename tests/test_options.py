"""Options beyond the paper: off by default, and what they do when they are on."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from refinerank_core.calibration import Calibration, fit_calibration
from refinerank_core.candidates import build_pool, moved
from refinerank_core.grounding import RefineRankAnswer
from refinerank_core.joint_pool import chosen_boxes, outcomes
from refinerank_core.models.protocols import Encoding, VisionFeatures
from refinerank_core.profiles import RefineNetProfile, load_profile, profile_names
from refinerank_core.reencode import reencoded
from refinerank_core.refinenet import RefineNet, RefineNetConfig, refine, region_features
from refinerank_core.structures import CandidatePool, Detections
from tests.test_training import CONFIG, feature_set

SIZE_WH = (80, 60)


def pool_of(boxes: list[tuple[float, float, float, float]]) -> CandidatePool:
    scores = np.linspace(0.9, 0.5, len(boxes)).astype(np.float32)
    found = Detections(np.array(boxes, np.float32), scores, ("tool",) * len(boxes))
    return build_pool(found, SIZE_WH)


def net(seed: int, config: RefineNetConfig = CONFIG) -> RefineNet:
    torch.manual_seed(seed)
    return RefineNet(config).eval().requires_grad_(False)


def encoding(seed: int = 0) -> Encoding:
    made = torch.Generator().manual_seed(seed)
    grid = torch.randn(6, 8, 4, generator=made)
    final = torch.randn(3, 4, 5, generator=made)
    return Encoding(torch.randn(6, generator=made), VisionFeatures({3: grid}, final, SIZE_WH))


def test_every_profile_that_ships_keeps_the_papers_defaults() -> None:
    for name in profile_names():
        refinenet = load_profile(name).refinenet
        assert (refinenet.ensemble, refinenet.reencode, refinenet.calibration) == ((), False, ())


def test_an_ensemble_averages_scores_and_corrections() -> None:
    pool = pool_of([(5, 5, 30, 30), (20, 10, 60, 50)])
    seen = encoding()
    features = region_features(seen, pool, size_wh=SIZE_WH, inter_block=3)
    nets = [net(1), net(2), net(3)]

    alone = [refine(one, features, pool, size_wh=SIZE_WH) for one in nets]
    joined = refine(nets, features, pool, size_wh=SIZE_WH)

    for name in ("score_original", "score_refined", "delta"):
        wanted = np.mean([getattr(one, name) for one in alone], axis=0)
        assert getattr(joined, name) == pytest.approx(wanted, abs=1e-5)
    same = refine([nets[0]], features, pool, size_wh=SIZE_WH)
    assert np.array_equal(same.score_refined, alone[0].score_refined)


def test_cached_features_take_an_ensemble_too() -> None:
    features, _ = feature_set("a", 6)

    one, three = outcomes(net(1), features), outcomes([net(1), net(1), net(1)], features)

    assert chosen_boxes(three) == pytest.approx(chosen_boxes(one), abs=1e-3)


def test_reencoding_scores_a_refined_box_by_what_is_inside_it() -> None:
    pool, seen, one = pool_of([(5, 5, 30, 30), (20, 10, 60, 50)]), encoding(), net(4)
    features = region_features(seen, pool, size_wh=SIZE_WH, inter_block=3)
    before = refine(one, features, pool, size_wh=SIZE_WH)

    after = reencoded(one, seen, pool, before, size_wh=SIZE_WH, inter_block=3)

    assert np.array_equal(after.boxes, before.boxes)
    assert np.array_equal(after.score_original, before.score_original)
    assert not np.allclose(after.score_refined, before.score_refined)
    # By hand: the refined boxes as candidates of their own.
    there = moved(pool, before.boxes, SIZE_WH)
    again = refine(
        one,
        region_features(seen, there, size_wh=SIZE_WH, inter_block=3),
        there,
        size_wh=SIZE_WH,
    )
    assert np.array_equal(after.score_refined, again.score_original)


def test_a_refined_box_that_was_discarded_stays_so() -> None:
    pool, seen, one = pool_of([(5, 5, 30, 30)]), encoding(), net(4)
    features = region_features(seen, pool, size_wh=SIZE_WH, inter_block=3)
    before = refine(one, features, pool, size_wh=SIZE_WH)
    broken = replace(
        before, boxes=np.zeros_like(before.boxes), valid=np.zeros(len(before), np.bool_)
    )

    after = reencoded(one, seen, pool, broken, size_wh=SIZE_WH, inter_block=3)

    assert not after.valid.any()
    assert np.isfinite(after.score_refined).all()


def test_a_moved_pool_says_where_its_boxes_are_now() -> None:
    pool = pool_of([(5, 5, 30, 30), (20, 10, 60, 50)])
    boxes = np.array([[0, 0, 40, 30], [10, 10, 20, 20]], np.float32)

    there = moved(pool, boxes, SIZE_WH)

    assert there.metadata[:, 6:10] == pytest.approx(boxes / np.array([80, 60, 80, 60]), abs=1e-6)
    assert there.metadata[0, 10] == pytest.approx(np.log(0.25), abs=1e-5)
    assert np.array_equal(there.metadata[:, :6], pool.metadata[:, :6])
    assert np.array_equal(there.native_scores, pool.native_scores)


def test_calibration_gives_what_answers_of_a_score_reach_and_keeps_the_order() -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(-3, 3, 4000)
    true = 0.5 + 0.15 * scores  # 0.05 to 0.95
    reached = np.clip(true + rng.normal(0, 0.1, 4000), 0, 1)

    fitted = fit_calibration(scores.tolist(), reached.tolist())

    asked = np.array([-2.0, 0.0, 2.0])
    assert fitted.expected_iou(asked) == pytest.approx([0.2, 0.5, 0.8], abs=0.05)
    assert (np.diff(fitted.expected_iou(np.sort(scores))) >= 0).all()
    assert 0 <= fitted.expected_iou(np.array([-1e9]))[0] <= 0.1


def test_a_calibration_needs_two_scores_and_rising_knots() -> None:
    with pytest.raises(ValueError, match="two different scores"):
        fit_calibration([0.5, 0.5], [0.1, 0.9])
    for knots in ((), ((0.0, 0.5), (0.0, 0.6)), ((0.0, 0.5), (1.0, 0.4)), ((0.0, 1.5),)):
        with pytest.raises(ValueError, match="knots must rise"):
            Calibration(knots)


def test_the_grounding_tells_expected_iou_only_where_it_is_calibrated() -> None:
    facts = {"box": (0, 0, 1, 1), "score": 1.0, "candidate_id": 0, "refined": False, "margin": 0.1}

    plain = RefineRankAnswer.model_validate(facts)
    told = RefineRankAnswer.model_validate(facts | {"expected_iou": 0.25})

    assert "expected_iou" not in plain.model_dump(mode="json")
    assert "expected_iou" not in plain.model_dump_json()
    assert told.model_dump(mode="json")["expected_iou"] == 0.25
    assert RefineRankAnswer.model_validate_json(told.model_dump_json()) == told


def test_the_profile_takes_the_options() -> None:
    section = RefineNetProfile.model_validate(
        {
            "source": "./a.safetensors",
            "inter_block": 5,
            "ensemble": ["./b.safetensors"],
            "reencode": True,
            "calibration": [[-1.0, 0.2], [1.0, 0.8]],
        }
    )

    assert section.calibration == ((-1.0, 0.2), (1.0, 0.8))

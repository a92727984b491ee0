"""Selectors read what they may, choose what they score, and repeat with their seed."""

import numpy as np
import pytest
import torch

from refinerank_core.joint_pool import (
    chosen_boxes,
    joint_pools,
    member_quality,
    oracle,
    outcomes,
    selected_boxes,
)
from refinerank_core.refinenet import RefineNet
from refinerank_core.selector_features import FeatureChoice, Members, member_features
from refinerank_core.selectors import SELECTORS, train_selector
from tests.test_training import CONFIG, feature_set


def small_net(seed: int = 0) -> RefineNet:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return RefineNet(CONFIG).eval()


def test_a_joint_pool_holds_originals_and_refined_boxes_and_the_answer() -> None:
    features, _ = feature_set("a", 6)
    found = outcomes(small_net(), features)

    joint = joint_pools(found)

    assert joint.valid.sum() == sum(len(one.ranking.kept) for one in found)
    assert joint.refined[joint.valid].any()
    assert not joint.refined[joint.valid].all()
    for row, box in enumerate(chosen_boxes(found)):
        assert (joint.boxes[row][joint.valid[row]] == box).all(axis=1).any()


def test_members_do_not_show_the_scores_of_refinenet() -> None:
    features, _ = feature_set("a", 6)
    net = small_net()
    before = member_features(features, joint_pools(outcomes(net, features)), FeatureChoice(block=3))

    with torch.no_grad():  # other scores in the same order, the same boxes
        net.quality_head.weight.mul_(2.0)
        net.quality_head.bias.mul_(2.0)
    after = member_features(features, joint_pools(outcomes(net, features)), FeatureChoice(block=3))

    assert np.array_equal(np.sort(before, axis=1), np.sort(after, axis=1))


@pytest.mark.parametrize(
    ("choice", "width"),
    [
        pytest.param(FeatureChoice(q_last=False, final=False), 29, id="f_dino alone"),
        pytest.param(FeatureChoice(final=False), 35, id="and q_last"),
        pytest.param(FeatureChoice(block=3), 44, id="and a block"),
    ],
)
def test_a_feature_choice_adds_its_widths(choice: FeatureChoice, width: int) -> None:
    features, _ = feature_set("a", 3)

    members = member_features(features, joint_pools(outcomes(small_net(), features)), choice)

    assert members.shape[-1] == width
    assert np.isfinite(members).all()


@pytest.mark.parametrize("name", SELECTORS)
def test_a_selector_learns_a_plain_rule_and_repeats_with_its_seed(name: str) -> None:
    rng = np.random.default_rng(0)
    members = rng.normal(0, 1, (80, 6, 4)).astype(np.float32)
    valid = np.arange(6)[None] < rng.integers(3, 7, 80)[:, None]
    quality = np.where(valid, 1 / (1 + np.exp(-3 * members[..., 1])), 0).astype(np.float32)

    first, second = (
        train_selector(name, members, quality, valid, seed=3, epochs=20) for _ in range(2)
    )
    scores = first.scores(members, valid)

    best = np.where(valid, quality, -1).argmax(axis=1)
    chosen = np.where(valid, scores, -np.inf).argmax(axis=1)
    assert (best == chosen).mean() > 0.6
    assert np.array_equal(scores[valid], second.scores(members, valid)[valid])


def test_an_unknown_selector_is_refused() -> None:
    empty = np.zeros((1, 1, 1), np.float32)

    with pytest.raises(ValueError, match="selector must be one of"):
        train_selector("guess", empty, empty[..., 0], np.ones((1, 1), bool), seed=0)


def test_the_oracle_is_the_best_member_and_refinement_never_lowers_it() -> None:
    features, labels = feature_set("a", 8)
    found = outcomes(small_net(), features)

    original, joint = oracle(found, labels)

    assert (joint >= original).all()
    assert original == pytest.approx(
        [
            max(member_quality_of(one.pool.boxes, box))
            for one, box in zip(found, labels.boxes, strict=True)
        ]
    )


def member_quality_of(boxes: np.ndarray, wanted: np.ndarray) -> list[float]:
    """IoU by hand."""
    values = []
    for x0, y0, x1, y1 in boxes.tolist():
        width = max(0.0, min(x1, wanted[2]) - max(x0, wanted[0]))
        height = max(0.0, min(y1, wanted[3]) - max(y0, wanted[1]))
        area = (wanted[2] - wanted[0]) * (wanted[3] - wanted[1])
        union = (x1 - x0) * (y1 - y0) + area - width * height
        values.append(width * height / union)
    return values


def test_padding_is_never_selected() -> None:
    features, labels = feature_set("a", 5)
    joint = joint_pools(outcomes(small_net(), features))
    scores = np.where(joint.valid, 0.0, 9.0).astype(np.float32)

    boxes = selected_boxes(scores, joint)

    assert np.array_equal(boxes, joint.boxes[:, 0])
    assert (member_quality(joint, labels)[~joint.valid] == 0).all()


@pytest.mark.parametrize("held_bytes", [0, 10**9])
def test_members_of_two_data_sets_are_those_of_each(held_bytes: int) -> None:
    net, choice = small_net(), FeatureChoice(block=3)
    sets = [feature_set("a", 5)[0], feature_set("b", 4, most=3, seed=1)[0]]
    joints = [joint_pools(outcomes(net, features)) for features in sets]

    members = Members(list(zip(sets, joints, strict=True)), choice, held_bytes=held_bytes)

    mixed = members[np.array([7, 0])]
    for row, (home, place) in enumerate(((1, 2), (0, 0))):
        wanted = member_features(sets[home], joints[home], choice)[place]
        assert np.array_equal(mixed[row, : len(wanted)], wanted)
        assert not mixed[row, len(wanted) :].any()
    assert members.shape == (9, mixed.shape[1], mixed.shape[2])


@pytest.mark.parametrize("name", SELECTORS)
def test_members_read_from_disk_teach_the_same_as_members_in_memory(name: str) -> None:
    features, labels = feature_set("a", 70)
    joint = joint_pools(outcomes(small_net(), features))
    quality = member_quality(joint, labels)
    found = []
    for held_bytes in (0, 10**9):
        members = Members([(features, joint)], FeatureChoice(block=3), held_bytes=held_bytes)
        selector = train_selector(name, members, quality, joint.valid, seed=1, epochs=2)
        found.append(selector.scores(members, joint.valid)[joint.valid])

    assert np.array_equal(*found)

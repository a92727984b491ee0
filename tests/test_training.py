"""RefineNet's losses against hand-computed and independent values, and its training loop."""

import math
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch

from refinerank_core.boxes import encode_delta, giou, iou
from refinerank_core.boxes_torch import decode_delta
from refinerank_core.boxes_torch import iou as tensor_iou
from refinerank_core.errors import RefineRankError
from refinerank_core.feature_sets import (
    FeatureSet,
    Labels,
    load_features,
    save_features,
    shared_videos,
)
from refinerank_core.losses import rank_loss, refinenet_loss, regression_loss
from refinerank_core.refinenet import RefineNet, RefineNetConfig
from refinerank_core.training import (
    TrainingPlan,
    epoch_batches,
    fit,
    gather_batch,
    standardiser,
)

CONFIG = RefineNetConfig(
    query_dim=6, final_dim=5, inter_dim=4, inter_block=3, d_model=8, hidden_dim=16
)
CPU = torch.device("cpu")


def feature_set(
    dataset: str, examples: int, *, most: int = 5, seed: int = 0
) -> tuple[FeatureSet, Labels]:
    """Random features whose first candidate lies near the answer."""
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, 60, (examples, most, 2))
    boxes = np.concatenate((low, low + rng.uniform(8, 40, (examples, most, 2))), axis=-1)
    metadata = rng.normal(0, 1, (examples, most, 12))
    metadata[:, -1, :4] = np.nan
    counts = rng.integers(2, most + 1, examples)
    features = FeatureSet(
        dataset=dataset,
        rows=tuple(f"{dataset}-row{k // 2}" for k in range(examples)),
        videos=tuple(f"{dataset}-video{k // 4}" for k in range(examples)),
        times_s=np.arange(examples, dtype=np.float32),
        sizes_wh=np.tile(np.array([[128, 96]], np.int64), (examples, 1)),
        q_last=rng.normal(0, 1, (examples, 6)).astype(np.float32),
        r_final=rng.normal(0, 1, (examples, most, 5)).astype(np.float32),
        r_blocks={b: rng.normal(0, 1, (examples, most, 4)).astype(np.float32) for b in (1, 3)},
        metadata=metadata.astype(np.float32),
        boxes=boxes.astype(np.float32),
        native=np.zeros((examples, most), np.float32),
        valid=np.arange(most)[None] < counts[:, None],
    )
    return features, Labels((boxes[:, 0] + rng.uniform(-3, 3, (examples, 4))).astype(np.float32))


def test_rank_loss_of_two_boxes_is_the_value_worked_out_by_hand() -> None:
    scores = torch.tensor([[0.0, 1.0]])
    quality = torch.tensor([[0.2, 0.1]])

    loss = rank_loss(scores, quality, torch.ones(1, 2, dtype=torch.bool))

    share = math.e / (1 + math.e)  # softmax of (2, 1) is (share, 1 - share)
    entropy = -(share * math.log(1 - share) + (1 - share) * math.log(share))
    apart = (0.5 - 0.2) ** 2 / 2 + (share - 0.1) ** 2 / 2
    assert float(loss) == pytest.approx(entropy + 0.25 * apart / 2, rel=1e-5)


def test_rank_loss_agrees_with_a_slow_loop_over_valid_boxes() -> None:
    rng = np.random.default_rng(4)
    scores = rng.normal(0, 2, (6, 7))
    quality = np.where(rng.random((6, 7)) < 0.5, rng.random((6, 7)), 0.0)
    quality[2] = 0.0  # no box overlaps: only calibrated
    valid = rng.random((6, 7)) < 0.7
    valid[:, 0] = True
    entropies, apart = [], []
    for s, y, real in zip(scores, quality, valid, strict=True):
        s, y = s[real], y[real]
        if y.max() > 0:
            wanted = np.exp(y / 0.1) / np.exp(y / 0.1).sum()
            entropies.append(-(wanted * np.log(np.exp(s) / np.exp(s).sum())).sum())
        gaps = np.abs(1 / (1 + np.exp(-s)) - y)
        apart += list(np.where(gaps < 1, gaps**2 / 2, gaps - 0.5))

    loss = rank_loss(torch.tensor(scores), torch.tensor(quality), torch.tensor(valid))

    assert float(loss) == pytest.approx(np.mean(entropies) + 0.25 * np.mean(apart), rel=1e-9)


def test_rank_loss_without_any_overlap_is_finite_and_only_calibrates() -> None:
    scores = torch.zeros(2, 3, requires_grad=True)

    loss = rank_loss(scores, torch.zeros(2, 3), torch.ones(2, 3, dtype=torch.bool))
    loss.backward()  # type: ignore[no-untyped-call]

    assert float(loss.detach()) == pytest.approx(0.25 * 0.125)
    assert scores.grad is not None
    assert bool(torch.isfinite(scores.grad).all())


def test_regression_loss_teaches_only_the_best_originals() -> None:
    rng = np.random.default_rng(5)
    low = rng.uniform(0, 0.2, (3, 9, 2))  # every box overlaps the answer: no ties
    boxes = np.concatenate((low, low + rng.uniform(0.3, 0.6, (3, 9, 2))), axis=-1)
    wanted = boxes[:, 4] + 0.01
    quality = iou(boxes, wanted[:, None])
    delta = rng.uniform(-0.3, 0.3, (3, 9, 4))
    valid = np.ones((3, 9), bool)
    valid[0, 4] = False
    shifts, overlaps = [], []
    for row in range(3):
        real = [k for k in range(9) if valid[row, k]]
        for k in sorted(real, key=lambda k: -quality[row, k])[:2]:
            gaps = np.abs(delta[row, k] - encode_delta(boxes[row, k], wanted[row]))
            shifts.append(np.where(gaps < 1, gaps**2 / 2, gaps - 0.5).mean())
            x0, y0, x1, y1 = boxes[row, k]
            w, h = x1 - x0, y1 - y0
            cx, cy = x0 + w / 2 + delta[row, k, 0] * w, y0 + h / 2 + delta[row, k, 1] * h
            w, h = w * np.exp(delta[row, k, 2]), h * np.exp(delta[row, k, 3])
            moved = np.clip([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], 0, 1)
            overlaps.append(1 - giou(moved, wanted[row]))

    loss = regression_loss(
        torch.tensor(delta),
        torch.tensor(boxes),
        torch.tensor(wanted),
        torch.tensor(quality).double(),
        torch.tensor(valid),
        anchors=2,
    )

    assert float(loss) == pytest.approx(np.mean(shifts) + 0.5 * np.mean(overlaps), rel=1e-4)


def test_the_whole_loss_is_that_of_whole_pools_and_padding_does_not_matter() -> None:
    features, labels = feature_set("a", 6)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = RefineNet(CONFIG).eval()  # no dropout: the same draw would fall on other rows
    batch = gather_batch([(features, labels)], [np.arange(6)], inter_block=3, device=CPU)
    assert not batch.valid.all()

    loss = refinenet_loss(net, batch, anchors=2)

    scores, delta = net(batch.q_last, batch.r_final, batch.r_inter, batch.metadata)
    wanted = batch.wanted[:, None].expand_as(batch.boxes)
    refined, usable = decode_delta(batch.boxes, delta)
    quality = tensor_iou(batch.boxes, wanted)
    expected = rank_loss(scores[..., 0], quality, batch.valid)
    expected += rank_loss(
        scores[..., 1], tensor_iou(refined, wanted).detach(), batch.valid & usable
    )
    expected += regression_loss(delta, batch.boxes, batch.wanted, quality, batch.valid, anchors=2)
    torch.testing.assert_close(loss, expected)
    batch.r_final[~batch.valid] = 1e9
    batch.metadata[~batch.valid] = float("nan")
    torch.testing.assert_close(refinenet_loss(net, batch, anchors=2), loss)


def test_the_standardiser_ignores_missing_and_padded_values() -> None:
    features, _ = feature_set("a", 6)
    features.metadata[:, :, 5] = 1.0  # constant: its deviation becomes 1
    observed = features.metadata[features.valid][:, 0]

    mean, std = standardiser([features])

    assert float(mean[0]) == pytest.approx(float(np.nanmean(observed)), rel=1e-5)
    assert float(std[0]) == pytest.approx(float(np.nanstd(observed)), rel=1e-5)
    assert (float(mean[5]), float(std[5])) == (1.0, 1.0)


def test_a_batch_holds_the_same_number_from_each_data_set_and_the_largest_is_seen_whole() -> None:
    batches = list(epoch_batches([40, 7, 20], batch=48, rng=np.random.default_rng(0)))

    assert [[len(part) for part in batch] for batch in batches] == [[16, 16, 16]] * 3
    assert set(np.concatenate([batch[0] for batch in batches])) == set(range(40))
    assert max(np.concatenate([batch[1] for batch in batches])) < 7


def test_a_batch_that_does_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="does not divide"):
        list(epoch_batches([4, 4, 4, 4, 4], batch=48, rng=np.random.default_rng(0)))


def test_a_stopped_training_goes_on_to_the_very_same_weights(tmp_path: Path) -> None:
    sets = [feature_set(name, 20, seed=k) for k, name in enumerate("abc")]
    plan = TrainingPlan(epochs=4)
    whole = fit(CONFIG, plan, sets, device=CPU)
    state = tmp_path / "state.pt"

    fit(CONFIG, plan, sets, device=CPU, checkpoint=state, stop_after=2)
    resumed = fit(CONFIG, plan, sets, device=CPU, checkpoint=state)

    for name, tensor in whole.net.state_dict().items():
        assert torch.equal(tensor, resumed.net.state_dict()[name]), name


def test_a_checkpoint_of_another_plan_is_refused(tmp_path: Path) -> None:
    sets = [feature_set(name, 8, seed=k) for k, name in enumerate("abc")]
    state = tmp_path / "state.pt"
    fit(CONFIG, TrainingPlan(epochs=1), sets, device=CPU, checkpoint=state)

    with pytest.raises(RefineRankError, match="another plan"):
        fit(CONFIG, TrainingPlan(epochs=1, rate=1.0), sets, device=CPU, checkpoint=state)


def test_training_lowers_the_loss() -> None:
    sets = [feature_set(name, 40, seed=k) for k, name in enumerate("abc")]
    first = fit(CONFIG, TrainingPlan(epochs=12, rate=3e-3), sets, device=CPU, stop_after=0)

    losses = [first.advance(sets) for _ in range(12)]

    assert losses[-1] < losses[0] - 0.1


def test_features_come_back_from_disk_as_they_went(tmp_path: Path) -> None:
    features, labels = feature_set("a", 5)

    save_features(tmp_path / "a.npz", features, labels)
    again, answers = load_features(tmp_path / "a.npz")

    assert again.rows == features.rows
    assert again.videos == features.videos
    for name in ("q_last", "r_final", "metadata", "boxes", "valid", "sizes_wh"):
        assert np.array_equal(getattr(again, name), getattr(features, name), equal_nan=True)
    assert np.array_equal(again.r_blocks[3], features.r_blocks[3])
    assert answers is not None
    assert np.array_equal(answers.boxes, labels.boxes)


def test_a_feature_set_has_no_place_for_answers() -> None:
    names = {field.name for field in fields(FeatureSet)}

    assert not names & {"labels", "wanted", "truth", "answer", "quality", "target"}


def test_videos_on_both_sides_are_named() -> None:
    one, _ = feature_set("a", 8)
    other, _ = feature_set("b", 8)

    assert shared_videos([one], [other]) == set()
    assert "a-video0" in shared_videos([one], [other, one.subset(np.array([0]))])

"""The training bench has the published shape, and says what it measured and what it worked out."""

import pytest
import torch

from refinerank_core.refinenet import RefineNetConfig
from refinerank_core.training_bench import TrainingTime, measure_training, random_sets

SMALL = RefineNetConfig(6, 5, 4, inter_block=3, d_model=8, hidden_dim=16)


def test_random_sets_have_the_published_size() -> None:
    sets = random_sets(SMALL)

    assert [len(features) for features, _ in sets] == [807, 134, 1405]
    assert sets[2][0].r_final.shape == (1405, 48, 5)
    assert sets[2][0].r_blocks[3].shape == (1405, 48, 4)


def test_a_few_steps_are_measured_and_the_whole_is_worked_out() -> None:
    found = measure_training(SMALL, device=torch.device("cpu"), steps=2)

    assert found.steps == 2
    assert found.epoch_steps == 88  # 1,405 examples of the largest set, 16 in each batch
    assert found.measured_s is None
    assert found.whole_s == pytest.approx(found.step_s * 88 * 40)


def test_what_was_measured_whole_is_not_worked_out() -> None:
    assert TrainingTime(3520, 0.1, 88, 400.0).whole_s == 400.0

"""Deformable attention by rows gives what the library's own gives."""

from pathlib import Path

import pytest
import torch
from transformers import GroundingDinoForObjectDetection
from transformers.models.grounding_dino.modeling_grounding_dino import MultiScaleDeformableAttention

from refinerank_core.models.deformable import RowwiseAttention, read_rowwise

SHAPES = [(9, 14), (5, 7), (1, 2)]


@pytest.mark.parametrize(("count", "queries", "heads", "points"), [(1, 5, 1, 1), (3, 40, 4, 4)])
def test_it_agrees_with_the_library(count: int, queries: int, heads: int, points: int) -> None:
    torch.manual_seed(0)
    places = sum(height * width for height, width in SHAPES)
    value = torch.randn(count, places, heads, 6)
    # Well over the rim on all sides, where samples read nothing.
    locations = torch.rand(count, queries, heads, len(SHAPES), points, 2) * 1.6 - 0.3
    weights = torch.rand(count, queries, heads, len(SHAPES), points)
    asked = (value, torch.tensor(SHAPES), SHAPES, torch.zeros(3), locations, weights, 64)
    torch.testing.assert_close(
        RowwiseAttention()(*asked), MultiScaleDeformableAttention()(*asked), atol=1e-5, rtol=1e-5
    )


def test_far_outside_lies_nothing() -> None:
    value = torch.ones(1, sum(height * width for height, width in SHAPES), 1, 2)
    away = torch.full((1, 3, 1, len(SHAPES), 2, 2), -40.0)
    away[:, 1], away[:, 2] = 40.0, torch.tensor([0.5, 9.0])
    weights = torch.ones(1, 3, 1, len(SHAPES), 2)
    read = RowwiseAttention()(value, torch.tensor(SHAPES), SHAPES, None, away, weights, 64)
    assert read.abs().max() == 0


def test_every_such_layer_of_the_librarys_detector_is_replaced(untrained_profile: Path) -> None:
    folder = untrained_profile.parent / "detector"
    model = GroundingDinoForObjectDetection.from_pretrained(folder)
    config = model.config
    read_rowwise(model)
    kinds = [type(module) for module in model.modules()]
    assert kinds.count(RowwiseAttention) == config.encoder_layers + config.decoder_layers
    assert MultiScaleDeformableAttention not in kinds

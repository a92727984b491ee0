"""Region pooling: exact area weights."""

import numpy as np
import pytest
import torch

from refinerank_core.roi import overlap_weights, pool_regions


def slow_pool(grid: np.ndarray, box: np.ndarray) -> np.ndarray:
    """The definition, cell by cell."""
    height, width, channels = grid.shape
    total, area = np.zeros(channels), 0.0
    for row in range(height):
        for column in range(width):
            across = min(box[2], (column + 1) / width) - max(box[0], column / width)
            down = min(box[3], (row + 1) / height) - max(box[1], row / height)
            weight = max(across, 0.0) * max(down, 0.0)
            total += weight * grid[row, column]
            area += weight
    return total / area


@pytest.mark.parametrize("shape", [(6, 9, 5), (17, 30, 3), (1, 1, 2)])
def test_pooling_equals_the_slow_definition(shape: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(1)
    grid = rng.normal(size=shape)
    corners = np.sort(rng.uniform(0, 1, (40, 2, 2)), axis=1).reshape(40, 4)

    pooled = pool_regions(torch.from_numpy(grid), torch.from_numpy(corners).float())

    expected = np.array([slow_pool(grid, box) for box in corners.astype(np.float32)])
    np.testing.assert_allclose(pooled.numpy(), expected, atol=2e-4)


def test_a_box_over_one_cell_reads_that_cell() -> None:
    grid = torch.arange(12.0).reshape(3, 4, 1)
    box = torch.tensor([[2 / 4, 1 / 3, 3 / 4, 2 / 3]])

    assert pool_regions(grid, box).item() == pytest.approx(6.0, abs=1e-5)


def test_a_box_over_halves_of_two_cells_reads_their_mean() -> None:
    grid = torch.tensor([[[0.0], [10.0]]])
    box = torch.tensor([[0.25, 0.0, 0.75, 1.0]])

    assert pool_regions(grid, box).item() == pytest.approx(5.0)


@pytest.mark.parametrize("side", [1e-3, 1e-6, 0.0])
def test_a_tiny_box_reads_the_cell_it_lies_in(side: float) -> None:
    grid = torch.arange(12.0).reshape(3, 4, 1)
    box = torch.tensor([[0.9, 0.9, 0.9 + side, 0.9 + side]])

    assert pool_regions(grid, box).item() == pytest.approx(11.0, abs=1e-4)


def test_weights_of_the_whole_frame_are_one_everywhere() -> None:
    weights = overlap_weights(torch.tensor([[0.0, 0.0, 1.0, 1.0]]), grid_hw=(3, 7))

    assert torch.allclose(weights, torch.ones(1, 3, 7))


def test_no_boxes_pool_to_an_empty_batch() -> None:
    assert pool_regions(torch.zeros(3, 4, 5), torch.zeros(0, 4)).shape == (0, 5)


@pytest.mark.parametrize("shape", [(4,), (2, 5)], ids=["one flat box", "five columns"])
def test_boxes_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"boxes must be \(N, 4\), got"):
        pool_regions(torch.zeros(3, 4, 5), torch.zeros(shape))

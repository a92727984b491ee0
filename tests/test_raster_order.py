"""Vision grids: back from window order to rows and columns."""

import numpy as np
import pytest
import torch
from transformers.vision_utils import get_vision_position_ids, get_vision_window_index

from refinerank_core.models.raster_order import to_raster, window_order
from refinerank_core.pipeline import RefineRank
from refinerank_core.structures import Frame

# Patches down and across; a window of 56 px is 4 patches, one of 112 px is 8.
GRIDS = [(8, 8), (8, 12), (10, 6), (14, 22), (2, 2), (34, 60)]


@pytest.mark.parametrize("grid_hw", GRIDS, ids=str)
@pytest.mark.parametrize("window_px", [56, 112])
def test_each_patch_returns_to_its_row_and_column(grid_hw: tuple[int, int], window_px: int) -> None:
    # The tower's own positions of its patches, permuted as its forward pass permutes the patches.
    grid = torch.tensor([[1, *grid_hw]])
    positions = get_vision_position_ids(grid, 2)
    index, _ = get_vision_window_index(grid, 2, window_px, 14)
    inside = positions.reshape(-1, 4, 2)[index].reshape(-1, 2)

    order = window_order(grid_hw, merge_size=2, window_px=window_px, patch_px=14)
    raster = to_raster(inside, order, grid_hw, 2)

    rows, columns = torch.meshgrid(
        torch.arange(grid_hw[0]), torch.arange(grid_hw[1]), indexing="ij"
    )
    assert torch.equal(raster[..., 0], rows)
    assert torch.equal(raster[..., 1], columns)


@pytest.mark.parametrize("size_wh", [(224, 112), (252, 140), (140, 196)], ids=str)
@pytest.mark.parametrize("cell", [(0, 0), (3, 5), (7, 9)], ids=str)
def test_one_bright_patch_lights_its_own_cell_in_every_block(
    system: RefineRank, size_wh: tuple[int, int], cell: tuple[int, int]
) -> None:
    # Whole multiples of 28 px within the pixel budget: the processor does not resize.
    width, height = size_wh
    row, column = cell
    dark = np.full((height, width, 3), 90, dtype=np.uint8)
    lit = dark.copy()
    lit[row * 14 : row * 14 + 14, column * 14 : column * 14 + 14] = 255
    frames = [Frame(image=image, index=k, time_s=0.0) for k, image in enumerate((dark, lit))]

    before, after = system.medvlm.see(frames, f"one-hot {size_wh} {cell}")

    assert before.resized_wh == size_wh
    for block, grid in after.blocks.items():
        change = (grid - before.blocks[block]).norm(dim=-1)
        assert divmod(int(change.argmax()), change.shape[1]) == cell, f"block {block}"
    change = (after.final - before.final).norm(dim=-1)
    assert divmod(int(change.argmax()), change.shape[1]) == (row // 2, column // 2)

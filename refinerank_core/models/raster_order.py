"""Back from the order in which Qwen2.5-VL's vision tower computes to rows and columns.

Inside the tower the patches lie in groups of merge_size x merge_size, and the groups are permuted
so that each attention window is contiguous. Only the merger's output is put back by the model.
"""

import torch
from torch import Tensor
from transformers.vision_utils import get_vision_window_index


def window_order(
    grid_hw: tuple[int, int], *, merge_size: int, window_px: int, patch_px: int
) -> Tensor:
    """(groups,) long: which raster-order group stands at each place of the tower's order.

    Args:
        grid_hw: patches down and across.
        merge_size: patches along a merged group's side.
        window_px: side of an attention window in pixels.
        patch_px: side of a patch in pixels.
    """
    grid = torch.tensor([[1, *grid_hw]])
    index, _ = get_vision_window_index(
        grid, spatial_merge_size=merge_size, window_size=window_px, patch_size=patch_px
    )
    return torch.as_tensor(index)


def to_raster(states: Tensor, order: Tensor, grid_hw: tuple[int, int], merge_size: int) -> Tensor:
    """One frame's block output as a picture of patches.

    Args:
        states: (h * w, C) as a vision block returns it.
        order: what window_order gives for this grid.
        grid_hw: (h, w), both multiples of merge_size.
        merge_size: patches along a merged group's side.

    Returns:
        (h, w, C): row and column of each patch in the resized frame.
    """
    height, width = grid_hw
    rows, columns = height // merge_size, width // merge_size
    groups = states.reshape(rows * columns, merge_size * merge_size, -1)
    back = torch.argsort(order).to(groups.device)
    grid = groups[back].reshape(rows, columns, merge_size, merge_size, -1)
    return grid.permute(0, 2, 1, 3, 4).reshape(height, width, -1)

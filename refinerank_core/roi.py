"""Read features inside a box: exact overlap-area weights, so that a tiny box is never lost."""

import torch
from torch import Tensor


def overlap_weights(boxes: Tensor, *, grid_hw: tuple[int, int]) -> Tensor:
    """How much of each grid cell every box covers.

    Args:
        boxes: (N, 4) float corners as fractions of the frame.
        grid_hw: rows and columns of the grid that spans the frame.

    Returns:
        (N, h, w) float32: area of box and cell in units of one cell, 0..1.

    Raises:
        ValueError: boxes is not (N, 4).
    """
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ValueError(f"boxes must be (N, 4), got {tuple(boxes.shape)}")
    height, width = grid_hw
    rows = torch.arange(height, device=boxes.device, dtype=torch.float32)
    columns = torch.arange(width, device=boxes.device, dtype=torch.float32)
    x0, y0, x1, y1 = boxes.float().unbind(dim=1)
    across = _cover(x0 * width, x1 * width, columns)  # (N, w)
    down = _cover(y0 * height, y1 * height, rows)  # (N, h)
    return down[:, :, None] * across[:, None, :]


def _cover(start: Tensor, end: Tensor, cells: Tensor) -> Tensor:
    """(N, cells): length of [start, end] inside each unit cell."""
    left = torch.maximum(start[:, None], cells[None, :])
    right = torch.minimum(end[:, None], cells[None, :] + 1)
    return (right - left).clamp(min=0)


def pool_regions(grid: Tensor, boxes: Tensor) -> Tensor:
    """Mean of a feature grid inside each box, weighted by the exact overlap of cell and box.

    Args:
        grid: (h, w, C) float, one frame's features in raster order.
        boxes: (N, 4) float corners as fractions of the frame.

    Returns:
        (N, C) float32. A box without area reads the cell at its centre.

    Raises:
        ValueError: a shape is wrong.

    Source: RefineRank, arXiv:2608.23928 (region features).
    """
    if grid.ndim != 3:
        raise ValueError(f"grid must be (h, w, C), got {tuple(grid.shape)}")
    height, width = grid.shape[:2]
    weights = overlap_weights(boxes.to(grid.device), grid_hw=(height, width)).flatten(1)
    total = weights.sum(dim=1, keepdim=True)
    pooled = (weights / total.clamp(min=1e-12)) @ grid.reshape(height * width, -1).float()
    # Less than a millionth of a cell cannot be weighed in float32: take the cell it lies in. Asking
    # first whether there is such a box would make a card wait.
    centre = (boxes[:, :2] + boxes[:, 2:]).to(grid.device) / 2
    column = (centre[:, 0] * width).long().clamp(0, width - 1)
    row = (centre[:, 1] * height).long().clamp(0, height - 1)
    return torch.where(total <= 1e-6, grid[row, column].float(), pooled)

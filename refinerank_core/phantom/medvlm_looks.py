"""Where the language side looks in a picture while it reads and writes, and where it should."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from refinerank_core.phantom.medvlm_cells import cells_of

LOOKING_HEADS = 2  # the first heads of a layer are taught where to look, the others are free


def look_shares(queries: Tensor, keys: Tensor, places: Tensor, picture: slice) -> Tensor:
    """Return how much the taught heads attend to each cell of the pictures.

    Args:
        queries: (N, heads, L, head) of the continuations.
        keys: (N, heads, P + L, head) of beginnings and continuations.
        places: (N, K) places in the continuations.
        picture: where the cells stand in the beginnings.

    Returns:
        (N, K, cells), mean over the taught heads; what goes elsewhere is missing from the sum.
    """
    query = queries[:, :LOOKING_HEADS]
    at = places[:, None, :, None].expand(-1, LOOKING_HEADS, -1, query.shape[-1])
    query = query.gather(2, at)
    key = keys[:, :LOOKING_HEADS]
    scores = query @ key.transpose(2, 3) * query.shape[-1] ** -0.5  # (N, heads, K, P + L)
    begun = keys.shape[2] - queries.shape[2]
    unread = torch.arange(keys.shape[2]) > begun + places[..., None]
    scores = scores.masked_fill(unread[:, None], float("-inf"))
    shares: Tensor = scores.softmax(dim=-1)[..., picture].mean(dim=1)
    return shares


def answer_looks(
    labels: Tensor, boxes: Sequence[np.ndarray], grid_hw: tuple[int, int], *, closing: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Say where to look for each token of some answers: at the thing, in the frame in turn.

    Args:
        labels: (N, L) tokens to be written, below 0 where none is.
        boxes: N boxes (T, 4) in 0..1; (0, 4) for what is not in view.
        grid_hw: cells of one frame.
        closing: token that ends a box.

    Returns:
        (M,) row numbers, (M,) places from which a token is written, and (M, T * cells) bool.
    """
    rows, places, cells = [], [], []
    for row, (line, truth) in enumerate(zip(labels.tolist(), boxes, strict=True)):
        frames = [cells_of(box, grid_hw) > 0 for box in truth]
        turn = 0
        for place, token in enumerate(line[1:]):
            if turn >= len(frames):
                break
            if token < 0:
                continue
            wanted = np.zeros((len(frames), len(frames[0])), bool)
            wanted[turn] = frames[turn]
            rows.append(row)
            places.append(place)
            cells.append(torch.from_numpy(wanted.reshape(-1)))
            turn += token == closing
    if not rows:
        return torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.long), torch.zeros(0, 0)
    return torch.tensor(rows), torch.tensor(places), torch.stack(cells)


def missed_looks(shares: Tensor, wanted: Tensor) -> Tensor:
    """Return the mean surprise at where the attention (..., cells) goes, given the right cells."""
    return -(shares * wanted).sum(dim=-1).clamp(min=1e-6).log().mean()

"""Spatial response maps: how much each place of a frame looks like the target, block by block.

They are cosine similarities with the features pooled at the target box: not attention, not a
causal explanation, not confidence. Source: RefineRank, arXiv:2608.23928, figure 2.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from refinerank_core.boxes import normalise
from refinerank_core.grounding import Box
from refinerank_core.models.protocols import VisionFeatures
from refinerank_core.roi import pool_regions

Float16 = NDArray[np.float16]

CAVEAT = (
    "Similarity with the features inside the target box. Not attention, not a causal "
    "explanation, not confidence."
)


@dataclass(frozen=True, eq=False)
class ResponseMaps:
    """The maps of one requested time.

    Attributes:
        target: the box that the frame is compared with, pixels of the frame.
        raw: name ("block7", ..., "final") -> (h, w) float16 cosine similarity, -1..1. The cells
            split the frame evenly: cell (row, column) covers row/h..(row+1)/h of its height.
    """

    target: Box
    raw: Mapping[str, Float16]

    def scaled(self, *, shared: bool = False) -> dict[str, Float16]:
        """Each map stretched to 0..1, on its own range or on one range for all.

        A map without any contrast becomes 0 everywhere.
        """
        wide = {name: values.astype(np.float64) for name, values in self.raw.items()}
        everything = np.concatenate([values.ravel() for values in wide.values()])
        common = (everything.min(), everything.max())
        scaled: dict[str, Float16] = {}
        for name, values in wide.items():
            low, high = common if shared else (values.min(), values.max())
            span = high - low
            stretched = (values - low) / span if span > 0 else np.zeros_like(values)
            scaled[name] = stretched.astype(np.float16)
        return scaled


def response_maps(vision: VisionFeatures, target: Box, *, size_wh: tuple[int, int]) -> ResponseMaps:
    """Compare every place of the frame with the target box, in each block and the final grid.

    Args:
        vision: the frame's grids.
        target: x0 y0 x1 y1 in pixels of the frame.
        size_wh: the frame's size.
    """
    box = torch.from_numpy(normalise(np.array([target], dtype=np.float32), size_wh=size_wh))
    grids = {f"block{block}": grid for block, grid in sorted(vision.blocks.items())}
    likeness: dict[str, Tensor] = {}
    with torch.inference_mode():
        box = box.to(vision.final.device)
        for name, grid in {**grids, "final": vision.final}.items():
            wanted = pool_regions(grid, box)
            likeness[name] = F.cosine_similarity(grid.float(), wanted[:, None, :], dim=-1)
        flat = torch.cat([one.flatten() for one in likeness.values()]).cpu().numpy()
    parts = np.split(flat.astype(np.float16), np.cumsum([one.numel() for one in likeness.values()]))
    raw = {
        name: part.reshape(one.shape)
        for (name, one), part in zip(likeness.items(), parts[:-1], strict=True)
    }
    return ResponseMaps(target=target, raw=raw)


def as_arrays(maps: Mapping[int, ResponseMaps]) -> dict[str, Float16]:
    """All maps of a grounding under the names of the .npz contract.

    t{k}_block{b} and t{k}_final are stretched to 0..1, t{k}_raw_... are the cosines.

    Args:
        maps: position of the requested time -> its maps.
    """
    arrays: dict[str, Float16] = {}
    for k, one in sorted(maps.items()):
        for name, values in one.scaled().items():
            arrays[f"t{k}_{name}"] = values
            arrays[f"t{k}_raw_{name}"] = one.raw[name]
    return arrays

"""GroundingDINO's image backbone with a memory: another question reuses a frame's feature maps."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from refinerank_core.models.feature_store import FeatureStore


@dataclass(frozen=True, eq=False)
class BackboneMaps:
    """One frame's feature maps, finest first, and where each holds picture and not padding.

    Attributes:
        maps: (C, h, w) each.
        masks: (h, w) bool each.
    """

    maps: tuple[Tensor, ...]
    masks: tuple[Tensor, ...]

    @property
    def nbytes(self) -> int:
        """Memory held by maps and masks."""
        return sum(tensor.nbytes for tensor in (*self.maps, *self.masks))


class BackboneMemory(nn.Module):
    """Stands where the backbone stood and runs it only for frames that it has not seen."""

    def __init__(self, backbone: Any, limit_bytes: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.store: FeatureStore[BackboneMaps] = FeatureStore(limit_bytes)
        self._keys: Sequence[Hashable] = ()
        self._found: list[BackboneMaps | None] = []

    def expect(self, keys: Sequence[Hashable]) -> bool:
        """Say which frames the next forward pass shows; none: nothing is remembered.

        Returns:
            Whether all are remembered: the pass then looks at no pixel.
        """
        self._keys = keys
        self._found = [self.store.get(key) for key in keys]
        return bool(keys) and None not in self._found

    def forward(self, pixel_values: Tensor, pixel_mask: Tensor) -> list[tuple[Tensor, Tensor]]:
        """What the backbone returns: a (B, C, h, w) map and a (B, h, w) mask per level."""
        keys, found = self._keys, self._found
        self._keys, self._found = (), []
        if not keys:
            computed: list[tuple[Tensor, Tensor]] = self.backbone(pixel_values, pixel_mask)
            return computed
        new = [row for row, maps in enumerate(found) if maps is None]
        if new:
            levels = self.backbone(pixel_values[new], pixel_mask[new])
            for place, row in enumerate(new):
                maps = BackboneMaps(
                    maps=tuple(level[place].clone() for level, _ in levels),
                    masks=tuple(mask[place].clone() for _, mask in levels),
                )
                found[row] = maps
                self.store.put(keys[row], maps)
        whole = [maps for maps in found if maps is not None]
        return [
            (torch.stack(level), torch.stack(masks))
            for level, masks in zip(
                zip(*(one.maps for one in whole), strict=True),
                zip(*(one.masks for one in whole), strict=True),
                strict=True,
            )
        ]

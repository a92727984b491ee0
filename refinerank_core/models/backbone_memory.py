"""GroundingDINO's image side with a memory: another question reuses a frame's feature maps.

Kept are the maps after the network's input projections: the question comes in only behind them,
and at official size they take a third of what the backbone's own maps would.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from refinerank_core.models.feature_store import FeatureStore

Level = tuple[Tensor, Tensor]


@dataclass(frozen=True, eq=False)
class BackboneMaps:
    """One frame's projected feature maps, finest first, and where each holds picture.

    Attributes:
        maps: (D, h, w) each; those that are projected further down come last.
        masks: (h, w) bool for each of the backbone's levels, False on padding.
    """

    maps: tuple[Tensor, ...]
    masks: tuple[Tensor, ...]

    @property
    def nbytes(self) -> int:
        """Memory held by maps and masks."""
        return sum(tensor.nbytes for tensor in (*self.maps, *self.masks))


class BackboneMemory(nn.Module):
    """Stands where the backbone stood and runs it only for frames that it has not seen.

    Attributes:
        stand_ins: to put where the network's input projections stood.
    """

    def __init__(
        self, backbone: Any, projections: Iterable[nn.Module], levels: int, limit_bytes: int
    ) -> None:
        """Take over.

        Args:
            backbone: called with pixels and their mask; gives a map and a mask per level.
            projections: of the backbone's levels, then of those made from the last one.
            levels: of the backbone.
            limit_bytes: memory for the maps.
        """
        super().__init__()
        self.backbone = backbone
        self.projections = nn.ModuleList(projections)
        self.store: FeatureStore[BackboneMaps] = FeatureStore(limit_bytes)
        self._further: list[Tensor] = []  # what the stand-ins give in this pass
        self.stand_ins = nn.ModuleList(
            nn.Identity() if place < levels else _Given(self._further, place - levels)
            for place in range(len(self.projections))
        )
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

    def forward(self, pixel_values: Tensor, pixel_mask: Tensor) -> list[Level]:
        """A projected (B, D, h, w) map and a (B, h, w) mask per level of the backbone."""
        keys, found = self._keys, self._found
        self._keys, self._found = (), []
        if not keys:
            maps, masks = self._look(pixel_values, pixel_mask)
            return self._given(maps, masks)
        new = [row for row, kept in enumerate(found) if kept is None]
        if new:
            maps, masks = self._look(pixel_values[new], pixel_mask[new])
            for place, row in enumerate(new):
                kept = BackboneMaps(
                    maps=tuple(level[place].clone() for level in maps),
                    masks=tuple(mask[place].clone() for mask in masks),
                )
                found[row] = kept
                self.store.put(keys[row], kept)
        whole = [kept for kept in found if kept is not None]
        return self._given(
            [torch.stack(level) for level in zip(*(one.maps for one in whole), strict=True)],
            [torch.stack(level) for level in zip(*(one.masks for one in whole), strict=True)],
        )

    def _look(self, pixel_values: Tensor, pixel_mask: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """All projected maps, and the masks of the backbone's levels."""
        levels: list[Level] = self.backbone(pixel_values, pixel_mask)
        maps = [
            project(level) for project, (level, _) in zip(self.projections, levels, strict=False)
        ]
        last = levels[-1][0]
        for place in range(len(levels), len(self.projections)):
            last = self.projections[place](last)
            maps.append(last)
        return maps, [mask for _, mask in levels]

    def _given(self, maps: list[Tensor], masks: list[Tensor]) -> list[Level]:
        self._further[:] = maps[len(masks) :]
        return list(zip(maps, masks, strict=False))


class _Given(nn.Module):
    """Stands where a projection stood whose map is there already."""

    def __init__(self, maps: list[Tensor], place: int) -> None:
        super().__init__()
        self._maps, self._place = maps, place

    def forward(self, _source: Tensor) -> Tensor:
        return self._maps[self._place]


class PositionMemory(nn.Module):
    """Stands where a position embedding stood: pictures without padding share theirs by size."""

    def __init__(self, embed: nn.Module, sizes: int = 32) -> None:
        super().__init__()
        self.embed = embed
        self._sizes = sizes
        self._kept: dict[Hashable, Tensor] = {}

    def forward(self, maps: Tensor, mask: Tensor) -> Tensor:
        """(B, D, h, w) for the places of (B, h, w) masks."""
        if not bool(mask.all()):
            return torch.as_tensor(self.embed(maps, mask))
        key = (tuple(mask.shape), maps.dtype, maps.device)
        if key not in self._kept:
            if len(self._kept) >= self._sizes:
                self._kept.clear()
            self._kept[key] = torch.as_tensor(self.embed(maps, mask))
        return self._kept[key]

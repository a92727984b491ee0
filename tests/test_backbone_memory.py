"""What the detector remembers of a frame: projected maps, and positions by size."""

from typing import Any

import torch
from torch import Tensor, nn

from refinerank_core.models.backbone_memory import BackboneMemory, PositionMemory


class Halving(nn.Module):
    """A backbone of two levels that counts the pictures it looks at."""

    def __init__(self) -> None:
        super().__init__()
        self.looked = 0

    def forward(self, pixels: Tensor, mask: Tensor) -> list[tuple[Tensor, Tensor]]:
        self.looked += len(pixels)
        return [(pixels[..., ::s, ::s], mask[:, ::s, ::s].bool()) for s in (2, 4)]


def further(source: Tensor) -> Tensor:
    """As a network goes on from its last level."""
    return source[..., ::2, ::2]


class Scaled(nn.Module):
    def __init__(self, by: float, smaller: bool = False) -> None:
        super().__init__()
        self.by, self.smaller = by, smaller

    def forward(self, source: Tensor) -> Tensor:
        return self.by * (further(source) if self.smaller else source)


def projected(memory: BackboneMemory, pixels: Tensor, keys: list[Any]) -> list[Tensor]:
    """Four levels as a network builds them: two of the backbone, two made from the last."""
    memory.expect(keys)
    levels = memory(pixels, torch.ones(len(pixels), *pixels.shape[-2:]))
    assert len(levels) == 2
    stand_ins = memory.stand_ins
    maps = [stand_ins[place](level) for place, (level, _) in enumerate(levels)]
    maps.append(stand_ins[2](levels[-1][0]))
    maps.append(stand_ins[3](maps[-1]))
    return maps


def test_remembered_frames_need_neither_backbone_nor_projections() -> None:
    backbone = Halving()
    parts = [Scaled(2), Scaled(3), Scaled(5, smaller=True), Scaled(7, smaller=True)]
    memory = BackboneMemory(backbone, parts, 2, 1 << 20)
    pixels = torch.arange(2 * 3 * 16 * 16.0).reshape(2, 3, 16, 16)
    last = pixels[..., ::4, ::4]
    expected = [
        2 * pixels[..., ::2, ::2],
        3 * last,
        5 * further(last),  # from the last level as the backbone gave it
        7 * further(5 * further(last)),
    ]

    unkept = projected(memory, pixels, [])
    first = projected(memory, pixels[:1], ["a"])
    both = projected(memory, pixels, ["a", "b"])
    assert backbone.looked == 2 + 1 + 1
    assert memory.expect(["b", "a"])
    blank = projected(memory, torch.zeros(2, 3, 1, 1), ["b", "a"])
    assert backbone.looked == 4

    for level, wanted in enumerate(expected):
        torch.testing.assert_close(unkept[level], wanted)
        torch.testing.assert_close(first[level], wanted[:1])
        torch.testing.assert_close(both[level], wanted)
        torch.testing.assert_close(blank[level], wanted.flip(0))
    sizes = sum(level[0].numel() * 4 for level in expected) + (64 + 16)  # masks: a byte a place
    assert memory.store.get("a").nbytes == sizes  # type: ignore[union-attr]


class Counting(nn.Module):
    """A position embedding that counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, maps: Tensor, mask: Tensor) -> Tensor:
        self.calls += 1
        return mask.cumsum(1).float()[:, None]


def test_positions_are_shared_by_size_but_for_padded_pictures() -> None:
    embed = Counting()
    memory = PositionMemory(embed, sizes=2)
    whole = torch.ones(1, 3, 4, dtype=torch.bool)
    padded = whole.clone()
    padded[:, 2] = False
    maps = torch.zeros(1, 8, 3, 4)

    for _ in range(3):
        torch.testing.assert_close(memory(maps, whole)[0, 0, :, 0], torch.tensor([1.0, 2.0, 3.0]))
    assert embed.calls == 1
    for _ in range(2):
        torch.testing.assert_close(memory(maps, padded)[0, 0, :, 0], torch.tensor([1.0, 2.0, 2.0]))
    assert embed.calls == 3
    assert memory(maps[:, :, :2], whole[:, :2]).shape == (1, 1, 2, 4)
    memory(maps[..., :2], whole[..., :2])  # a third size: the first two are let go
    memory(maps, whole)
    assert embed.calls == 6

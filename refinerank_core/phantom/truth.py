"""What is true of one rendered frame: every tool end, hand and structure."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import cv2
import numpy as np

IN_VIEW_SHARE = MappingProxyType(
    {  # a thing that shows less of itself than this counts as not in view
        "tool": 0.30,
        "hand": 0.20,
        "structure": 0.20,
    }
)
SIDE_MARGIN = 0.12  # a shaft closer than this to a corner of the view has no clear side


@dataclass(frozen=True, eq=False)
class ObjectTruth:
    """One thing of a frame that shows at least a pixel of itself.

    The box of a tool is that of its working end, not of its shaft, as in CholecTrack20; the box
    of a hand is that of its glove. Boxes and masks cover what can be seen: not what a thing above
    hides, nor what lies outside the frame or the scope's circle.

    Attributes:
        instance: the same number for the same thing through the whole scene.
        name: its class, such as "hook".
        kind: "tool", "hand" or "structure".
        box: (4,) float32, house box.
        mask: (H, W) bool, or None when masks were not asked for.
        visible_share: seen area over whole area, 0..1.
        side: where its shaft or arm enters: "left", "right", "top", "bottom"; None without one.
        side_is_clear: False near a corner, where two sides would be right.
        owner: "own" or "other" in open surgery, else None.
        hand: "left" or "right": the hand it is, or that holds it; else None.
        action: what it is doing, such as "dissecting"; None while it only moves.
        target: the structure it acts on; None without an action.
    """

    instance: int
    name: str
    kind: str
    box: np.ndarray
    mask: np.ndarray | None
    visible_share: float
    side: str | None = None
    side_is_clear: bool = False
    owner: str | None = None
    hand: str | None = None
    action: str | None = None
    target: str | None = None

    @property
    def in_view(self) -> bool:
        return self.visible_share >= IN_VIEW_SHARE[self.kind]

    def as_json(self) -> dict[str, object]:
        """Return everything but the mask as plain values."""
        return {
            "instance": self.instance,
            "name": self.name,
            "kind": self.kind,
            "box": [round(float(edge), 2) for edge in self.box],
            "visible_share": round(self.visible_share, 3),
            "side": self.side,
            "side_is_clear": self.side_is_clear,
            "owner": self.owner,
            "hand": self.hand,
            "action": self.action,
            "target": self.target,
        }


@dataclass(frozen=True, eq=False)
class FrameTruth:
    """All things of one frame.

    Attributes:
        time_s: of the frame.
        size_wh: of the frame, in pixels.
        objects: things with at least one visible pixel, by instance.
    """

    time_s: float
    size_wh: tuple[int, int]
    objects: tuple[ObjectTruth, ...]

    def in_view(self, kind: str | None = None) -> list[ObjectTruth]:
        """Return the things that count as in view, of one kind or of all."""
        return [
            thing
            for thing in self.objects
            if thing.in_view and (kind is None or thing.kind == kind)
        ]

    def instance(self, number: int) -> ObjectTruth | None:
        """Return the thing with this instance number, or None when nothing of it shows."""
        return next((thing for thing in self.objects if thing.instance == number), None)

    def as_json(self) -> dict[str, object]:
        return {
            "time_s": round(self.time_s, 3),
            "size_wh": list(self.size_wh),
            "objects": [thing.as_json() for thing in self.objects],
        }


def box_of(mask: np.ndarray, px_per_cell: float) -> np.ndarray:
    """Return the tight house box of the true cells of a raster, in frame pixels."""
    x, y, width, height = cv2.boundingRect(mask)
    return np.asarray(np.array([x, y, x + width, y + height], np.float32) * np.float32(px_per_cell))


def side_of(
    inside: np.ndarray, outside: np.ndarray, half_wh: tuple[float, float]
) -> tuple[str, bool]:
    """Return the side by which the line from inside to outside leaves a view, and if it is clear.

    Args:
        inside, outside: (2,) points about the view's centre.
        half_wh: half the width and height of what shows of the view.
    """
    half = np.asarray(half_wh)
    step = outside - inside
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(step > 0, (half - inside) / step, (-half - inside) / step)
    reach = np.where(np.isfinite(reach), np.maximum(reach, 0.0), np.inf)
    place = (inside + step * min(float(reach.min()), 1.0)) / half
    across, down = float(place[0]), float(place[1])
    if abs(across) >= abs(down):
        name = "right" if across > 0 else "left"
    else:
        name = "bottom" if down > 0 else "top"
    return name, abs(abs(across) - abs(down)) >= SIDE_MARGIN

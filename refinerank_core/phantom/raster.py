"""The truth raster: who covers which cell, drawn finer than the frame so that boxes are exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from refinerank_core.phantom.geometry import VIEW_WIDTH
from refinerank_core.phantom.shapes import Part, Patch
from refinerank_core.phantom.truth import box_of

FINE_HEIGHT = 320  # cells from top to bottom, at least
FREE, HIDDEN = 0, 255
MOST = 128  # of 255: a frame pixel is of the one thing that has more than half of its cells


@dataclass(frozen=True, eq=False)
class Seen:
    """The visible part of one thing: its house box, its share of the whole, its mask."""

    box: np.ndarray
    share: float
    mask: np.ndarray | None


class Raster:
    """Painter's algorithm over labels: what is added later covers what was there.

    Body number i is labelled 2 i + 1 where it is shaft or sleeve and 2 i + 2 where it is boxed.
    """

    def __init__(self, size_wh: tuple[int, int], hidden: np.ndarray | None) -> None:
        self.size_wh = size_wh
        self.fine = max(1, -(-FINE_HEIGHT // size_wh[1]))  # cells per frame pixel
        self.hidden = hidden
        width, height = size_wh[0] * self.fine, size_wh[1] * self.fine
        self.cells = np.zeros((height, width), np.uint8)
        self.scale = np.array([width / VIEW_WIDTH, height]) * 16
        self.free = np.ones((size_wh[1], size_wh[0]), bool)  # frame pixels that show the field
        self.whole: list[int] = []  # cells of each body's boxed part, were it all in view
        self.frames: list[tuple[int, int, int, int]] = []  # where those cells may lie

    def add(self, patches: Sequence[Patch]) -> None:
        """Lay the next body over those before it."""
        number = len(self.whole)
        solid = [patch for patch in patches if patch.part is not Part.DECORATION]
        working = []
        for patch in solid:
            points = np.rint(patch.points * self.scale - 8).astype(np.int32)
            boxed = patch.part is Part.WORKING
            cv2.fillPoly(self.cells, [points], 2 * number + 1 + boxed, cv2.LINE_8, 4)
            if boxed:
                working.append(points)
        if not working:
            self.whole.append(0)
            self.frames.append((0, 0, 0, 0))
            return
        joined = np.concatenate(working)
        low, high = joined.min(axis=0) // 16 - 1, joined.max(axis=0) // 16 + 2
        whole = np.zeros((high - low)[::-1], np.uint8)
        corner = (low * 16).astype(np.int32)
        for points in working:
            cv2.fillPoly(whole, [points - corner], 1, cv2.LINE_8, 4)
        self.whole.append(cv2.countNonZero(whole))
        height, width = self.cells.shape
        x0, y0 = np.clip(low, 0, (width, height))
        x1, y1 = np.clip(high, 0, (width, height))
        self.frames.append((int(x0), int(y0), int(x1), int(y1)))

    def close(self) -> None:
        """Hide what lies outside the scope's circle; nothing is added after this."""
        if self.hidden is not None:
            height, width = self.cells.shape
            hidden = cv2.resize(self.hidden, (width, height), interpolation=cv2.INTER_NEAREST)
            cv2.bitwise_or(self.cells, hidden, self.cells)

        open_cells = cv2.inRange(self.cells, FREE, FREE)
        self.free = cv2.resize(open_cells, self.size_wh, interpolation=cv2.INTER_AREA) > MOST

    def seen(self, number: int, *, with_mask: bool) -> Seen | None:
        """Return the visible part of a body, or None when no cell of it shows."""
        x0, y0, x1, y1 = self.frames[number]
        if x1 <= x0 or y1 <= y0:
            return None
        own = cv2.inRange(self.cells[y0:y1, x0:x1], 2 * number + 2, 2 * number + 2)
        count = cv2.countNonZero(own)
        if not count:
            return None
        box = box_of(own, 1.0) + np.array([x0, y0, x0, y0], np.float32)
        mask = None
        if with_mask:
            full = np.zeros(self.cells.shape, np.uint8)
            full[y0:y1, x0:x1] = own
            small = cv2.resize(full, self.size_wh, interpolation=cv2.INTER_AREA)
            mask = small > MOST
        return Seen(np.asarray(box / np.float32(self.fine)), count / self.whole[number], mask)

    def seen_structure(self, labels: np.ndarray, label: int, *, with_mask: bool) -> Seen | None:
        """Return what bodies and circle leave of a structure.

        Args:
            labels: (H, W) uint8 of the structures, at the frame's size.
            label: of this one.
            with_mask: make the mask.

        Its share is of what the frame holds: the whole organ reaches far beyond.
        """
        whole = labels == label
        own = (whole & self.free).astype(np.uint8)
        count = cv2.countNonZero(own)
        if count < 4:
            return None
        share = count / int(np.count_nonzero(whole))
        return Seen(box_of(own, 1.0), share, own.astype(bool) if with_mask else None)

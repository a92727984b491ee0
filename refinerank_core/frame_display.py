"""From a stored picture to the RGB picture as shown: square pixels, upright, opaque."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import numpy as np
from av import VideoFrame
from av.buffer import Buffer
from av.video.reformatter import Interpolation

from refinerank_core.structures import Image

_TURNS = {  # counter-clockwise degrees: transpose, flip x, flip y
    0: (False, False, False),
    90: (True, False, True),
    180: (False, True, True),
    270: (True, True, False),
}
_SAR_RANGE = (Fraction(1, 4), Fraction(4))  # outside it the tag is a writer's mistake


@dataclass(frozen=True)
class Display:
    """How stored pictures become shown ones.

    The shown width is the stored width times the sample aspect ratio (heights are kept); then
    the display matrix turns or mirrors the picture by quarter turns.

    Attributes:
        stored_size_wh: pixels as coded.
        square_size_wh: pixels after squaring them, before turning.
        transpose: rows become columns.
        flip_x: mirror left and right, after the transpose.
        flip_y: mirror top and bottom, after the transpose.
    """

    stored_size_wh: tuple[int, int]
    square_size_wh: tuple[int, int]
    transpose: bool = False
    flip_x: bool = False
    flip_y: bool = False

    @property
    def size_wh(self) -> tuple[int, int]:
        """Width and height as shown."""
        width, height = self.square_size_wh
        return (height, width) if self.transpose else (width, height)

    @property
    def turned(self) -> bool:
        """Whether the display matrix changes anything."""
        return self.transpose or self.flip_x or self.flip_y


def read_display(frame: VideoFrame, sample_aspect: Fraction | None) -> tuple[Display, list[str]]:
    """Read the geometry of a stream off its first picture.

    Args:
        frame: the first decoded picture.
        sample_aspect: pixel width over pixel height; None or 0 means square.

    Returns:
        The display, and sentences about what was done or left undone.
    """
    notes: list[str] = []
    stored = (frame.width, frame.height)
    square = stored
    if sample_aspect and sample_aspect != 1:
        if _SAR_RANGE[0] <= sample_aspect <= _SAR_RANGE[1]:
            square = (max(1, round(frame.width * sample_aspect)), frame.height)
            notes.append(
                f"pixels are not square ({sample_aspect.numerator}:{sample_aspect.denominator}): "
                f"shown as {square[0]}x{square[1]}, stored as {stored[0]}x{stored[1]}"
            )
        else:
            notes.append(f"the pixel shape {sample_aspect} makes no sense and is ignored")
    turn = _read_turn(frame)
    if turn is None:
        notes.append("the file asks for a rotation that is no quarter turn: it is ignored")
        turn = (False, False, False)
    display = Display(stored, square, *turn)
    if display.turned:
        notes.append("the file's rotation is applied")
    return display, notes


def _read_turn(frame: VideoFrame) -> tuple[bool, bool, bool] | None:
    """Transpose, flip x, flip y of the display matrix; None when it is no quarter turn."""
    try:
        matrix = cast(Mapping[str, Buffer], frame.side_data).get("DISPLAYMATRIX")
    except ValueError:  # side data of a kind that PyAV has no name for hides the rest
        return _TURNS.get(frame.rotation % 360)
    if matrix is None:
        return False, False, False
    a, b, _, c, d, *_ = struct.unpack("=9i", bytes(matrix)[:36])  # x' = ax + cy, y' = bx + dy
    if min(abs(a), abs(d)) > 50 * max(abs(b), abs(c)):
        return False, a < 0, d < 0
    if min(abs(b), abs(c)) > 50 * max(abs(a), abs(d)):
        return True, c < 0, b < 0
    return None


def show(frame: VideoFrame, display: Display) -> Image:
    """Turn a decoded picture into the shown one.

    Transparent parts lie over black. A picture whose own size differs from the stream's is
    scaled to the stream's, so that boxes keep one space. Colours follow the file's matrix and
    range tags; high dynamic range is not tone-mapped.

    Args:
        frame: a decoded picture in any pixel format.
        display: the stream's geometry.

    Returns:
        (H, W, 3) uint8 RGB, H and W as display.size_wh says, contiguous.
    """
    see_through = frame.format.name.startswith("pal") or any(
        component.is_alpha for component in frame.format.components
    )
    width, height = display.square_size_wh
    image = frame.to_ndarray(
        format="rgba" if see_through else "rgb24",
        width=width,
        height=height,
        interpolation=Interpolation.BICUBIC,
    )
    if see_through:
        alpha = image[..., 3:].astype(np.uint16)
        image = ((image[..., :3] * alpha + 127) // 255).astype(np.uint8)
    if display.transpose:
        image = image.transpose(1, 0, 2)
    if display.flip_x:
        image = image[:, ::-1]
    if display.flip_y:
        image = image[::-1]
    return np.ascontiguousarray(image)

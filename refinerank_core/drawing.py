"""Draw answers on frames: each role has a hue, a line style and a tag on a dark casing."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise

import cv2
import numpy as np
from PIL import Image as PillowImage
from PIL import ImageDraw, ImageFont

from refinerank_core.grounding import Box, Grounding, TimeGrounding
from refinerank_core.structures import Frame, Image

PANEL_WIDTH_PX = 640
_COLUMNS = 2
_MARGIN_PX = 12
_CASING = (16, 16, 16)
_PAPER = (24, 26, 30)
_INK = (238, 238, 238)
_ALARM = (255, 176, 0)


@dataclass(frozen=True)
class Role:
    """How a kind of box is told apart: RGB hue, line width in pixels, dash (on, off, ...), tag."""

    colour: tuple[int, int, int]
    width_px: float
    dash_px: tuple[float, ...]
    tag: str
    name: str


ROLES = {
    "pool": Role((187, 187, 187), 1.0, (1.5, 4.0), "", "candidates"),
    "refinerank": Role((86, 180, 233), 3.0, (), "R1", "RefineRank"),
    "medvlm": Role((240, 228, 66), 2.5, (14.0, 7.0), "V", "MedVLM"),
    "medvlm_groundingdino": Role(
        (0, 158, 115), 2.5, (12.0, 5.0, 3.0, 5.0), "D", "MedVLM + GroundingDINO"
    ),
}


def draw_box(picture: Image, box: Box, role: Role) -> None:
    """Draw one box into an RGB picture, in place: casing, line, and the tag if there is one.

    Args:
        picture: (H, W, 3) uint8 RGB, writable.
        box: x0 y0 x1 y1 in pixels of the picture.
        role: how it looks.
    """
    x0, y0, x1, y1 = box
    corners = [(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)]
    if role.width_px >= 2:
        _polyline(picture, corners, _CASING, role.width_px + 3, ())
    _polyline(picture, corners, role.colour, role.width_px, role.dash_px)
    if role.tag:
        _tag(picture, (x0, y0), role)


def _polyline(
    picture: Image,
    points: Sequence[tuple[float, float]],
    colour: tuple[int, int, int],
    width_px: float,
    dash_px: tuple[float, ...],
) -> None:
    shift = 4  # sub-pixel bits of OpenCV's coordinates
    for start, end in _pieces(points, dash_px):
        cv2.line(
            picture,
            tuple(round(value * (1 << shift)) for value in start),
            tuple(round(value * (1 << shift)) for value in end),
            colour,
            max(1, round(width_px)),
            cv2.LINE_AA,
            shift,
        )


def _pieces(
    points: Sequence[tuple[float, float]], dash_px: tuple[float, ...]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The line cut into its dashes; each side of a box starts its pattern anew."""
    pieces = []
    for first, last in pairwise(points):
        start, end = np.array(first), np.array(last)
        length = float(np.hypot(*(end - start)))
        if not dash_px or length == 0:
            pieces.append((start, end))
            continue
        at, k = 0.0, 0
        while at < length:
            stop = min(at + dash_px[k % len(dash_px)], length)
            if k % 2 == 0:
                pieces.append(
                    (start + (end - start) * at / length, start + (end - start) * stop / length)
                )
            at, k = stop, k + 1
    return pieces


def _tag(picture: Image, corner: tuple[float, float], role: Role) -> None:
    """The role's letter on a dark plate just above the box, or inside it at the frame's edge."""
    font = _font(14)
    left, top, right, bottom = font.getbbox(role.tag)
    width, height = int(right - left) + 8, int(bottom - top) + 7
    x = int(np.clip(corner[0], 0, picture.shape[1] - width))
    y = int(corner[1]) - height - 2
    y = y if y >= 0 else min(int(corner[1]) + 2, picture.shape[0] - height)
    plate = PillowImage.new("RGB", (width, height), _CASING)
    ImageDraw.Draw(plate).text((4 - left, 3 - top), role.tag, fill=role.colour, font=font)
    region = picture[max(y, 0) : y + height, x : x + width]
    region[:] = np.asarray(plate)[: region.shape[0], : region.shape[1]]


def _font(size: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise TypeError("Pillow was built without FreeType; install the wheel from the registry.")
    return font


def draw_time(frame: Frame, one: TimeGrounding, *, width_px: int = PANEL_WIDTH_PX) -> Image:
    """One requested time: the pool ghosted, the three answers on top, a caption below.

    Returns:
        (H, W, 3) uint8 RGB, width_px wide.
    """
    scale = width_px / frame.size_wh[0]
    height_px = max(1, round(frame.size_wh[1] * scale))
    method = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
    picture: Image = np.ascontiguousarray(
        cv2.resize(frame.image, (width_px, height_px), interpolation=method), dtype=np.uint8
    )
    for candidate in one.candidates:
        draw_box(picture, _scaled(candidate.box, scale), ROLES["pool"])
    answers = one.answers
    spoken = answers.medvlm.box
    if spoken is not None:
        draw_box(picture, _scaled(spoken, scale), ROLES["medvlm"])
    draw_box(
        picture, _scaled(answers.medvlm_groundingdino.box, scale), ROLES["medvlm_groundingdino"]
    )
    draw_box(picture, _scaled(answers.refinerank.box, scale), ROLES["refinerank"])
    best = answers.refinerank
    origin = (
        f"refined from #{best.candidate_id + 1}" if best.refined else f"#{best.candidate_id + 1}"
    )
    words = (
        f"{one.requested_s:.3f} s   frame {one.frame_index} at {one.frame_s:.3f} s   "
        f"R1 {origin}, margin {best.margin:.2f}   V {'no box' if spoken is None else 'box'}"
    )
    return np.vstack([picture, _line(words, width_px, size=13, colour=_INK)])


def _scaled(box: Box, scale: float) -> Box:
    x0, y0, x1, y1 = (side * scale for side in box)
    return x0, y0, x1, y1


def _line(words: str, width_px: int, *, size: int, colour: tuple[int, int, int]) -> Image:
    """A strip of text as wide as the picture; words that do not fit end in an ellipsis."""
    font = _font(size)
    room = width_px - 2 * _MARGIN_PX
    if font.getlength(words) > room:
        while words and font.getlength(words + "…") > room:
            words = words[:-1]
        words += "…"
    strip = PillowImage.new("RGB", (width_px, size + 12), _PAPER)
    ImageDraw.Draw(strip).text((_MARGIN_PX, 5), words, fill=colour, font=font)
    return np.asarray(strip, dtype=np.uint8)


def draw_grounding(grounding: Grounding, frames: Sequence[Frame]) -> Image:
    """Every requested time in a grid under a heading that names the models and what they are.

    Args:
        grounding: the answers.
        frames: the frame of each requested time, in order.
    """
    panels = [draw_time(frame, one) for frame, one in zip(frames, grounding.times, strict=True)]
    columns = min(_COLUMNS, len(panels))
    width = columns * PANEL_WIDTH_PX + (columns + 1) * _MARGIN_PX
    rows = [_heading(grounding, width)]
    for start in range(0, len(panels), columns):
        row = panels[start : start + columns]
        sheet = np.full((row[0].shape[0] + _MARGIN_PX, width, 3), _PAPER, dtype=np.uint8)
        for k, panel in enumerate(row):
            left = _MARGIN_PX + k * (PANEL_WIDTH_PX + _MARGIN_PX)
            sheet[: panel.shape[0], left : left + PANEL_WIDTH_PX] = panel
        rows.append(sheet)
    return np.vstack(rows)


def _heading(grounding: Grounding, width: int) -> Image:
    profile = grounding.profile
    models = f"{profile.medvlm}   {profile.detector}   {profile.refinenet}"
    lines = [_line(grounding.question.text, width, size=16, colour=_INK)]
    if profile.untrained:
        lines.append(
            _line(
                "UNTRAINED random weights: these boxes mean nothing", width, size=15, colour=_ALARM
            )
        )
    elif profile.phantom:
        lines.append(
            _line(
                "EMBEDDED PHANTOM MODELS: trained on drawn scenes only",
                width,
                size=15,
                colour=_ALARM,
            )
        )
    key = "    ".join(f"{role.tag} {role.name}" for role in ROLES.values() if role.tag)
    lines.append(
        _line(f"{key}    dotted: candidates    |    {models}", width, size=13, colour=_INK)
    )
    return np.vstack(lines)


def png_bytes(picture: Image) -> bytes:
    """An RGB picture as PNG, without metadata."""
    buffer = BytesIO()
    PillowImage.fromarray(picture).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()

"""Aids against showing whom a video is of. They are aids: each may miss.

An endoscope's picture is a circle; what stands outside it, in the dark border, is written there by
the recorder: names, numbers, dates. What a camera sees outside the body shows little red tissue.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import av
import cv2
import numpy as np

from refinerank_core.errors import VideoError
from refinerank_core.frame_writer import write_video
from refinerank_core.structures import Image
from refinerank_core.video import Video

LEAST_TISSUE = 0.05
"""Share of red pixels below which a frame may have been taken outside the body."""

_DARK = 24
_LEAST_RADIUS = 0.3
_LEAST_FILLED = 0.9
_LEAST_DARK_CORNERS = 3
_CIRCLE_FRAMES = 10


def content_circle(image: Image) -> tuple[float, float, float] | None:
    """The circle that holds an endoscope's picture.

    Args:
        image: (H, W, 3) uint8 RGB.

    Returns:
        Centre x, y and radius in pixels; None where the picture fills the frame or is no circle.
    """
    height, width = image.shape[:2]
    bright = (image.max(axis=2) > _DARK).astype(np.uint8)
    kernel = np.ones((5, 5), np.uint8)
    solid = cv2.morphologyEx(bright, cv2.MORPH_OPEN, kernel)  # letters are thin and vanish
    count, labels, stats, _ = cv2.connectedComponentsWithStats(solid)
    if count < 2:
        return None
    largest = 1 + int(stats[1:, cv2.CC_STAT_AREA].argmax())
    region = (labels == largest).astype(np.uint8)
    corners = [region[0, 0], region[0, -1], region[-1, 0], region[-1, -1]]
    if sum(int(corner) == 0 for corner in corners) < _LEAST_DARK_CORNERS:
        return None
    rows, columns = np.flatnonzero(region.any(axis=1)), np.flatnonzero(region.any(axis=0))
    wide, high = columns[-1] - columns[0] + 1, rows[-1] - rows[0] + 1
    radius = max(wide, high) / 2  # a circle may be cut at two sides
    if radius < _LEAST_RADIUS * min(height, width):
        return None
    centre = ((columns[0] + columns[-1] + 1) / 2, (rows[0] + rows[-1] + 1) / 2)
    inside = _disc((height, width), centre, radius)
    filled = float(region[inside].mean()) if inside.any() else 0.0
    outside = float(region[~inside].mean()) if (~inside).any() else 0.0
    if filled < _LEAST_FILLED or outside > 1 - _LEAST_FILLED:
        return None
    return float(centre[0]), float(centre[1]), float(radius)


def mask_border(image: Image) -> tuple[Image, bool]:
    """Black out everything outside the content circle.

    Args:
        image: (H, W, 3) uint8 RGB; not changed.

    Returns:
        The masked picture and True; the same picture and False where no circle was found.
    """
    circle = content_circle(image)
    if circle is None:
        return image, False
    x, y, radius = circle
    masked = image.copy()
    masked[~_disc(image.shape[:2], (x, y), radius)] = 0
    return masked, True


def tissue_share(image: Image) -> float:
    """Share of the pixels that are not dark and have the colour of tissue or blood: red above all.

    0.0 where the whole frame is dark.
    """
    lit = image.max(axis=2) > _DARK
    if not lit.any():
        return 0.0
    hsv = cv2.cvtColor(image, cv2.COLOR_RGB2HSV)
    hue, saturation = hsv[..., 0], hsv[..., 1]
    red = ((hue <= 18) | (hue >= 160)) & (saturation >= 60)
    return float((red & lit).sum() / lit.sum())


def may_be_outside(image: Image) -> bool:
    """Whether a frame shows so little tissue that it may have been taken outside the body."""
    return tissue_share(image) < LEAST_TISSUE


def without_metadata(source: Path, target: Path) -> None:
    """Copy a video's pictures into a new file without titles, dates, places, names or sound.

    The pictures are copied as they are, packet by packet; turns and time stamps stay.

    Raises:
        VideoError: the file cannot be read, or its pictures cannot be put into the target's format.
    """
    try:
        with av.open(str(source)) as old, av.open(str(target), "w") as new:
            if not old.streams.video:
                raise VideoError(f"{source.name}: no pictures in it. Choose a video.")
            stream = old.streams.video[0]
            copy = new.add_stream_from_template(stream)
            for key in list(copy.metadata):
                del copy.metadata[key]
            for packet in old.demux(stream):
                if packet.dts is not None:
                    packet.stream = copy
                    new.mux(packet)
    except (av.FFmpegError, ValueError, OSError) as error:
        target.unlink(missing_ok=True)
        raise VideoError(
            f"{source.name} cannot be copied without its metadata. Export it again as MP4, H.264."
        ) from error


def looked_at(video: Video, *, every_s: float = 1.0) -> list[tuple[float, bool]]:
    """Whether frames may have been taken outside the body: (time in seconds, may be outside).

    Args:
        video: an open video.
        every_s: distance of the frames that are looked at.
    """
    times = np.arange(0.0, max(video.duration_s, 1e-6), every_s)
    places = sorted({video.nearest(float(time_s))[0] for time_s in times})
    frames = (video.read_frame(place) for place in places)
    return [(frame.time_s, may_be_outside(frame.image)) for frame in frames]


def outside_note(looked: Sequence[tuple[float, bool]]) -> str:
    """A warning where frames may have been taken outside the body; "" where none was found."""
    outside = [time_s for time_s, may_be in looked if may_be]
    if not outside:
        return ""
    return (
        f"{len(outside)} of {len(looked)} frames looked at show little red tissue, the first at "
        f"{outside[0]:.1f} s: they may show the room or a face. This is an aid and may miss; look "
        "at the video before you share it."
    )


def masked_copy(video: Video, target: Path) -> None:
    """Write the video anew with everything outside one content circle black.

    The circle is the median of those of ten frames, so that it does not jump.

    Raises:
        VideoError: no frame shows a content circle, or the file cannot be written.
    """
    places = sorted({int(place) for place in np.linspace(0, len(video) - 1, _CIRCLE_FRAMES)})
    found = [content_circle(video.read_frame(place).image) for place in places]
    circles = [circle for circle in found if circle is not None]
    if not circles:
        raise VideoError(
            f"{video.name}: no content circle was found, so that no border can be masked. "
            "Leave the mask out, or crop the video."
        )
    x, y, radius = (float(value) for value in np.median(np.array(circles), axis=0))
    width, height = video.size_wh
    outside = ~_disc((height, width), (x, y), radius)

    def masked() -> Iterator[Image]:
        for place in range(len(video)):
            image = video.read_frame(place).image.copy()
            image[outside] = 0
            yield image

    write_video(target, masked(), video.times_s)


def _disc(size_hw: tuple[int, int], centre: tuple[float, float], radius: float) -> np.ndarray:
    """(H, W) bool, True inside a circle of pixel centres."""
    rows, columns = np.ogrid[: size_hw[0], : size_hw[1]]
    inside: np.ndarray = (columns + 0.5 - centre[0]) ** 2 + (rows + 0.5 - centre[1]) ** 2 <= (
        radius + 0.5
    ) ** 2
    return inside

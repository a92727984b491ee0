"""Opening a video file: what is in it, whether its head and tail decode, how it is shown."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from av import VideoFrame
from av.container import InputContainer
from av.error import FFmpegError
from av.stream import Disposition
from av.video.stream import VideoStream

from refinerank_core.errors import VideoError
from refinerank_core.footage import Footage
from refinerank_core.frame_display import Display, read_display, show
from refinerank_core.frame_stream import FrameStream, open_input
from refinerank_core.frame_table import FrameTable, Listing, list_frames
from refinerank_core.gop_cache import GopCache
from refinerank_core.structures import Image

EXPORT_AGAIN = "Export the clip again as MP4, H.264."

_TAIL_GROUPS = 3  # groups of pictures tried from the end of a cut file
_TAIL_PIXELS = 50_000_000  # a whole-looking file's last group is decoded up to this size
_EVEN_GAPS = 1.5  # times the usual gap: a longer one near the end of a cut file is a hole
_TAIL_FRAMES = 16  # how many frames at the end are looked at
_REORDER = 4  # how many pictures codecs hold back in practice
_HDR_CURVES = {16: "PQ", 18: "HLG"}  # ITU-T H.273, table 3


class ShownStream:
    """A decoded stream seen through its display."""

    def __init__(self, stream: FrameStream, display: Display, cache: GopCache) -> None:
        self._stream = stream
        self._display = display
        self._cache = cache

    def read(self, index: int) -> Image | None:
        """Give the shown picture of a frame index, None when the bytes do not give it."""
        frame = self._stream.read(index)
        return None if frame is None else show(frame, self._display)

    def close(self) -> None:
        """Let the file and the decoded pictures go."""
        self._stream.close()
        self._cache.clear()


def open_file(path: Path, name: str, cache_bytes: int) -> Footage:
    """Open a video file.

    Args:
        path: a regular file.
        name: what to call it in messages.
        cache_bytes: most memory held for decoded pictures.

    Raises:
        VideoError: the file is no video, or no picture of it can be decoded.
    """
    require_content(path, name)
    try:
        container = open_input(path)
    except (FFmpegError, OSError, ValueError) as error:
        raise VideoError(f"{name}: {_why_not_opened(path)}") from error
    try:
        return _open_container(path, name, container, cache_bytes)
    except (FFmpegError, OSError) as error:
        raise VideoError(f"{name}: the video is damaged. {EXPORT_AGAIN}") from error


def _open_container(path: Path, name: str, container: InputContainer, cache_bytes: int) -> Footage:
    with container:
        stream, notes = _choose_stream(name, container)
        listing = list_frames(container, stream)
        if listing.table is None:
            raise VideoError(f"{name}: the video holds no pictures. {EXPORT_AGAIN}")
        frames = FrameStream(path, stream.index, listing.table, GopCache(0))
        picture, table, probe_notes = _probe(name, frames, listing, listing.table)
        frames.close()
        display, display_notes = read_display(picture, stream.sample_aspect_ratio)
        still = container.format.name.endswith("_pipe")
        cache = GopCache(cache_bytes)
        return Footage(
            files=(path,),
            hash_names=False,
            times_s=table.times_s,
            end_s=0.0 if still else table.end_s,
            key_frames=tuple(int(index) for index in np.flatnonzero(table.key)),
            size_wh=display.size_wh,
            stored_size_wh=display.stored_size_wh,
            codec=stream.codec_context.codec.canonical_name,
            warnings=(
                *notes,
                *listing.notes,
                *probe_notes,
                *display_notes,
                *_picture_notes(picture),
            ),
            source=ShownStream(FrameStream(path, stream.index, table, cache), display, cache),
        )


def require_content(path: Path, name: str) -> None:
    """Raise VideoError unless a path is a regular file, readable, with bytes in it."""
    try:
        if not path.is_file():  # a pipe or a device would make us wait for ever
            raise VideoError(f"{name}: not a file. {EXPORT_AGAIN}")
        with path.open("rb") as file:
            if not file.read(1):
                raise VideoError(f"{name}: the file is empty. Copy or export the clip again.")
    except OSError as error:
        raise VideoError(
            f"{name}: the file cannot be read. Check that you may open it, or copy it again."
        ) from error


def _why_not_opened(path: Path) -> str:
    """Tell an unfinished recording from a file that is no video."""
    with path.open("rb") as file:
        head = file.read(12)
    if head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide"):
        return (
            "the recording is unfinished or cut off: its index is missing. "
            "Export or copy the clip again."
        )
    return f"not a video that can be read. {EXPORT_AGAIN}"


def _choose_stream(name: str, container: InputContainer) -> tuple[VideoStream, list[str]]:
    """Pick the picture stream: the default one, then the largest, then the first."""
    still = Disposition.attached_pic | Disposition.timed_thumbnails
    streams = [
        stream
        for stream in container.streams.video
        if stream.codec_context is not None and not stream.disposition & still
    ]
    reject_without_video(name, [stream.type for stream in container.streams], len(streams))
    best = max(
        streams,
        key=lambda stream: (
            bool(stream.disposition & Disposition.default),
            stream.codec_context.width * stream.codec_context.height,
        ),
    )
    if best.codec_context.codec is None or best.codec_context.width == 0:
        raise VideoError(f"{name}: its kind of video cannot be decoded. {EXPORT_AGAIN}")
    if len(streams) == 1:
        return best, []
    number = streams.index(best) + 1
    return best, [f"the file holds {len(streams)} video streams: number {number} is used"]


def reject_without_video(name: str, kinds: Sequence[str], videos: int) -> None:
    """Raise VideoError when none of a container's streams is a video.

    Args:
        name: of the file.
        kinds: what each stream is; a "video" that is none is a cover picture.
        videos: how many streams are videos.
    """
    if not videos:
        found = ", ".join("cover picture" if kind == "video" else kind for kind in kinds)
        raise VideoError(f"{name}: no video stream ({found or 'no streams'}). {EXPORT_AGAIN}")


def _probe(
    name: str, frames: FrameStream, listing: Listing, table: FrameTable
) -> tuple[VideoFrame, FrameTable, list[str]]:
    """Decode the head, and the tail where it may be missing: (picture, true table, notes)."""
    head = next(frames.walk(0), None)
    if head is None:
        raise VideoError(f"{name}: no picture of it can be decoded. {EXPORT_AGAIN}")
    first, picture = head
    stop = len(table)
    tail_pixels = (stop - _last_key(table)) * picture.width * picture.height
    if listing.cut or tail_pixels <= _TAIL_PIXELS:
        stop = _sure_stop(listing, table, _readable_stop(frames, table))
    notes = []
    if first:
        notes.append(f"the first {first} frames lack the pictures they build on and are left out")
    whole = max(listing.promised, len(table))
    if stop < whole:
        notes.append(f"truncated: {stop - first} of {whole} frames can be read")
    return picture, table.keep(first, max(stop, first + 1)), notes


def _last_key(table: FrameTable) -> int:
    keys = np.flatnonzero(table.key)
    return int(keys[-1]) if len(keys) else 0


def _readable_stop(frames: FrameStream, table: FrameTable) -> int:
    """One past the last picture that decodes, looking at the last few groups only."""
    stop = len(table)
    for _ in range(_TAIL_GROUPS):
        got = max((index for index, _ in frames.walk(stop - 1)), default=-1)
        if got >= 0:
            return got + 1
        keys = np.flatnonzero(table.key[:stop])
        stop = int(keys[-1]) if len(keys) else 0
        if stop == 0:
            break
    return max(stop, 1)


def _sure_stop(listing: Listing, table: FrameTable, stop: int) -> int:
    """Where a cut file's last pictures begin to miss some that came later in the file.

    What is missing would be decoded, and so shown, after the last decoding time there is: an
    unusual gap after that time in an evenly timed file is such a hole.
    """
    if listing.order_guessed:
        return max(1, stop - _REORDER) if listing.cut else stop
    gaps = np.diff(table.times_s[:stop])
    body, tail = gaps[:-_TAIL_FRAMES], gaps[-_TAIL_FRAMES:]
    if len(body) < _TAIL_FRAMES or body.max() > _EVEN_GAPS * np.median(body):
        return stop
    first = stop - len(tail)  # the frame behind the first gap of the tail
    late = table.pts[first - 1 : stop - 1] >= table.decode_ticks.max()
    holes = np.flatnonzero(late & (tail > _EVEN_GAPS * np.median(body)))
    return stop if len(holes) == 0 else first + int(holes[0])


def _picture_notes(picture: VideoFrame) -> list[str]:
    notes = []
    if picture.interlaced_frame:
        notes.append("interlaced: the two fields of a frame are shown together, as stored")
    curve = _HDR_CURVES.get(picture.color_trc)
    if curve is not None:
        notes.append(f"high dynamic range ({curve}): colours are not tone-mapped")
    return notes

"""Which pictures a video holds and when: read off the packets, without decoding any."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from av import Packet
from av.container import InputContainer
from av.error import FFmpegError
from av.video.stream import VideoStream
from numpy.typing import NDArray

from refinerank_core.structures import Bool, Float64

_ORDERLESS = ("h264", "hevc", "vvc")  # codecs whose order the demuxer does not work out itself
_STUBBORN_ERRORS = 8  # read errors in a row after which the rest of a file counts as lost
_JUMP_BACK_S = 1.0  # decoding time never falls back this far within one recording


@dataclass(frozen=True, eq=False)
class FrameTable:
    """The pictures of one stream in presentation order: the only clock there is.

    Attributes:
        pts: (T,) int64, rising: presentation time in ticks. In a counted table 0, 1, 2, ...
        times_s: (T,) float64, rising: seconds from the first picture.
        key: (T,) bool: decoding can start here.
        decode_ticks: (T,) int64: decoding time in ticks; in a counted table the place in the file.
        end_s: when the last picture ends, seconds from the first picture.
        counted: the file orders its pictures only by decoding them, so they are told apart by
            counting from a key picture instead of by time stamp.
    """

    pts: NDArray[np.int64]
    times_s: Float64
    key: Bool
    decode_ticks: NDArray[np.int64]
    end_s: float
    counted: bool

    def __post_init__(self) -> None:
        for values in (self.pts, self.times_s, self.key, self.decode_ticks):
            values.setflags(write=False)

    def __len__(self) -> int:
        return len(self.pts)

    def index_of(self, pts: int) -> int | None:
        """Frame index of a time stamp in ticks, None when no picture has it."""
        index = int(np.searchsorted(self.pts, pts))
        return index if index < len(self.pts) and self.pts[index] == pts else None

    def keep(self, chosen: slice) -> "FrameTable":
        """Give the table of a run of pictures; times start again at 0."""
        times_s = self.times_s[chosen]
        end_s = self.end_s if chosen.stop in (None, len(self)) else float(self.times_s[chosen.stop])
        return replace(
            self,
            pts=self.pts[chosen].copy(),
            times_s=times_s - times_s[0],
            key=self.key[chosen].copy(),
            decode_ticks=self.decode_ticks[chosen].copy(),
            end_s=end_s - float(times_s[0]),
        )


def read_packets(
    container: InputContainer, stream: VideoStream, errors: list[str]
) -> Iterator["Packet[VideoStream]"]:
    """Walk the packets of a stream, over read errors, to where the file really ends.

    Args:
        container: open for reading, placed anywhere.
        stream: the video stream to walk.
        errors: receives one line for each read error.
    """
    in_a_row = 0
    while in_a_row < _STUBBORN_ERRORS:
        try:
            for packet in container.demux(stream):
                if packet.size:
                    in_a_row = 0
                    yield packet
            return
        except (FFmpegError, EOFError) as error:
            errors.append(str(error))
            in_a_row += 1


@dataclass
class _Rows:
    """Packets as read: columns of plain numbers, a few bytes a packet."""

    pts: "array[int]"
    decode_ticks: "array[int]"
    key: bytearray
    last_duration: int = 0
    without_pts: int = 0
    cut: bool = False
    restarted: bool = False


def read_table(
    container: InputContainer, stream: VideoStream, seek_by_pts: bool
) -> tuple[FrameTable | None, bool, list[str]]:
    """Build the frame table of a stream from its packets.

    Packets that show no picture (trimmed by an edit list, invisible reference pictures) and those
    before the first key picture have no row. Pictures that share a time stamp have one row.

    Args:
        container: freshly opened.
        stream: the video stream to list.
        seek_by_pts: the container is indexed by presentation time, not by decoding time.

    Returns:
        The table (None without any picture), whether the file seems cut off, and sentences about
        what was found.
    """
    errors: list[str] = []
    rows = _read_rows(container, stream, errors, seek_by_pts)
    notes: list[str] = []
    if rows.restarted:
        notes.append("the time stamps start over inside the file: only the part before is used")
    cut = rows.cut or bool(errors) or stream.frames > len(rows.pts)
    if not rows.pts:
        return None, cut, notes
    counted = rows.without_pts > 0 or needs_counting(container, stream)
    time_base = stream.time_base or Fraction(1, 1000)
    if counted:
        rate = stream.average_rate or stream.guessed_rate or Fraction(25)
        if rows.without_pts:
            notes.append(f"no time stamps in the file: {float(rate):g} frames a second are assumed")
        time_base = 1 / Fraction(rate)
        table = _counted_table(rows, time_base)
    else:
        table = _stamped_table(rows, time_base)
        if len(table) < len(rows.pts):
            double = len(rows.pts) - len(table)
            notes.append(f"{double} pictures share a time stamp with another and are left out")
    return table, cut, notes


def needs_counting(container: InputContainer, stream: VideoStream) -> bool:
    """Whether the container keeps no presentation times for this codec (AVI, bare streams)."""
    bare = container.format.name in ("h264", "hevc", "avi")
    return bare and stream.codec_context.name in _ORDERLESS


def _starts_afresh(packet: "Packet[VideoStream]", codec: str) -> bool:
    """Whether no picture after this key picture, in the file, is shown before it (IDR)."""
    data = bytes(packet)
    at = data.find(b"\0\0\1")
    while 0 <= at < len(data) - 3:
        head = data[at + 3]
        if (codec == "h264" and head & 31 == 5) or (codec == "hevc" and head >> 1 & 63 in (19, 20)):
            return True
        at = data.find(b"\0\0\1", at + 3)
    return False


def _read_rows(
    container: InputContainer, stream: VideoStream, errors: list[str], seek_by_pts: bool
) -> _Rows:
    rows = _Rows(array("q"), array("q"), bytearray())
    time_base = stream.time_base or Fraction(1, 1000)
    jump_back = int(_JUMP_BACK_S / time_base)
    codec = stream.codec_context.name
    by_order = needs_counting(container, stream)
    shows = _SHOWS.get(codec)
    last_dts: int | None = None
    for packet in read_packets(container, stream, errors):
        pts, dts = packet.pts, packet.dts
        if packet.is_corrupt:
            rows.cut = True
        if dts is not None:
            if last_dts is not None and dts < last_dts - jump_back:
                rows.restarted = True
                break
            last_dts = dts
        if packet.is_discard or (not rows.pts and not packet.is_keyframe):
            continue
        if shows is not None and not shows(bytes(packet)):
            continue
        if pts is None:
            rows.without_pts += 1
            pts = len(rows.pts)
        rows.pts.append(pts)
        rows.decode_ticks.append(pts if dts is None or seek_by_pts else dts)
        rows.key.append(packet.is_keyframe and (not by_order or _starts_afresh(packet, codec)))
        rows.last_duration = packet.duration or 0
    return rows


def _stamped_table(rows: _Rows, time_base: Fraction) -> FrameTable:
    pts, first = np.unique(np.frombuffer(rows.pts, dtype=np.int64), return_index=True)
    times_s = (pts - pts[0]) * time_base.numerator / time_base.denominator
    last_s = float(rows.last_duration * time_base)
    if last_s <= 0 and len(pts) > 1:
        last_s = float(times_s[-1] - times_s[-2])
    return FrameTable(
        pts=pts,
        times_s=times_s.astype(np.float64),
        key=np.frombuffer(bytes(rows.key), dtype=np.bool_)[first],
        decode_ticks=np.frombuffer(rows.decode_ticks, dtype=np.int64)[first],
        end_s=float(times_s[-1]) + last_s,
        counted=False,
    )


def _counted_table(rows: _Rows, period_s: Fraction) -> FrameTable:
    order = np.arange(len(rows.pts), dtype=np.int64)
    return FrameTable(
        pts=order,
        times_s=order * period_s.numerator / period_s.denominator,
        key=np.frombuffer(bytes(rows.key), dtype=np.bool_).copy(),
        decode_ticks=order.copy(),
        end_s=float(len(order) * period_s),
        counted=True,
    )


def _vp8_shows(packet: bytes) -> bool:
    """RFC 6386, section 9.1: bit 4 of the first byte is show_frame."""
    return bool(packet[0] >> 4 & 1)


def _vp9_shows(packet: bytes) -> bool:
    """VP9 bitstream, section 6.2 and annex B: a superframe always ends in a shown picture."""
    if packet[-1] >> 5 == 0b110:
        return True
    first = packet[0]
    at = 2 if first >> 4 & 3 == 3 else 3  # after marker (2) and profile (2; one more in profile 3)
    show_existing, show = first >> at & 1, first >> (at - 2) & 1
    return bool(show_existing or show)


_SHOWS = {"vp8": _vp8_shows, "vp9": _vp9_shows, "libvpx": _vp8_shows, "libvpx-vp9": _vp9_shows}

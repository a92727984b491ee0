"""Which pictures a video holds and when: read off the packets, without decoding any."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from av import Packet
from av.container import InputContainer
from av.error import FFmpegError
from av.video.stream import VideoStream
from numpy.typing import NDArray

from refinerank_core.packet_bits import SHOWS, restarts
from refinerank_core.structures import Bool, Float64

Ticks = NDArray[np.int64]

_STUBBORN_ERRORS = 8  # read errors in a row after which the rest of a file counts as lost
_JUMP_BACK_S = 1.0  # decoding time never falls back this far within one recording
_SEEK_BY_PTS = "matroska"  # containers indexed by presentation time, not by decoding time
_BARE = ("avi", "h264", "hevc")  # containers that keep no presentation time ...
_REORDERED = ("h264", "hevc", "vvc")  # ... for codecs whose order only a decoder works out


@dataclass(frozen=True, eq=False)
class Anchors:
    """Key packets, in rising presentation time: where decoding can start.

    A key packet may be hidden (trimmed off by an edit list) and still be the only way in.

    Attributes:
        pts: (K,) int64 presentation time in ticks; in a counted table the place in the file.
        seek_ticks: (K,) int64: what to seek to.
        size_bytes: (K,) int64: with pts, tells the packet from a half one that follows a seek.
    """

    pts: Ticks
    seek_ticks: Ticks
    size_bytes: Ticks


@dataclass(frozen=True, eq=False)
class FrameTable:
    """The pictures of one stream in presentation order: the only clock there is.

    Attributes:
        pts: (T,) int64, rising: presentation time in ticks. In a counted table 0, 1, 2, ...
        times_s: (T,) float64, rising: seconds from the first picture.
        decode_ticks: (T,) int64: decoding time in ticks; in a counted table the same as pts.
        end_s: when the last picture ends, seconds from the first picture.
        anchors: where decoding can start.
        counted: the file orders its pictures only by decoding them, so they are told apart by
            counting from a key picture instead of by time stamp.
    """

    pts: Ticks
    times_s: Float64
    decode_ticks: Ticks
    end_s: float
    anchors: Anchors
    counted: bool = False

    def __post_init__(self) -> None:
        for values in (self.pts, self.times_s, self.decode_ticks):
            values.setflags(write=False)

    def __len__(self) -> int:
        return len(self.pts)

    @property
    def key(self) -> Bool:
        """(T,) bool: which pictures are key pictures."""
        return np.isin(self.pts, self.anchors.pts)

    def index_of(self, pts: int) -> int | None:
        """Frame index of a time stamp in ticks, None when no picture has it."""
        index = int(np.searchsorted(self.pts, pts))
        return index if index < len(self.pts) and self.pts[index] == pts else None

    def keep(self, first: int, stop: int) -> "FrameTable":
        """Give the table of the pictures first to stop - 1; its times start again at 0."""
        start_s = float(self.times_s[first])
        end_s = self.end_s
        if stop < len(self):
            last_s, before_s = self.times_s[stop - 1], self.times_s[max(stop - 2, 0)]
            end_s = float(2 * last_s - before_s)
        return replace(
            self,
            pts=self.pts[first:stop].copy(),
            times_s=self.times_s[first:stop] - start_s,
            decode_ticks=self.decode_ticks[first:stop].copy(),
            end_s=end_s - start_s,
        )


@dataclass(frozen=True)
class Listing:
    """What one walk over the packets found.

    Attributes:
        table: the pictures; None when there are none.
        promised: how many pictures the file's header speaks of; 0 when it does not say.
        cut: signs that the end of the file is missing.
        order_guessed: the container keeps no presentation times for pictures that may be out of
            order, so the last ones of a cut file cannot be placed.
        notes: sentences for a person.
    """

    table: FrameTable | None
    promised: int
    cut: bool
    order_guessed: bool
    notes: tuple[str, ...]


@dataclass
class _Rows:
    """Packets as read: columns of plain numbers, a few bytes a packet."""

    pts: "array[int]" = field(default_factory=lambda: array("q"))
    dts: "array[int]" = field(default_factory=lambda: array("q"))
    size_bytes: "array[int]" = field(default_factory=lambda: array("q"))
    key: bytearray = field(default_factory=bytearray)
    sure: bytearray = field(default_factory=bytearray)  # counting can start here
    shown: bytearray = field(default_factory=bytearray)
    last_duration: int = 0
    without_pts: bool = False
    cut: bool = False
    restarted: bool = False


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
        except IndexError:
            continue  # a packet of a stream that appears in mid-file and that PyAV does not know
        except (FFmpegError, EOFError) as error:
            errors.append(str(error))
            in_a_row += 1


def list_frames(container: InputContainer, stream: VideoStream) -> Listing:
    """Build the frame table of a stream from its packets.

    Packets that show no picture (trimmed by an edit list, invisible reference pictures) and those
    before the first key picture have no row. Pictures that share a time stamp have one row.

    Args:
        container: freshly opened.
        stream: the video stream to list.

    Returns:
        The table and what was found on the way.
    """
    codec = stream.codec_context.name
    counted = container.format.name in _BARE and codec in _REORDERED
    rows = _read_rows(container, stream, counted)
    cut = rows.cut or len(rows.pts) < stream.frames
    guessed = container.format.name in _BARE and not all(rows.key)
    notes: list[str] = []
    if rows.restarted:
        notes.append("the time stamps start over inside the file: only the part before is used")
    if not any(rows.shown):
        return Listing(None, stream.frames, cut, guessed, tuple(notes))
    if counted or rows.without_pts:
        rate = Fraction(stream.average_rate or stream.guessed_rate or 25)
        if rows.without_pts:
            notes.append(f"no time stamps in the file: {float(rate):g} frames a second are assumed")
        return Listing(_counted_table(rows, 1 / rate), stream.frames, cut, guessed, tuple(notes))
    table = _stamped_table(rows, _time_base(stream), _SEEK_BY_PTS in container.format.name)
    double = sum(rows.shown) - len(table)
    if double:
        notes.append(f"{double} frames share a time stamp with another and are left out")
    return Listing(table, stream.frames, cut, guessed, tuple(notes))


def _time_base(stream: VideoStream) -> Fraction:
    return stream.time_base or Fraction(1, 1000)


def _read_rows(container: InputContainer, stream: VideoStream, counted: bool) -> _Rows:
    rows = _Rows()
    codec = stream.codec_context.name
    shows = SHOWS.get(codec)
    jump_back = int(_JUMP_BACK_S / _time_base(stream))
    errors: list[str] = []
    last_dts: int | None = None
    for packet in read_packets(container, stream, errors):
        pts, dts, key = packet.pts, packet.dts, packet.is_keyframe
        rows.cut = packet.is_corrupt  # in the end: whether the last packet is
        if not rows.pts and not key:
            continue
        if dts is not None and last_dts is not None and dts < last_dts - jump_back:
            rows.restarted = True
            break
        last_dts = dts
        if pts is None:
            rows.without_pts = True
            pts = len(rows.pts)
        rows.pts.append(pts)
        rows.dts.append(pts if dts is None else dts)
        rows.size_bytes.append(packet.size)
        rows.key.append(key)
        rows.sure.append(key and counted and restarts(codec, bytes(packet)))
        rows.shown.append(not packet.is_discard and (shows is None or shows(bytes(packet))))
        rows.last_duration = packet.duration or 0
    rows.cut = rows.cut or bool(errors)
    return rows


def _columns(rows: _Rows) -> tuple[Ticks, Ticks, Ticks, Bool, Bool, Bool]:
    numbers = [np.array(column, np.int64) for column in (rows.pts, rows.dts, rows.size_bytes)]
    flags = [np.frombuffer(bytes(column), np.bool_) for column in (rows.key, rows.sure, rows.shown)]
    return numbers[0], numbers[1], numbers[2], flags[0], flags[1], flags[2]


def _stamped_table(rows: _Rows, time_base: Fraction, seek_by_pts: bool) -> FrameTable:
    all_pts, all_dts, sizes, key, _, shown = _columns(rows)
    pts, first = np.unique(all_pts[shown], return_index=True)
    times_s = (pts - pts[0]) * time_base.numerator / time_base.denominator
    last_s = float(rows.last_duration * time_base)
    if last_s <= 0 and len(pts) > 1:
        last_s = float(times_s[-1] - times_s[-2])
    order = np.flatnonzero(key)[np.argsort(all_pts[key], kind="stable")]
    anchors = Anchors(all_pts[order], (all_pts if seek_by_pts else all_dts)[order], sizes[order])
    return FrameTable(
        pts=pts,
        times_s=times_s.astype(np.float64),
        decode_ticks=all_dts[shown][first],
        end_s=float(times_s[-1]) + last_s,
        anchors=anchors,
    )


def _counted_table(rows: _Rows, period_s: Fraction) -> FrameTable:
    _, all_dts, sizes, key, sure, _ = _columns(rows)
    places = np.arange(len(all_dts), dtype=np.int64)
    if not key.all():  # with reordering only sure restarts serve; then a count is exact
        key = key & sure
        key[0] = True
    return FrameTable(
        pts=places,
        times_s=places * period_s.numerator / period_s.denominator,
        decode_ticks=places.copy(),
        end_s=float(len(places) * period_s),
        anchors=Anchors(places[key], all_dts[key], sizes[key]),
        counted=True,
    )

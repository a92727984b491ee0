"""Decoding exactly the asked picture: start at a key picture before it, stop when it comes."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from av import Packet, VideoFrame
from av import open as open_container
from av.container import InputContainer
from av.error import FFmpegError
from av.video.stream import VideoStream

from refinerank_core.frame_table import FrameTable, read_packets
from refinerank_core.gop_cache import GopCache

PICTURE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff"})
_PICTURE_STARTS = {
    b"\xff\xd8\xff": "jpeg_pipe",
    b"\x89PNG": "png_pipe",
    b"BM": "bmp_pipe",
    b"II*\0": "tiff_pipe",
    b"MM\0*": "tiff_pipe",
}
_PICTURE_HEAD_BYTES = 4096  # an animated PNG says so before its first picture

# Playlists and scripts that make FFmpeg read other files or the network are left out on purpose.
_FORMATS = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,mpegts,mpeg,mpegvideo,m4v,avi,gif,apng,ogg,flv,asf,mxf,"
    "dv,h264,hevc,ivf,obu,nut,yuv4mpegpipe,mjpeg,mp3,flac,wav,aac,"
    "png_pipe,jpeg_pipe,bmp_pipe,webp_pipe,tiff_pipe,jpegls_pipe,pgm_pipe,ppm_pipe"
)
_READ_ON = 8  # pictures: reading this many more in a row is cheaper than a seek
_STEPS_BACK = 3  # key pictures to try when decoding from the nearest one does not give the picture
_EARLY_S = (0, 1, 10)  # how far before the key picture to seek; then the start of the file


def open_input(path: Path) -> InputContainer:
    """Open a local file for reading; only known video formats, never anything it points to."""
    options = {"protocol_whitelist": "file", "format_whitelist": _FORMATS}
    return open_container(f"file:{path}", "r", format=_picture_format(path), options=options)


def _picture_format(path: Path) -> str | None:
    """Name the format of a still by its first bytes; else None, and FFmpeg finds out.

    By the name alone FFmpeg takes many a JPEG, and still%03d.png, for a numbered series.
    """
    if path.suffix.lower() not in PICTURE_SUFFIXES:
        return None
    with path.open("rb") as file:
        head = file.read(_PICTURE_HEAD_BYTES)
    for start, name in _PICTURE_STARTS.items():
        if head.startswith(start):
            return "apng" if name == "png_pipe" and b"acTL" in head else name
    return "webp_pipe" if head[8:12] == b"WEBP" else None


class FrameStream:
    """One open video stream that can be asked for any picture of its table.

    Not safe to share between threads: the owner locks.

    Args:
        path: the file.
        stream_index: which stream of the container.
        table: its pictures.
        cache: receives every picture that decoding passes.
    """

    def __init__(self, path: Path, stream_index: int, table: FrameTable, cache: GopCache) -> None:
        self._path = path
        self._stream_index = stream_index
        self._table = table
        self._cache = cache
        self._container: InputContainer | None = None
        self._run: Iterator[tuple[int, VideoFrame]] | None = None
        self._last_index = -1
        self._damaged_from: int | None = None
        self._lost: set[int] = set()

    def read(self, index: int) -> VideoFrame | None:
        """Decode the picture of a frame index; None when the file's bytes do not give it."""
        held = self._cache.get(index)
        if held is not None or index in self._lost:
            return held
        nearest = self._anchor_of(index)
        start = self._table.index_of(int(self._table.anchors.pts[nearest])) or 0
        if self._run is not None and 0 < index - self._last_index <= index - start + _READ_ON:
            found = self._read_on(index)
            if found is not None:
                return found
        for anchor in range(nearest, max(-1, nearest - _STEPS_BACK), -1):
            self._run = self._decode_from(anchor)
            found = self._read_on(index)
            if found is not None:
                return found
        self._lost.add(index)
        return None

    def walk(self, index: int) -> Iterator[tuple[int, VideoFrame]]:
        """Decode from the key picture before a frame index to the end: (frame index, picture)."""
        self._run = None
        return self._decode_from(self._anchor_of(index))

    def close(self) -> None:
        """Close the file; a later read opens it again."""
        self._run = None
        if self._container is not None:
            self._container.close()
            self._container = None

    def _anchor_of(self, index: int) -> int:
        """Which key packet is the last one shown no later than a frame index."""
        pts = self._table.pts[index]
        return max(0, int(np.searchsorted(self._table.anchors.pts, pts, side="right")) - 1)

    def _read_on(self, index: int) -> VideoFrame | None:
        """Let the running decoder come to a frame index; None when it passes without giving it."""
        for got, frame in self._run or ():
            self._last_index = got
            self._cache.put(got, frame)
            if got >= index:
                return frame if got == index else None
        self._run = None
        return None

    def _open(self) -> tuple[InputContainer, VideoStream]:
        if self._container is None:
            self._container = open_input(self._path)
        for stream in self._container.streams.video:
            if stream.index == self._stream_index:
                return self._container, stream
        raise OSError("the video stream is gone")  # the file changed, or is damaged at its head

    def _decode_from(self, anchor: int) -> Iterator[tuple[int, VideoFrame]]:
        """Decode on from a key packet: (frame index, picture) in presentation order.

        Pictures shown before the key picture need the group before it: they count only where
        there is no group before. Pictures decoded after a damaged one and before the next key
        picture are built on it: they do not count.
        """
        table = self._table
        anchor_pts = int(table.anchors.pts[anchor])
        count = anchor_pts
        self._damaged_from = None
        for frame in self._frames(self._packets_from(anchor)):
            pts = count if table.counted else frame.pts
            count += 1
            index = (
                None if pts is None or (pts < anchor_pts and anchor > 0) else table.index_of(pts)
            )
            if index is not None and not self._spoilt(index, frame):
                yield index, frame

    def _spoilt(self, index: int, frame: VideoFrame) -> bool:
        """Whether a picture is damaged, or may be built on a damaged one."""
        decoded_at = int(self._table.decode_ticks[index])
        since = self._damaged_from
        if frame.is_corrupt and since is None:
            self._damaged_from = decoded_at
        elif frame.key_frame and since is not None and decoded_at > since and not frame.is_corrupt:
            self._damaged_from = None
        return self._damaged_from is not None and decoded_at >= self._damaged_from

    def _frames(self, packets: Iterator["Packet[VideoStream]"]) -> Iterator[VideoFrame]:
        """Decode packets, noting those that cannot be; the decoder is drained at the end."""
        for packet in packets:
            if packet.is_corrupt:
                self._note_damage(packet)
            try:
                yield from packet.decode()
            except FFmpegError:
                if self._table.counted:
                    return  # after a lost picture a count would name the wrong one
                self._note_damage(packet)
        try:
            yield from self._open()[1].codec_context.decode(None)
        except (FFmpegError, EOFError):
            return

    def _note_damage(self, packet: "Packet[VideoStream]") -> None:
        if self._damaged_from is None:
            self._damaged_from = packet.pts if packet.dts is None else packet.dts

    def _packets_from(self, anchor: int) -> Iterator["Packet[VideoStream]"]:
        """Walk the packets from a key packet on, wherever the container's own seek lands."""
        anchors = self._table.anchors
        pts, size = int(anchors.pts[anchor]), int(anchors.size_bytes[anchor])
        target = int(anchors.seek_ticks[anchor])
        if self._table.counted:
            yield from self._counted_packets_from(pts)
            return
        _, stream = self._open()
        second = max(1, int(1 / (stream.time_base or 1)))
        for start in (*(target - early * second for early in _EARLY_S), None):
            started = False
            for packet in self._seek(start):
                started = started or (packet.pts == pts and packet.size == size)
                if started:
                    yield packet
                elif start is not None and packet.dts is not None and packet.dts > target:
                    break  # the seek landed behind the key packet
            if started:
                return

    def _counted_packets_from(self, place: int) -> Iterator["Packet[VideoStream]"]:
        """Walk the packets from a place in the file, counted from its first key packet."""
        at = -1
        for packet in self._seek(None):
            if at >= 0 or packet.is_keyframe:
                at += 1
            if at >= place:
                yield packet

    def _seek(self, target: int | None) -> Iterator["Packet[VideoStream]"]:
        """Walk packets from about a time in ticks on; None is the start of the file."""
        container, stream = self._open()
        try:
            if target is None:
                raise EOFError
            container.seek(target, stream=stream, backward=True)
        except (FFmpegError, EOFError):
            self._reopen()
            container, stream = self._open()
        yield from read_packets(container, stream, [])

    def _reopen(self) -> None:
        if self._container is not None:
            self._container.close()
            self._container = None

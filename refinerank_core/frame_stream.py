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

# Playlists and scripts that make FFmpeg read other files or the network are left out on purpose.
_FORMATS = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,mpegts,mpeg,mpegvideo,m4v,avi,gif,apng,ogg,flv,asf,mxf,"
    "dv,h264,hevc,ivf,obu,nut,yuv4mpegpipe,mjpeg,mp3,flac,wav,aac,"
    "png_pipe,jpeg_pipe,bmp_pipe,webp_pipe,tiff_pipe,jpegls_pipe,pgm_pipe,ppm_pipe,gif_pipe"
)
_READ_ON = 8  # pictures: reading this many more in a row is cheaper than a seek
_STEPS_BACK = 3  # key pictures to try when decoding from the nearest one does not give the picture


def open_input(path: Path) -> InputContainer:
    """Open a local file for reading; only known video formats, never anything it points to."""
    return open_container(
        f"file:{path}", options={"protocol_whitelist": "file", "format_whitelist": _FORMATS}
    )


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
        self._keys = np.flatnonzero(table.key)
        self._container: InputContainer | None = None
        self._run: Iterator[tuple[int, VideoFrame]] | None = None
        self._last_index = -1
        self._lost: set[int] = set()

    def read(self, index: int) -> VideoFrame | None:
        """Decode the picture of a frame index; None when the file's bytes do not give it."""
        held = self._cache.get(index)
        if held is not None or index in self._lost:
            return held
        newest = max(0, int(np.searchsorted(self._keys, index, side="right")) - 1)
        anchor = int(self._keys[newest])
        ahead = index - self._last_index
        if self._run is not None and 0 < ahead <= index - anchor + _READ_ON:
            found = self._read_on(index)
            if found is not None:
                return found
        for back in range(min(_STEPS_BACK, newest + 1)):
            self._run = self._decode_from(int(self._keys[newest - back]))
            self._last_index = -1
            found = self._read_on(index)
            if found is not None:
                return found
        self._lost.add(index)
        return None

    def first(self) -> tuple[int, VideoFrame] | None:
        """Decode the first picture the file gives: (frame index, picture), None without any."""
        self._run = self._decode_from(int(self._keys[0]))
        for index, frame in self._run:
            self._cache.put(index, frame)
            self._last_index = index
            return index, frame
        return None

    def close(self) -> None:
        """Close the file; a later read opens it again."""
        self._run = None
        self._last_index = -1
        if self._container is not None:
            self._container.close()
            self._container = None

    def _read_on(self, index: int) -> VideoFrame | None:
        """Let the running decoder come to a frame index; None when it passes without giving it."""
        for got, frame in self._run or ():
            self._last_index = got
            self._cache.put(got, frame)
            if got == index:
                return frame
            if got > index:
                return None
        self._run = None
        return None

    def _open(self) -> tuple[InputContainer, VideoStream]:
        if self._container is None:
            self._container = open_input(self._path)
        stream = self._container.streams[self._stream_index]
        if not isinstance(stream, VideoStream):  # the file changed under us
            raise FFmpegError(0, "no video stream")
        return self._container, stream

    def _decode_from(self, anchor: int) -> Iterator[tuple[int, VideoFrame]]:
        """Decode on from a key picture: (frame index, picture) in presentation order."""
        counted = self._table.counted
        anchor_pts = int(self._table.pts[anchor])
        next_index = anchor
        for frame in self._frames(self._packets_from(anchor)):
            if counted:
                index: int | None = next_index
                next_index += 1
            elif frame.pts is None or (frame.pts < anchor_pts and anchor > self._keys[0]):
                continue
            else:
                index = self._table.index_of(frame.pts)
            if index is not None and index < len(self._table):
                yield index, frame

    def _frames(self, packets: Iterator["Packet[VideoStream]"]) -> Iterator[VideoFrame]:
        """Decode packets, skipping those that cannot be; the decoder is drained at the end."""
        counted = self._table.counted
        for packet in packets:
            try:
                yield from packet.decode()
            except FFmpegError:
                if counted:
                    return  # after a lost picture a count would name the wrong one
        try:
            yield from self._open()[1].codec_context.decode(None)
        except (FFmpegError, EOFError):
            return

    def _packets_from(self, anchor: int) -> Iterator["Packet[VideoStream]"]:
        """Walk the packets from a key picture's own on, wherever the container's seek lands."""
        if self._table.counted:
            yield from self._counted_packets_from(anchor)
            return
        anchor_pts = int(self._table.pts[anchor])
        target = int(self._table.decode_ticks[anchor])
        _, stream = self._open()
        second = max(1, int(1 / (stream.time_base or 1)))
        for early in (0, second, 10 * second, None):
            start = None if early is None else target - early
            started = False
            for packet in self._seek(start):
                started = started or packet.pts == anchor_pts
                if started:
                    yield packet
                elif start is not None and packet.dts is not None and packet.dts > target:
                    break  # the seek landed behind the key picture
            if started:
                return

    def _seek(self, target: int | None) -> Iterator["Packet[VideoStream]"]:
        """Walk packets from about a decoding time on; None is the start of the file."""
        container, stream = self._open()
        try:
            if target is None:
                raise EOFError
            container.seek(target, stream=stream, backward=True)
        except (FFmpegError, EOFError):
            self.close()
            container, stream = self._open()
        yield from read_packets(container, stream, [])

    def _counted_packets_from(self, anchor: int) -> Iterator["Packet[VideoStream]"]:
        """Walk the packets from the anchor's place in the file, counted from the file's start."""
        place = -1
        for packet in self._seek(None):
            if place < 0 and not packet.is_keyframe:
                continue
            place += 1
            if place >= anchor:
                yield packet

"""A bounded store of decoded pictures, so that stepping back and forth decodes nothing twice."""

from collections import OrderedDict

from av import VideoFrame

CACHE_BYTES = 192 * 2**20  # about 60 pictures of 1920x1080 in 4:2:0


class GopCache:
    """Decoded pictures by frame index; the longest unused go first when the bytes run out.

    Pictures stay in the decoder's own pixel format (1.5 bytes a pixel for 4:2:0, half of RGB), so
    a long group of pictures keeps a window of itself, never all of it.

    Attributes:
        used_bytes: what the stored pictures hold now.
    """

    def __init__(self, limit_bytes: int = CACHE_BYTES) -> None:
        self.used_bytes = 0
        self._limit_bytes = limit_bytes
        self._frames: OrderedDict[int, tuple[VideoFrame, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._frames)

    def get(self, index: int) -> VideoFrame | None:
        """Give the picture of a frame index, or None when it is not held."""
        held = self._frames.get(index)
        if held is None:
            return None
        self._frames.move_to_end(index)
        return held[0]

    def put(self, index: int, frame: VideoFrame) -> None:
        """Hold a picture; the newest one stays even when it alone is over the limit."""
        if index in self._frames:
            self._frames.move_to_end(index)
            return
        size_bytes = sum(plane.buffer_size for plane in frame.planes)
        self._frames[index] = (frame, size_bytes)
        self.used_bytes += size_bytes
        while self.used_bytes > self._limit_bytes and len(self._frames) > 1:
            _, (_, dropped_bytes) = self._frames.popitem(last=False)
            self.used_bytes -= dropped_bytes

    def clear(self) -> None:
        """Let every picture go."""
        self._frames.clear()
        self.used_bytes = 0

"""Frames on their way to the browser: exact pictures as JPEG, kept a while."""

import base64
from collections import OrderedDict
from threading import Lock

import cv2
import numpy as np

from demo.sessions import Clip
from refinerank_core.errors import StoreError
from refinerank_core.structures import Image

LONG_SIDE_PX = 1920
THUMB_PX = 360
QUALITY = 88
CACHE_BYTES = 192 << 20


class FrameImages:
    """Data URLs of frames, least recently asked for out first. Safe for several threads.

    The picture may be smaller than the frame (LONG_SIDE_PX); boxes stay in the frame's pixels.
    """

    def __init__(self, limit_bytes: int = CACHE_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._held_bytes = 0
        self._entries: OrderedDict[tuple[str, int], str] = OrderedDict()
        self._lock = Lock()

    def url(self, clip: Clip, index: int) -> str:
        """One frame as a data URL.

        Raises:
            IndexError: there is no such frame.
            VideoError: its bytes are damaged.
        """
        key = (clip.token, index)
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
        url = encode(clip, index)
        with self._lock:
            if key not in self._entries:
                self._entries[key] = url
                self._held_bytes += len(url)
            while self._held_bytes > self._limit_bytes and len(self._entries) > 1:
                _, dropped = self._entries.popitem(last=False)
                self._held_bytes -= len(dropped)
        return url

    def forget(self, tokens: set[str]) -> None:
        """Drop the pictures of clips that are gone."""
        with self._lock:
            for key in [key for key in self._entries if key[0] in tokens]:
                self._held_bytes -= len(self._entries.pop(key))


def thumb(clip: Clip, index: int) -> str:
    """One frame as a small data URL. Raises IndexError and VideoError, as `FrameImages.url`."""
    return encode(clip, index, THUMB_PX)


def small(jpeg: bytes) -> str:
    """A kept picture as a small data URL. Raises StoreError when it is damaged."""
    image = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
    if image is None:
        raise StoreError("The kept picture is damaged. Forget it in Review.")
    return data_url(pack(np.asarray(image[:, :, ::-1], np.uint8), THUMB_PX))


def encode(clip: Clip, index: int, long_side_px: int = LONG_SIDE_PX) -> str:
    """Decode one frame and pack it as a JPEG data URL."""
    return data_url(pack(clip.video.read_frame(index).image, long_side_px))


def data_url(jpeg: bytes) -> str:
    """A JPEG as the address of a picture."""
    return "data:image/jpeg;base64," + base64.b64encode(jpeg).decode()


def pack(image: Image, long_side_px: int = LONG_SIDE_PX, quality: int = QUALITY) -> bytes:
    """A picture as JPEG, made smaller where it is larger than this."""
    height, width = image.shape[:2]
    scale = long_side_px / max(height, width)
    if scale < 1:
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        image = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
    packed = cv2.imencode(".jpg", image[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    return packed.tobytes()

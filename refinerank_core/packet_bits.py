"""The few bits of coded pictures that no container repeats: shown or not, restart or not."""

from collections.abc import Callable

_START_CODE = b"\0\0\1"
_H264_IDR = 5  # ITU-T H.264, table 7-1
_HEVC_IDR = (19, 20)  # ITU-T H.265, table 7-1: IDR_W_RADL, IDR_N_LP


def restarts(codec: str, packet: bytes) -> bool:
    """Whether no picture after this key picture in the file is shown before it.

    Args:
        codec: FFmpeg's name; for other codecs than h264 and hevc the answer is no.
        packet: one coded picture with start codes (ITU-T H.264 annex B, H.265 annex B).
    """
    at = packet.find(_START_CODE)
    while 0 <= at < len(packet) - 3:
        head = packet[at + 3]
        if codec == "h264" and head & 31 == _H264_IDR:
            return True
        if codec == "hevc" and head >> 1 & 63 in _HEVC_IDR:
            return True
        at = packet.find(_START_CODE, at + 3)
    return False


def vp8_shows(packet: bytes) -> bool:
    """Whether a VP8 packet shows a picture. Source: RFC 6386, section 9.1, show_frame."""
    return bool(packet[0] >> 4 & 1)


def vp9_shows(packet: bytes) -> bool:
    """Whether a VP9 packet shows a picture.

    Source: VP9 bitstream specification, section 6.2 and annex B. A superframe ends in a shown
    picture. Else, bits from the left: marker (2), profile (2; one more in profile 3),
    show_existing_frame, frame_type, show_frame.
    """
    if packet[-1] >> 5 == 0b110:
        return True
    at = 2 if packet[0] >> 4 & 3 == 3 else 3
    return bool(packet[0] >> at & 1 or packet[0] >> (at - 2) & 1)


SHOWS: dict[str, Callable[[bytes], bool]] = {
    "vp8": vp8_shows,
    "libvpx": vp8_shows,
    "vp9": vp9_shows,
    "libvpx-vp9": vp9_shows,
}

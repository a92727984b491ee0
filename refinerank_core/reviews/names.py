"""Names of videos: what two spellings of one name have in common."""

import unicodedata
from pathlib import PurePath

VIDEO_SUFFIXES = frozenset(".mp4 .mov .m4v .mkv .avi .webm .mpg .mpeg .ts .mts .wmv .gif".split())


def video_stem(name: str) -> str:
    """A video's name in composed Unicode, without folders and a video suffix."""
    pure = PurePath(unicodedata.normalize("NFC", name).replace("\\", "/"))
    return pure.stem if pure.suffix.lower() in VIDEO_SUFFIXES else pure.name

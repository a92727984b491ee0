"""What is known here of videos that an imported file names: each is opened when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from demo.sessions import SessionError
from demo.shelf import Shelf
from refinerank_core.errors import VideoError
from refinerank_core.reviews.exchange import VideoInfo

T = TypeVar("T")


class Derived(Mapping[str, T], Generic[T]):
    """A fact about each video of another mapping."""

    def __init__(self, videos: Mapping[str, VideoInfo], fact: Callable[[VideoInfo], T]) -> None:
        self._videos = videos
        self._fact = fact

    def __getitem__(self, stem: str) -> T:
        return self._fact(self._videos[stem])

    def __iter__(self) -> Iterator[str]:
        return iter(self._videos)

    def __len__(self) -> int:
        return len(self._videos)


class KnownVideos(Mapping[str, VideoInfo]):
    """Video stem -> what is known of the bundled clip or the operator's video of this name.

    A file that is no video counts as not being there.
    """

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._tokens = shelf.tokens()

    def __getitem__(self, stem: str) -> VideoInfo:
        try:
            video = self._shelf.clip(self._tokens[stem]).video
        except (SessionError, VideoError) as error:
            raise KeyError(stem) from error
        return VideoInfo(video.name, video.sha256, video.size_wh, video.times_s)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tokens)

    def __len__(self) -> int:
        return len(self._tokens)

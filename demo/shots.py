"""Shot changes of the clips that are looked at, each found once."""

from collections.abc import Callable
from pathlib import Path
from threading import Lock
from weakref import WeakKeyDictionary

from demo.sessions import Clip
from refinerank_core.shots import shot_changes


class Shots:
    """Shot changes by clip, for as long as the clip is open; one search runs at a time."""

    def __init__(self, find: Callable[[Path], tuple[int, ...]] = shot_changes) -> None:
        self._find = find
        self._found: WeakKeyDictionary[Clip, tuple[int, ...]] = WeakKeyDictionary()
        self._searching = Lock()

    def of(self, clip: Clip) -> tuple[int, ...] | None:
        """Frames that begin a new shot; None while another clip is searched: ask again later.

        Raises:
            VideoError: the clip is gone.
        """
        if clip.path is None:
            return ()
        if clip not in self._found:
            if not self._searching.acquire(blocking=False):
                return None
            try:
                self._found[clip] = self._find(clip.path)
            finally:
                self._searching.release()
        return self._found[clip]

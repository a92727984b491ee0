"""Shot changes of the clips that are looked at, each found once."""

from threading import Lock
from weakref import WeakKeyDictionary

from demo.sessions import Clip
from refinerank_core.shots import shot_changes


class Shots:
    """Shot changes by clip, for as long as the clip is open; one search runs at a time."""

    def __init__(self) -> None:
        self._found: WeakKeyDictionary[Clip, tuple[int, ...]] = WeakKeyDictionary()
        self._searching = Lock()

    def of(self, clip: Clip) -> tuple[int, ...]:
        """Frames that begin a new shot.

        Raises:
            VideoError: the clip is gone.
        """
        if clip.path is None:
            return ()
        if clip not in self._found:
            with self._searching:
                if clip not in self._found:
                    self._found[clip] = shot_changes(clip.path)
        return self._found[clip]

"""A bounded cache of vision features, so that a frame passes through a backbone once."""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, Protocol, TypeVar


class HoldsBytes(Protocol):
    """Anything that knows how much memory it holds."""

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        ...


FeaturesT = TypeVar("FeaturesT", bound=HoldsBytes)


class FeatureStore(Generic[FeaturesT]):
    """Least recently used features go first when the memory limit is reached.

    Safe to use from several threads. A single entry larger than the limit is not kept.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._held_bytes = 0
        self._entries: OrderedDict[Hashable, FeaturesT] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def held_bytes(self) -> int:
        """Memory held now."""
        return self._held_bytes

    def get(self, key: Hashable) -> FeaturesT | None:
        """The features under this key, or None."""
        with self._lock:
            features = self._entries.get(key)
            if features is not None:
                self._entries.move_to_end(key)
            return features

    def put(self, key: Hashable, features: FeaturesT) -> None:
        """Keep features under this key and drop the oldest while over the limit."""
        with self._lock:
            old = self._entries.pop(key, None)
            if old is not None:
                self._held_bytes -= old.nbytes
            if features.nbytes > self._limit_bytes:
                return
            self._entries[key] = features
            self._held_bytes += features.nbytes
            while self._held_bytes > self._limit_bytes:
                _, dropped = self._entries.popitem(last=False)
                self._held_bytes -= dropped.nbytes

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self._held_bytes = 0

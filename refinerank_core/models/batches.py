"""Groups of frames that pass through a model together: as many as fit, fewer when memory ends."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import torch

from refinerank_core.errors import ModelError

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

_WHERE_NOT_MEASURED = 8
_LARGEST = 64
_SHARE = 0.8
"""Of the free memory that a group may take; the rest covers what differs from group to group."""


class Memory(Protocol):
    """A device's memory, as far as the size of a group needs it."""

    def start(self) -> None:
        """Begin to watch the peak."""
        ...

    def peak_bytes(self) -> int:
        """The most that was held at once since start, beyond what was held then."""
        ...

    def free_bytes(self) -> int:
        """What a group may still take."""
        ...

    def give_back(self) -> None:
        """Return what is cached and not in use."""
        ...


class CudaMemory:
    """The memory of one card."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._held_bytes = 0

    def start(self) -> None:
        """Begin to watch the peak."""
        torch.cuda.reset_peak_memory_stats(self._device)
        self._held_bytes = torch.cuda.memory_allocated(self._device)

    def peak_bytes(self) -> int:
        """The most that was held at once since start, beyond what was held then."""
        return torch.cuda.max_memory_allocated(self._device) - self._held_bytes

    def free_bytes(self) -> int:
        """Free on the card, with what this process has reserved and does not use."""
        free, _ = torch.cuda.mem_get_info(self._device)
        reserved = torch.cuda.memory_reserved(self._device)
        return free + reserved - torch.cuda.memory_allocated(self._device)

    def give_back(self) -> None:
        """Return what is cached and not in use."""
        torch.cuda.empty_cache()


def memory_of(device: torch.device) -> Memory | None:
    """A card's memory; None for the CPU, whose memory is not measured."""
    return CudaMemory(device) if device.type == "cuda" else None


class Batches:
    """Run a job over many items, group by group.

    With a fixed size every group has it. Without one, the first group is a single item whose memory
    is measured, and the next ones fill the memory that is free. When memory runs out the group is
    halved, the work goes on, and a note says so.
    """

    def __init__(self, size: int | None, memory: Memory | None, *, what: str) -> None:
        """Nothing runs yet.

        Args:
            size: items in a group; None measures.
            memory: of the device; None where it is not measured.
            what: the items in the plural, for notes.
        """
        self._size = size if size is not None or memory is not None else _WHERE_NOT_MEASURED
        self._limit = _LARGEST
        self._memory = memory
        self._what = what
        self._notes: list[str] = []

    def run(
        self, items: Sequence[ItemT], job: Callable[[Sequence[ItemT]], Sequence[ResultT]]
    ) -> list[ResultT]:
        """The job's results for all items, in order.

        Args:
            items: what to work on.
            job: gives one result per item of a group.

        Raises:
            ModelError: memory runs out with a single item.
        """
        results: list[ResultT] = []
        while len(results) < len(items):
            size = min(self._size or 1, self._limit)
            group = items[len(results) : len(results) + size]
            try:
                results += self._watched(group, job)
            except torch.OutOfMemoryError as error:
                self._halve(len(group), error)
        return results

    def take_notes(self) -> tuple[str, ...]:
        """Sentences since the last call."""
        notes, self._notes = tuple(self._notes), []
        return notes

    def _watched(
        self, group: Sequence[ItemT], job: Callable[[Sequence[ItemT]], Sequence[ResultT]]
    ) -> Sequence[ResultT]:
        if self._size is not None or self._memory is None:
            return job(group)
        self._memory.start()
        found = job(group)
        each = max(1, self._memory.peak_bytes() // len(group))
        fitting = int(self._memory.free_bytes() * _SHARE) // each
        self._size = max(1, min(_LARGEST, fitting))
        return found

    def _halve(self, size: int, error: Exception) -> None:
        if self._memory is not None:
            self._memory.give_back()
        if size == 1:
            raise ModelError(
                f"The device has too little memory for one of the {self._what}. Use a profile "
                "with a smaller medvlm.max_pixels or with medvlm.load_bits."
            ) from error
        self._limit = size // 2
        self._notes.append(
            f"Memory ran out with {size} {self._what} at once: went on with {self._limit}, which "
            "is slower and changes no result."
        )

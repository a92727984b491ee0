"""The package `spaces` as it behaves where ZeroGPU is on, without a card.

As in the real one, a decorated generator runs in a forked process: its argument and what it yields
are pickled on the way, a fault comes back as the name of its class, and closing it stops the work.
"""

import inspect
import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from typing import Any

_FORK = multiprocessing.get_context("fork")


class WorkerError(Exception):
    """All that is left of a fault that the package does not know."""


class FakeSpaces:
    """Stands for the module.

    Attributes:
        decorated: functions that were given to GPU.
        asked_s: seconds of the card that each call asked for.
    """

    def __init__(self) -> None:
        self.decorated: list[Callable[..., Iterator[Any]]] = []
        self.asked_s: list[int] = []

    def GPU(self, *, duration: Callable[..., int]) -> Callable[..., Any]:  # noqa: N802
        """The decorator, with a duration that is computed from the arguments."""

        def decorate(task: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
            assert inspect.isgeneratorfunction(task)  # others would not stream
            self.decorated.append(task)

            def lent(*args: object) -> Iterator[Any]:
                self.asked_s.append(duration(*args))
                yield from _forked(task, pickle.dumps(args))

            return lent

        return decorate


def _forked(task: Callable[..., Iterator[Any]], sent: bytes) -> Iterator[Any]:
    here, there = _FORK.Pipe(duplex=False)
    stop = _FORK.Event()
    worker = _FORK.Process(target=_serve, args=(task, sent, there, stop), daemon=True)
    worker.start()
    there.close()
    try:
        while True:
            try:
                kind, value = pickle.loads(here.recv_bytes())
            except EOFError:
                raise WorkerError("GPU task aborted") from None
            if kind == "end":
                return
            if kind == "fault":
                raise WorkerError(value)
            yield value
    finally:
        stop.set()
        worker.join()
        here.close()


def _serve(task: Callable[..., Iterator[Any]], sent: bytes, there: Connection, stop: Event) -> None:
    news = task(*pickle.loads(sent))
    try:
        for one in news:
            if stop.is_set():
                break
            there.send_bytes(pickle.dumps(("news", one)))
    except Exception as error:
        there.send_bytes(pickle.dumps(("fault", type(error).__name__)))
        return
    finally:
        getattr(news, "close", lambda: None)()
    there.send_bytes(pickle.dumps(("end", None)))

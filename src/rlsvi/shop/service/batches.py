"""Requests that wait together share one transaction."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

Request = TypeVar("Request")
MOST = 256  # requests in a transaction


class BusyError(RuntimeError):
    """More requests wait than can be answered soon."""


class Batcher(Generic[Request]):
    """A thread that takes all requests that wait, handles them at once, and goes on with those that came.

    Parameters
    ----------
    handle : returns the result of every request of a list, or the exception that it raises.
    waiting : the most requests that may wait; another one raises a BusyError.
    """

    def __init__(self, handle: Callable[[list[Request]], Sequence[Any]], waiting: int = 4096) -> None:
        self._handle, self._most, self._waiting = handle, waiting, 0
        self._queue: SimpleQueue[tuple[Request, asyncio.Future[Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="batches", daemon=True)
        self._thread.start()

    async def ask(self, request: Request) -> Any:
        """Return the result of a request, or raise its exception."""
        if self._waiting >= self._most:
            raise BusyError(f"{self._waiting} requests wait: ask again in a second")
        future = asyncio.get_running_loop().create_future()
        self._waiting += 1
        self._queue.put((request, future))
        try:
            return await future
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Answer what waits, and end the thread."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (first := self._queue.get()) is not None:
            batch = [first]
            while len(batch) < MOST:
                try:
                    another = self._queue.get_nowait()
                except Empty:
                    break
                if another is None:
                    self._queue.put(None)  # end after this batch
                    break
                batch.append(another)
            self._answer(batch)

    def _answer(self, batch: list[tuple[Request, asyncio.Future[Any]]]) -> None:
        try:
            results = self._handle([request for request, _ in batch])
        except Exception as error:
            results = [error] * len(batch)
        loop = batch[0][1].get_loop()
        if not loop.is_closed():
            loop.call_soon_threadsafe(_deliver, [future for _, future in batch], results)


def _deliver(futures: list[asyncio.Future[Any]], results: Sequence[Any]) -> None:
    for future, result in zip(futures, results, strict=True):
        if future.done():  # its client has left
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)

"""Requests that wait together are handled together."""

import asyncio
import threading

import pytest

from rlsvi_shop.service.app import LARGEST_BATCH, Batcher, BusyError


class Slow:
    """A handler that notes its batches, and answers with ten times the request once it is `free`."""

    def __init__(self):
        self.batches, self.begun, self.free = [], threading.Event(), threading.Event()

    def __call__(self, requests):
        self.batches.append(list(requests))
        self.begun.set()
        self.free.wait(10)
        return [request * 10 for request in requests]


def test_requests_that_come_while_one_is_handled_are_handled_together():
    handle = Slow()

    async def ask():
        batcher = Batcher(handle)
        first = asyncio.create_task(batcher.ask(0))
        await asyncio.to_thread(handle.begun.wait, 10)
        rest = [asyncio.create_task(batcher.ask(n)) for n in range(1, 6)]
        await asyncio.sleep(0)
        handle.free.set()
        found = await asyncio.gather(first, *rest)
        await asyncio.to_thread(batcher.close)
        return found

    assert asyncio.run(ask()) == [0, 10, 20, 30, 40, 50]
    assert handle.batches == [[0], [1, 2, 3, 4, 5]]


def test_an_error_is_raised_for_its_own_request_alone():
    async def ask():
        batcher = Batcher(lambda requests: [ValueError(n) if n == 1 else n for n in requests])
        found = await asyncio.gather(*(batcher.ask(n) for n in range(3)), return_exceptions=True)
        batcher.close()
        return found

    first, second, third = asyncio.run(ask())
    assert (first, third) == (0, 2)
    assert isinstance(second, ValueError)


def test_an_error_of_the_handler_is_raised_for_all_and_the_next_are_handled():
    calls = []

    def handle(requests):
        calls.append(requests)
        if len(calls) == 1:
            raise RuntimeError("once")
        return requests

    async def ask():
        batcher = Batcher(handle)
        with pytest.raises(RuntimeError, match="once"):
            await batcher.ask(1)
        found = await batcher.ask(2)
        batcher.close()
        return found

    assert asyncio.run(ask()) == 2


def test_too_many_that_wait_are_refused_and_a_batch_is_limited():
    handle = Slow()

    async def ask():
        batcher = Batcher(handle, waiting=600)
        tasks = [asyncio.create_task(batcher.ask(n)) for n in range(600)]
        await asyncio.sleep(0)
        with pytest.raises(BusyError, match="600 requests wait"):
            await batcher.ask(0)
        handle.free.set()
        found = await asyncio.gather(*tasks)
        assert await batcher.ask(7) == 70
        batcher.close()
        return found

    assert asyncio.run(ask()) == [10 * n for n in range(600)]
    assert max(map(len, handle.batches)) <= LARGEST_BATCH


def test_closing_answers_what_waits():
    handle = Slow()

    async def ask():
        batcher = Batcher(handle)
        tasks = [asyncio.create_task(batcher.ask(n)) for n in range(5)]
        await asyncio.to_thread(handle.begun.wait, 10)
        closing = asyncio.create_task(asyncio.to_thread(batcher.close))
        handle.free.set()
        found = await asyncio.gather(*tasks)
        await closing
        return found

    assert asyncio.run(ask()) == [0, 10, 20, 30, 40]


def test_a_client_that_has_left_harms_nobody():
    handle = Slow()

    async def ask():
        batcher = Batcher(handle)
        gone = asyncio.create_task(batcher.ask(1))
        await asyncio.to_thread(handle.begun.wait, 10)
        gone.cancel()
        await asyncio.sleep(0)
        handle.free.set()
        found = await batcher.ask(2)
        batcher.close()
        return found

    assert asyncio.run(ask()) == 20

"""Promises, and the tasks that wait for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pytest

from txnkafka.client.promise import Promise, Task
from txnkafka.errors import ClosedError


class Soon:
    """The queue of a reactor."""

    def __init__(self) -> None:
        self.calls: deque[Callable[[], None]] = deque()

    def run(self) -> None:
        while self.calls:
            self.calls.popleft()()


def test_a_promise_has_its_first_result() -> None:
    promise, calls = Promise[int](), list[int]()
    promise.on_done(lambda: calls.append(1))
    promise.set(7)
    promise.set(8)
    promise.fail(ValueError("late"))
    promise.on_done(lambda: calls.append(2))
    assert (promise.result(), promise.error, calls) == (7, None, [1, 2])


def test_a_failed_promise_raises_its_error() -> None:
    promise = Promise[int]()
    promise.fail(ValueError("why"))
    promise.set(8)
    with pytest.raises(ValueError, match="why"):
        promise.result()
    with pytest.raises(KeyError):
        Promise.failed(KeyError("k")).result()
    assert Promise.of(3).result() == 3


def test_a_task_waits_for_promises_and_continues_only_in_the_queue() -> None:
    soon, first, second = Soon(), Promise[int](), Promise[int]()

    async def add() -> int:
        return await first + await second

    task = Task(add(), soon.calls.append)
    second.set(2)
    first.set(1)
    assert not task.is_done
    soon.run()
    assert task.result() == 3


def test_a_task_that_waits_for_nothing_ends_at_once() -> None:
    async def nothing() -> str:
        return await Promise.of("x")

    assert Task(nothing(), Soon().calls.append).result() == "x"


def test_an_error_reaches_the_task_where_it_waits() -> None:
    soon, promise = Soon(), Promise[int]()

    async def wait() -> str:
        try:
            await promise
        except ValueError as error:
            return f"caught {error}"
        return "none"

    task = Task(wait(), soon.calls.append)
    promise.fail(ValueError("it"))
    soon.run()
    assert task.result() == "caught it"


def test_a_cancelled_task_ends_where_it_waits() -> None:
    soon, promise, ended = Soon(), Promise[int](), list[str]()

    async def wait() -> None:
        try:
            await promise
        finally:
            ended.append("finally")

    task = Task(wait(), soon.calls.append)
    task.cancel(ClosedError("closed"))
    promise.set(1)
    soon.run()
    assert ended == ["finally"]
    with pytest.raises(ClosedError):
        task.result()


def test_a_long_loop_over_finished_promises_needs_no_stack() -> None:
    async def count() -> int:
        return sum([await Promise.of(1) for _ in range(10_000)])

    assert Task(count(), Soon().calls.append).result() == 10_000

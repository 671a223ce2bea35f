"""``Turn``: lets one task at a time do something, in order of arrival."""

from __future__ import annotations

from collections import deque

from txnkafka.client.promise import Promise


class Turn:
    """``async with turn:`` waits for the tasks before."""

    def __init__(self) -> None:
        self._is_taken = False
        self._waiters: deque[Promise[None]] = deque()

    async def __aenter__(self) -> None:
        while self._is_taken:
            waiter: Promise[None] = Promise()
            self._waiters.append(waiter)
            await waiter
        self._is_taken = True

    async def __aexit__(self, *error: object) -> None:
        self._is_taken = False
        if self._waiters:
            self._waiters.popleft().set(None)

"""Waiting for a client's promises in an event loop of asyncio."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from txnkafka.client.promise import Promise
    from txnkafka.client.reactor import Reactor
    from txnkafka.client.transport import Transport
    from txnkafka.embedded import Broker

T = TypeVar("T")


async def run(reactor: Reactor, coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine of a client in its reactor, and wait for the result. If the caller is cancelled, the
    operation goes on, as that of a thread that no longer waits."""
    try:
        with reactor:
            task = reactor.spawn(coroutine)
    except BaseException:
        coroutine.close()
        raise
    return await result(reactor, task)


async def result(reactor: Reactor, promise: Promise[T]) -> T:
    """Wait for a promise."""
    if not promise.is_done:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        with reactor.lock:
            promise.on_done(lambda: wake(loop, done))
        await done
    return promise.result()


def wake(loop: asyncio.AbstractEventLoop, done: asyncio.Future[None]) -> None:
    """End the wait for ``done``; called in any thread."""
    with suppress(RuntimeError):  # the loop was closed: nothing waits
        loop.call_soon_threadsafe(_set, done)


def _set(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


def transport_of(broker: Broker | None) -> Callable[[str], Transport] | None:
    """Return the factory of transports to a broker of this process; None for sockets."""
    return None if broker is None else broker._transport

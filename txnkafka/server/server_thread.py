"""``ServerThread``: serves a broker on an event loop in a separate thread."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

from txnkafka.server.exposure import warn_of_exposure
from txnkafka.server.tcp import Address, Server, new_event_loop

if TYPE_CHECKING:
    from collections.abc import Sequence
    from threading import RLock

    from txnkafka.broker.broker import Broker
    from txnkafka.env import Clock
    from txnkafka.server.listeners import Listener

LOG = logging.getLogger("txnkafka.server")


class ServerThread:
    """The thread holds ``lock`` whenever it calls ``broker``. ``failure`` is the exception that ended the
    thread, None without one."""

    def __init__(self, broker: Broker, clock: Clock, listeners: Sequence[Listener], lock: RLock) -> None:
        self.failure: BaseException | None = None
        self._lock = lock
        self._loop = new_event_loop(lock)
        self._server = Server(broker, clock, self._loop)
        self._listeners = listeners
        self._listening: Future[list[Address]] = Future()
        # a daemon: a program that forgets to stop it can end, and the next start recovers the directory
        self._thread = Thread(target=self._run, name="txnkafka-server", daemon=True)
        self._thread.start()

    def addresses(self) -> list[Address]:
        """Wait until the server listens, and return the first address of each listener. Raises OSError when
        an address cannot be listened on; the broker is unchanged then."""
        return self._listening.result()

    def wake(self) -> None:
        """Take a turn: another thread has called the broker."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._server.host.wake)

    def drop_connections(self) -> int:
        """Close all connections at once; return their number. The caller has the lock."""
        connections = list(self._server.connections)
        for connection in connections:
            connection.abort()
        return len(connections)

    def stop(self) -> None:
        """Stop like ``serve`` on SIGTERM: answer the acknowledged requests, and wait until the broker is
        idle. The caller then reads ``failure``. Safe to call twice. A KeyboardInterrupt is raised after the
        thread has ended: until then it uses the broker."""
        with suppress(RuntimeError):  # the loop has ended already
            self._loop.call_soon_threadsafe(self._server.stop)
        interrupt: KeyboardInterrupt | None = None
        while self._thread.is_alive():
            try:
                self._thread.join()
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt

    def _run(self) -> None:
        with self._lock:
            self._serve()

    def _serve(self) -> None:
        try:
            self._loop.run_until_complete(self._server.run(self._listeners, self._started))
        except BaseException as error:
            if not self._listening.done():
                self._listening.set_exception(error)
                return
            self.failure = error
            LOG.exception("the broker failed: close and reopen it to recover its directory")
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())  # ends aborted connections
            self._loop.close()

    def _started(self, addresses: list[list[Address]]) -> None:
        warn_of_exposure(addresses, self._server.endpoints)
        self._listening.set_result([first for first, *_ in addresses])

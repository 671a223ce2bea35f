"""``SocketReactor``: polls the sockets of clients, in the keeper thread."""

from __future__ import annotations

import socket
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from txnkafka.client.promise import Promise
from txnkafka.client.reactor import Reactor

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.env import Clock

T = TypeVar("T")
_READS: Final = {False: EVENT_READ, True: EVENT_READ | EVENT_WRITE}


class Channel(Protocol):
    """The owner of a polled socket."""

    def on_ready(self, *, is_readable: bool, is_writable: bool) -> None:
        """Read, write, or both, without waiting."""


class SocketReactor(Reactor):
    """The keeper polls, and holds the lock except while it waits. A caller that sends does so at once, in
    its own thread."""

    def __init__(self, name: str, clock: Clock) -> None:
        super().__init__(name, clock)
        self._selector = DefaultSelector()
        self._wake_in, self._wake_out = socket.socketpair()
        for end in (self._wake_in, self._wake_out):
            end.setblocking(False)
        self._selector.register(self._wake_out, EVENT_READ, None)
        self._is_polling = False
        self._has_woken = False

    def watch(self, sock: socket.socket, channel: Channel, *, writes: bool = False) -> None:
        """Poll a socket for reading, and for writing if ``writes``."""
        if sock in self._selector.get_map():
            self._selector.modify(sock, _READS[writes], channel)
        else:
            self._selector.register(sock, _READS[writes], channel)
            self._start_keeper()
        self._wakes_ms = self.now_ms() - 1 if self._is_polling else self._wakes_ms
        self._wake_keeper()

    def unwatch(self, sock: socket.socket) -> None:
        """Stop polling a socket."""
        if sock in self._selector.get_map():
            self._selector.unregister(sock)

    def in_thread(self, function: Callable[[], T]) -> Promise[T]:
        """Run a blocking function in a new thread."""
        promise = Promise[T]()

        def run() -> None:
            try:
                result, error = function(), None
            except Exception as raised:
                result, error = None, raised
            with self.lock:
                if not self.is_closed:
                    if error is None:
                        promise.set(result)  # type: ignore[arg-type]
                    else:
                        promise.fail(error)
                    self._run_ready()
                    self._wake_keeper()

        Thread(target=run, name="txnkafka-lookup", daemon=True).start()
        return promise

    def _step(self) -> bool:
        return False  # the keeper does

    def _pause_ms(self) -> int:
        return self._timer_ms()

    def _wake_keeper(self) -> None:
        if self._is_polling and not self._has_woken:
            self._has_woken = True
            self._wake_in.send(b"\0")

    def _keep(self) -> None:
        try:
            while not self.is_closed:
                self._turn()
                self._poll()
        finally:
            self._selector.close()
            self._wake_in.close()
            self._wake_out.close()

    def _poll(self) -> None:
        pause_ms = self._timer_ms()
        self._wakes_ms = self.now_ms() + pause_ms
        self._is_polling = True
        self.lock.release()
        try:
            events: list[Any] = self._selector.select(pause_ms / 1000)
        finally:
            self.lock.acquire()
            self._is_polling = self._has_woken = False
        for key, mask in events:
            if key.data is None:
                self._wake_out.recv(64)
            else:
                key.data.on_ready(is_readable=bool(mask & EVENT_READ), is_writable=bool(mask & EVENT_WRITE))

    def close(self) -> None:
        """Stop polling."""
        super().close()
        if self._keeper is None:
            self._selector.close()
            self._wake_in.close()
            self._wake_out.close()

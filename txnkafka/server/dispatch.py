"""``Dispatcher``: runs the requests of clients on a broker, for any transport."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from txnkafka.server.handlers import handler_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Cancel, Peer, Reply
    from txnkafka.wire.messages.apis import Api


class Counts(Protocol):
    """Counter of requests and responses."""

    def begin(self, broker: Broker, api: Api, version: int, message: Any, reply: Reply) -> Reply:
        """Count a request; return a ``reply`` that counts the response."""


class Dispatcher:
    """Dispatcher of client requests to ``broker``. ``now_ms`` returns the time. ``counts`` may be set."""

    def __init__(self, broker: Broker, now_ms: Callable[[], int]) -> None:
        self.broker = broker
        self.counts: Counts | None = None
        self._now_ms = now_ms

    def call(
        self,
        api: Api,
        version: int,
        message: Any,
        peer: Peer,
        reply: Reply,
        *,
        on_error: Callable[[Exception], None] | None = None,
    ) -> Cancel | None:
        """Run one request; ``reply`` gets the response, now or later.

        Returns a function that withdraws the request while it waits, or None. Raises the exception of the
        handler. ``on_error`` gets the exception of a deferred call for this request."""
        broker = self.broker
        if self.counts is not None:
            reply = self.counts.begin(broker, api, version, message, reply)
        return broker.call(
            handler_of(api), broker, message, version, peer, reply, now_ms=self._now_ms(), owner=on_error
        )

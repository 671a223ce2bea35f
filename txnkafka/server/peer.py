"""``Peer``: the client of a request; and the replies of a handler other than messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from txnkafka.server.fetch_sessions import FetchSessions
    from txnkafka.server.listeners import Endpoint

Cancel = Callable[[], None]
"""Withdraws a waiting request whose connection has ended."""


class CloseConnection(NamedTuple):
    """A reply that closes the connection, for versions that have no response for the error."""

    reason: str


Reply = Callable[[Any], None]
"""Takes the response, once, now or later: a message, None where the request has none, or CloseConnection."""


def unbounded() -> int:
    """Return a limit that never applies."""
    return 1 << 62


class Node(NamedTuple):
    """The addresses of this broker for a client, and its state across connections.

    ``host`` and ``port`` belong to the listener of the client's connection; ``endpoints`` has the addresses
    of all listeners. ``room`` returns the number of bytes of records that a response may have, given the
    unsent responses of all clients."""

    host: str
    port: int
    fetch_sessions: FetchSessions
    room: Callable[[], int] = unbounded
    endpoints: Sequence[Endpoint] = ()


class Peer(NamedTuple):
    """The client of a request: ``client_id`` comes from the request's header, ``client_host`` is the address
    of the connection."""

    node: Node
    client_id: str | None = None
    client_host: str = ""

"""``Peer``: the client of a request, and what a handler may answer beside a message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from txnkafka.server.fetch_sessions import FetchSessions
    from txnkafka.server.listeners import Endpoint

__all__ = ["Cancel", "CloseConnection", "Node", "Peer", "Reply"]

Cancel = Callable[[], None]
"""Withdraws a request that waits: its connection is gone."""


class CloseConnection(NamedTuple):
    """A reply that ends the connection, as a broker does where a version has no way to answer."""

    reason: str


Reply = Callable[[Any], None]
"""Takes the response, once, now or later: a message, None where the request has none, CloseConnection."""


def unbounded() -> int:
    """No connection holds answers back."""
    return 1 << 62


class Node(NamedTuple):
    """The addresses of this broker for a client, and its state across connections. ``host`` and ``port``
    belong to the listener that the client came in by, ``endpoints`` has the addresses of all listeners.
    ``room`` returns the number of bytes of records that an answer may have, given those that clients have not
    taken yet."""

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

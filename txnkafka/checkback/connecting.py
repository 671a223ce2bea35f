"""The broker of a client: a ``Broker`` of this process, or brokers at addresses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from txnkafka.embedded import Broker

if TYPE_CHECKING:
    from txnkafka.client.transport import Transport

Place: TypeAlias = Broker | str | Mapping[str, Any]
"""A Broker, ``bootstrap.servers``, or settings by Kafka's names."""


def connected(
    place: Place, more: Mapping[str, Any]
) -> tuple[dict[str, Any], Callable[[str], Transport] | None]:
    """Return the settings of a client, and the factory of its transport; None for sockets."""
    if isinstance(place, Broker):
        return dict(more), place._transport
    if isinstance(place, str):
        return {"bootstrap.servers": place, **more}, None
    if isinstance(place, Mapping):
        return {**place, **more}, None
    raise TypeError(f"give a Broker, HOST:PORT or a dict of settings, not {place!r}")

"""``Route``: the way of a request of ``Admin`` to its broker, and the lookup after a refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from txnkafka.client.cluster import GROUP as GROUP_COORDINATOR
from txnkafka.client.cluster import TRANSACTION as TRANSACTION_COORDINATOR
from txnkafka.client.cluster import Cluster
from txnkafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from txnkafka.client.transport import Connection

_BROKER, _BROKER_LOGGER = 4, 8  # types of config resources that belong to one broker
_NAMED: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})


class Route(NamedTuple):
    """``find`` returns the connection for a key of a call: a topic, a partition, a group. ``prepare`` looks
    up once what many keys need. ``forget`` is called for a key whose request failed and is repeated.
    ``is_shared``: all keys have the same broker. ``final`` are codes that pass elsewhere, but not here."""

    find: Callable[[Cluster, Any], Awaitable[Connection]]
    forget: Callable[[Cluster, Any], None]
    prepare: Callable[[Cluster, Iterable[Any]], Awaitable[None]] | None = None
    is_shared: bool = False
    final: frozenset[ErrorCode] = frozenset()


def _forget_metadata(cluster: Cluster, key: Any) -> None:
    cluster.updated_ms = -1


async def _any(cluster: Cluster, key: Any) -> Connection:
    return await cluster.any_connection()


async def _controller(cluster: Cluster, key: Any) -> Connection:
    if cluster.is_stale or cluster.controller_id not in cluster.nodes:
        await cluster.refresh()
    if cluster.controller_id not in cluster.nodes:  # KRaft: any broker forwards to the controller
        return await cluster.any_connection()
    return await cluster.connection(cluster.controller_id)


async def _leaders(cluster: Cluster, keys: Iterable[Any]) -> None:
    topics = {key.topic for key in keys}
    cluster.want(topics)
    if cluster.is_stale or not topics <= cluster.topics.keys():
        await cluster.refresh()


async def _leader(cluster: Cluster, key: Any) -> Connection:
    return await cluster.leader(key)


async def _nodes(cluster: Cluster, keys: Iterable[Any]) -> None:
    if cluster.is_stale:
        await cluster.refresh()


async def _node(cluster: Cluster, key: Any) -> Connection:
    return await cluster.connection(key)


async def _config(cluster: Cluster, key: Any) -> Connection:
    if key.type in (_BROKER, _BROKER_LOGGER) and key.name:
        return await cluster.connection(int(key.name))
    return await cluster.any_connection()


def _coordinator(kind: int) -> Route:
    async def find(cluster: Cluster, key: Any) -> Connection:
        return await cluster.coordinator(kind, key)

    return Route(find, lambda cluster, key: cluster.forget_coordinator(kind, key), final=_NAMED)


def at_node(node_id: int) -> Route:
    """Return the route of all keys to one broker."""

    async def find(cluster: Cluster, key: Any) -> Connection:
        return await cluster.connection(node_id)

    return Route(find, _forget_metadata, _nodes, is_shared=True, final=_NAMED)


ANY: Final = Route(_any, _forget_metadata, is_shared=True, final=_NAMED)
CONTROLLER: Final = Route(
    # the controller may still do what it had no time for: a second request could be refused for that reason
    _controller, _forget_metadata, is_shared=True, final=_NAMED | {ErrorCode.REQUEST_TIMED_OUT},
)  # fmt: skip
LEADER: Final = Route(_leader, _forget_metadata, _leaders)
"""Keys are partitions."""
NODE: Final = Route(_node, _forget_metadata, _nodes)
"""Keys are node ids."""
CONFIG: Final = Route(_config, _forget_metadata, _nodes, final=_NAMED)
"""Keys are config resources; a broker is asked for its own settings."""
GROUP: Final = _coordinator(GROUP_COORDINATOR)
"""Keys are group ids."""
TRANSACTION: Final = _coordinator(TRANSACTION_COORDINATOR)
"""Keys are transactional ids."""

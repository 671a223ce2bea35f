"""``Cluster``: the brokers, leaders and coordinators of a cluster, as a client knows them.

It looks up metadata, keeps one connection to each broker, finds coordinators, and repeats requests after
errors that may pass. Source: ``Metadata``, ``NetworkClient``, ``CoordinatorRequestManager``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from txnkafka.client.promise import Promise
from txnkafka.client.transport import Connection, Node, Versions
from txnkafka.env import random_below
from txnkafka.error_codes import ErrorCode, Family
from txnkafka.errors import (
    KafkaError,
    KafkaTimeoutError,
    NetworkError,
    UnknownTopicOrPartitionError,
    error_for,
)
from txnkafka.wire.messages.find_coordinator import FindCoordinatorRequest
from txnkafka.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from txnkafka.wire.schema import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from txnkafka.client.client_config import ClientConfig
    from txnkafka.client.transport import Transport
    from txnkafka.model import TopicPartition

T = TypeVar("T")
GROUP: Final = 0
TRANSACTION: Final = 1
"""The kinds of coordinators, as in FindCoordinator."""
_BATCHED: Final = 4  # the first version of FindCoordinator with several keys (KIP-699)


class Partition(NamedTuple):
    """A partition with its leader; -1 while it has none."""

    number: int
    leader_id: int
    leader_epoch: int
    error: ErrorCode
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Topic(NamedTuple):
    """A topic of the metadata. ``topic_id`` is the zero UUID if the broker knows no ids."""

    name: str
    topic_id: str
    is_internal: bool
    partitions: Mapping[int, Partition]


class Cluster:
    """``topics`` has the topics that the client uses, by name, and ``errors`` the topics that could not be
    described. ``allow_auto_creation``: a lookup creates a topic, if the broker allows it."""

    def __init__(
        self, transport: Transport, config: ClientConfig, *, allow_auto_creation: bool = True
    ) -> None:
        self.transport = transport
        self.reactor = transport.reactor
        self.config = config
        self.allow_auto_creation = allow_auto_creation
        self.cluster_id: str | None = None
        self.controller_id = -1
        self.nodes: dict[int, Node] = {}
        self.topics: dict[str, Topic] = {}
        self.errors: dict[str, ErrorCode] = {}
        self.names: dict[str, str] = {}  # of topics by id
        self.updated_ms = -1
        self.changes = 0  # grows with each update
        self.wants_all = False
        self.features: Mapping[str, int] = {}
        self._features_epoch = -1
        self._wanted: set[str] = set()
        self._refresh: Promise[None] | None = None
        # by the id of the node, and True for the second connection to a coordinator of groups
        self._connections: dict[tuple[int, bool], Promise[Connection]] = {}
        self._failures: dict[int, tuple[int, int]] = {}  # of nodes: number, and time of the next attempt
        self._coordinators: dict[tuple[int, str], int] = {}
        self._next_bootstrap = 0

    # Connections

    async def connection(self, node_id: int, *, to_groups: bool = False) -> Connection:
        """Return a connection to a broker. Raises NetworkError, after a pause if it has failed before.

        A broker answers the requests of a connection in order, so heartbeats and commits would wait for a
        Fetch that waits for records: ``to_groups`` returns a connection of their own, as in Java's
        ``AbstractCoordinator``."""
        node = self.nodes.get(node_id)
        if node is None:
            raise NetworkError(f"node {node_id} is not in the metadata of the cluster")
        return await self._connect(node, to_groups=to_groups)

    async def any_connection(self) -> Connection:
        """Return a connection to any broker."""
        for key, promise in list(self._connections.items()):
            if promise.is_done and promise.error is None and not promise.result().is_closed:
                return promise.result()
            if promise.is_done:
                self._connections.pop(key, None)
        nodes = list(self.nodes.values()) or self.transport.bootstrap
        error: KafkaError = NetworkError("the cluster has no brokers")
        for _ in range(len(nodes)):
            self._next_bootstrap += 1
            try:
                return await self._connect(nodes[self._next_bootstrap % len(nodes)])
            except KafkaError as failed:
                error = failed
        if self.nodes:  # none of them is alive: the bootstrap servers may know others (KIP-899)
            self.nodes = {}
            return await self.any_connection()
        raise error

    async def _connect(self, node: Node, *, to_groups: bool = False) -> Connection:
        key = node.node_id, to_groups
        promise = self._connections.get(key)
        if promise is not None and promise.is_done:
            is_over = promise.error is not None or promise.result().is_closed
            if is_over or promise.result().node[1:3] != node[1:3]:
                promise = None
        if promise is None:
            _, at_ms = self._failures.get(node.node_id, (0, 0))
            if at_ms > self.reactor.now_ms():
                await self.reactor.sleep(at_ms - self.reactor.now_ms())
                return await self._connect(node, to_groups=to_groups)
            promise = self.transport.connect(node, self.config.socket_connection_setup_timeout_ms)
            self._connections[key] = promise
        try:
            connection = await promise
        except KafkaError:
            if self._connections.get(key) is promise:
                del self._connections[key]
                count = self._failures.get(node.node_id, (0, 0))[0] + 1
                config = self.config
                pause = backoff(config.reconnect_backoff_ms, config.reconnect_backoff_max_ms, count)
                self._failures[node.node_id] = count, self.reactor.now_ms() + pause
            raise
        self._failures.pop(node.node_id, None)
        self._learn(connection.versions)
        return connection

    def _learn(self, versions: Versions) -> None:
        """Keep the features of the highest epoch (``NodeApiVersions``)."""
        if versions.features_epoch > self._features_epoch or not self.features:
            self._features_epoch, self.features = versions.features_epoch, versions.features

    async def request(
        self, connection: Connection, name: str, version: int, message: Any, timeout_ms: int | None = None
    ) -> Any:
        """Send one request within ``request.timeout.ms``, or another time. Raises NetworkError."""
        limit = self.config.request_timeout_ms if timeout_ms is None else timeout_ms
        return await connection.request(name, version, message, limit)

    # Metadata

    async def topic(self, name: str) -> Topic:
        """Return a topic, looked up if it is unknown. Raises UnknownTopicOrPartitionError and other errors of
        Metadata; those that may pass are retriable."""
        found = self.topics.get(name)
        if found is None:
            self._wanted.add(name)
            await self.refresh()
            found = self.topics.get(name)
        if found is None:
            error = self.errors.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            raise error_for(error, f"topic {name}: {error.name}")
        return found

    def leader_of(self, partition: TopicPartition) -> int | None:
        """Return the leader of a partition, if it is known."""
        topic = self.topics.get(partition.topic)
        found = None if topic is None else topic.partitions.get(partition.partition)
        return None if found is None or found.leader_id not in self.nodes else found.leader_id

    async def leader(self, partition: TopicPartition) -> Connection:
        """Return a connection to the leader of a partition."""
        node_id = self.leader_of(partition)
        if node_id is None:
            self._wanted.add(partition.topic)
            await self.refresh()
            topic = await self.topic(partition.topic)
            if partition.partition not in topic.partitions:
                raise UnknownTopicOrPartitionError(
                    f"{partition}: the topic has partitions 0 to {len(topic.partitions) - 1}"
                )
            node_id = self.leader_of(partition)
            if node_id is None:
                raise error_for(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader")
        return await self.connection(node_id)

    def want(self, topics: Iterable[str]) -> None:
        """Add topics to those that each lookup asks for."""
        self._wanted.update(topics)

    def forget(self, topics: Iterable[str]) -> None:
        """Ask for these topics no longer."""
        for topic in topics:
            self._wanted.discard(topic)
            self.topics.pop(topic, None)
            self.errors.pop(topic, None)

    @property
    def is_stale(self) -> bool:
        """Return whether the metadata are older than ``metadata.max.age.ms``, or miss a topic."""
        age = self.reactor.now_ms() - self.updated_ms
        return self.updated_ms < 0 or age >= self.config.metadata_max_age_ms

    async def refresh(self) -> None:
        """Look up the metadata. Callers share a lookup that is under way."""
        refresh = self._refresh
        if refresh is None or refresh.is_done:
            refresh = self._refresh = self.reactor.spawn(self._look_up())
        await refresh

    async def _look_up(self) -> None:
        connection = await self.any_connection()
        version = connection.versions.pick("Metadata", at_least=1)
        asked = None
        if not self.wants_all:
            asked = tuple(MetadataRequestTopic(name=name) for name in sorted(self._wanted))
        message = MetadataRequest(topics=asked, allow_auto_topic_creation=self.allow_auto_creation)
        response = await self.request(connection, "Metadata", version, message)
        if response.error_code:
            raise error_for(response.error_code)
        self.cluster_id, self.controller_id = response.cluster_id, response.controller_id
        nodes = {
            each.node_id: Node(each.node_id, each.host, each.port, each.rack) for each in response.brokers
        }
        if nodes:
            self.nodes = nodes
        topics, self.errors = {}, {}
        for each in response.topics:
            if each.error_code:
                self.errors[each.name or each.topic_id] = ErrorCode.of(each.error_code)
            else:
                topics[each.name] = self._topic(each)
        self.topics = topics
        self.names = {each.topic_id: each.name for each in topics.values() if each.topic_id != ZERO_UUID}
        self.updated_ms = self.reactor.now_ms()
        self.changes += 1

    def _topic(self, described: Any) -> Topic:
        """Return a topic. A leader epoch that goes back is from a broker that is behind (KIP-320)."""
        known = self.topics.get(described.name)
        partitions = {}
        for each in described.partitions:
            row = Partition(
                each.partition_index, each.leader_id, each.leader_epoch, ErrorCode.of(each.error_code),
                each.replica_nodes, each.isr_nodes,
            )  # fmt: skip
            if known is not None and known.topic_id == described.topic_id:
                before = known.partitions.get(row.number)
                if before is not None and 0 <= row.leader_epoch < before.leader_epoch:
                    row = before
            partitions[row.number] = row
        return Topic(
            described.name, described.topic_id, described.is_internal, dict(sorted(partitions.items()))
        )

    # Coordinators

    async def coordinator(self, kind: int, key: str) -> Connection:
        """Return a connection to the coordinator of a group or transactional id."""
        node_id = self._coordinators.get((kind, key))
        if node_id is not None and node_id in self.nodes:
            return await self.connection(node_id, to_groups=kind == GROUP)
        connection = await self.any_connection()
        version = connection.versions.pick("FindCoordinator", at_least=1)
        if version >= _BATCHED:
            message = FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,))
        else:
            message = FindCoordinatorRequest(key=key, key_type=kind)
        response = await self.request(connection, "FindCoordinator", version, message)
        found = response.coordinators[0] if version >= _BATCHED and response.coordinators else response
        if found.error_code:
            raise error_for(found.error_code, found.error_message)
        node = Node(found.node_id, found.host, found.port)
        self.nodes.setdefault(node.node_id, node)
        self._coordinators[kind, key] = node.node_id
        return await self.connection(node.node_id, to_groups=kind == GROUP)

    def forget_coordinator(self, kind: int, key: str) -> None:
        """Find the coordinator again, before its next request."""
        self._coordinators.pop((kind, key), None)

    # Retries

    async def retried(
        self,
        attempt: Callable[[], Awaitable[T]],
        timeout_ms: int,
        what: str,
        *,
        coordinator: tuple[int, str] | None = None,
    ) -> T:
        """Make attempts until one succeeds, fails for good, or the time is over.

        An attempt raises a retriable error to be repeated after a pause, which doubles from
        ``retry.backoff.ms`` to ``retry.backoff.max.ms``. Errors that ask for it refresh the metadata and find
        ``coordinator`` again. Raises KafkaTimeoutError with the last error as its cause."""
        until_ms = self.reactor.now_ms() + timeout_ms
        failures = 0
        while True:
            try:
                return await attempt()
            except KafkaError as error:
                if not error.retriable:
                    raise
                failures += 1
                if error.code.family is Family.REFRESH or isinstance(error, NetworkError):
                    if coordinator is not None:
                        self.forget_coordinator(*coordinator)
                    self.updated_ms = -1
                pause = backoff(self.config.retry_backoff_ms, self.config.retry_backoff_max_ms, failures)
                if self.reactor.now_ms() + pause >= until_ms:
                    raise KafkaTimeoutError(f"{what} failed for {timeout_ms} ms: {error}") from error
            await self.reactor.sleep(pause)
            if self.is_stale and coordinator is None:
                await self._refresh_quietly()

    async def _refresh_quietly(self) -> None:
        try:
            await self.refresh()
        except KafkaError:
            self.updated_ms = -1  # the next attempt fails with the reason


def backoff(first_ms: int, longest_ms: int, failures: int) -> int:
    """Return the pause after a number of failures: doubled each time, and up to a fifth shorter or longer
    (``ExponentialBackoff``)."""
    pause = min(first_ms << min(failures - 1, 20), longest_ms)
    return pause * (80 + random_below(41)) // 100

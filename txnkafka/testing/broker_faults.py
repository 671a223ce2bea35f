"""Faults of an embedded broker, for tests of client programs: time, hanging transactions, lost connections;
and the removal of topics and groups between tests.

Each function has the broker as its first argument, and may be called from any thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka.client.promise import Promise
from txnkafka.client.transport import API_OF
from txnkafka.embedded import Broker
from txnkafka.env import LocalDataFiles
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import UnknownTopicOrPartitionError, error_for
from txnkafka.model import TopicPartition
from txnkafka.record.builder import build_batch
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.movable_clock import MovableClock
from txnkafka.testing.settings import SETTINGS
from txnkafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from txnkafka.wire.messages.delete_groups import DeleteGroupsRequest
from txnkafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from txnkafka.wire.messages.init_producer_id import InitProducerIdRequest
from txnkafka.wire.messages.list_groups import ListGroupsRequest
from txnkafka.wire.messages.metadata import MetadataRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from txnkafka.embedded.in_process import InProcessTransport

_INTERNAL: Final = "__"
_CLIENT_ID: Final = "txnkafka-test"


def in_memory() -> tuple[Broker, MovableClock, FaultPlan]:
    """Open a broker in memory, with a clock that can be moved, and a plan of failing syncs."""
    clock, plan = MovableClock(), FaultPlan(call="sync")
    return Broker._in_memory(FaultyFiles(LocalDataFiles(), plan), clock, "fsync", SETTINGS), clock, plan


def advance(broker: Broker, clock: MovableClock, ms: int) -> None:
    """Move the clock of a broker forward, and do what is due then: abort transactions whose time is over,
    remove members without heartbeats, delete old segments, forget idle producers and transactional ids."""
    reactor = broker._reactor
    reactor.host.idle()  # the records of earlier requests have earlier timestamps
    with reactor:
        clock.advance(ms)
        reactor.advance_engine()
    reactor.host.idle()


def hang_transaction(broker: Broker, topic: str, partition: int = 0, records: int = 1) -> int:
    """Append records of a transaction that no coordinator knows, as in KIP-890: it holds back read_committed
    consumers until an administrator aborts it. Returns its producer id. Raises
    UnknownTopicOrPartitionError."""
    engine, place = broker._reactor.engine, TopicPartition(topic, partition)

    async def run(send: Any) -> int:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        identity = await send("InitProducerId", request)
        while identity.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:  # right after a start
            await broker._reactor.sleep(10)
            identity = await send("InitProducerId", request)
        if identity.error_code:
            raise error_for(identity.error_code)
        log = engine.logs.get(place)
        if log is None:
            raise UnknownTopicOrPartitionError(f"{place} does not exist: create the topic first")
        now_ms = broker._reactor.wall_ms()
        batch = build_batch(
            [(None, b"hanging", now_ms)] * records,
            producer_id=identity.producer_id, producer_epoch=0, base_sequence=0, transactional=True,
        )  # fmt: skip
        durable = Promise[None]()
        guard = log.verification.maybe_start(
            log.producers, identity.producer_id, 0, 0, supports_epoch_bump=False, now_ms=now_ms
        )
        log.append(batch, now_ms=now_ms, guard=guard)
        engine.manager.flushes.when_durable(log, lambda _: durable.set(None))
        await durable
        producer_id: int = identity.producer_id
        return producer_id

    producer_id: int = _run(broker, run)
    return producer_id


def drop_connections(broker: Broker) -> int:
    """Close the connections of all clients; returns their number."""
    server = broker._server
    if server is None:
        return 0
    with broker._reactor:
        return server.drop_connections()


def create_topic(broker: Broker, name: str, partitions: int = 1) -> None:
    """Create a topic. Raises the broker's error, such as TopicAlreadyExistsError."""
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)

    async def run(send: Any) -> None:
        response = await send("CreateTopics", CreateTopicsRequest(topics=(topic,), timeout_ms=30_000))
        result = response.topics[0]
        if result.error_code:
            raise error_for(result.error_code, f"topic {name}: {result.error_message}")

    _run(broker, run)


def clean(broker: Broker) -> None:
    """Delete all topics of users, and all groups."""
    _run(broker, _clean)


async def _clean(send: Any) -> None:
    groups = await send("ListGroups", ListGroupsRequest())
    names = tuple(each.group_id for each in groups.groups)
    if names:
        await send("DeleteGroups", DeleteGroupsRequest(groups_names=names))
    described = await send("Metadata", MetadataRequest(topics=None))
    topics = [each.name for each in described.topics if not each.name.startswith(_INTERNAL)]
    if topics:
        states = tuple(DeleteTopicState(name=name) for name in topics)
        await send("DeleteTopics", DeleteTopicsRequest(topics=states, timeout_ms=30_000))


def _run(broker: Broker, function: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
    """Run a coroutine with a function that sends a request in its latest version."""
    transport: InProcessTransport = broker._transport(_CLIENT_ID)

    async def run() -> Any:
        connection = await transport.connect(transport.bootstrap[0], 0)

        async def send(name: str, message: Any) -> Any:
            return await connection.request(name, API_OF[name].announced[1], message, 30_000)

        return await function(send)

    try:
        return broker._reactor.run(run())
    finally:
        transport.close()

"""Sides of the contests about groups: one server each, and what is asked of it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from bench.confluent import SECONDS, TOPIC, create_topic
from bench.group_members import Connection, Members, ready
from bench.harness import DisagreementError, Timing
from bench.servers import Kafka, Server, Txnkafka, cpu_seconds, resident_bytes
from bench.transacting import ConfluentClients, JavaClient, Load
from txnkafka.error_codes import ErrorCode
from txnkafka.wire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from txnkafka.wire.messages.offset_fetch import OffsetFetchRequestTopic, OffsetFetchResponsePartition

__all__ = [
    "CopyingClients",
    "CopyingJavaClient",
    "FirstConsumerSide",
    "HeartbeatSide",
    "LoadedOffsetsSide",
    "RebalanceSide",
]

GROUP = "bench"
WARM_ROUNDS = 20
PARTITIONS = 10  # with an offset of each group
UNDER_WAY = 100  # requests before their answers are read


class _MembersSide:
    """``count`` members of one group, which stay."""

    output = "group"

    def __init__(self, server: Txnkafka | Kafka, count: int, repeat: int) -> None:
        self.name = server.name
        self._server, self._count, self._repeat = server, count, repeat
        self._members: Members | None = None

    def warm(self) -> None:
        """Start the server, and make the group."""
        self._server.start()
        create_topic(self._server, 1)
        self._members = Members(self._server, GROUP, self._count)
        self._members.rebalance()
        for _ in range(WARM_ROUNDS):
            self._work(self._members)

    def run(self) -> Timing:
        """CPU time and memory are those of the server."""
        assert self._members is not None
        process = self._server.process_id
        wall, cpu = time.perf_counter(), cpu_seconds(process)
        latencies = []
        for _ in range(self._repeat):
            begin = time.perf_counter()
            self._work(self._members)
            latencies.append(time.perf_counter() - begin)
        cpu, wall = cpu_seconds(process) - cpu, time.perf_counter() - wall
        return Timing(cpu, wall, self._units(), resident_bytes(process), latencies=latencies)

    def _work(self, members: Members) -> None:
        raise NotImplementedError

    def _units(self) -> int:
        raise NotImplementedError

    def digest(self) -> None:
        """None: every answer was checked."""

    def close(self) -> None:
        """Leave, and stop the server."""
        if self._members is not None:
            self._members.close()
        self._server.stop()


class RebalanceSide(_MembersSide):
    """All members join again, one rebalance after the other."""

    def _work(self, members: Members) -> None:
        members.rebalance()

    def _units(self) -> int:
        return self._repeat


class HeartbeatSide(_MembersSide):
    """Heartbeats of all members, some under way on each connection."""

    each = 20

    def _work(self, members: Members) -> None:
        members.heartbeats(self.each)

    def _units(self) -> int:
        return self._repeat * self.each * self._count


class CopyingClients(ConfluentClients):
    """Transactions of one record and one offset of a group, which has no members."""

    def __init__(self) -> None:
        super().__init__(Load())
        self._consumer: Consumer | None = None

    def open(self, server: Server) -> None:
        """Connect. The group has its coordinator before the first transaction: otherwise Apache Kafka's
        transactional id may be stuck."""
        ready(server, GROUP).close()
        super().open(server)

    def _finish(self, producer: Producer, transaction: int) -> None:
        if self._consumer is None:
            self._consumer = Consumer(
                {"bootstrap.servers": self.bootstrap_servers, "group.id": GROUP, "log_level": 0}
            )
        offsets = [TopicPartition(TOPIC, 0, transaction + 1)]
        producer.send_offsets_to_transaction(offsets, self._consumer.consumer_group_metadata(), SECONDS)

    def close(self) -> None:
        """Disconnect."""
        super().close()
        if self._consumer is not None:
            self._consumer.close()


class CopyingJavaClient(JavaClient):
    """The same with Kafka's own client."""

    def __init__(self) -> None:
        super().__init__(GROUP)

    def open(self, server: Server) -> None:
        """Connect; see ``CopyingClients``."""
        ready(server, GROUP).close()
        super().open(server)


class LoadedOffsetsSide:
    """A restart with ``groups`` groups, each with offsets of ten partitions, until the offsets of one of them
    are answered."""

    output = "offsets"

    def __init__(self, server: Txnkafka | Kafka, groups: int) -> None:
        self.name = server.name
        self._server, self._groups = server, groups

    def warm(self) -> None:
        """Commit all offsets, and stop."""
        self._server.start()
        create_topic(self._server, PARTITIONS)
        connection = ready(self._server, GROUP)
        for first in range(0, self._groups, UNDER_WAY):
            wanted = range(first, min(first + UNDER_WAY, self._groups))
            connection.send(b"".join(_commit(connection, number) for number in wanted))
            for _ in wanted:
                _check(connection.answer("OffsetCommit"))
        connection.close()
        self._server.stop()

    def run(self) -> Timing:
        """CPU time and memory of the server until the answer."""
        wall = time.perf_counter()
        self._server.start()
        connection = ready(self._server, _group(self._groups - 1))
        wall = time.perf_counter() - wall
        process = self._server.process_id
        timing = Timing(cpu_seconds(process), wall, 1, resident_bytes(process))
        connection.close()
        self._server.stop()
        return timing

    def digest(self) -> object:
        """The sum of all offsets, as the groups are told."""
        self._server.start()
        connection, total = ready(self._server, GROUP), 0
        for number in range(self._groups):
            total += sum(each.committed_offset for each in _committed(connection, number))
        connection.close()
        self._server.stop()
        if total != PARTITIONS * sum(range(self._groups)):
            raise DisagreementError(f"{self.name}: offsets are lost")
        return total

    def close(self) -> None:
        """Stop the server."""
        self._server.stop()


def _group(number: int) -> str:
    return f"{GROUP}-{number}"


def _commit(connection: Connection, number: int) -> bytes:
    partitions = tuple(
        OffsetCommitRequestPartition(partition_index=at, committed_offset=number, committed_metadata="")
        for at in range(PARTITIONS)
    )
    topic = OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)
    return connection.frame("OffsetCommit", group_id=_group(number), topics=(topic,))


def _committed(connection: Connection, number: int) -> Sequence[OffsetFetchResponsePartition]:
    """Ask again while the partition that has the group is loaded: Kafka loads one after the other."""
    topic = OffsetFetchRequestTopic(name=TOPIC, partition_indexes=tuple(range(PARTITIONS)))
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        answer = connection.ask("OffsetFetch", group_id=_group(number), topics=(topic,))
        if answer.error_code == ErrorCode.NONE:
            return answer.topics[0].partitions
        if answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            break
        time.sleep(0.02)
    raise RuntimeError(f"the offsets of {_group(number)} cannot be read: {ErrorCode(answer.error_code).name}")


def _check(answer: object) -> None:
    for topic in answer.topics:  # type: ignore[attr-defined]
        for each in topic.partitions:
            if each.error_code != ErrorCode.NONE:
                raise RuntimeError(f"an offset is refused: {ErrorCode(each.error_code).name}")


class FirstConsumerSide:
    """A consumer of librdkafka in a group that nobody has used before, until it has its first record."""

    output = "record"

    def __init__(self, server: Txnkafka | Kafka) -> None:
        self.name = server.name
        self._server = server
        self._groups = 0

    def warm(self) -> None:
        """Start the server, and have a record and some groups."""
        self._server.start()
        create_topic(self._server, 1)
        producer = Producer({"bootstrap.servers": self._server.bootstrap_servers, "log_level": 0})
        producer.produce(TOPIC, b"record", partition=0)
        producer.flush(SECONDS)
        for _ in range(3):
            self.run()

    def run(self) -> Timing:
        """CPU time and memory are those of the server."""
        self._groups += 1
        process = self._server.process_id
        wall, cpu = time.perf_counter(), cpu_seconds(process)
        settings = {
            "bootstrap.servers": self._server.bootstrap_servers, "group.id": f"{GROUP}-{self._groups}",
            "auto.offset.reset": "earliest", "enable.auto.commit": False, "log_level": 0,
        }  # fmt: skip
        consumer = Consumer(settings)
        consumer.subscribe([TOPIC])
        try:
            message = consumer.poll(SECONDS)
        except KafkaException as error:
            raise RuntimeError(f"{self.name}: {error}") from None
        cpu, wall = cpu_seconds(process) - cpu, time.perf_counter() - wall
        if message is None or message.value() != b"record":
            raise DisagreementError(f"{self.name}: the consumer got {message}")
        consumer.close()
        return Timing(cpu, wall, 1, resident_bytes(process))

    def digest(self) -> None:
        """None: each round has looked at the record."""

    def close(self) -> None:
        """Stop the server."""
        self._server.stop()

"""``Broker``: the one owner of all state of a node. Synchronous, without clock, sockets or threads.

A host runs each request through ``call``: a method with a ``reply``, which is called once, now or later. Data
that must reach the disk goes out as a ``Flush`` or a piece of ``Work``, which the host runs without its lock
and hands back. Time comes in by ``advance``, and by ``ticks``, which a host moves. So a host is a loop around
``begin_flush`` and ``finish_flush``, ``begin_work`` and ``finish_work``, ``advance``. One thread at a time.

Source: ``BrokerServer``, ``ReplicaManager``, ``ControllerServer`` of a combined node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from txnkafka.broker import listing, produce
from txnkafka.broker.broker_config import BrokerConfig
from txnkafka.broker.configs import Configs
from txnkafka.broker.deadlines import Deadlines
from txnkafka.broker.durability import Durability, Mode
from txnkafka.broker.failures import Failures
from txnkafka.broker.fetch import Fetches
from txnkafka.broker.groups import Groups
from txnkafka.broker.jobs import Jobs
from txnkafka.broker.log_manager import LogManager
from txnkafka.broker.metadata_log import MetadataLog
from txnkafka.broker.missing_logs import MissingLogs
from txnkafka.broker.topics import Topics
from txnkafka.broker.transactions import Transactions
from txnkafka.broker.turns import Turns
from txnkafka.coordinator.ticks import Ticks
from txnkafka.errors import FlushUnderWayError
from txnkafka.storage.data_directory import DataDirectory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from txnkafka.broker.failures import Owner
    from txnkafka.broker.flush import Flush
    from txnkafka.broker.requests import (
        FetchedPartition,
        FetchRequest,
        OffsetAnswer,
        OffsetQuery,
        ProduceRequest,
        ProduceResult,
    )
    from txnkafka.coordinator.cluster_image import ClusterImage, PartitionImage
    from txnkafka.env import DataFiles
    from txnkafka.error_codes import ErrorCode
    from txnkafka.model import IsolationLevel, ProducerStateEntry, TopicPartition
    from txnkafka.storage.formats.meta_properties import MetaProperties
    from txnkafka.storage.log.partition_log import PartitionLog
    from txnkafka.storage.work import Work

__all__ = ["Broker", "open_broker"]

Result = TypeVar("Result")


def open_broker(
    files: DataFiles,
    path: str,
    config: BrokerConfig | None = None,
    *,
    now_ms: int,
    durability: Mode = "fsync",
    node_id: int | None = None,
) -> Broker:
    """Open the data directory at ``path``, or create it, and start a broker on it: recover its logs, load its
    coordinators. Raises LogDirError, also for a directory of another node than ``node_id``, KafkaError and
    OSError."""
    config = config or BrokerConfig()
    opened: list[tuple[MetadataLog, Configs]] = []

    def on_locked(identity: MetaProperties) -> None:
        node_id = 1 if identity.node_id is None else identity.node_id
        metadata = MetadataLog(files, path, node_id, now_ms=now_ms)
        opened.append((metadata, Configs(config, metadata.image, node_id)))

    data: DataDirectory | None = None
    try:
        data = DataDirectory(
            files, path, lambda topic: opened[0][1].of_topic(topic),
            now_ms=now_ms, node_id=node_id, on_locked=on_locked, holds_recovery_points=True,
        )  # fmt: skip
        return Broker(data, *opened[0], now_ms=now_ms, durability=durability)
    except BaseException:
        for metadata, _ in opened:
            metadata.log.release()
        if data is not None:
            data.abandon()
        raise


class Broker:
    """The broker on the open directory ``data``. Its parts answer what handlers ask: ``topics`` (creation and
    deletion), ``transactions`` and ``groups`` (the coordinators), and the methods here."""

    def __init__(
        self,
        data: DataDirectory,
        metadata: MetadataLog,
        configs: Configs,
        *,
        now_ms: int,
        durability: Mode = "fsync",
    ) -> None:
        self.configs = configs
        self.now_ms = now_ms  # of the last call: the time of what comes back from the disk
        self.ticks = Ticks(now_ms)  # which pass whatever the clock is set to; the host tells them
        self.data = data
        self.metadata = metadata
        self.image: ClusterImage = metadata.image  # what the metadata log says
        self.manager = LogManager(data)
        self.logs: Mapping[TopicPartition, PartitionLog] = data.logs  # the open logs
        self.failures = Failures()
        self.jobs = Jobs(self.failures)
        self.fetches = Fetches(self)
        self.durability = Durability(
            self.manager.tickets, self.failures, durability, self.fetches.on_progress, metadata.log
        )
        self.turns = Turns(self.failures, self.durability)
        self.deadlines = Deadlines(self, now_ms)
        self.missing_logs = MissingLogs(self)
        self.topics = Topics(self)
        self.topics.reconcile(now_ms)
        self.groups = Groups(self, now_ms)  # before: that writes markers into their log
        self.transactions = Transactions(self, now_ms)
        self.image.forget_removed()
        self.durability.run_soon()

    # What is here

    @property
    def config(self) -> BrokerConfig:
        """The settings as they are now: some may be changed while the broker runs."""
        return self.configs.current

    @property
    def node_id(self) -> int:
        """The id of this node."""
        return self.metadata.node_id

    @property
    def cluster_id(self) -> str:
        """The id of the cluster."""
        return self.data.identity.cluster_id or ""

    @property
    def features_epoch(self) -> int:
        """Grows with every change of the finalized features: the log end of the metadata log."""
        return self.metadata.log.log_end_offset

    def registered(self, partition: TopicPartition) -> PartitionImage | None:
        """What the registry says of the partition; None when it has none."""
        topic = self.image.topics.get(partition.topic)
        return None if topic is None else topic.partitions.get(partition.partition)

    def serves(self, partition: TopicPartition) -> bool:
        """Whether the registry has the partition."""
        return self.registered(partition) is not None

    def leader_epoch(self, partition: TopicPartition) -> int:
        """The leader epoch of a partition that the registry has."""
        return self.image.topics[partition.topic].partitions[partition.partition].leader_epoch

    # The coordinators

    def load_coordinators(self) -> None:
        """Partitions of the coordinators' topics were created: load those that are not loaded."""
        self.transactions.on_created()
        self.groups.on_created()

    # Requests

    def call(
        self,
        method: Callable[..., Result],
        *arguments: Any,
        now_ms: int,
        owner: Owner | None = None,
        **named: Any,
    ) -> Result:
        """Run one request: call ``method``, of the broker or of one of its parts, at the time ``now_ms``;
        then make the calls that it has deferred. ``owner`` gets the exception of a call that is made later
        for this request. Every request comes in here."""
        self.now_ms = now_ms
        failures = self.failures
        before, failures.owner = failures.owner, owner
        try:
            return method(*arguments, **named)
        finally:
            failures.owner = before
            self.durability.run_soon()

    def produce(
        self,
        request: ProduceRequest,
        reply: Callable[[Mapping[TopicPartition, ProduceResult]], None],
    ) -> None:
        """Append batches; see ``ProduceRequest``."""
        produce.produce(self, request, reply)

    def fetch(
        self,
        request: FetchRequest,
        reply: Callable[[Sequence[tuple[TopicPartition, FetchedPartition]]], None],
    ) -> Callable[[], None]:
        """Read batches; the records of the answer are slices that the caller releases. Returns a function
        that withdraws the request while it waits: its connection is gone."""
        return self.fetches.fetch(request, self.failures.owned(reply))

    def list_offsets(
        self, queries: Sequence[OffsetQuery], isolation_level: IsolationLevel
    ) -> dict[TopicPartition, OffsetAnswer]:
        """Where times are in logs, or where logs begin and end."""
        return listing.list_offsets(self, queries, isolation_level)

    def end_offset_for_epoch(
        self, partition: TopicPartition, leader_epoch: int, current_leader_epoch: int = -1
    ) -> tuple[ErrorCode, int, int]:
        """The largest epoch of a log that is not above ``leader_epoch``, and where it ends (KIP-101)."""
        return listing.end_offset_for_epoch(self, partition, leader_epoch, current_leader_epoch)

    def describe_producers(self, partition: TopicPartition) -> tuple[ErrorCode, list[ProducerStateEntry]]:
        """The producers that a partition knows."""
        return listing.describe_producers(self, partition)

    # The host

    @property
    def is_flush_awaited(self) -> bool:
        """Whether a client waits for the next group; a group without one may be begun, too, and is
        waited for when ``advance`` is called at its deadline."""
        return self.manager.tickets.is_awaited

    def begin_flush(self) -> Flush | None:
        """The next group to make durable; None while one is under way, or when nothing waits."""
        return self.manager.tickets.begin()

    def finish_flush(self, flush: Flush, failed: dict[PartitionLog, OSError], *, now_ms: int) -> None:
        """The group was run: call back what waited for it."""
        released = self.manager.tickets.finish(flush, failed)
        self.now_ms = now_ms
        self.groups.coordinator.at(now_ms)
        self.durability.released(released)
        self.durability.run_soon()
        self.fetches.on_progress(log.topic_partition for log, _ in flush.logs)

    def begin_work(self) -> Work | None:
        """The next piece of work to run; None while one is under way, or when there is none."""
        work = self.jobs.begin()
        if work is None:
            self._poll()  # what was done without the disk, or could not begin, may have an answer
        return work

    def finish_work(self, work: Work, error: Exception | None, *, now_ms: int) -> None:
        """The work was run."""
        self.now_ms = now_ms
        self.groups.coordinator.at(now_ms)
        self.jobs.finish(work, error)
        self._poll()

    def advance(self, now_ms: int) -> int:
        """Do what is due by the clock: long polls, transactions that time out, retention, compaction. Returns
        the ticks at which to be called again at the latest."""
        self.now_ms = now_ms
        deadline = self.deadlines.advance(now_ms)
        self._poll()
        return min(deadline, self.deadlines.flush(now_ms))

    def is_quiet(self, now_ms: int) -> bool:
        """Whether ``advance``, ``begin_flush`` and ``begin_work`` have nothing to do before the ticks that
        ``advance`` has returned: so it is behind most requests that did not have to wait for the disk. What
        is due of transactions is done."""
        self.now_ms = now_ms
        return self.deadlines.is_quiet(now_ms)

    def _poll(self) -> None:
        self.durability.released(self.manager.tickets.poll())
        self.durability.run_soon()

    @property
    def is_idle(self) -> bool:
        """Whether neither a flush nor work is under way or waits; compaction waits for its next turn."""
        return not (len(self.jobs) or self.manager.tickets.is_flushing or len(self.manager.tickets))

    def close(self) -> None:
        """Stop cleanly. Raises FlushUnderWayError, and changes nothing, unless ``is_idle``; otherwise what
        closing a log raises."""
        if len(self.jobs) or self.manager.tickets.is_flushing:
            raise FlushUnderWayError("work of the broker is under way: finish it, then close")
        self.fetches.close()
        self.deadlines.close()
        try:
            self.metadata.close()
        finally:
            self.manager.close()
            self._poll()

    def abandon(self) -> None:
        """Close all files and release the directory, without making data durable: the next start recovers
        it, as after a crash."""
        self.metadata.log.release()
        self.data.abandon()

"""``Broker``: the one owner of all state of a node. Synchronous, without clock, sockets or threads.

A host runs each request through ``call``: a method with a ``reply``, which is called once, now or later. Data
that must reach the disk goes out as a ``Flush`` or a piece of ``Work``, which the host runs without its lock
and hands back. Time comes in by ``advance``, and by ``ticks``, which a host moves. So a host is a loop around
``begin_flush`` and ``finish_flush``, ``begin_work`` and ``finish_work``, ``advance``. One thread at a time.

Source: ``BrokerServer``, ``ReplicaManager``, ``ControllerServer`` of a combined node.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

from txnkafka.broker.config.broker_config import BrokerConfig
from txnkafka.broker.config.configs import Configs
from txnkafka.broker.coordinators.groups import Groups
from txnkafka.broker.coordinators.transactions import Transactions
from txnkafka.broker.coordinators.txn_offset_commit import OffsetsOfTransaction, TxnOffsetCommit
from txnkafka.broker.records import listing, produce
from txnkafka.broker.records.fetch import Fetches
from txnkafka.broker.registry.metadata_log import MetadataLog
from txnkafka.broker.services import Services
from txnkafka.broker.topics.topics import Topics
from txnkafka.broker.upkeep.deadlines import Deadlines
from txnkafka.errors import FlushUnderWayError
from txnkafka.model import TopicPartition
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.storage.locked_directory import lock_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from txnkafka.broker.durability import Mode
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
    from txnkafka.coordinator.group.group_requests import Identity, Offsets
    from txnkafka.env import DataFiles
    from txnkafka.error_codes import ErrorCode
    from txnkafka.model import IsolationLevel, ProducerIdAndEpoch, ProducerStateEntry
    from txnkafka.storage.log.partition_log import PartitionLog
    from txnkafka.storage.work import Work

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
    """Open the data directory at ``path``, or create it, and start a broker on it: lock the directory, open
    the metadata log, recover the other logs with their settings, load the coordinators. Raises LogDirError,
    also for a directory of another node than ``node_id``, KafkaError and OSError."""
    with ExitStack() as opened:
        locked = opened.enter_context(lock_directory(files, path, node_id=node_id))
        node_id = 1 if locked.identity.node_id is None else locked.identity.node_id
        metadata = MetadataLog(files, path, node_id, now_ms=now_ms)
        opened.callback(metadata.log.release)
        configs = Configs(config or BrokerConfig(), metadata.image, node_id)
        data = DataDirectory(
            files, path, configs.of_topic, now_ms=now_ms, holds_recovery_points=True, locked=locked
        )
        opened.callback(data.abandon)
        broker = Broker(data, metadata, configs, now_ms=now_ms, durability=durability)
        opened.pop_all()  # the broker owns them now
        return broker


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
        services = self.services = Services(data, metadata, configs, now_ms=now_ms, durability=durability)
        self.registered, self.serves = services.registered, services.serves
        self.leader_epoch = services.leader_epoch
        self.configs, self.ticks, self.jobs = configs, services.ticks, services.jobs
        self.data, self.logs, self.manager = data, data.logs, services.manager
        self.metadata, self.image = metadata, metadata.image
        self.failures, self.durability, self.turns = services.failures, services.durability, services.turns
        self.fetches = Fetches(services)
        self.durability.on_progress = self.fetches.on_progress
        self.topics = Topics(services, self._on_created, self._on_deleted)
        self.topics.reconcile(now_ms)
        create_internal = self.topics.create_internal
        self.groups = Groups(services, create_internal)  # before: that writes markers into their log
        self.transactions = Transactions(services, create_internal, self.groups.on_marker)
        self.deadlines = Deadlines(
            services, self.fetches, self.transactions, self.groups, self.topics.missing_logs
        )
        self.image.forget_removed()
        self.durability.run_soon()

    # State

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

    @property
    def now_ms(self) -> int:
        """The time of the request or call that runs."""
        return self.services.now_ms

    # The coordinators

    def _on_deleted(self, topic: str, numbers: Collection[int]) -> None:
        partitions = [TopicPartition(topic, number) for number in numbers]
        self.fetches.on_progress(partitions)
        for partition in partitions:
            self.transactions.on_deleted(partition)
        self.groups.on_deleted(topic, numbers)

    def _on_created(self) -> None:
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
        self.services.now_ms = now_ms
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
        produce.produce(self.services, self.transactions, request, reply)

    def commit_in_transaction(
        self,
        identity: Identity,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        offsets: Offsets,
        reply: Callable[[dict[TopicPartition, ErrorCode]], None],
        *,
        version: int,
    ) -> None:
        """Commit offsets with a transaction; ``version`` is TxnOffsetCommit's."""
        request = OffsetsOfTransaction(identity, transactional_id, producer, offsets, version)
        TxnOffsetCommit(self.services, self.groups.coordinator, self.transactions, request, reply).run()

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
        """Return the offsets of timestamps, or the first and last offsets of logs."""
        return listing.list_offsets(self.services, queries, isolation_level)

    def end_offset_for_epoch(
        self, partition: TopicPartition, leader_epoch: int, current_leader_epoch: int = -1
    ) -> tuple[ErrorCode, int, int]:
        """Return a log's largest epoch at or below ``leader_epoch``, and its end offset (KIP-101)."""
        return listing.end_offset_for_epoch(self.services, partition, leader_epoch, current_leader_epoch)

    def describe_producers(self, partition: TopicPartition) -> tuple[ErrorCode, list[ProducerStateEntry]]:
        """Return the producers with state in a partition."""
        return listing.describe_producers(self.services, partition)

    # The host

    @property
    def is_flush_awaited(self) -> bool:
        """Return whether a client waits for the next group. A group without a waiting client may begin at any
        time, and is awaited once ``advance`` is called at its deadline."""
        return self.manager.flushes.is_awaited

    def begin_flush(self) -> Flush | None:
        """Return the next group to make durable; None while one is under way, or when nothing waits."""
        return self.manager.flushes.begin()

    def finish_flush(self, flush: Flush, failed: dict[PartitionLog, OSError], *, now_ms: int) -> None:
        """Record that the group was run, and make the calls that waited for it."""
        self.services.now_ms = now_ms
        self.manager.flushes.finish(flush, failed)
        self.groups.coordinator.at(now_ms)
        self.durability.run_soon()
        if self.fetches.is_waiting:
            self.fetches.on_progress(log.topic_partition for log, _ in flush.logs)

    def begin_work(self) -> Work | None:
        """Return the next piece of work to run; None while one is under way, or when nothing waits."""
        work = self.jobs.begin()
        if work is None:
            self.durability.run_soon()  # work that failed to begin has an answer
        return work

    def finish_work(self, work: Work, error: Exception | None, *, now_ms: int) -> None:
        """Record that the work was run, with ``error`` if it failed."""
        self.services.now_ms = now_ms
        self.groups.coordinator.at(now_ms)
        self.jobs.finish(work, error)
        self.durability.run_soon()

    def advance(self, now_ms: int) -> int:
        """Run everything due: long polls, transaction timeouts, retention, compaction. Return the ticks of
        the next call at the latest."""
        self.services.now_ms = now_ms
        deadline = self.deadlines.advance(now_ms)
        self.durability.run_soon()
        return min(deadline, self.deadlines.flush(now_ms))

    def is_quiet(self, now_ms: int) -> bool:
        """Run the due work of transactions; return whether ``advance``, ``begin_flush`` and ``begin_work``
        have nothing to do before the ticks that ``advance`` has returned. True after most requests that did
        not have to wait for the disk."""
        self.services.now_ms = now_ms
        return self.deadlines.is_quiet(now_ms)

    @property
    def is_idle(self) -> bool:
        """Return whether no flush and no work is under way or waiting; compaction is not counted."""
        flushes = self.manager.flushes
        return not (len(self.jobs) or flushes.is_flushing or flushes.has_waiting)

    def close(self) -> None:
        """Stop cleanly. Raises FlushUnderWayError, and changes nothing, unless ``is_idle``; otherwise what
        closing a log raises."""
        if len(self.jobs) or self.manager.flushes.is_flushing:
            raise FlushUnderWayError("work of the broker is under way: finish it, then close")
        self.fetches.close()
        self.deadlines.close()
        try:
            try:
                self.metadata.close()
            finally:
                self.durability.run_soon()  # changes of the registry take effect while the logs are open
                self.manager.close()
        finally:
            self.durability.run_soon()

    def abandon(self) -> None:
        """Close all files and release the directory, without making data durable: the next start recovers
        it, as after a crash."""
        self.deadlines.close()
        self.metadata.log.release()
        self.metadata.log.local.close_files()  # no caller will finish a running flush
        self.data.abandon()

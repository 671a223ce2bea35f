"""``Transactions``: the transaction coordinator of a broker, and the broker as its host.

Requests go to the coordinator; its appends, flushes and markers go to the logs here, and are reported to it
when they are durable. Nothing calls the coordinator back before its method has returned.

Source: ``TransactionCoordinator``, ``TransactionMarkerChannelManager``, ``KafkaApis``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from txnkafka.broker.coordinators.coordinator_topic import CoordinatorTopic
from txnkafka.broker.coordinators.decided_transactions import decisions
from txnkafka.broker.coordinators.marker_writer import MarkerWriter
from txnkafka.broker.coordinators.marker_writer import WritableMarker as WritableMarker
from txnkafka.broker.coordinators.producer_id_blocks import ProducerIdBlocks
from txnkafka.broker.coordinators.raised_epochs import raise_epochs, seen_epochs
from txnkafka.broker.coordinators.unknown_transactions import end_unknown
from txnkafka.coordinator import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, partition_for
from txnkafka.coordinator.txn import txn_listing
from txnkafka.coordinator.txn.transaction_partition import loaded_records
from txnkafka.coordinator.txn.txn_config import TransactionConfig
from txnkafka.coordinator.txn.txn_coordinator import TransactionCoordinator
from txnkafka.coordinator.txn.txn_events import (
    AddOffsets,
    AddPartitions,
    EndTxn,
    InitProducerId,
    VerifyPartitions,
)
from txnkafka.coordinator.txn.txn_events import (
    Answer as Answer,
)
from txnkafka.coordinator.txn.txn_setting import Limits
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.storage.log.log_records import records_of_log

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from txnkafka.broker.services import Services
    from txnkafka.coordinator.txn.markers import Marker
    from txnkafka.coordinator.txn.txn_listing import Description, Filters, Listing
    from txnkafka.storage.log.partition_log import PartitionLog


class Transactions:
    """``coordinator`` has all transactional ids of the node. Requests of clients are methods here."""

    def __init__(
        self,
        services: Services,
        create_internal: Callable[[str], None],
        on_marker: Callable[[TopicPartition, int, int, bool], None],
    ) -> None:
        self._services = services
        self.markers = MarkerWriter(services, on_marker)
        self._blocks = ProducerIdBlocks(services)
        self._topic = CoordinatorTopic(services, TRANSACTION_STATE_TOPIC, create_internal, has_answers=False)
        config = services.config
        limits = Limits(
            config.transaction_max_timeout_ms,
            config.transactional_id_expiration_ms,
            config.transaction_two_phase_commit_enable,
        )
        self.coordinator = TransactionCoordinator(
            self,
            self._topic,
            self._blocks.producer_ids,
            config=TransactionConfig(
                limits,
                config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
                config.transaction_remove_expired_transaction_cleanup_interval_ms,
            ),
            partition_count=config.transaction_state_log_num_partitions,
            version=services.image.features.get("transaction.version", 0),
            ticks=services.ticks,
        )
        self._blocks.producer_ids.request()
        self.coordinator.seen = seen_epochs(services)  # before transactions of lost records get more markers
        self._load(services.now_ms)
        decided, raised = decisions(services, self.coordinator), raise_epochs(self.coordinator)
        end_unknown(services, self.coordinator, self.markers, decided, raised)

    def _load(self, now_ms: int) -> None:
        """Load the partitions of ``__transaction_state`` that are not loaded."""

        def load(number: int, log: PartitionLog) -> None:
            records, problems = loaded_records((record.key, record.value) for record in records_of_log(log))
            for problem in problems:
                log.note(f"a record of {log.topic_partition}", "left out", problem)
            self.coordinator.load(number, self._services.leader_epoch(log.topic_partition), records, now_ms)

        self._topic.load(self.coordinator.runtime, load)

    def on_created(self) -> None:
        """Load new partitions of ``__transaction_state``, also if their directories could not be created."""
        self._load(self._services.now_ms)

    def on_deleted(self, partition: TopicPartition) -> None:
        """Forget a partition that the registry has removed: no transaction waits for it, and a partition of
        ``__transaction_state`` is not coordinated without its log."""
        if partition.topic == TRANSACTION_STATE_TOPIC:
            self.coordinator.resign(partition.partition)
        self.coordinator.partition_deleted(partition, self._services.now_ms)

    # Requests

    def find(self, transactional_id: str) -> ErrorCode:
        """Return NONE if this node coordinates the id; see ``CoordinatorTopic.find``."""
        return self._topic.find(self.coordinator.runtime, transactional_id)

    def init_producer_id(
        self,
        transactional_id: str | None,
        timeout_ms: int,
        producer_id: int,
        producer_epoch: int,
        reply: Callable[[Answer], None],
        *,
        enable_2pc: bool = False,
        keep_prepared_txn: bool = False,
    ) -> None:
        """Give a producer its id and epoch; without a transactional id, a new one."""
        if (producer_id == -1) != (producer_epoch == -1):
            reply(Answer(ErrorCode.INVALID_REQUEST))
        elif transactional_id is None:
            self.coordinator.new_producer_id(reply)
        else:
            event = InitProducerId(
                transactional_id, timeout_ms, producer_id, producer_epoch, enable_2pc, keep_prepared_txn
            )
            self.coordinator.handle(event, reply, self._services.now_ms)

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        reply: Callable[[dict[TopicPartition, ErrorCode]], None],
        *,
        verify_only: bool = False,
        client_transaction_version: int = 0,
        is_client: bool = True,
    ) -> None:
        """Add partitions to a transaction, all or none, or look whether they are in it."""
        services = self._services
        refused = {}
        for partition in partitions:
            if is_client and partition.topic in (CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC):
                refused[partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif services.registered(partition) is None:
                refused[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if refused:
            not_attempted = dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED)
            reply({**not_attempted, **refused})
            return

        def answered(answer: Answer) -> None:
            errors = dict.fromkeys(partitions, answer.error)
            if answer.missing:
                errors.update(dict.fromkeys(answer.missing, ErrorCode.TRANSACTION_ABORTABLE))
            reply(errors)

        identity = transactional_id, producer_id, producer_epoch, frozenset(partitions)
        if verify_only:
            self.coordinator.handle(VerifyPartitions(*identity), answered, services.now_ms)
        else:
            event = AddPartitions(*identity, client_transaction_version)
            self.coordinator.handle(event, answered, services.now_ms)

    def add_offsets(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        group_id: str,
        reply: Callable[[Answer], None],
    ) -> None:
        """Add the partition that a group's offsets are in to a transaction."""
        topic = self._services.image.topics.get(CONSUMER_OFFSETS_TOPIC)
        count = self._services.config.offsets_topic_num_partitions if topic is None else len(topic.partitions)
        partition = TopicPartition(CONSUMER_OFFSETS_TOPIC, partition_for(group_id, count))
        event = AddOffsets(transactional_id, producer_id, producer_epoch, partition)
        self.coordinator.handle(event, reply, self._services.now_ms)

    def end_txn(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        committed: bool,
        reply: Callable[[Answer], None],
        *,
        client_transaction_version: int = 0,
    ) -> None:
        """Commit or abort. The answer comes when the decision is durable and its markers are appended."""
        identity = transactional_id, producer_id, producer_epoch, committed
        event = EndTxn(*identity, client_transaction_version)
        self.coordinator.handle(event, reply, self._services.now_ms)

    def write_markers(
        self,
        markers: Sequence[WritableMarker],
        reply: Callable[[list[dict[TopicPartition, ErrorCode]]], None],
    ) -> None:
        """Write the markers of an administrator's request, without the coordinator."""
        results: list[dict[TopicPartition, ErrorCode]] = [{} for _ in markers]
        wanted = {(i, partition) for i, marker in enumerate(markers) for partition in marker.partitions}
        left = set(wanted)

        def done(i: int, partition: TopicPartition, error: ErrorCode) -> None:
            results[i][partition] = error
            left.discard((i, partition))
            if not left:
                reply(results)

        if not wanted:
            reply(results)
        for i, partition in sorted(wanted):
            self.markers.append(partition, markers[i], partial(done, i, partition))

    def describe(self, transactional_id: str) -> Description:
        """Return the description of an id for DescribeTransactions."""
        return txn_listing.describe(self.coordinator, transactional_id)

    def list(self, filters: Filters) -> Listing:
        """What ListTransactions shows."""
        return txn_listing.list_transactions(self.coordinator, filters, self._services.now_ms)

    # Time

    def advance(self, now_ms: int) -> int:
        """Run everything due; return the ticks of the next call at the latest."""
        return self.coordinator.advance(now_ms)

    # CoordinatorHost

    @property
    def now_ms(self) -> int:
        """The time of the request or call that runs."""
        return self._services.now_ms

    def flush_data(
        self, producer_id: int, partitions: frozenset[TopicPartition], call: Callable[[ErrorCode], None]
    ) -> bool:
        """Flush the producer's data in these partitions; return False if it is durable already."""
        services, unflushed = self._services, []
        for partition in sorted(partitions):
            log = services.logs.get(partition)
            if log is not None and log.producers.last_data_offset(producer_id) >= log.recovery_point:
                unflushed.append(log)
        for log in unflushed:
            log.check_usable()
        if unflushed:
            # first: PREPARE_COMMIT is appended then, and may share a flush with Ongoing
            services.durability.when_all_durable(unflushed, call, goes_first=True)
        return bool(unflushed)

    def write_marker(self, marker: Marker) -> None:
        """Append an end marker of the coordinator. Its epoch counts, unless the partition has seen a greater
        one, which an administrator wrote."""
        partition, services = marker.partition, self._services
        if services.registered(partition) is None:
            services.durability.soon(lambda: self.coordinator.partition_deleted(partition, services.now_ms))
            return
        log, coordinator_epoch = services.logs.get(partition), marker.coordinator_epoch
        known = None if log is None else log.producers.epochs(marker.producer_id)
        if known is not None and known[1] > coordinator_epoch:
            coordinator_epoch = known[1]

        def written(error: ErrorCode) -> None:
            self.coordinator.marker_written(marker, error, services.now_ms)

        self.markers.append(partition, marker, written, coordinator_epoch=coordinator_epoch)

"""``MarkerWriter``: appends the end markers of transactions.

Source: ``KafkaApis.handleWriteTxnMarkersRequest``, ``TransactionMarkerChannelManager``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txnkafka._core.encode import end_txn_marker
from txnkafka.broker.durability import error_code
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError
from txnkafka.storage.log.log_validator import AppendOrigin

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from txnkafka.broker.services import Services
    from txnkafka.coordinator.txn.markers import Marker
    from txnkafka.model import TopicPartition


class WritableMarker(NamedTuple):
    """A marker of a WriteTxnMarkers request; ``transaction_version`` decides how its epoch is checked."""

    producer_id: int
    producer_epoch: int
    committed: bool
    partitions: Sequence[TopicPartition]
    coordinator_epoch: int
    transaction_version: int = 0


class MarkerWriter:
    """Appends markers to the open logs. ``on_marker`` gets partition, offset, producer id and decision of
    each appended marker."""

    def __init__(
        self, services: Services, on_marker: Callable[[TopicPartition, int, int, bool], None]
    ) -> None:
        self._services = services
        self._on_marker = on_marker

    def append(
        self,
        partition: TopicPartition,
        marker: Marker | WritableMarker,
        call: Callable[[ErrorCode], None],
        *,
        coordinator_epoch: int | None = None,
    ) -> None:
        """Append a marker to a partition, with ``coordinator_epoch`` instead of the marker's if given.
        ``call`` gets NONE when the marker is durable, or the error for which it is not written."""
        services = self._services
        registered, log = services.registered(partition), services.logs.get(partition)
        if registered is None or log is None:
            is_known = registered is not None
            error = ErrorCode.KAFKA_STORAGE_ERROR if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            services.durability.soon(call, error)
            return
        if marker.producer_id < 0 or marker.producer_epoch < 0:  # Kafka fails to build its batch
            services.durability.soon(call, ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        epoch = marker.coordinator_epoch if coordinator_epoch is None else coordinator_epoch
        batch = end_txn_marker(
            base_offset=0, timestamp=services.now_ms, producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch, coordinator_epoch=epoch, commit=marker.committed,
        )  # fmt: skip
        try:
            info = log.append(
                batch, now_ms=services.now_ms, leader_epoch=registered.leader_epoch,
                origin=AppendOrigin.COORDINATOR, transaction_version=marker.transaction_version,
            )  # fmt: skip
        except KafkaError as raised:
            services.durability.soon(call, error_code(raised))
        else:
            self._on_marker(partition, info.first_offset, marker.producer_id, marker.committed)
            services.durability.when_durable(log, call)

"""Records of the metadata log as Apache Kafka 4.3 and 4.4 write them at metadata.version 30 to 33.

Source: ``ReplicationControlManager``, ``ClusterControlManager``, ``QuorumFeatures``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka.wire.records import (
    LogRecord as LogRecord,
)
from txnkafka.wire.records import (
    decode_control_body as decode_control_body,
)
from txnkafka.wire.records import (
    decode_metadata as decode_metadata,
)
from txnkafka.wire.records import (
    encode_leader_change as encode_leader_change,
)
from txnkafka.wire.records import (
    encode_metadata as encode_metadata,
)
from txnkafka.wire.records import (
    encode_voter as encode_voter,
)

if TYPE_CHECKING:
    from txnkafka.coordinator.registry.cluster_image import PartitionImage

METADATA_VERSION: Final = 30
BOOTSTRAP_FEATURES: Final = {  # in the order in which a broker writes them
    "metadata.version": METADATA_VERSION,
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}


def _record(kind: str, api_key: int, version: int, **fields: Any) -> LogRecord:
    return LogRecord(kind, api_key, None, version, fields)


def topic(name: str, topic_id: str) -> LogRecord:
    """Return the record of a topic; the records of its partitions follow it."""
    return _record("topic_record", 2, 0, name=name, topic_id=topic_id)


def partition(topic_id: str, number: int, node_id: int, directory_id: str) -> LogRecord:
    """Return the record of a partition led by its only replica."""
    return _record(
        "partition_record", 3, 2,
        partition_id=number, topic_id=topic_id, replicas=[node_id], isr=[node_id],
        removing_replicas=[], adding_replicas=[], leader=node_id, leader_recovery_state=0, leader_epoch=0,
        partition_epoch=0, directories=[directory_id], eligible_leader_replicas=None, last_known_elr=None,
    )  # fmt: skip


def partition_image(topic_id: str, number: int, image: PartitionImage) -> LogRecord:
    """Return the record of a partition with all its known fields."""
    return _record(
        "partition_record", 3, 2,
        partition_id=number, topic_id=topic_id, replicas=image.replicas, isr=image.isr,
        removing_replicas=list(image.removing_replicas), adding_replicas=list(image.adding_replicas),
        leader=image.leader, leader_recovery_state=image.leader_recovery_state,
        leader_epoch=image.leader_epoch, partition_epoch=image.partition_epoch,
        directories=image.directories,
        eligible_leader_replicas=list(image.eligible_leader_replicas) or None,
        last_known_elr=list(image.last_known_elr) or None,
    )  # fmt: skip


def broker_fenced(broker_id: int, broker_epoch: int) -> LogRecord:
    """Return the record that marks a registered broker as not running."""
    return _record(
        "broker_registration_change_record", 17, 0,
        broker_id=broker_id, broker_epoch=broker_epoch, fenced=1,
    )  # fmt: skip


def unregister_broker(broker_id: int, broker_epoch: int) -> LogRecord:
    """Return the record that removes a broker from the cluster."""
    return _record("unregister_broker_record", 1, 0, broker_id=broker_id, broker_epoch=broker_epoch)


def remove_topic(topic_id: str) -> LogRecord:
    """Return the record that removes a topic, its partitions and its configs."""
    return _record("remove_topic_record", 9, 0, topic_id=topic_id)


def config(resource_type: int, resource_name: str, name: str, value: str | None) -> LogRecord:
    """Return the record of a config of a resource; None deletes it."""
    return _record(
        "config_record", 4, 0,
        resource_type=resource_type, resource_name=resource_name, name=name, value=value,
    )  # fmt: skip


def clear_elr(topic_name: str) -> LogRecord:
    """Return the record that clears the eligible leader replicas of a topic, or of all topics for "",
    after a change of ``min.insync.replicas`` (KIP-966)."""
    return _record("clear_elr_record", 28, 0, topic_name=topic_name)


def feature_level(name: str, level: int) -> LogRecord:
    """Return the record of a feature and its finalized level."""
    return _record("feature_level_record", 12, 0, name=name, feature_level=level)


def producer_ids(broker_id: int, broker_epoch: int, next_producer_id: int) -> LogRecord:
    """Return the record that marks all producer ids below ``next_producer_id`` as used."""
    return _record(
        "producer_ids_record", 15, 0,
        broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=next_producer_id,
    )  # fmt: skip


def begin_transaction(name: str) -> LogRecord:
    """Return the record that begins a transaction: the records after it take effect together, with
    ``end_transaction``."""
    return _record("begin_transaction_record", 23, 0, name=name)


def end_transaction() -> LogRecord:
    """Return the record that ends a transaction."""
    return _record("end_transaction_record", 24, 0)


def abort_transaction(reason: str) -> LogRecord:
    """Return the record that discards an open transaction."""
    return _record("abort_transaction_record", 25, 0, reason=reason)

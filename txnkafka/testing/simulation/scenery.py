"""The initial directory of a simulation: settings, topics, and producers with an old epoch."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from txnkafka.broker.config.broker_config import BrokerConfig
from txnkafka.broker.host import CallerHost
from txnkafka.broker.requests import NewTopic
from txnkafka.error_codes import ErrorCode
from txnkafka.testing.simulation.history import Topic
from txnkafka.testing.simulation.registrar_program import TRIMMED_TOPIC
from txnkafka.testing.simulation.shops import SHOP_TOPICS
from txnkafka.wire.records import (
    TransactionMetadata,
    TransactionState,
    encode_transaction_key,
    encode_transaction_value,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.testing.simulation.node import SimulatedNode
    from txnkafka.testing.simulation.swarm import Swarm

STATE_PARTITIONS: Final = 2
OFFSETS_PARTITIONS: Final = 2
_LEAST_SEGMENT_BYTES: Final = 6_000  # a group's change of protocol is one batch
_FOREVER_MINUTES: Final = 50_000_000
CONFIGS: Final[dict[str, dict[str, str]]] = {
    "a": {"retention.ms": "-1"},
    "o": {"retention.ms": "-1"},
    "c": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1", "delete.retention.ms": "100"},
    "r": {"retention.bytes": "4000", "retention.ms": "3600000"},
    "d": {"retention.ms": "-1"},
    TRIMMED_TOPIC: {"retention.ms": "-1"},
}


def broker_config(swarm: Swarm) -> BrokerConfig:
    """Return the broker's settings: small files, short times."""
    defaults = {
        "internal.segment.bytes": str(swarm.segment_bytes),
        "index.interval.bytes": "400",
        "file.delete.delay.ms": "50",
    }
    if swarm.flushes_each:
        defaults["flush.messages"] = "1"
    config = BrokerConfig(
        auto_create_topics_enable=False,  # the history knows who creates a topic
        transaction_state_log_num_partitions=STATE_PARTITIONS,
        transaction_state_log_segment_bytes=swarm.segment_bytes * 2,
        transaction_abort_timed_out_transaction_cleanup_interval_ms=100,
        transactional_id_expiration_ms=swarm.transactional_id_expiration_ms,
        transaction_remove_expired_transaction_cleanup_interval_ms=200,
        log_retention_check_interval_ms=300,
        log_cleaner_enable="compaction" in swarm.faults,
        log_cleaner_backoff_ms=200,
        metadata_log_max_record_bytes_between_snapshots=swarm.metadata_snapshot_bytes,
        metadata_max_retention_bytes=10 * swarm.metadata_snapshot_bytes,
        topic_defaults=defaults,
        transaction_two_phase_commit_enable=swarm.preparers > 0,
        unstable_api_versions_enable=swarm.preparers > 0,
    )
    if not swarm.uses_groups:
        return config
    return replace(
        config,
        offsets_topic_num_partitions=OFFSETS_PARTITIONS,
        offsets_topic_segment_bytes=max(swarm.segment_bytes * 2, _LEAST_SEGMENT_BYTES),
        offsets_retention_minutes=1 if swarm.forgets_offsets else _FOREVER_MINUTES,
        offsets_retention_check_interval_ms=200,
        group_min_session_timeout_ms=1,
        group_initial_rebalance_delay_ms=swarm.initial_rebalance_delay_ms,
        group_consumer_session_timeout_ms=swarm.session_timeout_ms,
        group_consumer_min_session_timeout_ms=1,
        group_consumer_heartbeat_interval_ms=swarm.session_timeout_ms // 4,
        group_consumer_min_heartbeat_interval_ms=1,
        group_consumer_assignment_interval_ms=swarm.assignment_interval_ms,
    )


def topics_of(swarm: Swarm) -> list[Topic]:
    """Return the topics of a run."""
    topics = [Topic("a", 2), Topic("c", 1, is_compacted=True)]
    if swarm.copiers:
        topics.insert(1, Topic("o", 2))  # the target of the copiers
    if swarm.retention_bytes >= 0:
        topics.append(Topic("r", 1, loses_old=True))
    if swarm.deletes_records:
        topics.append(Topic(TRIMMED_TOPIC, 1, loses_old=True))
    if "topic deletion" in swarm.faults:
        topics.append(Topic("d", 1, is_deletable=True))
    return topics


def create_topics(node: SimulatedNode, topics: Sequence[Topic], swarm: Swarm) -> None:
    """Create the topics and the logs of the coordinators, before any client begins."""
    broker = node.broker
    assert broker is not None
    results: list[ErrorCode] = []
    wanted = [NewTopic(topic.name, topic.partitions, configs=CONFIGS[topic.name]) for topic in topics]
    if swarm.shops:
        wanted += [NewTopic(name, count, configs=configs) for name, (count, configs) in SHOP_TOPICS.items()]
    host = CallerHost(broker, node.now_ms)
    host.call(
        broker.topics.create, wanted, lambda answers: results.extend(answer.error for answer in answers)
    )
    host.call(broker.transactions.find, "any")
    if swarm.uses_groups:
        host.call(broker.groups.find, "any")
    host.idle()
    assert results == [ErrorCode.NONE] * len(wanted), results
    node.files.settled = len(node.files.journal)


def set_epochs(node: SimulatedNode, transactional_ids: Sequence[str], epoch: int | None) -> None:
    """Set the producer epoch of each transactional id, and restart the node, which loads them."""
    if epoch is None:
        return
    broker = node.broker
    assert broker is not None
    host = CallerHost(broker, node.now_ms)
    for transactional_id in transactional_ids:
        metadata = TransactionMetadata(
            transactional_id, _new_producer_id(host), -1, -1, epoch, -1, 60_000,
            TransactionState.EMPTY, frozenset(), node.now_ms(), -1, 0,
        )  # fmt: skip
        partition = broker.transactions.coordinator.partition_of(transactional_id)
        record = encode_transaction_key(transactional_id), encode_transaction_value(metadata, 1)
        log = broker.transactions.coordinator.runtime.log
        host.call(log.append, partition, [record], lambda _: None)
    host.idle()
    node.stop()
    node.start()


def _new_producer_id(host: CallerHost) -> int:
    found: list[int] = []
    init_producer_id = host.broker.transactions.init_producer_id
    host.call(init_producer_id, None, 0, -1, -1, lambda answer: found.append(answer.producer_id))
    return found[0]

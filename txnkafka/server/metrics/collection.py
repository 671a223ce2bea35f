"""Collect the values of all metrics of a server, in the thread of its loop.

Gauges are computed here, so that the broker keeps no counters for them while it serves.
"""

from __future__ import annotations

import platform
from collections import Counter
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from txnkafka.coordinator.txn.txn_image import NO_TIMEOUT
from txnkafka.model import TopicPartition
from txnkafka.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from txnkafka.broker.broker import Broker
    from txnkafka.coordinator.txn.transaction_partition import TransactionPartition
    from txnkafka.server.metrics.durations import Durations
    from txnkafka.server.metrics.request_counts import RequestCounts
    from txnkafka.server.tcp import Server

MOST_SERIES: Final = 1000  # partitions and groups that get their own series
LATE_MS: Final = (
    300_000  # beyond transaction.max.timeout.ms (ProducerStateManager.LATE_TRANSACTION_BUFFER_MS)
)
_GROUP: Final = "kafka_coordinator_group_groupmetadatamanager_numgroups"
_GROUP_METRICS: Final = "kafka_server_group_coordinator_metrics_"
PROTOCOLS: Final = ("classic", "consumer")
_TRAFFIC: Final = "kafka_server_brokertopicmetrics_"
_REPLICAS: Final = "kafka_server_replicamanager_"
_CONTROLLER: Final = "kafka_controller_kafkacontroller_"
Row = tuple[str, tuple[str, ...], "float | Durations"]
"""Name of a metric, values of its labels, its value: a number or a histogram."""


def collected(server: Server, counts: RequestCounts, flushes: Durations, now_ms: int) -> list[Row]:
    """Return the current values of all metrics."""
    broker = server.broker
    counts.keep_only(broker.image.topics)
    return [
        *_transactions(broker, counts, now_ms),
        *_groups(broker),
        *_lags(broker),
        *_traffic(counts),
        ("kafka_server_socket_server_metrics_connection_count", (), len(server.connections)),
        ("kafka_server_delayedoperationpurgatory_purgatorysize", ("Fetch",), len(broker.fetches)),
        ("kafka_server_fetchsessioncache_numincrementalfetchsessions", (), len(server.fetch_sessions)),
        ("txnkafka_flush_seconds", (), flushes),
        *_logs(broker, now_ms),
        *_node(broker),
        ("txnkafka_build_info", (VERSION, platform.python_version()), 1),
    ]


def _transactions(broker: Broker, counts: RequestCounts, now_ms: int) -> Iterator[Row]:
    coordinator = broker.transactions.coordinator
    partitions = coordinator.partitions.values()
    begun = [
        partition.metadata[first].start_timestamp
        for partition in partitions
        for first in islice(partition.ongoing, 1)
    ]
    oldest = max(0, now_ms - min(begun)) / 1000 if begun else 0
    yield "txnkafka_transactions_open", (), sum(len(partition.ongoing) for partition in partitions)
    yield "txnkafka_transactions_oldest_open_seconds", (), oldest
    yield from _held(partitions, now_ms)
    yield "txnkafka_transactional_ids", (), sum(len(partition.metadata) for partition in partitions)
    yield "txnkafka_transactions_committed_total", (), coordinator.counts.committed
    yield "txnkafka_transactions_aborted_total", (), coordinator.counts.aborted
    yield "txnkafka_transactions_timed_out_total", (), coordinator.counts.timed_out
    yield "txnkafka_producers_fenced_total", (), counts.fenced


def _held(partitions: Iterable[TransactionPartition], now_ms: int) -> Iterator[Row]:
    """Yield how long each transaction without a timeout holds back readers of each of its partitions."""
    held = [
        (metadata, place)
        for partition in partitions
        for metadata in map(partition.metadata.__getitem__, partition.ongoing)
        if metadata.transaction_timeout_ms == NO_TIMEOUT
        for place in sorted(metadata.topic_partitions)
    ]
    for metadata, (topic, number) in held[:MOST_SERIES]:
        age_ms = max(0, now_ms - metadata.start_timestamp)
        yield "txnkafka_lso_held_seconds", (metadata.transactional_id, topic, str(number)), age_ms / 1000
    yield "txnkafka_metrics_left_out", ("transactions",), max(0, len(held) - MOST_SERIES)


def _groups(broker: Broker) -> Iterator[Row]:
    coordinator = broker.groups.coordinator
    listed = Counter((group.group_type, group.state) for group in coordinator.listed())
    count = {
        protocol: sum(n for (each, _), n in listed.items() if each == protocol) for protocol in PROTOCOLS
    }
    yield _GROUP, (), count["classic"]
    for state in ("Stable", "PreparingRebalance", "CompletingRebalance", "Empty"):
        yield f"{_GROUP}{state.lower()}", (), listed["classic", state]
    for protocol in PROTOCOLS:
        yield f"{_GROUP_METRICS}group_count", (protocol,), count[protocol]
    for state in ("Empty", "Assigning", "Reconciling", "Stable"):
        yield f"{_GROUP_METRICS}consumer_group_count", (state.lower(),), listed["consumer", state]
    loaded = coordinator.partitions.loaded.values()
    groups = [group for partition in loaded for group in partition.groups.values()]
    with_members = sorted((group.group_id, len(group.members)) for group in groups if group.members)
    for group_id, members in with_members[:MOST_SERIES]:
        yield "txnkafka_group_members", (group_id,), members
    yield "txnkafka_metrics_left_out", ("groups",), max(0, len(with_members) - MOST_SERIES)


def _lags(broker: Broker) -> Iterator[Row]:
    """Yield the lag of the first committed offsets. A broker may have millions, and no request is served
    during the collection."""
    loaded = broker.groups.coordinator.partitions.loaded.values()
    count = sum(partition.offsets.committed_count for partition in loaded)
    for each in islice(chain.from_iterable(here.offsets.all_committed() for here in loaded), MOST_SERIES):
        log = broker.logs.get(TopicPartition(each.topic, each.partition))
        if log is not None:
            where = each.group, each.topic, str(each.partition)
            yield "txnkafka_group_lag", where, max(0, log.high_watermark - each.offset)
    yield "txnkafka_metrics_left_out", ("offsets",), max(0, count - MOST_SERIES)


def _traffic(counts: RequestCounts) -> Iterator[Row]:
    by_topic: Mapping[str, Mapping[str, int]] = {
        "messagesin": counts.messages_in,
        "bytesin": counts.bytes_in,
        "bytesout": counts.bytes_out,
        "failedproducerequests": counts.failed_produce,
    }
    for name, topics in by_topic.items():
        for topic, count in topics.items():
            yield f"{_TRAFFIC}{name}_total", (topic,), count
    for (api, version), count in counts.requests.items():
        yield "kafka_network_requestmetrics_requests_total", (api, str(version)), count
    for (api, error), count in counts.errors.items():
        yield "kafka_network_requestmetrics_errors_total", (api, error), count
    for api, seconds in counts.seconds.items():
        yield "txnkafka_request_seconds", (api,), seconds


def _logs(broker: Broker, now_ms: int) -> Iterator[Row]:
    logs = sorted(broker.logs.items())
    late_ms = now_ms - broker.config.transaction_max_timeout_ms - LATE_MS
    late = sum(_has_late_transaction(log, late_ms) for _, log in logs)
    yield f"{_REPLICAS}partitionswithlatetransactionscount", (), late
    for (topic, number), log in logs[:MOST_SERIES]:
        where = topic, str(number)
        lag = max(0, log.high_watermark - log.last_stable_offset)
        yield "kafka_cluster_partition_laststableoffsetlag", where, lag
        yield "kafka_log_log_size", where, sum(segment.size for segment in log.segments)
        yield "kafka_log_log_numlogsegments", where, sum(1 for _ in log.segments)
        yield "kafka_log_log_logstartoffset", where, log.log_start_offset
        yield "kafka_log_log_logendoffset", where, log.log_end_offset
    yield "txnkafka_metrics_left_out", ("partitions",), max(0, len(logs) - MOST_SERIES)


def _has_late_transaction(log: Any, late_ms: int) -> bool:
    """Return whether a transaction is open whose last record is before ``late_ms``. Most logs have no open
    transaction."""
    if log.last_stable_offset >= log.log_end_offset:
        return False
    return any(entry.last_timestamp < late_ms for entry in log.producers.open_transactions())


def _node(broker: Broker) -> Iterator[Row]:
    topics = broker.image.topics.values()
    offline = len(broker.data.refused) + sum(log.fenced is not None for log in broker.logs.values())
    yield f"{_REPLICAS}partitioncount", (), len(broker.logs)
    yield f"{_REPLICAS}leadercount", (), len(broker.logs)
    yield f"{_REPLICAS}offlinereplicacount", (), offline
    yield f"{_REPLICAS}underreplicatedpartitions", (), 0
    yield f"{_CONTROLLER}activecontrollercount", (), 1
    yield f"{_CONTROLLER}globaltopiccount", (), len(topics)
    yield f"{_CONTROLLER}globalpartitioncount", (), sum(len(topic.partitions) for topic in topics)
    yield f"{_CONTROLLER}offlinepartitionscount", (), offline

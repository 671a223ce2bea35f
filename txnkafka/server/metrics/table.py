"""All metrics: name, type, labels, meaning, and the name of Apache Kafka's metric in JMX.

A name that begins with ``kafka_`` is the name that the Prometheus JMX exporter gives to Kafka's metric with
its usual rules, so that dashboards and alerts fit. Metrics that Kafka does not have begin with ``txnkafka_``.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Metric(NamedTuple):
    """One metric. ``kind`` is the type in Prometheus; ``kafka`` is empty for metrics of this broker alone."""

    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str
    kafka: str = ""


_TOPIC: Final = ("topic",)
_PARTITION: Final = ("topic", "partition")
_TRAFFIC: Final = "kafka.server:type=BrokerTopicMetrics,name="
_REPLICAS: Final = "kafka.server:type=ReplicaManager,name="
_CONTROLLER: Final = "kafka.controller:type=KafkaController,name="
_GROUPS: Final = "kafka.coordinator.group:type=GroupMetadataManager,name="
_COORDINATOR: Final = "kafka.server:type=group-coordinator-metrics"
_REQUESTS: Final = "kafka.network:type=RequestMetrics,name="
_LOG: Final = "kafka.log:type=Log,name="

METRICS: Final = (
    # transactions
    Metric("txnkafka_transactions_open", "gauge", (), "transactions in state Ongoing"),
    Metric(
        "txnkafka_transactions_oldest_open_seconds", "gauge", (),
        "age of the oldest open transaction; 0 without one",
    ),
    Metric(
        "txnkafka_lso_held_seconds", "gauge", ("transactional_id", *_PARTITION),
        "age of an open transaction with two-phase commit, which holds back the last stable offset until it "
        "is completed (KIP-939)",
    ),
    Metric("txnkafka_transactional_ids", "gauge", (), "known transactional ids"),
    Metric("txnkafka_transactions_committed_total", "counter", (), "committed transactions"),
    Metric("txnkafka_transactions_aborted_total", "counter", (), "aborted transactions"),
    Metric(
        "txnkafka_transactions_timed_out_total", "counter", (),
        "transactions aborted because of their timeout; also counted as aborted",
    ),
    Metric(
        "txnkafka_producers_fenced_total", "counter", (),
        "responses that refuse a producer for its epoch: PRODUCER_FENCED, INVALID_PRODUCER_EPOCH",
    ),
    Metric(
        "kafka_cluster_partition_laststableoffsetlag", "gauge", _PARTITION,
        "high watermark minus last stable offset",
        "kafka.cluster:type=Partition,name=LastStableOffsetLag",
    ),
    Metric(
        "kafka_server_replicamanager_partitionswithlatetransactionscount", "gauge", (),
        "partitions with a transaction open for five minutes longer than transaction.max.timeout.ms",
        f"{_REPLICAS}PartitionsWithLateTransactionsCount",
    ),
    # groups
    Metric(
        "txnkafka_group_lag", "gauge", ("group", "topic", "partition"),
        "high watermark minus committed offset of a group",
    ),
    Metric(
        "kafka_coordinator_group_groupmetadatamanager_numgroups", "gauge", (),
        "groups of the classic protocol", f"{_GROUPS}NumGroups",
    ),
    Metric(
        "kafka_coordinator_group_groupmetadatamanager_numgroupsstable", "gauge", (),
        "classic groups in state Stable", f"{_GROUPS}NumGroupsStable",
    ),
    Metric(
        "kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance", "gauge", (),
        "classic groups in state PreparingRebalance", f"{_GROUPS}NumGroupsPreparingRebalance",
    ),
    Metric(
        "kafka_coordinator_group_groupmetadatamanager_numgroupscompletingrebalance", "gauge", (),
        "classic groups in state CompletingRebalance", f"{_GROUPS}NumGroupsCompletingRebalance",
    ),
    Metric(
        "kafka_coordinator_group_groupmetadatamanager_numgroupsempty", "gauge", (),
        "classic groups in state Empty", f"{_GROUPS}NumGroupsEmpty",
    ),
    Metric(
        "kafka_server_group_coordinator_metrics_group_count", "gauge", ("protocol",),
        "groups of a protocol: classic, consumer",
        f"{_COORDINATOR},protocol={{protocol}},attribute=group-count",
    ),
    Metric(
        "kafka_server_group_coordinator_metrics_consumer_group_count", "gauge", ("state",),
        "groups of the consumer protocol in a state",
        f"{_COORDINATOR},state={{state}},attribute=consumer-group-count",
    ),
    Metric("txnkafka_group_members", "gauge", ("group",), "members of a group; no series for an empty group"),
    # traffic
    Metric(
        "kafka_server_brokertopicmetrics_messagesin_total", "counter", _TOPIC,
        "records appended for producers", f"{_TRAFFIC}MessagesInPerSec",
    ),
    Metric(
        "kafka_server_brokertopicmetrics_bytesin_total", "counter", _TOPIC,
        "bytes of batches appended for producers", f"{_TRAFFIC}BytesInPerSec",
    ),
    Metric(
        "kafka_server_brokertopicmetrics_bytesout_total", "counter", _TOPIC,
        "bytes of batches in Fetch responses", f"{_TRAFFIC}BytesOutPerSec",
    ),
    Metric(
        "kafka_server_brokertopicmetrics_failedproducerequests_total", "counter", _TOPIC,
        "refused batches", f"{_TRAFFIC}FailedProduceRequestsPerSec",
    ),
    # requests
    Metric(
        "kafka_network_requestmetrics_requests_total", "counter", ("request", "version"),
        "received requests", f"{_REQUESTS}RequestsPerSec",
    ),
    Metric(
        "kafka_network_requestmetrics_errors_total", "counter", ("request", "error"),
        "errors in responses: each error code in a response counts, except NONE", f"{_REQUESTS}ErrorsPerSec",
    ),
    Metric(
        "txnkafka_request_seconds", "histogram", ("request",),
        "time from reading a request to its response; for Fetch including the wait for records",
    ),
    Metric(
        "kafka_server_socket_server_metrics_connection_count", "gauge", (),
        "connections", "kafka.server:type=socket-server-metrics,attribute=connection-count",
    ),
    Metric(
        "kafka_server_delayedoperationpurgatory_purgatorysize", "gauge", ("delayedoperation",),
        "waiting requests: Fetch for records",
        "kafka.server:type=DelayedOperationPurgatory,name=PurgatorySize",
    ),
    Metric(
        "kafka_server_fetchsessioncache_numincrementalfetchsessions", "gauge", (),
        "fetch sessions", "kafka.server:type=FetchSessionCache,name=NumIncrementalFetchSessions",
    ),
    # the disk
    Metric(
        "txnkafka_flush_seconds", "histogram", (),
        "duration of a flush: the sync of all files written since the previous flush",
    ),
    Metric("kafka_log_log_size", "gauge", _PARTITION, "bytes of a log", f"{_LOG}Size"),
    Metric(
        "kafka_log_log_numlogsegments", "gauge", _PARTITION, "segments of a log", f"{_LOG}NumLogSegments"
    ),
    Metric(
        "kafka_log_log_logstartoffset", "gauge", _PARTITION, "the log start offset", f"{_LOG}LogStartOffset"
    ),
    Metric("kafka_log_log_logendoffset", "gauge", _PARTITION, "the log end offset", f"{_LOG}LogEndOffset"),
    # the node
    Metric(
        "kafka_server_replicamanager_partitioncount", "gauge", (), "served partitions",
        f"{_REPLICAS}PartitionCount",
    ),
    Metric(
        "kafka_server_replicamanager_leadercount", "gauge", (), "the same number: this node leads all",
        f"{_REPLICAS}LeaderCount",
    ),
    Metric(
        "kafka_server_replicamanager_offlinereplicacount", "gauge", (),
        "partitions not served: refused at the start, or fenced after a disk failure",
        f"{_REPLICAS}OfflineReplicaCount",
    ),
    Metric(
        "kafka_server_replicamanager_underreplicatedpartitions", "gauge", (), "always 0: one replica",
        f"{_REPLICAS}UnderReplicatedPartitions",
    ),
    Metric(
        "kafka_controller_kafkacontroller_activecontrollercount", "gauge", (), "1",
        f"{_CONTROLLER}ActiveControllerCount",
    ),
    Metric(
        "kafka_controller_kafkacontroller_globaltopiccount", "gauge", (), "topics",
        f"{_CONTROLLER}GlobalTopicCount",
    ),
    Metric(
        "kafka_controller_kafkacontroller_globalpartitioncount", "gauge", (), "partitions of all topics",
        f"{_CONTROLLER}GlobalPartitionCount",
    ),
    Metric(
        "kafka_controller_kafkacontroller_offlinepartitionscount", "gauge", (),
        "partitions not served", f"{_CONTROLLER}OfflinePartitionsCount",
    ),
    Metric(
        "txnkafka_metrics_left_out", "gauge", ("what",),
        "partitions, groups, committed offsets and open transactions with two-phase commit beyond the first "
        "thousand, without their own series",
    ),
    Metric(
        "txnkafka_build_info", "gauge", ("version", "python"), "1; the versions of txnkafka and of Python"
    ),
)  # fmt: skip

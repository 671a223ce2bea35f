"""Each value moves when what it counts happens; of a broker without a server."""

from __future__ import annotations

import platform
from types import SimpleNamespace
from typing import Any

import pytest

import txnkafka
from tests.unit.broker.node import NOW, Node, Producer, batch_of
from txnkafka.coordinator.group.group_requests import ConsumerHeartbeat, Identity, OffsetToCommit
from txnkafka.coordinator.group.offsets import group_offsets
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.server.dispatch import Dispatcher
from txnkafka.server.fetch_sessions import FetchSessions
from txnkafka.server.metrics import collection, request_counts
from txnkafka.server.metrics.collection import collected
from txnkafka.server.metrics.durations import BOUNDS, Durations
from txnkafka.server.metrics.request_counts import OTHERS, RequestCounts
from txnkafka.server.metrics.table import METRICS
from txnkafka.server.peer import Node as Address
from txnkafka.server.peer import Peer
from txnkafka.wire.messages import APIS
from txnkafka.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from txnkafka.wire.records.group_log import GroupOffset

NONE = ErrorCode.NONE


def values(node: Node, counts: RequestCounts | None = None, **server: Any) -> dict[Any, Any]:
    """The values by name, and by name and labels where there are some."""
    fields = {"connections": (), "fetch_sessions": (), **server}
    rows = collected(
        SimpleNamespace(broker=node.broker, **fields),  # type: ignore[arg-type]
        counts or RequestCounts(), Durations(), node.now_ms,
    )  # fmt: skip
    return {(name, *labels) if labels else name: value for name, labels, value in rows}


@pytest.fixture
def node() -> Node:
    node = Node(transaction_abort_timed_out_transaction_cleanup_interval_ms=100)
    assert node.create("t", 2) == NONE
    return node


def test_every_row_is_a_metric_with_its_labels(node: Node) -> None:
    known = {metric.name: metric for metric in METRICS}
    assert len(known) == len(METRICS)
    for key in values(node):
        name, *labels = (key,) if isinstance(key, str) else key
        assert len(labels) == len(known[name].labels), name


def test_open_transactions(node: Node) -> None:
    first = Producer(node, "first")
    assert first.send(b"x", 0) == [NONE]
    node.now_ms += 1500
    assert Producer(node, "second").send(b"y", 0) == [NONE]
    node.now_ms += 500
    found = values(node)
    assert found["txnkafka_transactions_open"] == 2
    assert found["txnkafka_transactions_oldest_open_seconds"] == 2.0
    assert found["txnkafka_transactional_ids"] == 2
    assert found["kafka_cluster_partition_laststableoffsetlag", "t", "0"] == 2
    assert found["kafka_cluster_partition_laststableoffsetlag", "t", "1"] == 0
    assert first.end() == NONE
    found = values(node)
    assert found["txnkafka_transactions_open"] == 1
    assert found["txnkafka_transactions_oldest_open_seconds"] == 0.5


def test_how_long_a_transaction_without_a_timeout_holds_readers_back() -> None:
    node = Node(transaction_two_phase_commit_enable=True)
    assert node.create("t", 2) == NONE
    limited, producer = Producer(node, "limited"), Producer(node, "shop")
    transactions = node.broker.transactions
    producer.identity = node.call(
        lambda reply: transactions.init_producer_id("shop", 1, -1, -1, reply, enable_2pc=True)
    )
    assert limited.send(b"x", 0) == producer.send(b"y", 0, 1)[:1] == [NONE]
    node.now_ms += 2500

    def held() -> dict[Any, Any]:
        return {
            key[1:]: value for key, value in values(node).items() if key[0] == "txnkafka_lso_held_seconds"
        }

    assert held() == {("shop", "t", "0"): 2.5, ("shop", "t", "1"): 2.5}
    assert producer.end() == NONE
    assert held() == {}


def test_outcomes(node: Node) -> None:
    producer = Producer(node)
    for commit in (True, False, True):
        assert producer.send(b"x", 0) == [NONE]
        assert producer.end(commit=commit) == NONE
    assert producer.send(b"left", 0) == [NONE]
    node.wait(61_000)
    node.wait(200)
    found = values(node)
    assert found["txnkafka_transactions_committed_total"] == 2
    assert found["txnkafka_transactions_aborted_total"] == 2
    assert found["txnkafka_transactions_timed_out_total"] == 1
    node.restart()
    assert values(node)["txnkafka_transactions_committed_total"] == 0  # since the start


def test_late_transactions(node: Node) -> None:
    """Of a producer that the coordinator does not end."""
    producer = Producer(node)
    assert producer.send(b"x", 0) == [NONE]
    name = "kafka_server_replicamanager_partitionswithlatetransactionscount"
    node.now_ms = NOW + 900_000 + 300_000
    assert values(node)[name] == 0
    node.now_ms += 1
    assert values(node)[name] == 1


def test_logs_and_the_node(node: Node) -> None:
    before = values(node)
    node.append(batch_of(b"x"))
    found = values(node)
    assert found["kafka_log_log_logendoffset", "t", "0"] == before["kafka_log_log_logendoffset", "t", "0"] + 1
    assert found["kafka_log_log_size", "t", "0"] > before["kafka_log_log_size", "t", "0"]
    assert found["kafka_log_log_numlogsegments", "t", "0"] == 1
    assert found["kafka_log_log_logstartoffset", "t", "0"] == 0
    assert found["kafka_server_replicamanager_partitioncount"] == 2
    assert found["kafka_controller_kafkacontroller_globaltopiccount"] == 1
    assert found["kafka_server_replicamanager_offlinereplicacount"] == 0
    node.broker.logs[TopicPartition("t", 1)].fence(OSError("the disk is gone"))
    assert values(node)["kafka_server_replicamanager_offlinereplicacount"] == 1
    assert values(node)["kafka_controller_kafkacontroller_offlinepartitionscount"] == 1


def test_groups(node: Node) -> None:
    name = "kafka_coordinator_group_groupmetadatamanager_numgroups"
    node.request(node.broker.groups.find, "g")
    node.settle()
    assert values(node)[name] == 0
    wanted = {TopicPartition("t", 0): OffsetToCommit(1)}
    node.request(node.broker.groups.commit, Identity("g"), wanted, lambda _: None, version=9)
    node.settle()
    found = values(node)
    assert (found[name], found[f"{name}empty"], found[f"{name}stable"]) == (1, 1, 0)


def commit(node: Node, group: str, offsets: dict[tuple[str, int], int]) -> None:
    node.request(node.broker.groups.find, group)
    node.settle()
    wanted = {TopicPartition(*where): OffsetToCommit(offset) for where, offset in offsets.items()}
    node.request(node.broker.groups.commit, Identity(group), wanted, lambda _: None, version=9)
    node.settle()


def test_lag(node: Node) -> None:
    node.append(batch_of(b"x", b"y", b"z"))
    commit(node, "g", {("t", 0): 1, ("t", 1): 0})
    commit(node, "h", {("t", 0): 3})
    lag = {key[1:]: value for key, value in values(node).items() if key[0] == "txnkafka_group_lag"}
    assert lag == {("g", "t", "0"): 2, ("g", "t", "1"): 0, ("h", "t", "0"): 0}
    node.append(batch_of(b"more"))
    assert values(node)["txnkafka_group_lag", "h", "t", "0"] == 1


def test_lag_behind_offsets_that_are_gone(node: Node) -> None:
    """A commit beyond the end, which Kafka takes, is no negative lag."""
    commit(node, "g", {("t", 0): 10})
    assert values(node)["txnkafka_group_lag", "g", "t", "0"] == 0


def test_the_work_for_lag_is_bounded(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many groups with many partitions, offsets beyond the limit are not even decoded."""
    for group in "ghi":
        commit(node, group, {("t", 0): 0, ("t", 1): 0})
    decoded: list[GroupOffset] = []

    class Counting(GroupOffset):
        @classmethod
        def of(cls, record: Any) -> GroupOffset:
            decoded.append(GroupOffset.of(record))
            return decoded[-1]

    monkeypatch.setattr(group_offsets, "GroupOffset", Counting)
    monkeypatch.setattr(collection, "MOST_SERIES", 4)
    found = values(node)
    assert sum(key[0] == "txnkafka_group_lag" for key in found) == len(decoded) == 4
    assert found["txnkafka_metrics_left_out", "offsets"] == 2


def test_the_version(node: Node) -> None:
    assert values(node)["txnkafka_build_info", txnkafka.__version__, platform.python_version()] == 1


def test_groups_of_the_consumer_protocol(node: Node) -> None:
    node.request(node.broker.groups.find, "g")
    node.settle()
    joining = ConsumerHeartbeat("g", "m", 0, topics=("t",), rebalance_timeout_ms=1000, owned={})
    node.request(node.broker.groups.consumer_heartbeat, joining, lambda _: None)
    node.settle()
    found, name = values(node), "kafka_server_group_coordinator_metrics_"
    assert found[f"{name}group_count", "consumer"] == 1
    assert found[f"{name}group_count", "classic"] == 0
    assert found[f"{name}consumer_group_count", "stable"] == 1
    assert found["kafka_coordinator_group_groupmetadatamanager_numgroups"] == 0
    assert found["txnkafka_group_members", "g"] == 1


def test_server_numbers(node: Node) -> None:
    found = values(node, connections=[1, 2], fetch_sessions=[1])
    assert found["kafka_server_socket_server_metrics_connection_count"] == 2
    assert found["kafka_server_fetchsessioncache_numincrementalfetchsessions"] == 1


def test_series_are_bounded(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "MOST_SERIES", 1)
    found = values(node)
    assert [key for key in found if key[0] == "kafka_log_log_size"] == [("kafka_log_log_size", "t", "0")]
    assert found["txnkafka_metrics_left_out", "partitions"] == 1
    monkeypatch.setattr(request_counts, "MOST_TOPICS", 2)
    counts = RequestCounts()
    names = ("a", "b", "c", "a")
    assert [counts._counted_topic(name, names) for name in names] == ["a", "b", OTHERS, "a"]
    counts.bytes_out.update("ab")
    counts.keep_only({"b", "c"})
    assert counts.bytes_out == {"b": 1}
    assert [counts._counted_topic(name, "bcd") for name in "abcd"] == [OTHERS, "b", "c", OTHERS]


@pytest.mark.parametrize("acks", [0, 1])
def test_what_is_refused_is_not_counted_as_produced(node: Node, acks: int) -> None:
    """Names that there are not have no series of their own: clients may invent as many as they like."""
    counts = RequestCounts()
    (api,) = (api for api in APIS.values() if api.name == "Produce")
    dispatcher = Dispatcher(node.broker, lambda: node.now_ms)
    dispatcher.counts = counts
    data = (PartitionProduceData(index=0, records=batch_of(b"a", b"b")),)
    for topic in ("t", "missing"):
        request = ProduceRequest(acks=acks, topic_data=(TopicProduceData(name=topic, partition_data=data),))
        dispatcher.call(api, 9, request, Peer(Address("", 0, FetchSessions())), lambda _: None)
        node.settle()
    assert (counts.messages_in, counts.failed_produce) == ({"t": 2}, {OTHERS: 1})
    assert list(counts.bytes_in) == ["t"]


@pytest.mark.parametrize(
    ("seconds", "bucket"), [(0.0, 0), (0.0005, 0), (0.00051, 1), (30.0, len(BOUNDS) - 1), (31.0, len(BOUNDS))]
)
def test_buckets(seconds: float, bucket: int) -> None:
    durations = Durations()
    durations.add(seconds)
    assert durations.counts[bucket] == 1
    assert durations.total == seconds

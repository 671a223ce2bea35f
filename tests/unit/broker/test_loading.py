"""The transaction coordinator of a broker that starts: what its log says, and what it cannot say."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.broker.node import NOW, Node, Producer
from txnkafka._core.encode import empty_batch
from txnkafka.broker.broker import Broker
from txnkafka.coordinator.group.group_requests import Identity, OffsetToCommit
from txnkafka.coordinator.txn.txn_listing import Filters
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition

STATE_TOPIC = "__transaction_state"


def changed(node: Node, partition: int, position: int, written: bytes) -> None:
    """Write into the log file of a partition of the coordinator's topic, behind the back of its owner."""
    file = node.files.open_to_write(f"/data/{STATE_TOPIC}-{partition}/{0:020}.log")
    file.write(position, [written])
    file.close()


def ids_of(broker: Broker, partition: int) -> list[str]:
    """Transactional ids of a partition of the coordinator's topic."""
    coordinator = broker.transactions.coordinator
    return [name for name in map(str, range(20)) if coordinator.partition_of(name) == partition][:2]


def init(node: Node, name: str) -> Any:
    transactions = node.broker.transactions
    return node.call(lambda reply: transactions.init_producer_id(name, 60_000, -1, -1, reply))


def test_a_damaged_partition_is_not_coordinated_and_holds_up_no_other() -> None:
    node = Node()
    node.create()
    Producer(node)
    damaged, sound = ids_of(node.broker, 0), ids_of(node.broker, 1)
    for name in (*damaged, *sound):
        assert init(node, name).error == ErrorCode.NONE
    node.close()
    changed(node, 0, 80, b"\xff\xff\xff")
    node = Node(node.files)
    partition = TopicPartition(STATE_TOPIC, 0)
    assert partition not in node.broker.logs
    assert init(node, damaged[0]).error == ErrorCode.NOT_COORDINATOR
    assert node.request(node.broker.transactions.find, damaged[0]) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert init(node, sound[0]).producer_epoch == 1
    listing = node.broker.transactions.list(Filters())
    assert listing.error == ErrorCode.NONE
    assert {row.transactional_id for row in listing.transactions} >= set(sound)
    node.wait(8 * 86_400_000)
    assert node.broker.transactions.list(Filters()).transactions == ()


@pytest.mark.parametrize("topic", [STATE_TOPIC, "__consumer_offsets"])
def test_a_damaged_closed_segment_keeps_only_its_partition_from_being_coordinated(
    topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """After a clean stop only the end of a log is checked: the damage is met when the log is loaded."""
    configs = {
        "transaction_state_log_num_partitions": 1, "transaction_state_log_segment_bytes": 300,
        "offsets_topic_num_partitions": 1, "offsets_topic_segment_bytes": 300,
    }  # fmt: skip
    node = Node(**configs)
    node.create()
    node.request(node.broker.groups.find, "g")
    node.settle()
    for number in range(12):
        Producer(node, f"x{number}")
        wanted = {TopicPartition("t", 0): OffsetToCommit(number)}
        node.request(node.broker.groups.commit, Identity("g"), wanted, lambda _: None, version=9)
        node.settle()
    assert len(node.broker.logs[TopicPartition(topic, 0)].segments) > 3
    node.close()
    file = node.files.open_to_write(f"/data/{topic}-0/{0:020}.log")
    file.write(80, [b"\xff\xff\xff"])
    file.close()
    node = Node(node.files, **configs)
    transactions = list(node.broker.transactions.coordinator.partitions)
    groups = list(node.broker.groups.coordinator.partitions.loaded)
    assert (transactions, groups) == (([], [0]) if topic == STATE_TOPIC else ([0], []))
    assert f"{topic}-0 is not coordinated" in caplog.text
    assert f"/data/{topic}-0/{0:020}.log" in caplog.text
    expected = ErrorCode.NOT_COORDINATOR if topic == STATE_TOPIC else ErrorCode.NONE
    assert init(node, "x1").error == expected
    expected = ErrorCode.NONE if topic == STATE_TOPIC else ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert node.request(node.broker.groups.find, "g") == expected


def test_a_log_that_ends_with_an_empty_batch_is_loaded() -> None:
    """Compaction leaves such a batch where the last records of a segment are gone."""
    node = Node(transaction_state_log_num_partitions=1)
    node.create()
    Producer(node)
    log = node.broker.logs[TopicPartition(STATE_TOPIC, 0)]
    end = log.log_end_offset
    batch = empty_batch(base_offset=end, last_offset=end, max_timestamp=NOW, partition_leader_epoch=0)
    node.settle()
    changed(node, 0, log.active.size, batch)  # the process dies behind it
    again = Node(type(node.files)(base=node.files.disk()), transaction_state_log_num_partitions=1)
    assert again.broker.logs[TopicPartition(STATE_TOPIC, 0)].log_end_offset == 2
    assert init(again, "x").producer_epoch == 1


def test_the_number_of_partitions_is_that_of_the_topic_not_of_the_setting() -> None:
    """Kafka stops when the two differ; ids would be looked for in another partition."""
    node = Node(transaction_state_log_num_partitions=2)
    node.create()
    producer = Producer(node, "y")
    producer.send(b"a")
    node.close()
    again = Node(node.files, transaction_state_log_num_partitions=50)
    assert again.broker.transactions.coordinator.runtime.count == 2
    assert again.broker.transactions.describe("y").state == "Ongoing"
    assert init(again, "y").producer_epoch == 2

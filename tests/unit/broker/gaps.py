"""Steps of a broker one by one: flushes of which some logs fail, requests whose answers come later, and power
cuts in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.broker.node import Node, Producer
from txnkafka.broker.requests import ProduceRequest, ProduceResult
from txnkafka.model import TopicPartition
from txnkafka.testing.losses import ALL_KEPT, ALL_LOST, Losses
from txnkafka.testing.memory_files import MemoryFiles
from txnkafka.testing.unsynced import Unsynced

if TYPE_CHECKING:
    from txnkafka.coordinator.txn.txn_events import Answer
    from txnkafka.storage.log.partition_log import PartitionLog

__all__ = ["end", "flush", "power_cut", "produce"]


def power_cut(files: MemoryFiles) -> MemoryFiles:
    """What is left: bytes that were synced, and all names."""
    unsynced = Unsynced(files.base)
    for change in files.journal:
        unsynced.make(change)
    disk, _ = Losses(unsynced).disk(ALL_LOST, ALL_KEPT)
    return MemoryFiles(base=disk)


def flush(node: Node, failing: str = "") -> list[str]:
    """One flush of those that are wanted, in which the logs of a topic fail; returns what it contained."""
    group = node.broker.begin_flush()
    assert group is not None
    failed: dict[PartitionLog, OSError] = {}
    for log, each in group.logs:
        if log.topic_partition.topic == failing:
            failed[log] = OSError(5, "planned")
            for file in each.files:
                file.fail_sync()
        else:
            each.run(log.files)
    node.broker.finish_flush(group, failed, now_ms=node.now_ms)
    return [str(log.topic_partition) for log, _ in group.logs]


def produce(node: Node, batch: memoryview, number: int = 0) -> list[ProduceResult]:
    """A batch of the transactional id ``x`` for a partition of ``t``, by version 13, with which partitions
    join; the answer comes into the list."""
    found: list[ProduceResult] = []
    partition = TopicPartition("t", number)
    request = ProduceRequest({partition: batch}, transactional_id="x", version=13)
    node.request(node.broker.produce, request, lambda results: found.append(results[partition]))
    return found


def end(node: Node, producer: Producer, version: int = 2) -> list[Answer]:
    """EndTxn of a commit; the answer comes into the list."""
    found: list[Answer] = []
    identity = producer.identity.producer_id, producer.identity.producer_epoch
    node.request(
        node.broker.transactions.end_txn,
        producer.id,
        *identity,
        True,
        found.append,
        client_transaction_version=version,
    )
    return found

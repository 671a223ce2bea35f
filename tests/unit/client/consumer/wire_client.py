"""Topics and batches written to a broker in process by wire messages, without a producer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from txnkafka import Broker
from txnkafka.model import TopicPartition
from txnkafka.record.builder import build_batch
from txnkafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from txnkafka.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from txnkafka.wire.messages.end_txn import EndTxnRequest
from txnkafka.wire.messages.find_coordinator import FindCoordinatorRequest
from txnkafka.wire.messages.init_producer_id import InitProducerIdRequest
from txnkafka.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

VERSIONS = {
    "CreateTopics": 4,
    "Produce": 12,
    "InitProducerId": 4,
    "EndTxn": 5,
    "DeleteRecords": 2,
    "FindCoordinator": 4,
}


class WireClient:
    """One connection."""

    def __init__(self, broker: Broker) -> None:
        self.transport = broker._transport("wire")
        self.reactor = self.transport.reactor
        self.connection = self.reactor.wait(self.transport.connect(self.transport.bootstrap[0], 0))

    def ask(self, name: str, message: Any) -> Any:
        with self.reactor:
            promise = self.connection.request(name, VERSIONS[name], message, 10_000)
        return self.reactor.wait(promise, 10_000, name)

    def create(self, topic: str, partitions: int = 1) -> None:
        row = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
        (made,) = self.ask("CreateTopics", CreateTopicsRequest(topics=(row,))).topics
        assert made.error_code == 0

    def write(
        self, partition: TopicPartition, records: Iterable[Any], tid: str | None = None, **fields: Any
    ) -> int:
        """Append a batch of (key, value, timestamp[, headers]); return its base offset."""
        return self.append(partition, build_batch(list(records), **fields), tid)

    def append(self, partition: TopicPartition, batch: bytes | bytearray, tid: str | None = None) -> int:
        data = PartitionProduceData(index=partition.partition, records=bytes(batch))
        topic = TopicProduceData(name=partition.topic, partition_data=(data,))
        message = ProduceRequest(transactional_id=tid, acks=-1, timeout_ms=10_000, topic_data=(topic,))
        ((row,),) = [each.partition_responses for each in self.ask("Produce", message).responses]
        assert row.error_code == 0, row
        return int(row.base_offset)

    def values(self, partition: TopicPartition, *values: bytes) -> int:
        return self.write(partition, [(None, value, 1_700_000_000_000) for value in values])

    def delete_before(self, partition: TopicPartition, offset: int) -> None:
        row = DeleteRecordsPartition(partition_index=partition.partition, offset=offset)
        topic = DeleteRecordsTopic(name=partition.topic, partitions=(row,))
        self.ask("DeleteRecords", DeleteRecordsRequest(topics=(topic,), timeout_ms=10_000))

    def begin(self, tid: str) -> Transactions:
        self.ask("FindCoordinator", FindCoordinatorRequest(key_type=1, coordinator_keys=(tid,)))
        made = self.ask(
            "InitProducerId", InitProducerIdRequest(transactional_id=tid, transaction_timeout_ms=60_000)
        )
        assert made.error_code == 0, made
        return Transactions(self, tid, made.producer_id, made.producer_epoch)


class Transactions:
    """A transactional producer of version 2: a batch adds its partition, and the end raises the epoch."""

    def __init__(self, client: WireClient, tid: str, producer_id: int, producer_epoch: int) -> None:
        self.client, self.tid = client, tid
        self.producer_id, self.producer_epoch = producer_id, producer_epoch
        self.sequences: dict[TopicPartition, int] = {}

    def write(self, partition: TopicPartition, *values: bytes) -> int:
        sequence = self.sequences.get(partition, 0)
        self.sequences[partition] = sequence + len(values)
        return self.client.write(
            partition, [(b"k", value, 1_700_000_000_000) for value in values], self.tid,
            producer_id=self.producer_id, producer_epoch=self.producer_epoch, base_sequence=sequence,
            transactional=True,
        )  # fmt: skip

    def end(self, *, commit: bool) -> None:
        message = EndTxnRequest(
            transactional_id=self.tid, producer_id=self.producer_id, producer_epoch=self.producer_epoch,
            committed=commit,
        )  # fmt: skip
        ended = self.client.ask("EndTxn", message)
        assert ended.error_code == 0, ended
        self.producer_id, self.producer_epoch = ended.producer_id, ended.producer_epoch
        self.client.reactor.run(self.client.transport.visible(list(self.sequences)))
        self.sequences = {}

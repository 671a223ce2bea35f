"""A broker in memory, its host, and clients in few words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from txnkafka._core.encode import encode_batch
from txnkafka._core.read_committed import select
from txnkafka._core.scan import scan
from txnkafka.broker.broker import Broker, open_broker
from txnkafka.broker.config.broker_config import BrokerConfig
from txnkafka.broker.host import CallerHost
from txnkafka.broker.requests import (
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    NewTopic,
    ProduceRequest,
    ProduceResult,
)
from txnkafka.coordinator.txn.txn_events import Answer
from txnkafka.env import DataFiles
from txnkafka.error_codes import ErrorCode
from txnkafka.model import IsolationLevel, TopicPartition
from txnkafka.record.batch import records_of
from txnkafka.record.batch_header import ATTRIBUTE_CONTROL, ATTRIBUTE_TRANSACTIONAL, CONTROL_ABORT
from txnkafka.record.chunk import ChunkDecoder, SelectedBatches
from txnkafka.testing.memory_files import MemoryFiles

__all__ = ["COMMITTED", "NOW", "UNCOMMITTED", "Node", "Producer", "batch_of"]

NOW = 1_700_000_000_000
COMMITTED, UNCOMMITTED = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED


def batch_of(*values: bytes, **fields: Any) -> memoryview:
    """A batch with these values."""
    return memoryview(encode_batch([(None, value, NOW) for value in values], **fields))


class Node:
    """A broker on ``files``, and its host: ``settle`` runs flushes and work until nothing is left."""

    def __init__(
        self,
        files: DataFiles | None = None,
        path: str = "/data",
        *,
        now_ms: int = NOW,
        durability: Any = "fsync",
        **configs: Any,
    ) -> None:
        self.files = MemoryFiles() if files is None else files
        self.path, self.now_ms = path, now_ms
        self._ahead_ms: int | None = None  # the clock, once it was set
        self._configs = {"transaction_state_log_num_partitions": 2, **configs}
        self._durability = durability
        self.broker = self._opened()

    def _opened(self) -> Broker:
        broker = open_broker(
            self.files, self.path, BrokerConfig(**self._configs), now_ms=self.now_ms,
            durability=self._durability,
        )  # fmt: skip
        self.broker = broker
        self._tell()
        self.settle()
        return broker

    def settle(self) -> None:
        CallerHost(self.broker, lambda: self.now_ms).idle()

    def call(self, method: Callable[..., object], *arguments: Any, **named: Any) -> Any:
        """The answer of a request, once everything is durable."""
        answers: list[Any] = []
        self.request(method, *arguments, answers.append, **named)
        self.settle()
        (answer,) = answers
        return answer

    def request(self, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Run a request; its answer may wait for the disk."""
        return self.broker.call(method, *arguments, now_ms=self.now_ms, **named)

    def set_clock(self, ms: int) -> None:
        """Set the wall clock forward, or back; no time passes."""
        self._ahead_ms = self._ahead_ms or 0
        self._tell()
        self.now_ms += ms
        self._ahead_ms += ms

    def _tell(self) -> None:
        """Before the clock was set for the first time, it is what tells the broker how time passes."""
        if self._ahead_ms is not None:
            self.broker.ticks.tell(self.now_ms - self._ahead_ms)

    def wait(self, ms: int) -> None:
        self.now_ms += ms
        self._tell()
        self.broker.advance(self.now_ms)
        self.settle()

    def create(self, name: str = "t", partitions: int = 1, **configs: str) -> ErrorCode:
        if "segment_bytes" in configs:  # those of users are larger than a test wants
            configs["internal.segment_bytes"] = configs.pop("segment_bytes")
        topic = NewTopic(name, partitions, configs={key.replace("_", "."): configs[key] for key in configs})
        (result,) = self.call(self.broker.topics.create, [topic])
        error: ErrorCode = result.error
        return error

    def produce(self, batches: dict[TopicPartition, memoryview], **fields: Any) -> dict[Any, ProduceResult]:
        results: dict[Any, ProduceResult] = self.call(self.broker.produce, ProduceRequest(batches, **fields))
        return results

    def append(self, records: memoryview, partition: int = 0, **fields: Any) -> ProduceResult:
        where = TopicPartition("t", partition)
        return self.produce({where: records}, **fields)[where]

    def fetch(
        self, offset: int = 0, partition: int = 0, *, topic: str = "t", **fields: Any
    ) -> FetchedPartition:
        """The answer for one partition, to be released."""
        where = FetchPartition(TopicPartition(topic, partition), offset, 1 << 20)
        answers: list[Any] = []
        self.broker.call(
            self.broker.fetch, FetchRequest([where], **fields), answers.append, now_ms=self.now_ms
        )
        ((_, fetched),) = answers[0]
        found: FetchedPartition = fetched
        return found

    def values(
        self,
        partition: int = 0,
        isolation_level: IsolationLevel = COMMITTED,
        *,
        offset: int = 0,
        topic: str = "t",
    ) -> list[bytes | None]:
        """What a consumer gets from an offset on: of a read_committed one, without what the aborted list
        hides."""
        content, aborted = bytearray(), list[Any]()
        while True:
            fetched = self.fetch(offset, partition, topic=topic, isolation_level=isolation_level)
            assert fetched.error == ErrorCode.NONE
            assert fetched.records is not None
            with fetched.records as records:
                data = records.read()
            index = scan(data)
            if not len(index):
                return consumed(memoryview(content), aborted)
            content += data[: index.end_position]
            aborted += fetched.aborted_transactions or ()
            offset = index.last_offset[-1] + 1

    def close(self) -> None:
        self.settle()
        self.broker.close()

    def restart(self) -> None:
        self.close()
        self._opened()


def consumed(data: memoryview, aborted: Any) -> list[bytes | None]:
    """Kafka's consumer, in its own words: an aborted producer is skipped until its ABORT marker."""
    index = scan(data)
    waiting = sorted({(each.first_offset, each.producer_id) for each in aborted})
    hidden: set[int] = set()
    selection = bytearray(select(index))
    for i in range(len(index)):
        while waiting and waiting[0][0] <= index.last_offset[i]:
            hidden.add(waiting.pop(0)[1])
        if index.attributes[i] & ATTRIBUTE_CONTROL:
            if index.control_type[i] == CONTROL_ABORT:
                hidden.discard(index.producer_id[i])
        elif index.attributes[i] & ATTRIBUTE_TRANSACTIONAL and index.producer_id[i] in hidden:
            selection[i] = 0

    def read(position: int, length: int) -> memoryview:
        return data[position : position + length]

    chunks = ChunkDecoder().chunks(SelectedBatches(read, index, selection))
    return [record.value for columns in chunks for record in records_of(columns)]


class Producer:
    """A transactional producer of transaction version 2, or of version 1 (KIP-890)."""

    def __init__(self, node: Node, transactional_id: str = "x", *, version: int = 2) -> None:
        self.node, self.id, self.version = node, transactional_id, version
        self.sequences: dict[int, int] = {}
        node.request(node.broker.transactions.find, transactional_id)
        node.settle()
        self.identity = self.init()

    def init(self, **fields: Any) -> Answer:
        transactions = self.node.broker.transactions
        answer: Answer = self.node.call(
            lambda reply: transactions.init_producer_id(
                self.id, 60_000, fields.get("producer_id", -1), fields.get("producer_epoch", -1), reply,
            )
        )  # fmt: skip
        self.identity, self.sequences = answer, {}
        return answer

    def batch(self, partition: int, *values: bytes) -> memoryview:
        sequence = self.sequences.get(partition, 0)
        self.sequences[partition] = sequence + len(values)
        return batch_of(
            *values, producer_id=self.identity.producer_id, producer_epoch=self.identity.producer_epoch,
            base_sequence=sequence, transactional=True,
        )  # fmt: skip

    def send(self, value: bytes, *partitions: int) -> list[ErrorCode]:
        """One record to each partition, in one request."""
        wanted = {TopicPartition("t", each): self.batch(each, value) for each in partitions or (0,)}
        api = 13 if self.version == 2 else 11
        results = self.node.produce(wanted, transactional_id=self.id, version=api)
        return [results[each].error for each in wanted]

    def send_and_commit(self, value: bytes, *partitions: int) -> ErrorCode:
        """Send one record to each partition, and commit without waiting for any of them."""
        wanted = {TopicPartition("t", each): self.batch(each, value) for each in partitions}
        request = ProduceRequest(wanted, transactional_id=self.id)
        self.node.request(self.node.broker.produce, request, lambda _: None)
        return self.end()

    def add(self, *partitions: int) -> set[ErrorCode]:
        """AddPartitionsToTxn of a client of version 1."""
        transactions, identity = self.node.broker.transactions, self.identity
        added = self.node.call(
            lambda reply: transactions.add_partitions(
                self.id, identity.producer_id, identity.producer_epoch,
                [TopicPartition("t", each) for each in partitions], reply,
            )
        )  # fmt: skip
        return set(added.values())

    def end(self, *, commit: bool = True) -> ErrorCode:
        transactions, identity = self.node.broker.transactions, self.identity
        answer: Answer = self.node.call(
            lambda reply: transactions.end_txn(
                self.id, identity.producer_id, identity.producer_epoch, commit, reply,
                client_transaction_version=2 if self.version == 2 else 0,
            )
        )  # fmt: skip
        if answer.error == ErrorCode.NONE and self.version == 2:
            self.identity, self.sequences = answer, {}
        return answer.error

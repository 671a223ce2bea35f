"""A coordinator on logs in memory, and the answers that it gave."""

from __future__ import annotations

from typing import Any

from tests.models.transaction_world import Host, Log, Partition, Written
from txnkafka.coordinator.ticks import Ticks
from txnkafka.coordinator.txn.producer_ids import ProducerIds
from txnkafka.coordinator.txn.transaction_partition import loaded_records
from txnkafka.coordinator.txn.txn_config import TransactionConfig
from txnkafka.coordinator.txn.txn_coordinator import TransactionCoordinator
from txnkafka.coordinator.txn.txn_events import AddPartitions, Answer, EndTxn, Event, InitProducerId
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.wire.records import TransactionMetadata

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
STATE_PARTITIONS = 2


class World:
    """One node; ``crash`` gives the one that starts from what is left."""

    def __init__(
        self,
        state_logs: list[Log[Any]] | None = None,
        partitions: dict[TopicPartition, Partition] | None = None,
        *,
        version: int = 2,
        first_producer_id: int = 0,
        fault: str = "",
        config: TransactionConfig | None = None,
    ) -> None:
        logs = state_logs or [Log() for _ in range(STATE_PARTITIONS)]
        self.host = Host(logs, partitions if partitions is not None else {T0: Partition(), T1: Partition()})
        self.host.fault = fault
        self.blocks = 0
        self.ids = ProducerIds(self._block)
        self.ids.block_durable(first_producer_id, 1000)
        self.ticks = Ticks()
        self._ahead_ms: int | None = None  # the clock, once it was set
        self.coordinator = TransactionCoordinator(
            self.host, self.host, self.ids, partition_count=STATE_PARTITIONS, version=version, config=config,
            ticks=self.ticks,
        )  # fmt: skip
        self.host.coordinator = self.coordinator
        self.load()

    def _block(self) -> None:
        self.blocks += 1

    def load(self, coordinator_epoch: int = 0) -> None:
        for number, log in enumerate(self.host.state_logs):
            records, problems = loaded_records(log.entries)
            assert not problems
            self.coordinator.load(number, coordinator_epoch, records, self.now)

    @property
    def now(self) -> int:
        """The time, when something is about to happen."""
        if self._ahead_ms is not None:
            self.ticks.tell(self.host.now_ms - self._ahead_ms)
        return self.host.now_ms

    def set_clock(self, ms: int) -> None:
        """Set the wall clock forward, or back; no time passes."""
        self._ahead_ms = self._ahead_ms or 0
        self.host.now_ms = self.now + ms
        self._ahead_ms += ms

    def send(self, event: Event) -> list[Answer]:
        """The list that the answer will be in."""
        answers: list[Answer] = []
        self.coordinator.handle(event, answers.append, self.now)
        assert len(answers) < 2
        return answers

    def ask(self, event: Event) -> Answer:
        """The answer, when all is flushed."""
        answers = self.send(event)
        self.host.settle()
        (answer,) = answers
        return answer

    def error(self, event: Event) -> ErrorCode:
        return self.ask(event).error

    def init(self, transactional_id: str = "tx", timeout_ms: int = 60_000) -> Answer:
        answer = self.ask(InitProducerId(transactional_id, timeout_ms))
        assert answer.error == ErrorCode.NONE
        return answer

    def begin(
        self, producer: Answer, *partitions: TopicPartition, transactional_id: str = "tx", version: int = 2
    ) -> None:
        """Open a transaction with a value in each partition, all durable."""
        event = AddPartitions(
            transactional_id, producer.producer_id, producer.producer_epoch, frozenset(partitions), version
        )
        assert self.error(event) == ErrorCode.NONE
        for name in partitions:
            self.host.partitions[name].append(Written(producer.producer_id, producer.producer_epoch, "value"))
            self.host.partitions[name].flush()

    def end(
        self, producer: Answer, committed: bool, transactional_id: str = "tx", version: int = 2
    ) -> EndTxn:
        return EndTxn(transactional_id, producer.producer_id, producer.producer_epoch, committed, version)

    def state(self, transactional_id: str = "tx") -> TransactionMetadata:
        """What is durable, in memory."""
        partition = self.coordinator.partition_of(transactional_id)
        return self.coordinator.partitions[partition].metadata[transactional_id]

    def records(self) -> int:
        return sum(len(log.entries) for log in self.host.state_logs)

    def advance(self, milliseconds: int) -> int:
        self.host.now_ms += milliseconds
        deadline = self.coordinator.advance(self.now)
        self.host.answer_early()
        return deadline

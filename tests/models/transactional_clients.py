"""Clients that write transactions through a coordinator, and what a reader must see of them.

A client does one thing at a time: it requests a producer id, sends values, commits or aborts. The partition
leader is simulated here: for a client of transaction version 2 it adds the partition itself, and appends the
value when that record is appended; otherwise it verifies. ``outcome`` is the answer that the client got.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.models.transaction_world import Host, Written
from txnkafka.coordinator.txn.txn_events import (
    AddPartitions,
    Answer,
    EndTxn,
    InitProducerId,
    VerifyPartitions,
)
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition

NONE = ErrorCode.NONE


@dataclass
class Transaction:
    """The values that a client sent in one transaction; ``commit`` is None until the client decides."""

    values: list[tuple[TopicPartition, str]] = field(default_factory=list)
    commit: bool | None = None
    outcome: ErrorCode | None = None

    def fault(self, seen: list[str]) -> str | None:
        """Return what is wrong with the values that a reader sees."""
        there = [value in seen for _, value in self.values]
        if any(seen.count(value) > 1 for _, value in self.values):
            return "seen twice"
        if self.commit and self.outcome == NONE:
            return None if all(there) else "an acknowledged commit is lost"
        if self.commit and self.outcome is None:
            return None if all(there) or not any(there) else "a transaction is torn"
        return "never committed, and seen" if any(there) else None


class Client:
    """One process with a transactional id; processes with the same id fence each other. ``waits_for_data`` is
    acks=all; else a value is acknowledged when it is appended. One that ``sees_appends`` is in the process of
    the server: it may end a transaction when its value is appended, and nothing is durable or answered."""

    def __init__(
        self, name: str, label: str, version: int, *, waits_for_data: bool, sees_appends: bool = False
    ) -> None:
        self.name, self.label, self.version, self.waits_for_data = name, label, version, waits_for_data
        self.sees_appends = sees_appends
        self.has_seen = False  # the value of the request under way
        self.history: list[Transaction] = []
        self.producer: Answer | None = None
        self.open: Transaction | None = None
        self.added: set[TopicPartition] = set()
        self.busy: Callable[[Host], None] | None = None  # repeats the request
        self.generation = 0  # answers to requests before a crash are ignored
        self.values = 0

    def step(self, host: Host, choice: int) -> None:
        """Do the next step, unless an answer is outstanding."""
        if self.has_seen and choice % 2:
            self._decide(host, choice)
            return
        if self.busy is not None:
            return
        if self.producer is None:
            self._init(host)
        elif self.open is None or choice % 3:
            if self.open is None and choice % 5 == 0:
                self.version = 2 - self.version  # the feature level of the cluster changed
            partitions = sorted(host.partitions)
            self._produce(host, partitions[choice // 3 % len(partitions)])
        else:
            self._decide(host, choice)

    def _decide(self, host: Host, choice: int) -> None:
        assert self.open is not None
        self.has_seen = False
        self.open.commit = bool(choice // 3 % 4)
        self._end(host)

    def _ask(
        self,
        host: Host,
        event: Any,
        then: Callable[[Answer], None],
        again: Callable[[Host], None],
        on_append: Callable[[], None] | None = None,
    ) -> None:
        generation, self.busy = self.generation, again

        def reply(answer: Answer) -> None:
            if generation == self.generation:
                if self.busy is again:  # the client has asked for nothing else
                    self.busy = None
                then(answer)

        host.coordinator.handle(event, reply, host.now_ms, on_append)

    def _init(self, host: Host) -> None:
        def then(answer: Answer) -> None:
            self.producer = answer if answer.error == NONE else None
            self.open, self.added = None, set()

        self._ask(host, InitProducerId(self.name, 60_000), then, self._init)

    def _identity(self) -> tuple[str, int, int]:
        assert self.producer is not None
        return self.name, self.producer.producer_id, self.producer.producer_epoch

    def _give_up(self, _: Host | None = None) -> None:
        """Give the transaction up; the next request is InitProducerId."""
        self.producer = self.open = None
        self.has_seen = False

    def _produce(self, host: Host, partition: TopicPartition) -> None:
        if self.open is None:
            self.open, self.added = Transaction(), set()
            self.history.append(self.open)
        self.values += 1
        value = f"{self.label}-{self.values}"
        if self.version < 2 and partition not in self.added:
            event = AddPartitions(*self._identity(), frozenset([partition]), 0)
            self._ask(host, event, lambda answer: self._may_send(answer, partition), self._give_up)
        elif self.version < 2:
            verify = VerifyPartitions(*self._identity(), frozenset([partition]))
            self._ask(
                host, verify, lambda answer: self._verified(host, answer, partition, value), self._give_up
            )
        else:
            self._produce_2(host, partition, value)

    def _may_send(self, answer: Answer, partition: TopicPartition) -> None:
        if answer.error == NONE:
            self.added.add(partition)
        else:
            self._give_up()

    def _verified(self, host: Host, answer: Answer, partition: TopicPartition, value: str) -> None:
        if answer.error != NONE or answer.missing or not self._append(host, partition, value):
            self._give_up()
        else:
            self._acknowledge(host, partition)

    def _produce_2(self, host: Host, partition: TopicPartition, value: str) -> None:
        _, producer_id, epoch = self._identity()
        if host.partitions[partition].open_epoch(producer_id) == epoch and partition in self.added:
            if self._append(host, partition, value):
                self._acknowledge(host, partition)
            else:
                self._give_up()
            return
        event = AddPartitions(*self._identity(), frozenset([partition]), 2)
        appended: list[bool] = []
        transaction = self.open

        def on_append() -> None:
            appended.append(self._append(host, partition, value))
            self.has_seen = appended[0] and self.sees_appends

        def then(answer: Answer) -> None:
            if answer.error == NONE and not appended:  # it was added before
                on_append()
            if answer.error != NONE and appended:
                host.partitions[partition].abort_open(producer_id)
            if self.open is not transaction or (transaction and transaction.commit is not None):
                return  # the client has gone on
            self.has_seen = False
            if answer.error != NONE or not appended[0]:
                self._give_up()
                return
            self.added.add(partition)
            self._acknowledge(host, partition)

        self._ask(host, event, then, self._give_up, on_append)

    def _append(self, host: Host, partition: TopicPartition, value: str) -> bool:
        """Append as a leader does; returns False when the producer is fenced there."""
        _, producer_id, epoch = self._identity()
        log = host.partitions[partition]
        if epoch < log.epoch_of(producer_id):
            return False
        assert self.open is not None
        self.open.values.append((partition, value))
        log.append(Written(producer_id, epoch, value))
        return True

    def _acknowledge(self, host: Host, partition: TopicPartition) -> None:
        if self.waits_for_data and host.partitions[partition].durable < len(
            host.partitions[partition].entries
        ):
            generation, self.busy = self.generation, self._give_up

            def done(error: ErrorCode) -> None:
                if generation == self.generation:
                    self.busy = None
                    if error != NONE:
                        self._give_up()

            host.partitions[partition].waiting.append(done)

    def _end(self, host: Host) -> None:
        assert self.open is not None
        event = EndTxn(*self._identity(), bool(self.open.commit), self.version)

        def then(answer: Answer) -> None:
            assert self.open is not None
            if answer.error == ErrorCode.CONCURRENT_TRANSACTIONS:
                self._end(host)
                return
            self.open.outcome = answer.error
            self.open = None
            if answer.error != NONE:
                self.producer = None
            elif self.version == 2:
                self.producer = answer
            self.added = set()

        self._ask(host, event, then, self._end)

    def reconnect(self, host: Host, survives: bool) -> None:
        """Continue after a crash of the server. A client that survives repeats unanswered requests; one that
        did not wait for its data cannot know which of it is left, and one in the process does not survive."""
        self.generation += 1
        again, self.busy = self.busy, None
        if self.sees_appends or not (survives and self.waits_for_data):
            self._give_up()
        elif again is not None:
            again(host)

"""Kafka's TransactionCoordinator and ours with the same random requests: ``Twins`` compare their answers.

Kafka's log and markers succeed at once (java/CoordinatorOfTransactions.java), ours are flushed after every
request; a request that Kafka answers with CONCURRENT_TRANSACTIONS is sent again, as a client does. Producer
ids are compared by their clients, because Kafka spends some without a client.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any, Protocol

from tests.unit.coordinator.world import T0, T1, World
from txnkafka.coordinator.txn.txn_config import TransactionConfig
from txnkafka.coordinator.txn.txn_events import (
    AddOffsets,
    AddPartitions,
    Answer,
    EndTxn,
    InitProducerId,
    TransactionRecord,
    VerifyPartitions,
)
from txnkafka.model import TopicPartition
from txnkafka.wire.records import TransactionMetadata

__all__ = ["Kafka", "Twins", "compare_sequences"]

LENGTH = 30
NAMES = ("a", "b")
PARTITIONS = (T0, T1, TopicPartition("__consumer_offsets", 0))
START_EPOCHS = (0, 0, 3, 32763, 32764, 32765, 32766, 32767)
REQUESTS = (
    "init",
    "init",
    "continue",
    "continue",
    "add",
    "add",
    "add",
    "offsets",
    "verify",
    "end",
    "end",
    "end",
)
WHO = ("mine",) * 5 + ("before", "last", "ahead", "old id", "old id, before", "foreign")


class Kafka(Protocol):
    """Kafka's coordinator, or its recorded answers."""

    def ask(self, *words: object) -> str:
        """Return the answer to a command of CoordinatorOfTransactions."""
        ...


class Twins:
    """Both coordinators; ``theirs`` leads from our producer ids to Kafka's."""

    def __init__(self, kafka: Kafka, version: int, epoch: int, max_parked: int) -> None:
        config = TransactionConfig(max_parked=max_parked)
        self.kafka, self.world = kafka, World(version=version, config=config)
        self.world.host.partitions.update(
            {name: type(self.world.host.partitions[T0])() for name in PARTITIONS}
        )
        self.theirs = {-1: -1, 4711: 4711}
        self.seen: Counter[str] = Counter()
        kafka.ask("start", version)
        if epoch:
            self.send("init", "a", (-1, -1), 0, 30)
            self._set_epoch(epoch)

    def _set_epoch(self, epoch: int) -> None:
        coordinator = self.world.coordinator
        state = coordinator.partitions[coordinator.partition_of("a")]
        state.replay(TransactionRecord("a", state.metadata["a"]._replace(producer_epoch=epoch)))
        self.kafka.ask("epoch", "a", epoch)

    def metadata(self, name: str) -> TransactionMetadata | None:
        coordinator = self.world.coordinator
        return coordinator.partitions[coordinator.partition_of(name)].metadata.get(name)

    def identity(self, name: str, kind: str) -> tuple[int, int]:
        it = self.metadata(name)
        if it is None:
            return 4711, 0
        return {
            "mine": (it.producer_id, it.producer_epoch),
            "before": (it.producer_id, max(it.producer_epoch - 1, 0)),
            "last": (it.producer_id, max(it.last_producer_epoch, 0)),
            "ahead": (it.producer_id, min(it.producer_epoch + 1, 32767)),
            "old id": (max(it.previous_producer_id, 0), 32766),
            "old id, before": (max(it.previous_producer_id, 0), 32765),
            "foreign": (4711, it.producer_epoch),
        }[kind]

    def send(self, what: str, name: str, who: tuple[int, int], version: int, number: int) -> None:
        """One request to both."""
        chosen = frozenset(each for i, each in enumerate(PARTITIONS) if number >> i & 1)
        words = ",".join(sorted(map(str, chosen)))
        theirs = (self.theirs.get(who[0], who[0]), who[1])
        event: Any
        if what in ("init", "continue"):
            event = InitProducerId(name, 1_000 * number, *who)
            line: tuple[object, ...] = ("init", name, 1_000 * number, *theirs)
        elif what == "add":
            event, line = AddPartitions(name, *who, chosen, version), ("add", name, *theirs, version, words)
        elif what == "offsets":
            event = AddOffsets(name, *who, PARTITIONS[2], version)
            line = ("add", name, *theirs, version, PARTITIONS[2])
        elif what == "verify":
            event, line = VerifyPartitions(name, *who, chosen), ("verify", name, *theirs, words)
        else:
            event = EndTxn(name, *who, number % 2 == 0, version)
            line = ("end", name, *theirs, number % 2 == 0, version)
        told = self.kafka.ask(*line)
        if told.startswith("CONCURRENT_TRANSACTIONS"):
            self.seen["CONCURRENT_TRANSACTIONS"] += 1
            told = self.kafka.ask(*line) if self.world.coordinator.config.max_parked else told
        answer = self.world.ask(event)
        self.seen[f"{what}: {answer.error.name}"] += 1
        if what == "verify":
            assert verified(answer, chosen) == told, event
        else:
            error, producer_id, epoch = told.split()
            assert (answer.error.name, answer.producer_epoch) == (error, int(epoch)), event
            self.same_id(answer.producer_id, int(producer_id))

    def same_id(self, ours: int, theirs: int) -> None:
        assert self.theirs.setdefault(ours, theirs) == theirs

    def pass_time(self, milliseconds: int) -> None:
        self.world.host.now_ms += milliseconds
        self.kafka.ask("time", self.world.now)
        self.world.coordinator._time_out(self.world.now, self.world.now)
        self.world.host.settle()

    def compare(self, name: str) -> None:
        """The states of an id."""
        it, told = self.metadata(name), self.kafka.ask("state", name)
        if it is None:
            assert told == "unknown"
            return
        producer_id, epoch, previous, *rest = told.split(" ")
        self.same_id(it.producer_id, int(producer_id))
        self.same_id(it.previous_producer_id, int(previous))
        ours = (
            it.last_producer_epoch,
            it.transaction_timeout_ms,
            it.state.label,
            ",".join(sorted(map(str, it.topic_partitions))),
            it.start_timestamp,
            it.last_update_timestamp,
            it.client_transaction_version,
        )
        assert [str(it.producer_epoch), *map(str, ours)] == [epoch, *rest]


def verified(answer: Answer, partitions: frozenset[TopicPartition]) -> str:
    """As Kafka answers a verification: an error for each partition."""
    found = {}
    for each in partitions:
        missing = "TRANSACTION_ABORTABLE" if each in answer.missing else "NONE"
        found[str(each)] = missing if answer.error == 0 else answer.error.name
    return " ".join(f"{name}={error}" for name, error in sorted(found.items()))


def compare_sequences(
    kafka: Kafka, chance: random.Random, count: int, *, version: int, max_parked: int
) -> Counter[str]:
    """Send sequences of random requests to both; return how often each answer came. With ``max_parked`` 0
    ours refuses at once what Kafka refuses."""
    seen = Counter[str]()
    for _ in range(count):
        twins = Twins(kafka, version, chance.choice(START_EPOCHS), max_parked)
        for _ in range(chance.randrange(LENGTH)):
            name = chance.choice(NAMES)
            if chance.random() < 0.15:
                twins.pass_time(chance.choice([1, 1_000, 20_000, 10**6]))
            else:
                what = chance.choice(REQUESTS)
                who = (-1, -1) if what == "init" else twins.identity(name, chance.choice(WHO))
                twins.send(what, name, who, chance.choice([0, 2]), chance.randrange(1, 60))
            for each in NAMES:
                twins.compare(each)
        seen += twins.seen
    return seen

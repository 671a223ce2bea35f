"""A producer of a scenario: it keeps the identity that it was given, and its requests are values that can be
sent later, or again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.scenarios.arguments import Arguments, partition_of
from tests.scenarios.views import answer_line, produced_line
from txnkafka._core.encode import encode_batch
from txnkafka.broker.requests import ProduceRequest
from txnkafka.coordinator.txn.txn_events import Answer
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition

__all__ = ["Producer", "Request"]

LARGEST_SEQUENCE = 2**31 - 1


class Request(NamedTuple):
    """``send`` gets the broker, a reply and the time; ``taken`` is what the producer does with the answer,
    and returns how it is shown."""

    send: Callable[[Any, Callable[[Any], None]], object]
    taken: Callable[[Any], str]


@dataclass
class Producer:
    """``version`` is the transaction version of the client: 2 sends Produce 13 and EndTxn 5, versions below
    send AddPartitionsToTxn, Produce 11 and EndTxn 4. ``now_ms`` is the time of its records."""

    transactional_id: str | None = None
    version: int = 2
    timeout_ms: int = 60_000
    producer_id: int = -1
    producer_epoch: int = -1
    sequences: dict[TopicPartition, int] = field(default_factory=dict)
    now_ms: int = 0

    def identity(self, given: Arguments) -> tuple[int, int]:
        """The producer id and epoch of a request: its own, unless the command has others."""
        producer_id = given.number("producer", self.producer_id)
        return producer_id, given.number("epoch", self.producer_epoch)

    def _takes(self, answer: Answer) -> str:
        if answer.error == ErrorCode.NONE and answer.producer_id != -1:
            self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
            self.sequences = {}
        return answer_line(answer)

    def init(self, given: Arguments) -> Request:
        """``init [id=x|none] [timeout=60s] [version=1]``; ``init continue`` names its own identity."""
        if "id" in given.options:
            self.transactional_id = None if given.text("id", "") == "none" else given.text("id", "")
        self.version = given.number("version", self.version)
        self.timeout_ms = given.milliseconds("timeout", self.timeout_ms)
        own = (self.producer_id, self.producer_epoch) if "continue" in given.words else (-1, -1)
        producer_id, epoch = given.number("producer", own[0]), given.number("epoch", own[1])
        name, timeout_ms = self.transactional_id, self.timeout_ms
        flags = {"enable_2pc": "2pc" in given.words, "keep_prepared_txn": "keep-prepared" in given.words}
        return Request(
            lambda broker, reply: broker.transactions.init_producer_id(
                name, timeout_ms, producer_id, epoch, reply, **flags
            ),
            self._takes,
        )

    def add(self, given: Arguments, *, verify_only: bool = False) -> Request:
        """``add t-0 t-1``: AddPartitionsToTxn; ``verify t-0`` with VerifyOnly."""
        names = [partition_of(word) for word in given.words]
        identity, name = self.identity(given), given.text("id", self.transactional_id or "")
        version = given.number("client", 0)
        return Request(
            lambda broker, reply: broker.transactions.add_partitions(
                name, *identity, names, reply, verify_only=verify_only,
                client_transaction_version=version, is_client="from-broker" not in given.words,
            ),
            lambda found: ", ".join(f"{each} {found[each].name}" for each in names) or "nothing",
        )  # fmt: skip

    def offsets(self, given: Arguments) -> Request:
        """``offsets GROUP``: AddOffsetsToTxn."""
        (group,), identity, name = given.words, self.identity(given), self.transactional_id or ""
        return Request(
            lambda broker, reply: broker.transactions.add_offsets(name, *identity, group, reply),
            answer_line,
        )

    def send(self, given: Arguments) -> Request:
        """``send t-0,t-1 "v1" "v2"``: one batch to each partition. Options: produce=VERSION, acks=0,
        sequence=N, producer=N, epoch=N; ``plain`` sends a batch that is not transactional."""
        names = [partition_of(word) for word in given.words[0].split(",")]
        plain = "plain" in given.words[1:]
        values = [word.encode() for word in given.words[1:] if word != "plain"]
        (producer_id, epoch), batches = self.identity(given), {}
        for name in names:
            sequence = given.number("sequence", self.sequences.get(name, 0))
            self.sequences[name] = (sequence + len(values)) & LARGEST_SEQUENCE
            transactional = not plain and (self.transactional_id is not None or "id" in given.options)
            batches[name] = bytes(
                encode_batch(
                    [(None, value, self.now_ms) for value in values], producer_id=producer_id,
                    producer_epoch=epoch, base_sequence=sequence, transactional=transactional,
                )
            )  # fmt: skip
        version = given.number("produce", 13 if self.version == 2 else 11)
        acks, name_of_id = given.number("acks", -1), given.text("id", self.transactional_id or "") or None

        def send(broker: Any, reply: Callable[[Any], None]) -> None:
            views: dict[TopicPartition, memoryview | None] = {
                each: memoryview(batches[each]) for each in names
            }
            request = ProduceRequest(views, name_of_id, acks, version)
            broker.produce(request, reply)

        return Request(send, lambda results: "; ".join(produced_line(each, results[each]) for each in names))

    def end(self, given: Arguments, *, committed: bool) -> Request:
        """``commit``, ``abort``; end=VERSION is that of EndTxn."""
        identity, name = self.identity(given), self.transactional_id or ""
        version = 2 if given.number("end", 5 if self.version == 2 else 4) >= 5 else 0
        return Request(
            lambda broker, reply: broker.transactions.end_txn(
                name, *identity, committed, reply, client_transaction_version=version
            ),
            self._takes,
        )

    @property
    def shown(self) -> str:
        """Who the producer is, and where it goes on."""
        following = ", ".join(f"{each} at {self.sequences[each]}" for each in sorted(self.sequences))
        identity = f"producer {self.producer_id} epoch {self.producer_epoch}"
        return f"{identity}, next sequences: {following or 'all 0'}"
